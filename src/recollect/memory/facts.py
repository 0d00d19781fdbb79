"""Facts: triples that are valid for a time. One that replaces others ends them and never overwrites them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.domain.enums import Sensitivity, strictest
from recollect.domain.fields import fold_part
from recollect.domain.origin import Origin, least_trusted
from recollect.domain.requests import Caller, FactQuery, Forget, StoreFact
from recollect.domain.results import Fact, FactsFound, Memory, Outcome, WriteStatus
from recollect.errors import InvalidInput, NotFound
from recollect.gate import masked
from recollect.memory.prepare_write import MASKED, clear_or_journal
from recollect.memory.reconcile import expired, reinforced_confidence
from recollect.search.visibility import allowed_levels, levels_of_write, parse_id, unfiltered
from recollect.store.entries import FactEntry

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing

_FACT = "Fact"
_NAME, _FORGET = "store_fact", "forget_fact"


def store_fact(app: App, request: StoreFact, caller: Caller, *, request_id: str = "") -> Outcome:
    """Store a fact; the same one again gains confidence.

    With `replaces` the older facts of its subject and predicate are valid no longer, but for those that somebody with
    more authority said. A fact of a memory is at most as public as that memory, and has no more authority. Raises
    `SecretFound`, `NotFound` for an unknown memory, `InvalidInput` for a time that ends before it begins.
    """
    namespace = caller.namespace(request.scope)
    cleared = clear_or_journal(app, request, namespace, caller, request.sensitivity)
    fact, now = cleared.value, app.clock()
    begins = fact.valid_from or now
    if fact.valid_to is not None and fact.valid_to <= begins:
        raise InvalidInput("valid_to", "Invalid valid_to: Must be after `valid_from`")
    notes: tuple[str, ...] = (MASKED,) if fact != request else ()
    levels = levels_of_write(request, request.sensitivity)
    with app.records.writing(caller.writable(namespace), caller.user, levels) as transaction:
        if (before := transaction.outcomes.previous(_NAME, request_id)) is not None:
            return replace(before, what=_FACT)
        source = _source_memory(app, transaction, fact)
        stamp = origin_of(caller, source)
        level = _strictest(fact.sensitivity, source)
        current = transaction.facts.about(fact.subject, fact.predicate, begins)
        same_triples = (old for old in current if _same_triple(old, fact, begins) and _may_confirm(old, stamp))
        same = next((old for old in same_triples if _can_confirm(app, transaction, old, source, level)), None)
        if same is not None:
            given = "confidence" in fact.model_fields_set
            transaction.facts.confirm(same, fact.confidence if given else reinforced_confidence(same.confidence))
            outcome = Outcome(WriteStatus.UPDATED, str(same.id), notes, _FACT)
        else:
            entry = FactEntry(
                cleared=cleared,
                memory_id=source.id if source else None,
                sensitivity=level,
                valid_from=begins,
                at=now,
                author=caller.user,
                stamp=stamp,
            )
            new = transaction.facts.insert(entry)
            below = [old for old in current if old.stamp.authority <= stamp.authority]
            ended = _end_older(transaction, fact, begins, new, below) if fact.replaces else ()
            notes += tuple(f"Fact {old.id} is no longer valid." for old in ended)
            if fact.replaces:
                kept = (old for old in current if old not in below and old.valid_from <= begins)
                notes += tuple(f"Fact {old.id} was said by {old.origin}, which this does not replace." for old in kept)
            outcome = Outcome(WriteStatus.STORED, str(new), notes, _FACT)
        transaction.outcomes.record(_NAME, request_id, outcome)
    return outcome


def forget_fact(app: App, request: Forget, caller: Caller, *, request_id: str = "") -> Outcome:
    """Delete a fact for good; facts that it had ended stay ended.

    An unknown id is an outcome, not an error.
    """
    number = parse_id(request.id)
    namespaces, levels = caller.writable_namespaces(request.scope), allowed_levels(request)
    if (before := app.records.outcomes.previous(namespaces, caller.user, _FORGET, request_id)) is not None:
        return replace(before, what=_FACT)
    for namespace in namespaces:
        with app.records.writing(namespace, caller.user, levels) as transaction:
            gone = number is not None and transaction.facts.delete(number)
            if gone:
                outcome = Outcome(WriteStatus.DELETED, str(number), tuple(app.remaining()), what=_FACT)
                transaction.outcomes.record(_FORGET, request_id, outcome)
                transaction.memories.request_purge()
        if gone:
            app.run_later(app.text.purge_deleted)
            return outcome
    missing = Outcome(WriteStatus.NOT_FOUND, request.id, what=_FACT)
    with app.records.writing(namespaces[0], caller.user, levels) as transaction:
        if transaction.outcomes.previous(_FORGET, request_id) is None:
            transaction.outcomes.record(_FORGET, request_id, missing)
    return missing


def query_facts(app: App, request: FactQuery, caller: Caller) -> FactsFound:
    """Return the facts valid now, or at `as_of`, with the parts asked for; `history` shows ended ones too."""
    seen = unfiltered(app, request, caller, request.scope)
    view = seen.model_copy(update={"superseded": request.history})
    facts, total = app.records.facts.find(request, view)
    return FactsFound(tuple(facts), total)


def _source_memory(app: App, transaction: Writing, fact: StoreFact) -> Memory | None:
    """Return the memory that states the fact, None where the fact names none; raise `NotFound` for an unknown one."""
    if fact.memory_id is None:
        return None
    number = parse_id(fact.memory_id)
    source = transaction.lookup.by_id(number) if number else None
    hidden = source is None or source.sensitivity not in allowed_levels(fact)
    if source is None or hidden or expired(source, app.clock()) or source.merged_into is not None:
        raise NotFound(f"Memory {fact.memory_id} not found in scope `{fact.scope}`.")
    return source


def origin_of(caller: Caller, source: Memory | None) -> Origin:
    """Return the origin of a fact: the caller, or the memory that states it where that has less authority."""
    said = Origin(said_by=caller.origin.said_by, came_from=masked(caller.origin.came_from))
    return said if source is None else least_trusted([said, source.stamp])


def _may_confirm(old: Fact, said: Origin) -> bool:
    """Say whether words of this origin may confirm an old fact: each source is withdrawn by itself."""
    return old.stamp.authority is said.authority and old.stamp.came_from == said.came_from


def _same_triple(old: Fact, fact: StoreFact, begins: datetime) -> bool:
    """Say whether an old fact of the same subject and predicate has the same object, and both are valid without end."""
    endless = fact.valid_to is None and old.valid_to is None and old.valid_from <= begins
    return endless and fold_part(old.object) == fold_part(fact.object)


def _can_confirm(app: App, transaction: Writing, old: Fact, source: Memory | None, level: Sensitivity) -> bool:
    """Say whether a new fact of this level and source may confirm an old one without being lost to any reader."""
    if source is not None or old.memory_id is None:
        return old.sensitivity is level and old.memory_id == (source.id if source else None)
    of = transaction.lookup.by_id(old.memory_id)
    hidden = of is None or expired(of, app.clock()) or of.is_hidden
    return not hidden and _strictest(old.sensitivity, of) is level


def _end_older(
    transaction: Writing, fact: StoreFact, begins: datetime, new: int, current: Sequence[Fact]
) -> Sequence[Fact]:
    """End the older facts when the new fact begins, and the new fact where a later one begins; return the older."""
    older = [old for old in current if old.valid_from <= begins]
    stored = next(one for one in transaction.facts.about(fact.subject, fact.predicate, begins) if one.id == new)
    for old in older:
        transaction.facts.end(old, begins, new, stored.sensitivity)
    later = min((old for old in current if old.valid_from > begins), key=lambda old: old.valid_from, default=None)
    if later is not None and fact.valid_to is None:
        transaction.facts.end(stored, later.valid_from, later.id, later.sensitivity)
    return older


def _strictest(own: Sensitivity | None, source: Memory | None) -> Sensitivity:
    """Return the level of a fact: the stricter of its own and that of its source, public without both."""
    return strictest(Sensitivity.PUBLIC, *filter(None, (own, source.sensitivity if source else None)))
