"""Consolidation at the end of a session: a used memory gains importance, an unused memory fades and is hidden at last.

It concerns the public memories of the project that the pipeline itself made; with the setting `consolidate = all` also
the memories that people and agents stored. Nothing is destroyed: `restore` brings a hidden memory back. Time counts in
days on which sessions ended, so that neither a pause of months nor a wrong clock takes anything.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from recollect.app import App
from recollect.domain.enums import POLICIES, ObservationType, Scope
from recollect.domain.lifecycle import CAPTURED, EndSession, LifecycleSettings
from recollect.domain.requests import Caller
from recollect.sessions.session_state import Context
from recollect.store.entries import AgingMemory, Mark

BOOST: Final = 0.03
DECAY: Final = 0.02
"""Importance that a memory loses in a day without use."""

EVICTED_BELOW: Final = 0.05
UNUSED: Final = timedelta(days=90)
_DAY: Final = timedelta(days=1)
_MIN_GAIN: Final = 0.01
_MIN_LOSS: Final = 0.05
_SLOW_RATES: Final = {ObservationType.DECISION: 0.5, ObservationType.DISCOVERY: 0.5}

_BATCH: Final = 100
"""Memories of one transaction: other writers get by between two of them."""

_EVICTED: Final = 10
"""Memories that one transaction hides: taking a memory's words out of the vocabulary takes 15 ms."""

_MOST_EVICTED: Final = 100
"""Memories that one session's end hides; the next end goes on."""

_EVICT: Final = "evict"


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
    """Return the importance of a memory `now`, counted from its last consolidation; `decay` is the loss per day.

    Only the days since then count on which sessions ended, which are `days` in order; all do where that is None. The
    boost is `0.03 × ln(1 + accesses)` in all, whenever they came. A day counts when the memory was neither written nor
    used since it began. A memory in whose place another stands is never evicted by itself: the other says where it came
    from.
    """
    mark, used_at = memory.mark, last_use(memory)
    counted = mark.accesses if mark else 0
    accesses = max(memory.accesses, counted)
    boost = BOOST * (math.log1p(accesses) - math.log1p(counted))
    since = max(used_at, mark.at) if mark else used_at
    faded = decay * decay_rate(memory) * _days_passed(since, now, days)
    importance = max(min(memory.importance + boost, 1.0) - faded, 0.0)
    evicted = not memory.replaced and importance < EVICTED_BELOW and _days_passed(used_at, now, days) >= UNUSED / _DAY
    slight = not evicted and _is_slight(importance - memory.importance)
    return Consolidated(importance, Mark(max(now, mark.at) if mark else now, accesses), evicted, slight)


def _days_passed(since: datetime, now: datetime, days: Sequence[date] | None) -> float:
    """Return the number of days passed, at most the number of later `days`."""
    passed = max((now - since) / _DAY, 0.0)
    return passed if days is None else min(passed, len(days) - bisect_right(days, since.date()))


def _is_slight(change: float) -> bool:
    """Return whether a change is too small for the journal: a gain below 0.01, or a loss below 0.05."""
    return round(change, 9) < _MIN_GAIN if change > 0 else round(-change, 9) < _MIN_LOSS


def decay_rate(memory: AgingMemory) -> float:
    """Return the speed at which a memory fades: 1, or less for decisions and discoveries."""
    return min(POLICIES[memory.fact_type].decay, _SLOW_RATES.get(memory.type, 1.0) if memory.type else 1.0)


def last_use(memory: AgingMemory) -> datetime:
    """Return when a memory was last written, read or recalled."""
    return max(memory.updated_at, memory.last_accessed_at or memory.updated_at)


@dataclass(frozen=True, slots=True)
class Faded:
    """How many memories were looked at, got another importance, and were hidden."""

    looked_at: int
    changed: int
    hidden: int


def fade_at_session_end(context: Context[EndSession]) -> None:
    """Consolidate the memories of the session's project."""
    consolidate(context.app, context.caller, context.settings)


def consolidate(app: App, caller: Caller, settings: LifecycleSettings) -> Faded:
    """Bring the importance of a project's memories up to now; a run at the same time changes no memory twice.

    What is to change is found without a lock and looked at again in the transaction that changes it.
    """
    namespace, decay = caller.writable(caller.namespace(Scope.PROJECT)), settings.consolidation_decay_rate
    days = app.records.consolidation.session_days(namespace)
    if (today := app.clock().date()) not in days:
        with app.records.writing(namespace, caller.user) as transaction:
            days = transaction.consolidation.note_session_day(today)
    known = app.records.consolidation.aging(namespace, settings.fading)
    due = _due_changes(app, known, decay, days)
    changed = hidden = 0
    for batch in _batches([memory.id for memory, done in due if done.importance != memory.importance], _BATCH):
        with app.records.writing(namespace, caller.user) as transaction:
            found = _due_changes(app, transaction.consolidation.aging(batch), decay, days)
            transaction.consolidation.consolidate([(memory, done.importance, done.mark) for memory, done in found])
            changed += len(found)
    captured = known if settings.fading == CAPTURED else app.records.consolidation.aging(namespace, CAPTURED)
    beyond = _ids_over_limit(captured, settings.max_captured)
    going = dict.fromkeys([memory.id for memory, done in due if done.evicted] + beyond)
    for batch in _batches(list(going)[:_MOST_EVICTED], _EVICTED):
        with app.records.writing(namespace, caller.user) as transaction:
            found = _due_changes(app, transaction.consolidation.aging(batch), decay, days)
            unused = {memory.id for memory, done in found if done.evicted}
            hidden += sum(
                transaction.memories.hide(number, _EVICT) for number in batch if number in unused or number in beyond
            )
    if hidden:
        app.run_later(app.vectors.sync)
        app.run_later(app.text.purge_deleted)
    return Faded(len(known), changed, hidden)


def _ids_over_limit(captured: Sequence[AgingMemory], most: int) -> list[int]:
    """Return the ids beyond `most` memories (0: none): the replaced, then the least used, oldest, least important."""
    order = sorted(
        captured,
        key=lambda memory: (not memory.replaced, memory.accesses, memory.updated_at, memory.importance, memory.id),
    )
    return [memory.id for memory in order[: max(len(order) - most, 0)]] if most else []


def _batches(ids: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Return the ids in groups of at most `size`."""
    return (ids[start : start + size] for start in range(0, len(ids), size))


def _due_changes(
    app: App, memories: Sequence[AgingMemory], decay: float, days: Sequence[date]
) -> list[tuple[AgingMemory, Consolidated]]:
    """Return the changes of these memories that are large enough to be written."""
    now = app.clock()
    both = ((memory, consolidated(memory, now, decay, days)) for memory in memories)
    return [(memory, done) for memory, done in both if not done.slight]
