"""What a query asks for (a time, a number, a date), and whether a text tells it.

English only; a text in another language has none of these features, which changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from typing import TypeAlias

Date: TypeAlias = tuple[int | None, int, int | None]  # year, month, day

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = re.compile(rf"\b({'|'.join(_MONTHS)})\b", re.IGNORECASE)
_DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\b")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_WORD = re.compile(r"\w+")
_NEAR = 14  # characters between a day's number and its month
_JOINING = frozenset(("of", "the", "and", "or", "to"))  # what may stand between them
_OF_TIME = re.compile(r"(?:\b(?:in|of|since|until|by|last|this|next|during)|\d(?:st|nd|rd|th)?)\s*$", re.IGNORECASE)
_WHEN = re.compile(r"\s*(?:when|how long|(?:what|which) (?:date|day|month|year))\b", re.IGNORECASE)
_HOW_MANY = re.compile(r"\bhow (?:many|much|long|old|often)\b|\bnumber of\b", re.IGNORECASE)
_TIMES = frozenset(
    [
        *"yesterday today tomorrow tonight last next ago week weekend month year since recently just".split(),
        *(f"{day}day" for day in ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun")),
        *(month for month in _MONTHS if month != "may"),
        *map(str, range(1900, 2100)),
    ]
)
_NUMBERS = frozenset("one two three four five six seven eight nine ten once twice couple few several".split())
_DIGIT = re.compile(r"\d")
_SENTENCES = re.compile(r"[.!?]+")
_TURN = re.compile(r"^([A-Z][\w.\-]*(?: [A-Z][\w.\-]*)?):\s", re.MULTILINE)
_SAME_WEEKS = 14  # days


def asks_time(query: str) -> bool:
    """Say whether a query asks for a time."""
    return bool(_WHEN.match(query))


def asks_number(query: str) -> bool:
    """Say whether a query asks for a number."""
    return bool(_HOW_MANY.search(query))


def tells_time(text: str) -> bool:
    """Say whether a text tells a time; that is also "last week" or a year."""
    return not _TIMES.isdisjoint(_WORD.findall(text.lower()))


def tells_number(text: str) -> bool:
    """Say whether a text tells a number; that is also the word of a small one."""
    return bool(_DIGIT.search(text)) or not _NUMBERS.isdisjoint(_WORD.findall(text.lower()))


def questions(text: str) -> float:
    """Return which share (0–1) of a text's sentences are questions."""
    asked = text.count("?")
    return min(asked / max(len(_SENTENCES.findall(text)), 1), 1.0) if asked else 0.0


def transcript_speakers(text: str) -> frozenset[str]:
    """Return the speakers of a transcript, a text most of whose lines begin with a name that begins several."""
    lines = [line for line in text.splitlines() if line.strip()]
    turns = Counter(_TURN.findall(text))
    often = frozenset(name for name, count in turns.items() if count > 1)
    return often if turns.total() >= max(4, 0.5 * len(lines)) and 2 <= len(often) <= 8 else frozenset()


def date_in_words(moment: datetime) -> str:
    """Return a date as people write it in a query: 7 May 2023."""
    return f"{moment.day} {_MONTHS[moment.month - 1].capitalize()} {moment.year}"


def named_date(query: str) -> Date | None:
    """Return (year, month, day) of the first date in a query that names at least a month, None for what it lacks."""
    month = next((one for one in _MONTH.finditer(query) if _is_month(query, one)), None)
    if month is None:
        return None
    near = (int(day[1]) for day in _DAY.finditer(query) if _is_day(query, day, month))
    year = _YEAR.search(query)
    number = _MONTHS.index(month[1].lower()) + 1
    return int(year[0]) if year else None, number, next((day for day in near if 1 <= day <= 31), None)


def _is_month(query: str, month: re.Match[str]) -> bool:
    """Say whether a month's name is one: may is a verb, but for "in may", "7 may" and a May that opens no sentence."""
    before, after = query[max(month.start() - _NEAR, 0) : month.start()], query[month.end() : month.end() + _NEAR]
    beside = _OF_TIME.search(before) or _DAY.match(after.lstrip(" ,")) or _YEAR.match(after.lstrip(" ,"))
    opening = before.rstrip()[-1:] in ("", ".", "?", "!")
    return month[0].lower() != "may" or bool(beside) or (month[0] == "May" and not opening)


def _is_day(query: str, day: re.Match[str], month: re.Match[str]) -> bool:
    """Say whether a number is the day of a month: near it, with other days and joining words between them at most."""
    if abs(day.start() - month.start()) >= _NEAR:
        return False
    between = query[min(day.end(), month.end()) : max(day.start(), month.start())]
    return all(one.lower() in _JOINING or _DAY.fullmatch(one) for one in _WORD.findall(between))


def date_match(date: Date | None, observed: datetime | None) -> float:
    """Return how well (0–1) the time when something was observed fits a date: the day and those after, or a month."""
    if date is None or observed is None:
        return 0.0
    year, month, day = date
    if day is None:
        later = (observed.month - month) % 12 if year is None else 12 * (observed.year - year) + observed.month - month
        return 1.0 if later == 0 else 0.5 if later == 1 and observed.day < _SAME_WEEKS else 0.0
    years = (observed.year, observed.year - 1, observed.year + 1) if year is None else (year,)
    return max(_fits(observed.replace(tzinfo=None), one, month, day) for one in years)


def _fits(observed: datetime, year: int, month: int, day: int) -> float:
    try:
        days = (observed - datetime(year, month, day)).days
    except ValueError:  # 31 June
        return 0.0
    return 1.0 if 0 <= days <= 3 else 0.6 if -2 <= days <= _SAME_WEEKS else 0.0
