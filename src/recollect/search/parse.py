"""What a query asks: its words, its identifiers and the time that it names.

A query taken apart, once, before anything is searched: its words, its names, and what kind of thing it asks for.

Periods: the days that a query names, as a date or relative to now, and how well a moment fits them.

The expressions are found by pattern in English and in figures; dateparser reads them. Days are those of the zone that
`now` has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from itertools import islice
from typing import Final, NamedTuple

from recollect.search import date_reader
from recollect.text import writing_systems
from recollect.text.normalization import fold
from recollect.text.speaker_names import name_words
from recollect.text.terms import LONGEST_WORD, STOP_WORDS, contracted_negations, distinct, without_contractions

_COMPOUND = re.compile(r"[^\W_](?:[\w./:@#+\\-]*[^\W_])?")
_IDENTIFIER = re.compile(r"[_/\\#@]|::|[a-z]{2}\.[a-z]|[a-z][A-Z]|[^\W\d_]\W?\d|\d\W?[^\W\d_]|\d{4}")
_DATE_LIKE = re.compile(r"(?:19|20)\d\d(?:-\d\d){0,2}|\d+(?:st|nd|rd|th)", re.IGNORECASE)
_PAIR = re.compile(r"(?=\b(\w+ \w+)\b)")
_MOST_WORDS = 400  # of scripts without spaces
_MOST_PAIRS = 64


@dataclass(frozen=True, slots=True)
class Phrase:
    """A folded stretch of a query, and the words that it has by itself."""

    text: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query as it was typed (`text`), as an embedding model reads it (`model_text`), and in folded parts.

    `words` carry meaning; where no word does, they are all of its words. `compounds` are names with punctuation
    inside, such as paths, stretches of scripts without spaces, and emoji by name; `pairs` are any two words with one
    space between them. A speaker may be named by any of `name_words`. `identifiers` are names with digits, underscores,
    slashes, dots or capitals inside.
    """

    text: str
    model_text: str
    words: tuple[str, ...]
    compounds: tuple[Phrase, ...]
    pairs: tuple[Phrase, ...]
    name_words: frozenset[str]
    identifiers: tuple[Phrase, ...] = ()


def parse(query: str) -> ParsedQuery:
    """Take a query apart."""
    folded = _without_time(fold(query))
    words, emoji = _words(folded), writing_systems.emoji(query)
    names = [one for one in _COMPOUND.findall(folded) if not one.isalnum() and len(one) <= LONGEST_WORD * 4]
    names += [run for run in writing_systems.runs(folded) if len(run) <= LONGEST_WORD]
    names += emoji if words else ()
    names += () if _telling(without_contractions(folded)) else contracted_negations(folded)
    return ParsedQuery(
        text=query,
        model_text=writing_systems.in_words(query),
        words=tuple(dict.fromkeys(words or emoji)),
        compounds=_phrases(names),
        pairs=_phrases(_PAIR.findall(folded), _MOST_PAIRS),
        name_words=name_words(query),
        identifiers=_phrases(
            [fold(one) for one in _COMPOUND.findall(query) if _IDENTIFIER.search(one) and not _DATE_LIKE.fullmatch(one)]
        ),
    )


def _without_time(folded: str) -> str:
    """Return a query without a time relative to now, which no memory says, unless it asks for nothing else."""
    timeless = _FROM_NOW.sub(" ", folded)
    return timeless if _telling(without_contractions(timeless)) else folded


def _words(folded: str) -> list[str]:
    """Return the distinct words that carry meaning; all words where none does.

    What an apostrophe cuts off is none where it would weigh as much as all others. Beside more words it stays: the
    fusion's coefficients were made with it.
    """
    every, whole = _telling(folded), _telling(without_contractions(folded))
    if 2 * len(whole) > len(every):
        return every
    bare = without_contractions(folded, negations=False)
    return whole or _telling(bare) or _distinct(bare)


def _telling(folded: str) -> list[str]:
    """Return the distinct words that carry meaning."""
    return [word for word in _distinct(folded) if word not in STOP_WORDS and not writing_systems.is_lone(word)]


def _distinct(folded: str) -> list[str]:
    found = distinct(writing_systems.words(folded, every=False), _MOST_WORDS)
    return [word for word in found if len(word) <= LONGEST_WORD]


def _phrases(texts: Iterable[str], most: int | None = None) -> tuple[Phrase, ...]:
    """Return the distinct phrases, the first `most` of them."""
    found = list(dict.fromkeys(texts))[:most]
    return tuple(Phrase(text, tuple(_words(text) or writing_systems.emoji(text))) for text in found)


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
_FROM_NOW = re.compile(rf"\b(?:{'|'.join(_RELATIVE)})", re.IGNORECASE)
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
        if period := _read(text, now.replace(tzinfo=None), yearly=lacking and year is None):
            return period
    return None


def fit(period: Period | None, moment: datetime) -> float:
    """Return how well (0–1) the time of a clock fits a period: 1 within it, less where it may have been told about."""
    if period is None:
        return 0.0
    at, years = moment.replace(tzinfo=None), {period.first.year}
    if period.yearly:
        years = {at.year - 1, at.year, at.year + 1}
    return max(_fit((at - _in_year(period.first, year)).days, period.days) for year in years)


def _fit(days: int, length: int) -> float:
    if length == 1:
        return 1.0 if 0 <= days <= _SOON else 0.6 if -_EARLIER <= days <= _LATER else 0.0
    return 1.0 if 0 <= days < length else 0.5 if length <= days < length + _LATER else 0.0


def _in_year(day: datetime, year: int) -> datetime:
    """Return the same day of another year, the first of March for a 29 February that it lacks."""
    try:
        return day.replace(year=year)
    except ValueError:
        return day.replace(year=year, month=3, day=1)


def _read(text: str, now: datetime, *, yearly: bool) -> Period | None:
    """Return the period of one expression; None where there is no such day."""
    found = date_reader.of_query(now.date()).get_date_data(text)
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
