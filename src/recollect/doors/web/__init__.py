"""The page: people look at memories, and put them right. Rendered here, without any script of others."""

from __future__ import annotations

from typing import Final

PAGE: Final = "/page"
"""Where the page is."""
CODE_LIFE: Final = 300.0
"""Seconds in which a one-time address can be opened."""
AS_ARGUMENT: Final = "as_argument"
"""The field by which a client says that other users of the machine may see the address."""
