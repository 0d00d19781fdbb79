"""The one room that reads the environment; it needs the standard library only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PREFIX: Final = "RECOLLECT_"
_NO: Final = frozenset({"0", "false", "f", "no", "n", "off"})


def variables() -> Mapping[str, str]:
    """Return the variables of ours that are set; an empty one counts as absent."""
    return {name: text for name, text in os.environ.items() if name.startswith(PREFIX) and text}


def named(name: str) -> str:
    """Return the variable of another program, or an empty text."""
    return os.environ.get(name, "")


def home(given: str = "") -> Path:
    """Return the data folder as the settings would find it, without checking it."""
    return Path(given or variables().get(f"{PREFIX}HOME", "~/.recollect")).expanduser().absolute()


def daemon_wanted() -> bool:
    """Return whether clients share a daemon, as the settings would read it."""
    return variables().get(f"{PREFIX}DAEMON", "1").strip().lower() not in _NO
