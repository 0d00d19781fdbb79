"""The inbox: what waits for a person's decision, and what becomes of it."""

from __future__ import annotations

import re
from typing import Final

from recollect.app import App
from recollect.domain.origin import APPROVED, Origin
from recollect.domain.requests import Caller, Draft
from recollect.domain.results import Memory, Outcome, WriteStatus
from recollect.domain.review import Decide, Decision, Inbox, Waiting, WaitingPage
from recollect.errors import NotFound
from recollect.gate import clear
from recollect.memory.prepare_write import entry_for, journal_refusals, prepare
from recollect.memory.reconcile import expired
from recollect.search.visibility import allowed_levels, levels_of, parse_id, unfiltered

_NAME: Final = "decide"
_TOLD: Final = re.compile(r"may contradict memory (\d+)")


def inbox(app: App, request: Inbox, caller: Caller) -> WaitingPage:
    """Return what waits for a decision, the longest waiting first; what waits is never put before a prompt."""
    view = unfiltered(app, request, caller, request.scope).model_copy(update={"superseded": False})
    with app.records.snapshot():
        ids, total, since = app.records.waiting(view, request.limit, request.offset)
        found = app.records.load(ids, view)
        told = {one: int(match[1]) for one in ids if one in found and (match := _TOLD.match(found[one].review or ""))}
        others = app.records.load(set(told.values()), view)
    waiting = (_waiting(found[one], others.get(told.get(one, 0))) for one in ids if one in found)
    return WaitingPage(tuple(waiting), total, since)


def decide(app: App, request: Decide, caller: Caller, *, request_id: str = "") -> Outcome:
    """Approve a memory that waits, or hide it; with `always` or `never` all that waits from its source, and later too.

    With a `content` it says that from now on, in the words of the caller. Approving what is approved changes nothing.
    Raises `NotFound` for what does not wait.
    """
    memory_id = parse_id(request.id)
    levels = levels_of(request, caller)
    namespace = app.records.namespace_of(memory_id, caller.namespaces(), levels) if memory_id else None
    if memory_id is None or namespace is None:
        raise NotFound(f"Memory {request.id} not found.")
    good = request.decision in (Decision.APPROVE, Decision.ALWAYS)
    words = None
    if request.content is not None and good:
        with journal_refusals(app, namespace, caller):
            words = prepare(app, clear(Draft(content=request.content), app.on_secret))
    with app.records.writing(caller.writable(namespace), caller.user, allowed_levels(request)) as transaction:
        if (before := transaction.previous_outcome(_NAME, request_id)) is not None:
            return before
        old = transaction.by_id(memory_id)
        waits = old is not None and (old.review not in (None, APPROVED) or (old.review == APPROVED and good))
        if old is None or not waits or expired(old, app.clock()):
            raise NotFound(f"Memory {request.id} does not wait for a decision.")
        decided = [old]
        if request.decision in (Decision.ALWAYS, Decision.NEVER):
            source = old.stamp.source
            transaction.decide_source(source, approved=good)
            decided += [one for one in transaction.all_waiting() if one.stamp.source == source and one.id != old.id]
        for one in decided:
            transaction.decide(one, APPROVED if good else one.review)
            if not good:
                transaction.hide(one.id, "reject")
        if words is not None:
            transaction.update(old, entry_for(app, words, old, caller.user, Origin()), "update")
        status = WriteStatus.UPDATED if good else WriteStatus.DELETED
        outcome = Outcome(status, str(memory_id), _notes(request, len(decided)))
        transaction.record_outcome(_NAME, request_id, outcome)
    app.run_later(app.vectors.sync)
    return outcome


def _notes(request: Decide, many: int) -> tuple[str, ...]:
    what = {
        Decision.APPROVE: "It is approved.",
        Decision.REJECT: "It is hidden; `undo` brings it back.",
        Decision.ALWAYS: f"{many} approved, and whatever comes from this source.",
        Decision.NEVER: f"{many} hidden, and whatever comes from this source.",
    }
    return (what[request.decision],)


def _waiting(one: Memory, told: Memory | None) -> Waiting:
    contradicts, said = (None, "") if told is None else (told.id, told.content)
    return Waiting(one.id, one.created_at, one.review or "", one.origin, one.content, contradicts, said)
