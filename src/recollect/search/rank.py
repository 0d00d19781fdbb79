"""How hits are scored: the parts of a score, of which the calibrated match is one, and the weights of each profile."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from recollect.domain.enums import POLICIES, Certainty, Profile
from recollect.domain.results import Memory
from recollect.domain.search import RankingRow

_DAY = 86_400.0
_OFTEN = math.log1p(20)

STRONG: Final = 0.5
"""From this match on more than half of the hits answer their query."""

SURE: Final = 0.7
"""Of hits with this match more than half answer their query; of those at `STRONG` two in five do."""

LIKELY: Final = 0.2

PASSING: Final = 0.35
"""The least score that is shown by default; a memory at the floor reaches it by its match alone, in every profile."""

AS_WELL: Final = 0.65  # of the other's match: both answer the query


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each part counts; the weights of a profile sum to one."""

    match: float
    recency: float = 0.0
    importance: float = 0.0
    trust: float = 0.0
    frequency: float = 0.0


PROFILES: dict[Profile, Weights] = {
    Profile.BALANCED: Weights(match=0.55, recency=0.20, importance=0.15, trust=0.10),
    Profile.HABIT: Weights(match=0.40, recency=0.20, importance=0.30, frequency=0.10),
    Profile.RELEVANCE: Weights(match=1.0),
}


def grade(match: float, floor: float, weight: float) -> float:
    """Return how a match (0–1) enters a score: at the floor as much as passes alone, in between on two straight lines.

    With a weight of 0.55 the floor lies at 0.35 / 0.55. Age, importance and trust then order what is relevant, and
    neither hide nor admit it.
    """
    passing = min(PASSING / weight, 1.0)
    if match >= floor:
        return passing + (1.0 - passing) * (match - floor) / (1.0 - floor) if floor < 1.0 else 1.0
    return passing * match / floor


def certainty(match: float) -> Certainty:
    """Return how sure a hit of a match (0–1) is, in a word."""
    return Certainty.STRONG if match >= STRONG else Certainty.LIKELY if match >= LIKELY else Certainty.WEAK


def saturated(bm25: float) -> float:
    """Bring bm25 (≥ 0, unbounded) to 0–1."""
    return bm25 / (bm25 + 20.0)


def rarity(uses: int, size: int) -> float:
    """Return the inverse document frequency of a word that stands in `uses` of `size` memories (> 0)."""
    return math.log(1.0 + (size - min(uses, size) + 0.5) / (min(uses, size) + 0.5))


def coverage(weights: Mapping[str, float], held: Collection[str]) -> float:
    """Return the share (0–1) of the query's weight whose words (stems) a memory holds."""
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in held) / total if total else 0.0


def recency(memory: RankingRow | Memory, now: datetime) -> float:
    """Return 1 for a memory of now, falling by half with each half-life of its kind (21 days mostly).

    It is of the time when it was observed, as an imported note is, else when it was written.
    """
    age = max((now - (memory.observed_at or memory.updated_at)).total_seconds(), 0.0) / _DAY
    return float(0.5 ** (age / POLICIES[memory.fact_type].half_life))


def frequency(memory: RankingRow | Memory) -> float:
    """Return 0–1: how often a memory was used, on a logarithmic scale that is full at twenty uses."""
    return min(math.log1p(memory.accessed_count + memory.recalled_count) / _OFTEN, 1.0)


def weigh(
    memory: RankingRow | Memory, graded: float, weights: Weights, now: datetime
) -> tuple[float, dict[str, float]]:
    """Return the score (0–1) and what each part gave to it, the match by its grade; the parts sum to the score."""
    parts = {
        "match": weights.match * graded,
        "recency": weights.recency and weights.recency * recency(memory, now),
        "importance": weights.importance * memory.importance,
        "trust": weights.trust * memory.trust,
        "frequency": weights.frequency and weights.frequency * frequency(memory),
    }
    given = {name: part for name, part in parts.items() if getattr(weights, name)}
    return sum(given.values()), given


def dated(row: RankingRow) -> datetime:
    """Return when a memory was true: when it was observed, else when it was written."""
    return row.observed_at or row.updated_at
