"""Remember: a draft passes the gate and becomes a memory, a new version of one, a part of one, or a confirmation."""

from __future__ import annotations

from dataclasses import replace

from recollect.domain import Caller, Done, Draft, Memory, Outcome
from recollect.errors import InvalidInput, SecretFound
from recollect.operations import twins
from recollect.operations.entry import MASKED, Ready, entry_of, passed, ready
from recollect.operations.forget import over_hidden
from recollect.policy.reconcile import Action, Decision, decide
from recollect.ports import App, Writing

_APART = " `restore` takes it apart again."


def remember(app: App, draft: Draft, caller: Caller | None = None, *, request_id: str = "") -> Outcome:
    """Store `draft` in the one namespace of its scope; durable in SQL when this returns.

    A known key updates that memory; the same content again refreshes it and raises its confidence. Fields that were
    not given keep what they had. What resembles a memory may be taken into it, or put it right: the notes say so, and
    `restore` undoes it. A `request_id` seen before gives its first answer again and changes nothing. Raises
    `SecretFound` when the gate refuses; then nothing is written.
    """
    caller = caller or app.caller
    namespace = caller.namespace(draft.scope)
    one = ready(app, passed(app, draft, namespace, caller))
    judged, whole = _planned(app, one, namespace, caller)
    notes = (MASKED,) if one.draft != draft else ()
    with app.records.writing(namespace, caller.user) as transaction:
        if (before := transaction.answered(request_id)) is not None:
            return before
        same_key = transaction.by_key(one.draft.key) if one.draft.key else None
        decision = decide(one.draft, one.content_hash, same_key, transaction.by_hash(one.content_hash))
        if decision.action is Action.INSERT:
            decision = _still(transaction, judged)
        outcome = _written(app, transaction, one, whole, decision, caller)
        evicted = make_room(app, transaction, int(outcome.id))
        told = (note.removesuffix(_APART) if evicted else note for note in outcome.notes)
        outcome = replace(outcome, notes=(*notes, *told))
        transaction.answer(request_id, outcome)
    if evicted:
        app.later(app.text.scrub)
    return outcome


def make_room(app: App, transaction: Writing, newest: int) -> int:
    """Evict what is least worth keeping beyond `max_memories`, never the newest; return how many went."""
    if not app.keeping.max_memories:
        return 0
    return sum(transaction.delete(one, "evict") for one in transaction.surplus(app.keeping.max_memories, newest))


def _planned(app: App, one: Ready, namespace: str, caller: Caller) -> tuple[Decision, Ready | None]:
    """Return what becomes of a draft beside its twins, and what a merge or a refresh would write then.

    That is a new draft, which passes the gate again. Where there can be none, the memory stays by itself.
    """
    judged = twins.judged(app, one, namespace)
    if judged.old is None or judged.action is Action.SUPERSEDE:
        return judged, None
    making = twins.joined if judged.action is Action.MERGE else twins.again
    try:
        whole = passed(app, making(judged.old, one.draft), namespace, caller)
    except (SecretFound, InvalidInput):
        return Decision(Action.INSERT), None
    return judged, ready(app, whole, judged.old)


def _still(transaction: Writing, judged: Decision) -> Decision:
    """Return the judgement where the memory it is about is still what was looked at."""
    if judged.old is None:
        return judged
    now = transaction.by_id(judged.old.id)
    return judged if now is not None and _unread(now) == _unread(judged.old) else Decision(Action.INSERT)


def _unread(memory: Memory) -> Memory:
    """Return the memory without what reading it changes."""
    return replace(memory, accessed_count=0, recalled_count=0, last_accessed_at=None, expires_at=None)


def _written(
    app: App, transaction: Writing, one: Ready, whole: Ready | None, decision: Decision, caller: Caller
) -> Outcome:
    now, rule = app.clock(), app.keeping.retention
    old = decision.old
    if old is None or decision.action is Action.SUPERSEDE:
        new = transaction.insert(entry_of(one, None, caller.user, now, rule))
        if old is None:
            return Outcome(Done.STORED, str(new))
        transaction.supersede(old.id, by=new)
        return Outcome(Done.STORED, str(new), (f"It puts right memory {old.id}, which leaves recall.",))
    said_alike = whole is not None and old.content_hash != one.content_hash and decision.action is not Action.UPDATE
    if not said_alike or whole is None:
        seen = one if old.deleted_at is None else over_hidden(app, one, old)
        transaction.update(old, entry_of(seen, old, caller.user, now, rule), decision.action)
        return Outcome(Done.UPDATED, str(old.id), _back(old))
    if decision.action is Action.MERGE:
        transaction.archive(old)
        transaction.insert(entry_of(one, None, caller.user, now, rule), merged_into=old.id)
    transaction.update(old, entry_of(whole, old, caller.user, now, rule), decision.action)
    if decision.action is Action.MERGE:
        return Outcome(Done.MERGED, str(old.id), (f"Memory {old.id} says it too now.{_APART}",))
    return Outcome(Done.UPDATED, str(old.id), (f"Memory {old.id} says so already.",))


def _back(old: Memory) -> tuple[str, ...]:
    return (f"It is current again; memory {old.superseded_by} had put it right.",) if old.superseded_by else ()
