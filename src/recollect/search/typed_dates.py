"""Dates as people type them, in words or in figures: which moment is meant, by the calendar of whoever asks.

dateparser reads them as a whole. The order of day and month in figures is that of the person's locale; where none is
known, figures that may be two days are refused.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Final, NamedTuple

from recollect.domain import calendar
from recollect.search import date_reader
from recollect.search.periods import COUNT, YEAR, period_of

_COUNTED: Final = re.compile(
    rf"\b(?:{COUNT}|few|couple|fortnight)\b.{{0,80}} ago$|^in (?:{COUNT})\b|^(?:{COUNT}) [a-z]+$"
)
_ELAPSED: Final = re.compile(r"\b(?:seconds?|minutes?|hours?|secs?|mins?|hrs?)\b")
_FIGURES: Final = re.compile(r"[\d.,:/\s-]+|.*\d/\d.*")
_PLAIN_FIGURES: Final = re.compile(rf"{YEAR}(?:-\d\d?)?")
_YEAR_FIRST: Final = re.compile(rf"({YEAR})([-/.])(\d\d?)\2(\d\d?)\.?")
_YEAR_LAST: Final = re.compile(rf"(\d\d?)([-/.])(\d\d?)\2({YEAR})")
_LONGEST: Final = 200  # characters of an expression that is read
_LANGUAGE: Final = re.compile(r"([a-z]{2,3})(?:_([A-Z]{2}))?(?![a-zA-Z])")


class Ambiguous(ValueError):
    """Figures may be two days, and nothing tells which is meant: `days` are both."""

    def __init__(self, days: tuple[date, date]) -> None:
        super().__init__(f"{unmistakable_day(days[0])} or {unmistakable_day(days[1])}")
        self.days = days


class Figures(NamedTuple):
    """The day that figures mean, and whether they would be another day in another country."""

    day: date
    doubtful: bool


def unmistakable_day(day: date) -> str:
    """Return a day as text that cannot be taken for another day: 4 March 2026."""
    return f"{day.day} {day:%B %Y}"


def date_order(locale: str) -> str:
    """Return the order of a locale such as `en_GB.UTF-8`: `DMY`, `MDY` or `YMD`, an empty text where it is unknown."""
    if not (named := _LANGUAGE.match(locale)):
        return ""
    return (named[2] and date_reader.order_of(f"{named[1]}-{named[2]}")) or date_reader.order_of(named[1])


def day_in_figures(text: str, order: str) -> Figures | None:
    """Return the day that figures mean in a locale of this order, None for what is no day in figures.

    The year has four digits. Points stand between day, month and year in this order, and after a year come month and
    day, wherever somebody writes them. Raises `Ambiguous`, or `ValueError` for a day that no calendar has.
    """
    typed = text.strip()
    if found := _YEAR_FIRST.fullmatch(typed):
        return Figures(date(int(found[1]), int(found[3]), int(found[4])), doubtful=False)
    if not (found := _YEAR_LAST.fullmatch(typed)):
        return None
    first, second, year = int(found[1]), int(found[3]), int(found[4])
    if first > 12 or second > 12 or first == second:
        return Figures(date(year, *((second, first) if first > 12 else (first, second))), doubtful=False)
    days = (date(year, second, first), date(year, first, second))
    if found[2] == ".":
        return Figures(days[0], doubtful=True)
    if order not in ("DMY", "MDY"):
        raise Ambiguous(days)
    return Figures(days[order == "MDY"], doubtful=True)


def named_moment(text: str, now: datetime, *, end: bool = False, ahead: bool = False) -> datetime | None:
    """Return the moment (UTC) that an English expression means by the clock of `now`, None where it means none.

    Of a day, a week, a month or a year it is the beginning, or with `end` the last microsecond. `ahead` takes a Monday
    for the next one, and what is counted from now, such as "in 3 days", to the minute.
    """
    words = " ".join(text.lower().split())
    if len(words) > _LONGEST:
        return None
    if _FIGURES.fullmatch(words) and not _PLAIN_FIGURES.fullmatch(words):
        return None
    naive = now.replace(tzinfo=None)
    found = date_reader.typed_date_parser(naive, ahead=ahead).get_date_data(words)
    if found.date_obj is None:
        return None
    counted = bool(_COUNTED.search(words))
    with calendar.in_zone(now.tzinfo or calendar.local_zone()):
        if found.period in ("time", "part_of_day") or (counted and ahead):
            if counted and _ELAPSED.search(words):  # so long ago, or hence, also where the clock was changed meanwhile
                return calendar.instant(now) + (found.date_obj - naive)
            return calendar.instant(found.date_obj)
        period = period_of(found.date_obj, "day" if counted else found.period)
        days = calendar.days(period.first.date(), period.days)
    return days.last if end else days.first
