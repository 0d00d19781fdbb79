"""Ends a scan that has used all the processor time that it may."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import thread_time
from typing import Final

_ENDS: Final[ContextVar[float]] = ContextVar("ends", default=float("inf"))


class ScanTooLong(Exception):
    """A scan has used all the processor time that it may."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Let the scans inside the block use so much processor time together; a block around it may allow less."""
    token = _ENDS.set(min(_ENDS.get(), thread_time() + seconds))
    try:
        yield
    finally:
        _ENDS.reset(token)


def check_time() -> None:
    """Raise `ScanTooLong` where the scan has used all its time."""
    if thread_time() > _ENDS.get():
        raise ScanTooLong
