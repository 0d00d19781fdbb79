"""How hits are scored: the parts of a score, of which the calibrated match is one, and the weights of each profile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from recollect.domain.enums import POLICIES, Profile
from recollect.domain.results import Memory
from recollect.domain.search import RankingRow

if TYPE_CHECKING:
    import numpy as np

    from recollect.engines.signal_columns import Numbers
else:
    from recollect.engines import arrays as np

_DAY = 86_400.0
_OFTEN = math.log1p(20)
_OF_PERIOD = 0.1  # of a score: as much as full trust

BY_SCORE: Final = frozenset({Profile.WEIGHTED, Profile.HABIT})
"""The profiles whose hits are ordered by their scores, with no other step."""
PERIOD: Final = "period"
"""The part of a score for a memory of the time that the query names."""

PASSING: Final = 0.35
"""The least score that is shown by default; a memory at the floor reaches it by its match alone, in every profile."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each part counts; the weights of a profile sum to one."""

    match: float
    recency: float = 0.0
    importance: float = 0.0
    trust: float = 0.0
    frequency: float = 0.0


_BALANCED: Final = Weights(match=0.55, recency=0.20, importance=0.15, trust=0.10)
PROFILES: Final[dict[Profile, Weights]] = {
    Profile.BALANCED: _BALANCED,
    Profile.WEIGHTED: _BALANCED,
    Profile.HABIT: Weights(match=0.40, recency=0.20, importance=0.30, frequency=0.10),
    Profile.RELEVANCE: Weights(match=1.0),
}


def grade(matches: Numbers, floor: float, weight: float) -> Numbers:
    """Return how matches (0–1) enter scores: at the floor as much as passes alone, in between on two straight lines.

    With a weight of 0.55 the floor lies at 0.35 / 0.55. Age, importance and trust then order what is relevant, and
    neither hide nor admit it.
    """
    passing = min(PASSING / weight, 1.0)
    above = passing + (1.0 - passing) * (matches - floor) / (1.0 - floor) if floor < 1.0 else np.ones_like(matches)
    return np.where(matches >= floor, above, passing * matches / floor)


def recency(memory: RankingRow | Memory, now: datetime) -> float:
    """Return 1 for a memory of now, falling by half with each half-life of its kind (21 days mostly).

    Its age counts from when it was observed, as for an imported note, else from when it was written.
    """
    age = max((now - (memory.observed_at or memory.updated_at)).total_seconds(), 0.0) / _DAY
    return float(0.5 ** (age / POLICIES[memory.fact_type].half_life))


def frequency(memory: RankingRow | Memory) -> float:
    """Return 0–1: how often a memory was used, on a logarithmic scale that is full at twenty uses."""
    return min(math.log1p(memory.accessed_count + memory.recalled_count) / _OFTEN, 1.0)


def weigh(rows: Sequence[RankingRow | Memory], graded: Numbers, weights: Weights, now: datetime) -> dict[str, Numbers]:
    """Return for each part of a score (0–1) how much it gives to each memory; the match gives by its grade."""
    found = {"match": weights.match * graded}
    if weights.recency:
        found["recency"] = weights.recency * np.array([recency(one, now) for one in rows])
    if weights.importance:
        found["importance"] = weights.importance * np.array([one.importance for one in rows])
    if weights.trust:
        found["trust"] = weights.trust * np.array([one.trust for one in rows])
    if weights.frequency:
        found["frequency"] = weights.frequency * np.array([frequency(one) for one in rows])
    return found


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of some memories (float64[n], 0–1), and what each part gave to them."""

    totals: Numbers
    parts: dict[str, Numbers]

    def parts_at(self, place: int) -> dict[str, float]:
        """Return the parts of a memory's score, which they sum to; a period that is not named or fitted is absent."""
        found = {name: float(values[place]) for name, values in self.parts.items()}
        return {name: part for name, part in found.items() if part or name != PERIOD}


def scores_of(
    rows: Sequence[RankingRow],
    matches: Numbers,
    least: Numbers,
    fits: Numbers,
    floor: float,
    weights: Weights,
    now: datetime,
) -> Scores:
    """Score memories by their matches; what answers has at least `PASSING`, all else less, by its match alone.

    `least` are the matches from which on each answers; `fits` is how well (0–1) each fits the named period.
    """
    parts = weigh(rows, grade(matches, floor, weights.match), weights, now)
    total = sum(parts.values(), np.zeros(len(rows)))
    answers = matches >= least
    wanted = np.where(answers, np.maximum(total, PASSING), PASSING * matches / least)
    shares = np.divide(wanted, total, out=np.zeros(len(rows)), where=total > 0.0)
    parts = {name: values * shares for name, values in parts.items()}
    parts[PERIOD] = np.where(answers, np.clip(1.0 - wanted, 0.0, _OF_PERIOD * fits), 0.0)
    return Scores(wanted + parts[PERIOD], parts)
