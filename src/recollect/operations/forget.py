"""Forget and bring back by id: an id counts only inside the caller's namespaces."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from recollect.domain import Caller, Done, Draft, Forget, Memory, OnSecret, Outcome, Restore, Sensitivity, SoftForget
from recollect.gate import clear
from recollect.operations.entry import MASKED, Made, Ready, answered, entry_of, outside, ready, refusals, says_so_too
from recollect.operations.view import number_of
from recollect.policy import layers
from recollect.policy.reconcile import expired, lapsed
from recollect.policy.twins import merged
from recollect.ports import App, Writing

_HIDDEN = "It is hidden, not gone: `restore` brings it back."


def forget(app: App, request: Forget, caller: Caller | None = None, *, request_id: str = "") -> Outcome:
    """Delete a memory from SQL, the text index and the vector index; an unknown id is an outcome, not an error.

    What was merged into it goes too. A `request_id` seen before gives its first answer again.
    """
    return _forget(app, request, caller, request_id, hard=True)


def memory_forget(app: App, request: SoftForget, caller: Caller | None = None, *, request_id: str = "") -> Outcome:
    """Hide a memory from every read until it is restored, or with `hard` delete it for good; the journal keeps both."""
    return _forget(app, request, caller, request_id, hard=request.hard)


def _forget(app: App, request: Forget, caller: Caller | None, request_id: str, *, hard: bool) -> Outcome:
    caller = caller or app.caller
    memory_id = number_of(request.id)
    namespaces = caller.namespaces(request.scope)
    namespace = app.records.locate(memory_id, namespaces) if memory_id else None
    with app.records.writing(namespace or namespaces[0], caller.user) as transaction:
        if (before := transaction.answered(request_id)) is not None:
            return before
        gone = False
        if memory_id is not None and namespace is not None:
            gone = transaction.delete(memory_id) if hard else transaction.hide(memory_id)
        outcome = Outcome(Done.NOT_FOUND, request.id)
        if gone:
            outcome = Outcome(Done.DELETED, str(memory_id), () if hard else (_HIDDEN,))
        transaction.answer(request_id, outcome)
    if memory_id is None or not gone:
        return outcome
    app.vectors.deliver(memory_id)
    app.later(app.text.scrub)
    return outcome


def restore_memory(app: App, request: Restore, caller: Caller | None = None, *, request_id: str = "") -> Outcome:
    """Bring back what was softly forgotten, superseded, merged into another memory, expired or quarantined.

    Taking a merge apart gives the other memory the text it had, if it has not changed since. What had passed its time
    gets the same term again. The text passes today's gate first. An id that is unknown, or deleted for good, is an
    outcome, not an error. A `request_id` seen before gives its first answer again.
    """
    caller = caller or app.caller
    memory_id = number_of(request.id)
    namespaces = caller.namespaces(request.scope)
    namespace = app.records.locate(memory_id, namespaces) if memory_id else None
    if memory_id is None or namespace is None:
        return answered(app, caller, request_id) or Outcome(Done.NOT_FOUND, request.id)
    return outside(app, partial(_restore, app, namespace, memory_id, caller, request_id))


def _restore(app: App, namespace: str, memory_id: int, caller: Caller, request_id: str, made: Made) -> Outcome:
    """Bring back a memory of a namespace in one transaction."""
    with refusals(app, namespace, caller), app.records.writing(namespace, caller.user) as transaction:
        if (before := transaction.answered(request_id)) is not None:
            return before
        old = transaction.by_id(memory_id)
        if old is None:
            return Outcome(Done.NOT_FOUND, str(memory_id))
        draft = draft_of(old, ttl_days=old.ttl_days if lapsed(old, app.clock()) else None)
        back = ready(app, clear(draft, app.on_secret), old, made)
        notes: tuple[str, ...] = (MASKED,) if back.draft != draft else ()
        notes += _taken_apart(app, transaction, old, caller, made)
        notes += says_so_too(transaction, back, old.id, app.clock())
        transaction.update(old, entry_of(back, old, caller.user, app.clock(), app.keeping.retention), "restore")
        outcome = Outcome(Done.RESTORED, str(memory_id), notes)
        transaction.answer(request_id, outcome)
    return outcome


def _taken_apart(app: App, transaction: Writing, old: Memory, caller: Caller, made: Made) -> tuple[str, ...]:
    """Give the memory that took `old` up the text it had before, where that is still all that was added to it."""
    whole = transaction.by_id(old.merged_into) if old.merged_into is not None else None
    if whole is None or expired(whole, app.clock()):
        return ()
    parts = [one for one in transaction.archived(whole.id) if one.id != old.id]
    other = next((one for one in parts if whole.content in _merges(one, old)), None)
    if other is None:
        return (f"Memory {whole.id} has changed since and keeps what it took from this one.",)
    before = ready(app, clear(draft_of(other, key=whole.key), app.on_secret), whole, made)
    entry = entry_of(before, whole, caller.user, app.clock(), app.keeping.retention)
    transaction.update(whole, entry, "restore", revive=False)
    transaction.delete(other.id)
    return (f"Memory {whole.id} says again what it said before.",)


def _merges(one: Memory, other: Memory) -> tuple[str, str]:
    return merged(one.content, other.content), merged(other.content, one.content)


def over_hidden(app: App, one: Ready, old: Memory) -> Ready:
    """Return a draft that brings `old` into sight again: the texts that it keeps pass today's gate, masked.

    It keeps its level too; one that is none becomes the strictest.
    """
    was = draft_of(old)
    masked = clear(was, OnSecret.REDACT).value
    names = {name for name in Draft.model_fields if getattr(masked, name) != getattr(was, name)}
    headings = ("title", "abstract", "overview")
    made = {name for name in headings if getattr(old, name) == getattr(layers, name)(old.content)}
    kept = {name: getattr(masked, name) for name in (names - made) | {"sensitivity"}}
    given = one.draft.model_fields_set
    draft = one.draft.model_copy(update={name: value for name, value in kept.items() if name not in given})
    return replace(one, cleared=clear(draft, app.on_secret))


def draft_of(memory: Memory, *, key: str | None = None, ttl_days: float | None = None) -> Draft:
    """Return the draft that stores a memory as it is; a level of sensitivity that is none becomes the strictest."""
    names = set(Draft.model_fields) - {"key", "ttl_days", "confidence", "sensitivity"}
    fields = {name: getattr(memory, name) for name in names if getattr(memory, name) not in (None, "")}
    level = memory.sensitivity if memory.sensitivity in set(Sensitivity) else Sensitivity.SECRET
    kept = {"key": memory.key or key, "confidence": memory.confidence, "sensitivity": level, "ttl_days": ttl_days}
    return Draft(**fields, **{name: value for name, value in kept.items() if value is not None})
