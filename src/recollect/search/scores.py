"""How hits are scored: the parts of a score, of which the calibrated match is one, and the weights of each profile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from recollect.domain.enums import POLICIES, FactType, Profile
from recollect.domain.results import Memory

if TYPE_CHECKING:
    import numpy as np

    from recollect.engines.signal_columns import Numbers
    from recollect.store.sql.candidate_rows import CandidateRows
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


def recency(memory: Memory, now: datetime) -> float:
    """Return 1 for a memory of now, falling by half with each half-life of its kind (21 days mostly).

    Its age counts from when it was observed, as for an imported note, else from when it was written.
    """
    age = (now - (memory.observed_at or memory.updated_at)).total_seconds() / _DAY
    return float(_faded(age, POLICIES[memory.fact_type].half_life))


def frequency(memory: Memory) -> float:
    """Return 0–1: how often a memory was used, on a logarithmic scale that is full at twenty uses."""
    return float(_used(memory.accessed_count + memory.recalled_count))


@dataclass(frozen=True, slots=True)
class Merits:
    """What scores are made of beside the match, each float64[n].

    `ages` and `half_lives` are in days, `importance` and `trust` are 0–1, `uses` are counts.
    """

    ages: Numbers
    half_lives: Numbers
    importance: Numbers
    trust: Numbers
    uses: Numbers

    @property
    def recency(self) -> Numbers:
        """Return the recency (0–1) of each."""
        return _faded(self.ages, self.half_lives)

    @property
    def frequency(self) -> Numbers:
        """Return the frequency (0–1) of each."""
        return _used(self.uses)


def merits_of(rows: CandidateRows, ids: Sequence[int], now: datetime) -> Merits:
    """Return the merits of candidates, of which no object is made."""
    kinds = rows.column("fact_type", ids)
    half_lives = {kind: POLICIES[FactType(kind)].half_life for kind in frozenset(kinds)}
    return Merits(
        ages=(now.timestamp() - rows.seconds(ids)) / _DAY,
        half_lives=np.array([half_lives[kind] for kind in kinds], dtype=np.float64),
        importance=rows.numbers("importance", ids),
        trust=rows.numbers("trust", ids),
        uses=rows.numbers("accessed_count", ids) + rows.numbers("recalled_count", ids),
    )


def weigh(merits: Merits, graded: Numbers, weights: Weights) -> dict[str, Numbers]:
    """Return for each part of a score (0–1) how much it gives to each memory; the match gives by its grade."""
    found = {"match": weights.match * graded}
    if weights.recency:
        found["recency"] = weights.recency * merits.recency
    if weights.importance:
        found["importance"] = weights.importance * merits.importance
    if weights.trust:
        found["trust"] = weights.trust * merits.trust
    if weights.frequency:
        found["frequency"] = weights.frequency * merits.frequency
    return found


def _faded(age: Numbers | float, half_life: Numbers | float) -> Numbers:
    """Return the share (0–1) that is left at an age, in the unit of the half-life."""
    shares: Numbers = 0.5 ** (np.maximum(age, 0.0) / half_life)
    return shares


def _used(uses: Numbers | float) -> Numbers:
    """Return 0–1 for a number of uses."""
    return np.minimum(np.log1p(uses) / _OFTEN, 1.0)


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
    merits: Merits, matches: Numbers, least: Numbers, fits: Numbers, floor: float, weights: Weights
) -> Scores:
    """Score memories by their matches; what answers has at least `PASSING`, all else less, by its match alone.

    `least` are the matches from which on each answers; `fits` is how well (0–1) each fits the named period.
    """
    parts = weigh(merits, grade(matches, floor, weights.match), weights)
    total = sum(parts.values(), np.zeros(len(matches)))
    answers = matches >= least
    wanted = np.where(answers, np.maximum(total, PASSING), PASSING * matches / least)
    shares = np.divide(wanted, total, out=np.zeros(len(matches)), where=total > 0.0)
    parts = {name: values * shares for name, values in parts.items()}
    parts[PERIOD] = np.where(answers, np.clip(1.0 - wanted, 0.0, _OF_PERIOD * fits), 0.0)
    return Scores(wanted + parts[PERIOD], parts)
