"""Currency: of memories about one subject the newer comes first, unless the query asks for the past; none is hidden."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from recollect.domain.search import RankingRow

_APART: Final = timedelta(days=1)  # what is nearer in time belongs together
_STANDING_OUT: Final = 0.2  # above the median of the pairs
_AS_WELL: Final = 0.8  # of the other's match: both answer the query
_PAST = re.compile(
    r"\b(?:used to|previous(?:ly)?|former(?:ly)?|original(?:ly)?|initially|earlier|back then|in the past|at first|"
    r"historically|no longer)\b|\bbefore(?: (?:that|then|now|this|the (?:change|switch|move|migration)))?\s*[?.!]*$",
    re.IGNORECASE,
)


def asks_past(query: str) -> bool:
    """Say whether a query asks how something was before (in English)."""
    return bool(_PAST.search(query))


def of_one_subject(cosines: Mapping[tuple[int, int], float], least: float) -> list[tuple[int, int]]:
    """Return the pairs of answers that are about one subject, by the cosine of each pair (-1–1).

    That is at least `least`, and stands out among several: answers that are all alike, such as the facts about one
    person, are not of one subject for that.
    """
    usual = median(cosines.values()) + _STANDING_OUT if len(cosines) > 1 else least
    return [pair for pair, cosine in cosines.items() if cosine >= max(least, usual)]


def newer_by_older(
    rows: Mapping[int, RankingRow], matches: Mapping[int, float], pairs: Collection[tuple[int, int]]
) -> dict[int, int]:
    """Return for each memory that a newer one replaces as an answer the newest of those.

    `pairs` are about one subject. Both must answer the query about as well, by their matches (0–1). Turns of a talk
    replace nothing: what was said stays said.
    """
    found: dict[int, int] = {}
    for older, newer in _by_date(rows, pairs):
        if min(matches[older], matches[newer]) >= _AS_WELL * max(matches[older], matches[newer]):
            best = found.get(older, newer)
            found[older] = max(best, newer, key=lambda one: (dated(rows[one]), one))
    return found


def lifted(
    scores: Mapping[int, float], newer: Mapping[int, int], *, past: bool, fits: Mapping[int, float]
) -> dict[int, float]:
    """Return the scores of those that come before others: each as high as the best of what it comes before.

    The newer comes before the older. With `past` the older comes before the newer, and so it does where it fits the
    period that the query names better, by `fits` (0–1).
    """
    found: dict[int, float] = {}
    for older, new in newer.items():
        earlier, later = fits.get(older, 0.0), fits.get(new, 0.0)
        first, second = (older, new) if earlier > later or (past and earlier == later) else (new, older)
        if scores[second] >= max(scores[first], found.get(first, 0.0)):
            found[first] = scores[second]
    return found


def dated(row: RankingRow) -> datetime:
    """Return when a memory was true: when it was observed, else when it was written."""
    return row.observed_at or row.updated_at


def _by_date(rows: Mapping[int, RankingRow], pairs: Collection[tuple[int, int]]) -> Iterator[Sequence[int]]:
    """Yield those pairs that are no turns of a talk and lie a day apart, the older one first."""
    for pair in pairs:
        older, newer = sorted(pair, key=lambda one: (dated(rows[one]), one))
        talk = any(rows[one].position is not None for one in pair)
        if not talk and dated(rows[newer]) - dated(rows[older]) >= _APART:
            yield older, newer
