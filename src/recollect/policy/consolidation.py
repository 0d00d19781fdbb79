"""Consolidation: what a memory is worth after a while in which it was used or was not.

Use raises its importance, time without use lowers it, and what nobody used for long may be evicted at last. Accesses
that are counted and days that have passed are marked, so that it makes no difference how often this runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from recollect.domain.enums import POLICIES, Observation
from recollect.domain.results import Memory

BOOST: Final = 0.03
DECAY: Final = 0.02
"""Importance that a memory loses in a day without use."""

EVICTED_BELOW: Final = 0.05
UNUSED: Final = timedelta(days=90)
_DAY: Final = timedelta(days=1)
_SLOW: Final = {Observation.DECISION: 0.5, Observation.DISCOVERY: 0.5}


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a memory is consolidated: until when its days are counted, and how many of its accesses."""

    at: datetime
    accesses: int


@dataclass(frozen=True, slots=True)
class Consolidated:
    """What consolidation makes of a memory: its importance (0–1) now, the next mark, and whether it is to go."""

    importance: float
    mark: Mark
    evicted: bool


def consolidated(memory: Memory, mark: Mark | None, now: datetime) -> Consolidated:
    """Return the importance of a memory `now`, given how far it was consolidated before (None: never).

    The boost is `0.03 × ln(1 + accesses)` in all, whenever they came. A day counts when the memory was neither written
    nor used since it began. What another memory replaces is never evicted: the other says where it came from.
    """
    used_at = last_use(memory)
    counted = mark.accesses if mark else 0
    accesses = max(memory.accessed_count + memory.recalled_count, counted)
    boost = BOOST * (math.log1p(accesses) - math.log1p(counted))
    since = max(used_at, mark.at) if mark else used_at
    faded = DECAY * decay_rate(memory) * max((now - since) / _DAY, 0.0)
    importance = max(min(memory.importance + boost, 1.0) - faded, 0.0)
    replaced = memory.superseded_by is not None or memory.merged_into is not None
    evicted = not replaced and importance < EVICTED_BELOW and now - used_at >= UNUSED
    return Consolidated(importance, Mark(max(now, mark.at) if mark else now, accesses), evicted)


def decay_rate(memory: Memory) -> float:
    """Return how fast a memory fades: 1, or less for decisions and discoveries."""
    return min(POLICIES[memory.fact_type].decay, _SLOW.get(memory.type, 1.0) if memory.type else 1.0)


def last_use(memory: Memory) -> datetime:
    """Return when a memory was last written, read or recalled."""
    return max(memory.updated_at, memory.last_accessed_at or memory.updated_at)
