"""Periods: the days that a query names, as a date or relative to now, and how well a moment fits them.

The expressions are found by pattern in English and in figures; dateparser reads them. Days are those of the zone that
`now` has.
"""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from itertools import islice
from typing import Final, NamedTuple

from recollect.search import date_reader

_MONTHS: Final = "january|february|march|april|may|june|july|august|september|october|november|december"
_DAYS: Final = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
COUNT: Final = r"\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
YEAR: Final = r"(?:19|20)\d\d"
_DAY: Final = r"[0-3]?\d(?:st|nd|rd|th)?(?!\w)"
_IN_MONTH: Final = rf"(?:{_DAY} (?:of )?)?(?:{_MONTHS})\b(?: {_DAY})?(?:,? (?:of )?{YEAR}\b)?"
_RELATIVE: Final = (
    rf"(?:{COUNT}) (?:day|week|month|year)s? ago\b",
    r"(?:last|this) (?:week|month|year)\b",
    r"(?:the day before )?yesterday\b|today\b",
)
_FORMS: Final = (
    rf"{YEAR}-\d\d-\d\d\b|{YEAR}-\d\d\b(?!-)",
    r"\d{1,2}\.\d{1,2}\.(?:19|20)\d\d\b",
    *_RELATIVE,
    rf"(?:last|this) (?:{_DAYS})\b",
    rf"(?<=\bon )(?:{_DAYS})\b|(?<=\bsince )(?:{_DAYS})\b",
    _IN_MONTH,
    rf"(?<=\bin ){YEAR}\b|(?<=\bof ){YEAR}\b|(?<=\bfrom ){YEAR}\b|(?<=\bduring ){YEAR}\b",
)
_NAMED = re.compile(rf"\b(?:{'|'.join(_FORMS)})", re.IGNORECASE)
RELATIVE_TO_NOW = re.compile(rf"\b(?:{'|'.join(_RELATIVE)})", re.IGNORECASE)
_WITH_YEAR = re.compile(rf"\b{YEAR}\b")
_MONTH = re.compile(rf"\b(?:{_MONTHS})\b", re.IGNORECASE)
_VERB = re.compile(r"may\b(?! \d)", re.IGNORECASE)  # unless a preposition stands before it
_BEFORE_MONTH = re.compile(r"\b(?:in|of|since|until|by|last|this|during)\s+$", re.IGNORECASE)
_BEFORE: Final = 20  # characters before a month in which a preposition stands
_MOST_PERIODS: Final = 20  # of a query that are read: each takes a millisecond
_LEAP: Final = 2000  # has every day that a year can have
_LATER: Final = 14  # days in which something is still told about
_SOON: Final = 3  # days after a day on which it is as likely to be told about
_EARLIER: Final = 2  # days before a day: other time zones, and what was planned


class Period(NamedTuple):
    """Days in a row: the first one, how many, and whether those of any year are meant."""

    first: datetime
    days: int
    yearly: bool = False


def named_period(query: str, now: datetime) -> Period | None:
    """Return the first period that a query names, None without one; "last week" is relative to `now`."""
    year = _WITH_YEAR.search(query)
    for one in islice(_NAMED.finditer(query), _MOST_PERIODS):
        if _VERB.match(one[0]) and not _BEFORE_MONTH.search(query, max(0, one.start() - _BEFORE), one.start()):
            continue
        text = one[0].lower()
        lacking = bool(_MONTH.search(text)) and not _WITH_YEAR.search(text)
        text = f"{text} {year[0] if year else _LEAP}" if lacking else text
        if period := _read_expression(text, now.replace(tzinfo=None), yearly=lacking and year is None):
            return period
    return None


def fit(period: Period | None, moment: datetime) -> float:
    """Return how well (0–1) the time of a clock fits a period: 1 within it, less where it may have been told about."""
    if period is None:
        return 0.0
    at, years = moment.replace(tzinfo=None), {period.first.year}
    if period.yearly:
        years = {at.year - 1, at.year, at.year + 1}
    return max(_fit_of_days((at - _in_year(period.first, year)).days, period.days) for year in years)


def _fit_of_days(days: int, length: int) -> float:
    """Return how well (0–1) a moment fits that lies `days` after the start of a period of `length` days."""
    if length == 1:
        return 1.0 if 0 <= days <= _SOON else 0.6 if -_EARLIER <= days <= _LATER else 0.0
    return 1.0 if 0 <= days < length else 0.5 if length <= days < length + _LATER else 0.0


def _in_year(day: datetime, year: int) -> datetime:
    """Return the same day of another year, the first of March for a 29 February that it lacks."""
    try:
        return day.replace(year=year)
    except ValueError:
        return day.replace(year=year, month=3, day=1)


def _read_expression(text: str, now: datetime, *, yearly: bool) -> Period | None:
    """Return the period that a date expression means, None where there is no such day."""
    found = date_reader.query_date_parser(now.date()).get_date_data(text)
    if found.date_obj is None:
        return None
    return period_of(found.date_obj, found.period, yearly=yearly)


def period_of(moment: datetime, unit: str | None, *, yearly: bool = False) -> Period:
    """Return the day, week, month or year in which a moment lies."""
    day = datetime.combine(moment.date(), time())
    if unit == "week":
        return Period(day - timedelta(days=day.weekday()), 7)
    if unit == "month":
        first = day.replace(day=1)
        return Period(first, ((first + timedelta(days=31)).replace(day=1) - first).days, yearly)
    if unit == "year":
        first = day.replace(month=1, day=1)
        return Period(first, (first.replace(year=first.year + 1) - first).days)
    return Period(day, 1, yearly)
