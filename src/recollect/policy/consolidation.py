"""Consolidation: what a memory is worth after a while in which it was used or was not.

Use raises its importance, time without use lowers it, and what nobody used for long may be evicted at last. Accesses
that are counted and days that have passed are marked, so that it makes no difference how often this runs.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from recollect.domain.enums import POLICIES, Observation
from recollect.domain.results import JournalEntry
from recollect.ports.storage import AgingMemory, Mark

BOOST: Final = 0.03
DECAY: Final = 0.02
"""Importance that a memory loses in a day without use."""

EVICTED_BELOW: Final = 0.05
UNUSED: Final = timedelta(days=90)
ACTION: Final = "consolidate"
"""What the journal calls a change of importance by consolidation."""

_DAY: Final = timedelta(days=1)
_GAIN: Final = 0.01
_LOSS: Final = 0.05
_SLOW: Final = {Observation.DECISION: 0.5, Observation.DISCOVERY: 0.5}


@dataclass(frozen=True, slots=True)
class Consolidated:
    """What consolidation makes of a memory: its importance (0–1) now, the next mark, and whether it is to go.

    What is too `slight` to be written is left to add up: the mark stays where it is, so nothing is lost by that.
    """

    importance: float
    mark: Mark
    evicted: bool
    slight: bool


def consolidated(
    memory: AgingMemory, now: datetime, decay: float = DECAY, days: Sequence[date] | None = None
) -> Consolidated:
    """Return the importance of a memory `now`, given how far it was consolidated before; `decay` is of one day.

    Of the days since then those count on which sessions ended, which are `days` in order; all do where that is None.
    The boost is `0.03 × ln(1 + accesses)` in all, whenever they came. A day counts when the memory was neither written
    nor used since it began. What another memory replaces is never evicted: the other says where it came from.
    """
    mark, used_at = memory.mark, last_use(memory)
    counted = mark.accesses if mark else 0
    accesses = max(memory.accesses, counted)
    boost = BOOST * (math.log1p(accesses) - math.log1p(counted))
    since = max(used_at, mark.at) if mark else used_at
    faded = decay * decay_rate(memory) * _passed(since, now, days)
    importance = max(min(memory.importance + boost, 1.0) - faded, 0.0)
    evicted = not memory.replaced and importance < EVICTED_BELOW and _passed(used_at, now, days) >= UNUSED / _DAY
    slight = not evicted and _slight(importance - memory.importance)
    return Consolidated(importance, Mark(max(now, mark.at) if mark else now, accesses), evicted, slight)


def _passed(since: datetime, now: datetime, days: Sequence[date] | None) -> float:
    """Return how many days have passed, at most as many as there are later `days`."""
    passed = max((now - since) / _DAY, 0.0)
    return passed if days is None else min(passed, len(days) - bisect_right(days, since.date()))


def _slight(change: float) -> bool:
    """Say whether a change is not worth a line in the journal: a gain below 0.01, a loss below 0.05."""
    return round(change, 9) < _GAIN if change > 0 else round(-change, 9) < _LOSS


def decay_rate(memory: AgingMemory) -> float:
    """Return how fast a memory fades: 1, or less for decisions and discoveries."""
    return min(POLICIES[memory.fact_type].decay, _SLOW.get(memory.type, 1.0) if memory.type else 1.0)


def last_use(memory: AgingMemory) -> datetime:
    """Return when a memory was last written, read or recalled."""
    return max(memory.updated_at, memory.last_accessed_at or memory.updated_at)


def importance_before(history: Iterable[JournalEntry]) -> float | None:
    """Return the importance of a memory before it was consolidated, None where it was not since somebody set it.

    `history` are the lines of its journal, oldest first.
    """
    before: float | None = None
    for line in history:
        if line.action == ACTION:
            before = line.changes["importance"][0] if before is None else before
        elif "importance" in line.changes.get("fields", ()):
            before = None
    return before
