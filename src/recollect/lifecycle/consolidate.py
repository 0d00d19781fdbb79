"""Consolidation at the end of a session: what is used gains importance, what is unused fades and goes at last.

It concerns the public memories of the project that the pipeline itself made; with the setting `consolidate = all` also
what people and agents stored. Nothing is destroyed: what goes is hidden, and `restore` brings it back. Time counts in
days on which sessions ended, so that neither a pause of months nor a wrong clock takes anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from recollect.app import App
from recollect.domain.enums import Scope
from recollect.domain.lifecycle import CAPTURED, EndSession, LifecycleSettings
from recollect.domain.requests import Caller
from recollect.lifecycle.capabilities import CONSOLIDATION
from recollect.lifecycle.context import Context
from recollect.policy.consolidation import Consolidated, consolidated
from recollect.ports.storage import AgingMemory

_BATCH: Final = 100
"""Memories of one transaction: other writers get by between two of them."""

_EVICTED: Final = 10
"""Memories that one transaction hides: taking a memory's words out of the vocabulary takes 15 ms."""

_MOST_EVICTED: Final = 100
"""Memories that one session's end hides; the next end goes on."""

_EVICT: Final = "evict"


@dataclass(frozen=True, slots=True)
class Faded:
    """How many memories were looked at, got another importance, and were hidden."""

    looked_at: int
    changed: int
    hidden: int


def at_session_end(context: Context[EndSession]) -> None:
    """Consolidate the memories of the session's project, where the capability is there."""
    consolidate_all = context.capabilities.get(CONSOLIDATION)
    if consolidate_all is not None:
        consolidate_all()


def consolidate(app: App, caller: Caller, settings: LifecycleSettings) -> Faded:
    """Bring the importance of a project's memories up to now; one that runs at the same time adds nothing twice.

    What is to change is found without a lock and looked at again in the transaction that changes it.
    """
    namespace, decay = caller.writable(caller.namespace(Scope.PROJECT)), settings.consolidation_decay_rate
    days = app.records.session_days(namespace)
    if (today := app.clock().date()) not in days:
        with app.records.writing(namespace, caller.user) as transaction:
            days = transaction.note_session_day(today)
    known = app.records.aging(namespace, settings.fading)
    due = _due(app, known, decay, days)
    changed = hidden = 0
    for batch in _batches([one.id for one, done in due if done.importance != one.importance], _BATCH):
        with app.records.writing(namespace, caller.user) as transaction:
            found = _due(app, transaction.aging(batch), decay, days)
            transaction.consolidate([(one, done.importance, done.mark) for one, done in found])
            changed += len(found)
    captured = known if settings.fading == CAPTURED else app.records.aging(namespace, CAPTURED)
    beyond = _beyond(captured, settings.max_captured)
    going = dict.fromkeys([one.id for one, done in due if done.evicted] + beyond)
    for batch in _batches(list(going)[:_MOST_EVICTED], _EVICTED):
        with app.records.writing(namespace, caller.user) as transaction:
            found = _due(app, transaction.aging(batch), decay, days)
            unused = {one.id for one, done in found if done.evicted}
            hidden += sum(transaction.hide(one, _EVICT) for one in batch if one in unused or one in beyond)
    if hidden:
        app.run_later(app.vectors.sync)
        app.run_later(app.text.purge_deleted)
    return Faded(len(known), changed, hidden)


def _beyond(captured: Sequence[AgingMemory], most: int) -> list[int]:
    """Return what is beyond `most` memories (0: nothing): what was replaced, then the least used, oldest, slightest."""
    order = sorted(captured, key=lambda one: (not one.replaced, one.accesses, one.updated_at, one.importance, one.id))
    return [one.id for one in order[: max(len(order) - most, 0)]] if most else []


def _batches(ids: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))


def _due(
    app: App, memories: Sequence[AgingMemory], decay: float, days: Sequence[date]
) -> list[tuple[AgingMemory, Consolidated]]:
    """Return what is to be written of these memories."""
    now = app.clock()
    both = ((one, consolidated(one, now, decay, days)) for one in memories)
    return [(one, done) for one, done in both if not done.slight]
