"""NumPy, imported when its first name is asked for: an agent that lists the tools must not wait for it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Return a name of NumPy, which is a name of this module from then on."""
    found = globals()[name] = getattr(import_module("numpy"), name)
    return found
