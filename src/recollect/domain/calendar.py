"""The calendar of whoever asks: a day as a range of instants in their time zone, also where clocks change.

A door says whose zone counts with `in_zone`; where none does, it is the zone of this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from recollect import process

_LOCAL: Final = Path("/etc/localtime")
_zone: ContextVar[tzinfo | None] = ContextVar("zone", default=None)


class Range(NamedTuple):
    """Two aware instants in UTC: the first of a stretch of time, and the last, a microsecond before what follows it."""

    first: datetime
    last: datetime


def zone_named(name: str) -> tzinfo:
    """Return a time zone by its IANA name, such as `Europe/Berlin`; for '' the zone of this machine.

    Raises `ValueError` for a name that no zone has.
    """
    if not name:
        return _zone_of_machine()
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("must be the name of a time zone, such as `Europe/Berlin` or `UTC`") from None


def machine_zone() -> str:
    """Return the IANA name of this machine's time zone, '' where it has none."""
    try:
        return str(ZoneInfo(process.time_zone()))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ""


@contextmanager
def in_zone(zone: tzinfo) -> Iterator[None]:
    """Read days and times without a zone as those of `zone` inside the block."""
    token = _zone.set(zone)
    try:
        yield
    finally:
        _zone.reset(token)


def local_zone() -> tzinfo:
    """Return the time zone of the caller."""
    return _zone.get() or zone_named("")


def instant(clock: datetime) -> datetime:
    """Return a time in UTC; a time without a zone is local time.

    Raises `OverflowError` for a time outside the calendar.
    """
    return (clock if clock.tzinfo else clock.replace(tzinfo=local_zone())).astimezone(UTC)


def days(first: date, count: int = 1) -> Range:
    """Return `count` days in a row as a range, from the first midnight to the last instant before the next midnight."""
    begins = datetime.combine(first, time())
    following = instant(begins + timedelta(days=count))
    return Range(instant(begins), following - timedelta(microseconds=1))


def _zone_of_machine() -> tzinfo:
    """Return the zone of this machine: by its name or its file, else its present offset."""
    try:
        if name := process.time_zone():
            return ZoneInfo(name)
        with _LOCAL.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return datetime.now().astimezone().tzinfo or UTC
