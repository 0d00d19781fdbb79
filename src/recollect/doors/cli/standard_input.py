"""Standard input as a text, with the standard library only: all of it, or what was piped in."""

from __future__ import annotations

import os
import select
import stat
import sys
from io import TextIOWrapper
from typing import Final

from recollect.errors import InvalidInput
from recollect.text.utf8 import utf8_fault

_WAIT: Final = 3.0  # seconds for the first byte of a pipe: whoever inherits one into which nobody writes must not hang


def read_input() -> str:
    """Return all of standard input, empty where it is closed; raise `InvalidInput` where it is not UTF-8."""
    if sys.stdin is None or not isinstance(sys.stdin, TextIOWrapper):
        return sys.stdin.read() if sys.stdin is not None else ""
    data: bytes = sys.stdin.buffer.read()
    if sys.stdin.encoding.lower() not in ("utf-8", "utf8"):
        return str(data, sys.stdin.encoding, errors="replace")
    if (wrong := utf8_fault(data)) is not None:
        raise InvalidInput("content", f"Invalid content: Standard input cannot be read. {wrong}")
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")


def piped_input() -> str | None:
    """Return the text of a file or a pipe on standard input; None for a terminal, a device, or when no text comes."""
    if sys.stdin is None:
        return None
    try:
        number = sys.stdin.fileno()
        kind = os.fstat(number).st_mode
    except OSError:  # not a file of the system's
        return read_input() or None
    if stat.S_ISREG(kind) or ((stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)) and _has_input(number)):
        return read_input() or None
    return None


def _has_input(number: int) -> bool:
    """Return whether a pipe or socket can be read, or ends, within a moment."""
    return bool(select.select([number], [], [], _WAIT)[0])
