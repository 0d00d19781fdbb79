"""Facts: triples that hold for a time. A newer one ends the older one's time and never overwrites it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from recollect.domain import (
    Caller,
    Done,
    Fact,
    FactQuery,
    FactsFound,
    Forget,
    Memory,
    Outcome,
    Sensitivity,
    StoreFact,
    folded,
)
from recollect.errors import InvalidInput, NotFound
from recollect.operations.entry import MASKED, passed
from recollect.operations.view import everything, number_of
from recollect.policy.reconcile import expired, reinforced
from recollect.ports import App, FactEntry, Writing

_FACT = "Fact"


def store_fact(app: App, request: StoreFact, caller: Caller | None = None, *, request_id: str = "") -> Outcome:
    """Store a triple; the same one again gains confidence, another object of its subject and predicate ends the older.

    With `several` the older ones hold on. A fact of a memory is at most as public as that. Raises `SecretFound`,
    `NotFound` for an unknown memory, `InvalidInput` for a time that ends before it begins.
    """
    caller = caller or app.caller
    namespace = caller.namespace(request.scope)
    cleared = passed(app, request, namespace, caller)
    fact, now = cleared.value, app.clock()
    begins = fact.valid_from or now
    if fact.valid_to is not None and fact.valid_to <= begins:
        raise InvalidInput("valid_to", "Invalid valid_to: Must be after `valid_from`")
    with app.records.writing(namespace, caller.user) as transaction:
        if (before := transaction.answered(request_id)) is not None:
            return replace(before, what=_FACT)
        source = _source(app, transaction, fact)
        level = _level(fact.sensitivity, source)
        holding = transaction.facts_about(fact.subject, fact.predicate, begins)
        alike = (one for one in holding if fact.valid_to is None and one.valid_to is None and one.valid_from <= begins)
        told = (one for one in alike if folded(one.object) == folded(fact.object))
        same = next((one for one in told if _seen(app, transaction, one, source, level)), None)
        notes: tuple[str, ...] = (MASKED,) if fact != request else ()
        if same is not None:
            given = "confidence" in fact.model_fields_set
            transaction.confirm_fact(same, fact.confidence if given else reinforced(same.confidence))
            outcome = Outcome(Done.UPDATED, str(same.id), notes, _FACT)
        else:
            entry = FactEntry(
                cleared=cleared,
                memory_id=source.id if source else None,
                sensitivity=level,
                valid_from=begins,
                at=now,
                author=caller.user,
            )
            new = transaction.put_fact(entry)
            ended = () if fact.several else _ended(transaction, fact, begins, new, holding)
            notes += tuple(f"Fact {one.id} holds no longer." for one in ended if one.sensitivity is level)
            outcome = Outcome(Done.STORED, str(new), notes, _FACT)
        transaction.answer(request_id, outcome)
    return outcome


def forget_fact(app: App, request: Forget, caller: Caller | None = None, *, request_id: str = "") -> Outcome:
    """Delete a fact for good; an unknown id is an outcome, not an error. What it had replaced stays ended."""
    caller = caller or app.caller
    number = number_of(request.id)
    namespaces = caller.namespaces(request.scope)
    for namespace in namespaces:
        with app.records.writing(namespace, caller.user) as transaction:
            if (before := transaction.answered(request_id)) is not None:
                return replace(before, what=_FACT)
            if number is not None and transaction.delete_fact(number):
                outcome = Outcome(Done.DELETED, str(number), what=_FACT)
                transaction.answer(request_id, outcome)
                return outcome
    missing = Outcome(Done.NOT_FOUND, request.id, what=_FACT)
    with app.records.writing(namespaces[0], caller.user) as transaction:
        if transaction.answered(request_id) is None:
            transaction.answer(request_id, missing)
    return missing


def query_facts(app: App, request: FactQuery, caller: Caller | None = None) -> FactsFound:
    """Return the facts that hold now, or held at `as_of`, with the parts asked for; `history` shows ended ones too."""
    caller = caller or app.caller
    view = replace(everything(app, request, caller, request.scope), superseded=request.history)
    facts, total = app.records.facts(request, view)
    return FactsFound(tuple(facts), total)


def _source(app: App, transaction: Writing, fact: StoreFact) -> Memory | None:
    if fact.memory_id is None:
        return None
    number = number_of(fact.memory_id)
    source = transaction.by_id(number) if number else None
    if source is None or expired(source, app.clock()) or source.merged_into is not None:
        raise NotFound(f"Memory {fact.memory_id} not found in scope `{fact.scope}`.")
    return source


def _ended(transaction: Writing, fact: StoreFact, begins: datetime, new: int, others: Sequence[Fact]) -> Sequence[Fact]:
    """End what held when the new fact begins, and the new one where a later one begins; return the former."""
    ended = [one for one in others if one.valid_from <= begins]
    for one in ended:
        transaction.end_fact(one, begins, by=new)
    later = min((one for one in others if one.valid_from > begins), key=lambda one: one.valid_from, default=None)
    if later is not None and fact.valid_to is None:
        mine = next(one for one in transaction.facts_about(fact.subject, fact.predicate, begins) if one.id == new)
        transaction.end_fact(mine, later.valid_from, by=later.id)
    return ended


def _seen(app: App, transaction: Writing, fact: Fact, source: Memory | None, level: Sensitivity) -> bool:
    """Say whether whoever may see `level` sees the fact, and, where it is told of a memory, whether it is that one's.

    To confirm one that nobody sees would lose what was told.
    """
    if source is not None or fact.memory_id is None:
        return fact.sensitivity is level and fact.memory_id == (source.id if source else None)
    told = transaction.by_id(fact.memory_id)
    hidden = (
        told is None or expired(told, app.clock()) or told.merged_into is not None or told.superseded_by is not None
    )
    return not hidden and _level(fact.sensitivity, told) is level


_STRICTNESS = list(Sensitivity)


def _level(own: Sensitivity | None, source: Memory | None) -> Sensitivity:
    levels = [level for level in (own, source.sensitivity if source else None) if level is not None]
    return max(levels, key=_STRICTNESS.index, default=Sensitivity.PUBLIC)
