"""The inbox: what waits for a person's decision, and what becomes of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from recollect.app import App
from recollect.domain.enums import OnSecret
from recollect.domain.origin import APPROVED, Origin, places_of
from recollect.domain.requests import Caller, Draft, Forget, Levels, ReadAccess, Restore
from recollect.domain.results import Memory, Outcome, WriteStatus
from recollect.domain.review import (
    Decide,
    Decision,
    DropSourceRule,
    Inbox,
    SourceRule,
    SourceRuleDropped,
    SourceRulePage,
    SourceRules,
    Waiting,
    WaitingPage,
)
from recollect.domain.search import View
from recollect.errors import InvalidInput, NotFound
from recollect.gate import clear, secrets_in
from recollect.memory.forget import forget
from recollect.memory.prepare_write import draft_of, entry_for, journal_refusals, prepare_draft
from recollect.memory.reconcile import expired
from recollect.memory.restore import restore_memory
from recollect.memory.withdraw import is_from
from recollect.search.visibility import allowed_levels, levels_of, parse_id, unfiltered

if TYPE_CHECKING:
    from recollect.store.sql.reviews import StoredRule

_NAME: Final = "decide"
_TOLD: Final = re.compile(r"may contradict memory (\d+)")


def inbox(app: App, request: Inbox, caller: Caller) -> WaitingPage:
    """List what waits for approval, the longest waiting first; what waits is never added to a prompt."""
    view = _inbox_view(app, request, caller)
    days = app.retention_rules.inbox_days
    with app.records.snapshot():
        queue = app.records.reviews.waiting(view, request.limit, request.offset, view.now - timedelta(days=days))
        found = app.records.load(queue.page, view)
        away = app.records.reviews.in_quarantine(queue.page.keys() - found.keys(), view)
        told = {one: int(match[1]) for one, each in found.items() if (match := _TOLD.match(each.review or ""))}
        others = app.records.load(set(told.values()), view)
    waiting = [
        _quarantined_item(away[one], since)
        if one in away
        else _waiting_item(found[one], since, others.get(told.get(one, 0)))
        for one, since in queue.page.items()
        if one in away or one in found
    ]
    return WaitingPage(tuple(waiting), queue.total, queue.since, queue.late, days)


def count_waiting(app: App, request: Inbox, caller: Caller) -> int:
    """Return how many memories wait for a decision; of more than `limit`, that many."""
    return app.records.reviews.count_waiting(_inbox_view(app, request, caller), request.limit)


def decide(app: App, request: Decide, caller: Caller, *, request_id: str = "") -> Outcome:
    """Approve or reject a memory that waits; with `always` or `never`, everything from its source, later too.

    With a `content` it says that from now on, in the words of the caller. Approving what is approved changes nothing.
    Out of quarantine it comes only when the gate finds no secret in it any more; rejected, it is removed for good. With
    `sources` it is decided of all that waits and came from there, quarantine aside. Raises `NotFound` for what does not
    wait, `SecretFound` for what has to stay in quarantine.
    """
    if request.sources:
        return _decide_sources(app, request, caller, request_id)
    memory_id = parse_id(request.id or "")
    if memory_id and memory_id in app.records.reviews.in_quarantine([memory_id], unfiltered(app, request, caller)):
        return _decide_in_quarantine(app, request, caller, request_id)
    levels = levels_of(request, caller)
    namespace = app.records.namespaces.of_memory(memory_id, caller.namespaces(), levels) if memory_id else None
    if memory_id is None or namespace is None:
        raise NotFound(f"Memory {request.id} not found.")
    good = request.decision in (Decision.APPROVE, Decision.ALWAYS)
    words = None
    if request.content is not None and good:
        with journal_refusals(app, namespace, caller):
            words = prepare_draft(app, Draft(content=request.content))
    with app.records.writing(caller.writable(namespace), caller.user, allowed_levels(request)) as transaction:
        if (before := transaction.outcomes.previous(_NAME, request_id)) is not None:
            return before
        old = transaction.lookup.by_id(memory_id)
        waits = old is not None and (old.review not in (None, APPROVED) or (old.review == APPROVED and good))
        if old is None or not waits or expired(old, app.clock()):
            raise NotFound(f"Memory {request.id} does not wait for a decision.")
        decided = [old]
        if request.decision in (Decision.ALWAYS, Decision.NEVER):
            source = old.stamp.source
            transaction.reviews.decide_source(source, old.sensitivity, approved=good)
            waiting = [one for one in transaction.reviews.waiting() if one.id != old.id]
            decided += [
                one for one in waiting if source == one.stamp.source or (not good and source in one.stamp.sources)
            ]
        for one in decided:
            transaction.reviews.decide(one, APPROVED if good else one.review)
            if not good:
                transaction.memories.hide(one.id, "reject")
        if words is not None:
            transaction.memories.update(old, entry_for(app, words, old, caller.user, Origin()), "update")
        status = WriteStatus.UPDATED if good else WriteStatus.DELETED
        outcome = Outcome(status, str(memory_id), _notes_on_decision(request, len(decided)))
        transaction.outcomes.record(_NAME, request_id, outcome)
    app.run_later(app.vectors.sync)
    return outcome


def _decide_sources(app: App, request: Decide, caller: Caller, request_id: str) -> Outcome:
    """Decide all that waits and came from one of the sources, in every namespace that the caller may write."""
    good = request.decision in (Decision.APPROVE, Decision.ALWAYS)
    spaces = app.records.namespaces.existing(caller.writable_namespaces())
    decided: list[Memory] = []
    with app.records.importing(spaces, caller.user, allowed_levels(request)) as writings:
        for writing in writings.values():
            if (before := writing.outcomes.previous(_NAME, request_id)) is not None:
                return before
            some = [one for one in writing.reviews.waiting() if _is_decided(one, request.sources, good=good)]
            if request.decision in (Decision.ALWAYS, Decision.NEVER):
                for source, level in {one.stamp.source: one.sensitivity for one in some}.items():
                    writing.reviews.decide_source(source, level, approved=good)
            for one in some:
                writing.reviews.decide(one, APPROVED if good else one.review)
                if not good:
                    writing.memories.hide(one.id, "reject")
            decided += some
        if not decided:
            raise NotFound(f"Nothing from {', '.join(request.sources)} waits for a decision.")
        status = WriteStatus.UPDATED if good else WriteStatus.DELETED
        outcome = Outcome(status, str(decided[0].id), _notes_on_all(request, len(decided)))
        next(iter(writings.values())).outcomes.record(_NAME, request_id, outcome)
    app.run_later(app.vectors.sync)
    return outcome


def _is_decided(one: Memory, sources: Sequence[str], *, good: bool) -> bool:
    """Say whether a memory came from one of the sources: to be approved with all of it, to be rejected with a part."""
    places = [any(is_from(place, source) for source in sources) for place in places_of(one.came_from or "")]
    return all(places) if good else any(places)


def _notes_on_all(request: Decide, many: int) -> tuple[str, ...]:
    """Return the note that says what became of `many` memories of several sources."""
    what = {
        Decision.APPROVE: f"{many} approved.",
        Decision.REJECT: f"{many} hidden; `undo` brings each back.",
        Decision.ALWAYS: f"{many} approved, and whatever comes from the same files or addresses.",
        Decision.NEVER: f"{many} hidden, and whatever comes from the same files or addresses.",
    }
    return (what[request.decision],)


def source_rules(app: App, request: SourceRules, caller: Caller) -> SourceRulePage:
    """Return the rules for sources, the newest first."""
    found = _load_rules(app, request, caller)
    page = found[request.offset : request.offset + request.limit]
    return SourceRulePage(tuple(_shown_rule(one, caller) for one in page), len(found))


def drop_source_rule(app: App, request: DropSourceRule, caller: Caller, *, request_id: str = "") -> SourceRuleDropped:
    """Remove the rule for a source, in one scope or in all: what comes from it waits again. Earlier decisions stay."""
    del request_id  # a second time there is nothing to remove
    mine = caller.writable_namespaces(request.scope)
    rules = [one for one in _load_rules(app, request, caller) if one.source == request.source]
    found = [one for one in rules if one.namespace in mine]
    spaces = [caller.writable(one.namespace) for one in found or rules]
    with app.records.importing(spaces, caller.user, allowed_levels(request)) as writings:
        for writing in writings.values():
            writing.reviews.drop_source_rule(request.source)
    return SourceRuleDropped(request.source, tuple(_shown_rule(one, caller) for one in found))


def _load_rules(app: App, request: ReadAccess, caller: Caller) -> list[StoredRule]:
    """Return the rules for sources that the caller sees in the scope of the request."""
    return app.records.reviews.source_rules(unfiltered(app, request, caller, request.scope), caller.user)


def _shown_rule(one: StoredRule, caller: Caller) -> SourceRule:
    """Return a stored rule as it is shown to the caller, with its scope."""
    scope = next(scope for scope in caller.reads if caller.namespace(scope) == one.namespace)
    return SourceRule(one.source, Decision.ALWAYS if one.approved else Decision.NEVER, scope, one.author, one.at)


def _decide_in_quarantine(app: App, request: Decide, caller: Caller, request_id: str) -> Outcome:
    """Let the gate look at a memory anew and bring it back, or forget it."""
    levels, number = {name: getattr(request, name) for name in Levels.model_fields}, request.id or ""
    match request.decision:
        case Decision.APPROVE:
            back = Restore(id=number, **levels)
            return restore_memory(app, back, caller, request_id=request_id, content=request.content)
        case Decision.REJECT:
            return forget(app, Forget(id=number, **levels), caller, request_id=request_id)
    raise InvalidInput("decision", "Invalid decision: What is in quarantine is approved or rejected by itself")


def _inbox_view(app: App, request: Inbox, caller: Caller) -> View:
    """Return the view of what may wait in the inbox, without replaced memories."""
    return unfiltered(app, request, caller, request.scope).model_copy(update={"superseded": False})


def _notes_on_decision(request: Decide, many: int) -> tuple[str, ...]:
    """Return the note that says what became of a memory, or of `many` from its source."""
    what = {
        Decision.APPROVE: "It is approved.",
        Decision.REJECT: "It is hidden; `undo` brings it back.",
        Decision.ALWAYS: f"{many} approved, and whatever comes from this source.",
        Decision.NEVER: f"{many} hidden, and whatever comes from this source.",
    }
    return (what[request.decision],)


def _waiting_item(one: Memory, since: datetime, told: Memory | None) -> Waiting:
    """Return what the inbox shows of a memory that waits, and of the memory `told` that it contradicts."""
    contradicts, said = (None, "") if told is None else (told.id, told.content)
    return Waiting(one.id, since, one.review or "", one.origin, one.content, contradicts, said, scope=one.scope)


def _quarantined_item(one: Memory, since: datetime) -> Waiting:
    """Return what the inbox shows of a memory with a secret: the field and kind of the secret, never its value."""
    draft = draft_of(one)
    named = [f"{found.kind} in `{field}`" for field, _, findings in secrets_in(draft) for found in findings]
    why = f"in quarantine: {', '.join(dict.fromkeys(named)) or 'the gate finds no secret in it any more'}"
    said = clear(draft, OnSecret.REDACT).value.content
    return Waiting(one.id, since, why, one.origin, said, quarantined=True, scope=one.scope)
