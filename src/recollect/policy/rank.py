"""Ranking: what the searchers found becomes a calibrated match, and the match one part of a named profile."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from recollect.domain import POLICIES, Memory, Profile, Signals, Standing

_DAY = 86_400.0
_OFTEN = math.log1p(20)
_CROWD = 50
_UNRELATED = 0.1
_NEAR = 0.45
_NAMING = 2


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


def matches(found: Mapping[int, Signals], words: int) -> dict[int, float]:
    """Fuse what the searchers found for each candidate into 0–1: about how often such a candidate is relevant.

    Logistic models over absolute scores, never ranks, which would hide how good the best one is; fitted on
    dialogue, documentation and code questions, but for the speaker's weight, which was set by hand between two
    fits. The cosine counts by how far it stands out from the other
    candidates, because its noise grows with the store. Where no candidate shares the query's `words`, meaning
    decides alone; where meaning was not searched, the words do; a query of one or two words that a memory
    holds is never called irrelevant.
    """
    usual = _usual_cosine([max(one.cosine, 0.0) for one in found.values()])
    shared = max((one.coverage for one in found.values()), default=0.0)
    alone = min(max(1.0 - 2.0 * shared, 0.0), 1.0)
    semantic = any(one.cosine for one in found.values())
    return {number: _match(one, usual, alone, words, semantic) for number, one in found.items()}


def _match(one: Signals, usual: float, alone: float, words: int, semantic: bool) -> float:
    held, bm25, cosine = max(one.coverage, one.fuzzy), saturated(one.bm25), max(one.cosine, 0.0)
    if not semantic:
        return max(_logistic(-7.1 + 8.8 * bm25 + 2.9 * held), 0.5 * held**2)
    outstanding, spoken = cosine - usual, 1.0 if one.spoken else 0.0
    both = _logistic(-5.7 - 1.9 * cosine + 10.1 * outstanding + 4.5 * bm25 + 2.6 * held + 1.5 * spoken)
    meaning = _logistic(-5.3 + 1.4 * cosine + 13.5 * outstanding + 0.8 * spoken)
    named = held**4 * (0.5 + 0.5 * both) if words <= _NAMING else 0.0
    return max(both, alone * meaning, named)


def _usual_cosine(cosines: Sequence[float]) -> float:
    """Return the mean cosine of the candidates, the best one aside, as far as it can be noise.

    Few candidates, of a small store or a narrow filter, may all be relevant: whoever is missing from a crowd
    counts as unrelated text. Nor is it noise when a whole crowd is this near.
    """
    ordered = sorted(cosines, reverse=True)[1:_CROWD]
    missing = _CROWD - 1 - len(ordered)
    return min((sum(ordered) + missing * _UNRELATED) / (_CROWD - 1), _NEAR)


def _logistic(evidence: float) -> float:
    return 1.0 / (1.0 + math.exp(-evidence))


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


def recency(memory: Standing | Memory, now: datetime) -> float:
    """Return 1 for a memory written now, falling by half with each half-life of its kind (21 days mostly)."""
    age = max((now - memory.updated_at).total_seconds(), 0.0) / _DAY
    return float(0.5 ** (age / POLICIES[memory.fact_type].half_life))


def frequency(memory: Standing | Memory) -> float:
    """Return 0–1: how often a memory was used, on a logarithmic scale that is full at twenty uses."""
    return min(math.log1p(memory.accessed_count + memory.recalled_count) / _OFTEN, 1.0)


def weigh(memory: Standing | Memory, matched: float, weights: Weights, now: datetime) -> tuple[float, dict[str, float]]:
    """Return the score (0–1) and what each part gave to it; the parts sum to the score."""
    parts = {
        "match": weights.match * matched,
        "recency": weights.recency and weights.recency * recency(memory, now),
        "importance": weights.importance * memory.importance,
        "trust": weights.trust * memory.trust,
        "frequency": weights.frequency and weights.frequency * frequency(memory),
    }
    given = {name: part for name, part in parts.items() if getattr(weights, name)}
    return sum(given.values()), given
