"""Ends a scan that has used all the processor time that it may."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import thread_time
from typing import Final

_END_OF_SCAN: Final[ContextVar[float]] = ContextVar("ends", default=float("inf"))


class ScanTooLong(Exception):
    """A scan has used all the processor time that it may."""


@contextmanager
def limit_scan_time(seconds: float) -> Iterator[None]:
    """Limit all scans inside the block together to `seconds` of processor time; an outer block may allow less."""
    token = _END_OF_SCAN.set(min(_END_OF_SCAN.get(), thread_time() + seconds))
    try:
        yield
    finally:
        _END_OF_SCAN.reset(token)


def check_time() -> None:
    """Raise `ScanTooLong` where the scan has used all its time."""
    if thread_time() > _END_OF_SCAN.get():
        raise ScanTooLong
