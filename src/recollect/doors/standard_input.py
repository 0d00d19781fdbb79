"""Standard input as a text, with the standard library only: all of it, or what was piped in."""

from __future__ import annotations

import os
import select
import stat
import sys
from typing import Final

_WAIT: Final = 3.0  # seconds for the first byte of a pipe: whoever inherits one into which nobody writes must not hang


def read() -> str:
    """Return all of it, nothing where it is closed."""
    return sys.stdin.read() if sys.stdin is not None else ""


def piped() -> str | None:
    """Return what a file or a pipe on standard input holds; None for a terminal, a device, or when nothing comes."""
    if sys.stdin is None:
        return None
    try:
        number = sys.stdin.fileno()
        kind = os.fstat(number).st_mode
    except OSError:  # not a file of the system's
        return read() or None
    if stat.S_ISREG(kind) or ((stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)) and _comes(number)):
        return read() or None
    return None


def _comes(number: int) -> bool:
    """Say whether a pipe or socket has something to read, or ends, within a moment."""
    if sys.platform == "win32":  # where only sockets can be waited for
        return False
    return bool(select.select([number], [], [], _WAIT)[0])
