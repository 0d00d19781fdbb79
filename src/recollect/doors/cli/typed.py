"""Reads what people type: texts in several words or through a pipe, and dates in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

from recollect.domain import calendar
from recollect.doors.cli import render, terminal
from recollect.errors import InvalidInput
from recollect.text.utf8 import utf8_fault_of_text

_ISO: Final = re.compile(r"\s*\d{4}-\d\d-\d\d")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENTS: Final = (
    "Must be a day or a time, such as `2026-05-07` or `2026-05-07T13:30`, or words such as `yesterday`, `last week`, "
    "`3 days ago` or `March 2026`"
)
_AHEAD: Final = (
    "Must be a day or a time to come, such as `2027-05-07`, or words such as `tomorrow`, `next week` or `in 3 months`"
)


def typed_text(name: str, typed: Sequence[str] | str | None, *, required: bool) -> str | None:
    """Return the typed words as a text, or standard input where the only word is `-`.

    A `required` text without words is read from a pipe; raises `InvalidInput` where that is empty.
    """
    words = [typed] if isinstance(typed, str) else typed
    if words and list(words) != ["-"]:
        text = " ".join(words)
        if (wrong := utf8_fault_of_text(text)) is not None:
            raise InvalidInput(name, f"Invalid {name}: {wrong}")
        return text
    if words:
        return terminal.read_stdin().rstrip("\r\n")
    if not required:
        return None
    piped = terminal.read_piped()
    if piped is None:
        raise InvalidInput(name, f"Missing {name}: Type the text, or pipe it in; `--help` tells more")
    return piped.rstrip("\r\n")  # the program before the pipe ended its last line with it


def moment(name: str, typed: str, *, end: bool = False, ahead: bool = False) -> str:
    """Return a date as the request reads it: ISO as it is, words as the moment that they mean by the local clock.

    A day begins where it begins here; with `end` it is meant to its end.
    """
    if not typed.strip() or _ISO.match(typed):
        return typed
    found = _read_date(name, typed, end=end, ahead=ahead)
    if found is None:
        raise InvalidInput(name, f"Invalid {name}: {_MOMENTS}")
    return found.isoformat()


def _read_date(name: str, typed: str, *, end: bool, ahead: bool) -> datetime | None:
    """Return the moment that words or figures mean, None where they mean none.

    A date in figures that other countries read as another day is printed as it was understood; raises `InvalidInput`
    where the order of its figures is not known.
    """
    from recollect.search import typed_dates

    try:
        figures = typed_dates.day_in_figures(typed, typed_dates.date_order(terminal.locale()))
    except typed_dates.Ambiguous as error:
        first, second = (day.isoformat() for day in error.days)
        raise InvalidInput(
            name, f"Invalid {name}: `{typed}` may be {error}: type `{first}` or `{second}`, or set LC_TIME"
        ) from None
    except ValueError:  # no day of the calendar
        return None
    if figures is None:
        return typed_dates.named_moment(typed, datetime.now(calendar.local_zone()), end=end, ahead=ahead)
    if figures.doubtful:
        render.err.print(
            f"`{typed}` is read as {typed_dates.unmistakable_day(figures.day)}.", style="dim", markup=False
        )
    days = calendar.days(figures.day)
    return days.last if end else days.first


def days_left(typed: str, ttl_days: object) -> float:
    """Return the days from now until the end of the day that was typed, or until the time in it."""
    if ttl_days is not None:
        raise InvalidInput("expires", "Invalid expires: Must not be given together with `--ttl-days`")
    left = (_end_of(typed) - datetime.now(UTC)) / timedelta(days=1)
    if left <= 0:
        raise InvalidInput("expires", f"Invalid expires: {_AHEAD}")
    return left


def _end_of(typed: str) -> datetime:
    """Return the end of a day that was typed, or the time in it; raise `InvalidInput` for neither."""
    found = None
    try:
        if not _ISO.match(typed):
            found = _read_date("expires", typed, end=True, ahead=True)
        elif _DAY.fullmatch(typed.strip()):
            found = calendar.days(date.fromisoformat(typed.strip())).last
        else:
            found = calendar.instant(datetime.fromisoformat(typed.strip()))
    except (ValueError, OverflowError) as error:
        if isinstance(error, InvalidInput):
            raise
    if found is None:
        raise InvalidInput("expires", f"Invalid expires: {_AHEAD}")
    return found
