"""Remember: a draft passes the gate and becomes a memory, a new version of one, a part of one, or a confirmation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.domain.enums import OF_SESSION
from recollect.domain.fields import NO_MEMORY
from recollect.domain.lifecycle import CAPTURED
from recollect.domain.requests import Caller, Draft
from recollect.domain.results import Memory, Outcome, WriteStatus
from recollect.engines.reconcile import Judgement
from recollect.errors import Conflict, Forbidden, InvalidInput, NotFound, SecretFound
from recollect.gate import clear
from recollect.memory import duplicates, merges
from recollect.memory.describe import describe_later
from recollect.memory.embed import embed_missed
from recollect.memory.prepare_write import (
    MASKED,
    PreparedDraft,
    clear_or_journal,
    entry_for,
    evict_memory,
    journal_refusals,
    kept_note,
    new_entry,
    prepare_draft,
    prepare_revival,
    refuse_taken_key,
)
from recollect.memory.reconcile import Action, decide, expired
from recollect.memory.review import REJECTED, contradiction_reason, outranks, why_review
from recollect.search.visibility import allowed_levels, given_level, levels_of, levels_of_write, parse_id

if TYPE_CHECKING:
    from recollect.store.sql.memory_lookup import Matches
    from recollect.store.sql.writing import Writing

_NAME = "remember"
_SAYS_THIS = "It already says this, in the words of a source with more authority."
_CONFIRMED = "It already said this: its text stays, and it is surer now."
_NEAR_UNKNOWN = "What is near it is not known until it is embedded; `find_similar` tells it later."
_Kept = tuple[tuple[int, str], ...]
"""The hidden memories that keep a text, and the note on each while it is there."""


def remember(app: App, draft: Draft, caller: Caller, *, request_id: str = "") -> Outcome:
    """Store a memory; when this returns it is durable, and the answer names similar memories.

    A known `key` updates that memory; the same content again refreshes it and raises its confidence, both at the level
    of sensitivity that is given, or without one at the strictest that the draft lets in. With `id` the
    draft is the new version of that memory, and the earlier text is kept as a hidden memory. With `supersedes` it is a
    memory of its own, and the named one is hidden. The notes say what became of it, and `restore` undoes that.

    A `request_id` seen before gives its first answer again and changes nothing. Raises `SecretFound` when the gate
    refuses, `NotFound` for an id that the caller does not see, `InvalidInput` for a key that is another memory's,
    `Conflict` where the memory is not what `if_hash` expects; then nothing is written.
    """
    named = draft.id or draft.supersedes
    namespace = _home_of(app, named, draft, caller) if named else caller.namespace(draft.scope)
    if namespace is None:
        shown = clear_or_journal(app, draft, caller.namespace(draft.scope), caller, draft.sensitivity).value
        before = app.records.outcomes.previous(caller.namespaces(), caller.user, _NAME, request_id)
        if before is not None:
            return before
        raise NotFound(f"Memory {shown.id or shown.supersedes} not found.")
    with journal_refusals(app, namespace, caller, draft.sensitivity):
        prepared = prepare_draft(app, draft)
    cleared = prepared.draft
    near = duplicates.memories_near(app, prepared, namespace, caller.user)
    review = why_review(app, prepared, namespace, caller, near)
    plan = _plan_write(app, prepared, namespace, near, caller)
    levels, level = levels_of_write(draft, draft.sensitivity), given_level(cleared)
    surplus: list[int] = []
    with app.records.writing(caller.writable(namespace), caller.user, levels) as writing:
        outcome = writing.outcomes.previous(_NAME, request_id)
        if outcome is None:
            matches = writing.lookup.matches(parse_id(named or ""), cleared.key, prepared.content_hash, level)
            outcome, kept = _write_draft(app, writing, prepared, matches, plan, caller, review)
            if cleared.source not in CAPTURED and outcome.status is not WriteStatus.STORED:
                writing.consolidation.stop_fading(int(outcome.id))
            surplus = writing.retention.surplus(app.retention_rules.max_memories, int(outcome.id))
            for memory_id in surplus:
                evict_memory(writing, memory_id)
            masked = (MASKED,) if cleared != draft else ()
            unknown = (_NEAR_UNKNOWN,) if near.unknown and outcome.status is WriteStatus.STORED else ()
            hidden = tuple(note for memory_id, note in kept if writing.lookup.by_id(memory_id) is not None)
            moments = (f"Comes up at: {', '.join(f'`{each}`' for each in cleared.when)}.",) if cleared.when else ()
            outcome = replace(outcome, notes=(*masked, *outcome.notes, *hidden, *unknown, *moments))
            writing.outcomes.record(_NAME, request_id, outcome)
    if prepared.chunks is None:
        embed_missed(app, outcome.id)
    if surplus:
        app.run_later(app.text.purge_deleted)
    describe_later(app, outcome, cleared, caller)
    return replace(outcome, near=duplicates.memories_to_name(app, cleared, near, outcome))


def _home_of(app: App, named: str, draft: Draft, caller: Caller) -> str | None:
    """Return the namespace of the memory that the draft names; None where it names none that the caller may see."""
    number = parse_id(named)
    scope = draft.scope if "scope" in draft.model_fields_set else None
    levels = levels_of(draft, caller)
    return app.records.namespaces.of_memory(number, caller.namespaces(scope), levels) if number else None


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which memory a draft joins or replaces because of what it resembles, and the text to write over the joined one.

    Without an `old` one it is a new memory, of which a language model said why.
    """

    action: Action
    old: Memory | None
    whole: PreparedDraft
    judgement: Judgement | None = None


def _plan_write(
    app: App, prepared: PreparedDraft, namespace: str, near: duplicates.Nearby, caller: Caller
) -> _Plan | None:
    """Return what to write over the memory that the draft joins; None for none, or where the gate refuses it."""
    if prepared.draft.id or prepared.draft.supersedes or prepared.draft.if_hash:
        return None
    decision = duplicates.decide_by_likeness(app, prepared, caller, near)
    if decision.old is None or decision.action is Action.SUPERSEDE:
        judged = decision.judgement
        return None if judged is None else _Plan(decision.action, decision.old, prepared, judged)
    make = merges.merged_draft if decision.action is Action.MERGE else merges.refreshed_draft
    try:
        with journal_refusals(app, namespace, caller, prepared.draft.sensitivity):
            whole = prepare_draft(app, make(decision.old, prepared.draft), decision.old)
    except (SecretFound, InvalidInput):
        return None
    return _Plan(decision.action, decision.old, whole, decision.judgement)


def _write_draft(
    app: App,
    writing: Writing,
    prepared: PreparedDraft,
    matches: Matches,
    plan: _Plan | None,
    caller: Caller,
    review: str | None,
) -> tuple[Outcome, _Kept]:
    """Write the draft: over the memory that has its id, key or content, else as planned, else as a new memory.

    What has less authority than a memory takes no place of it, and waits for a decision beside it.
    """
    draft, level = prepared.draft, given_level(prepared.draft)
    named = _replaced_memory(app, matches.named, draft) if draft.id or draft.supersedes else None
    known = matches.keyed
    if draft.if_hash:
        _check_unchanged(draft, named or known, app.clock(), caller)
    if outranked := next((old for old in (named, known) if old is not None and outranks(old, caller.origin)), None):
        apart = clear(draft.model_copy(update={"id": None, "supersedes": None, "key": None}), app.on_secret)
        apart_draft = replace(prepared, cleared=apart, parts=None)
        entry = new_entry(app, apart_draft, caller.user, caller.origin, contradiction_reason(outranked))
        note = f"Memory {outranked.id} was said by {outranked.origin}, which this does not replace; it waits for you."
        return Outcome(WriteStatus.STORED, str(writing.memories.insert(entry)), (note,)), ()
    if named is not None and draft.id:
        refuse_taken_key(writing, draft.key or named.key, named, level or named.sensitivity, app.clock())
        known = named
    decision = decide(draft, prepared.content_hash, known, None if draft.if_hash else matches.same)
    kept: _Kept = ()
    if decision.old is not None and outranks(decision.old, caller.origin):  # said again, which changes nothing of it
        return Outcome(WriteStatus.UNCHANGED, str(decision.old.id), (_SAYS_THIS,)), ()
    if decision.old is not None:
        if decision.action is Action.REFRESH:
            _keep_both(app, writing, prepared, decision.old, caller, review)
        by_itself = named is None and not draft.if_hash and decision.old.type in OF_SESSION  # written anew each time
        outcome, kept = _update_memory(
            app, writing, prepared, decision.action, decision.old, caller, keep=not by_itself
        )
    elif plan is not None and (plan.old is None or _is_unchanged(writing, plan.old)):
        outcome, kept = _write_judged(app, writing, prepared, plan, caller, review)
    else:
        outcome = _insert_memory(app, writing, prepared, caller, review)
    if named is None or str(named.id) == outcome.id:
        return outcome, kept
    writing.memories.supersede(named.id, by=int(outcome.id))
    note = f"Replaces memory {named.id}, which is now hidden."
    return replace(outcome, notes=(*outcome.notes, note)), kept


def _check_unchanged(draft: Draft, known: Memory | None, now: datetime, caller: Caller) -> None:
    """Raise `Conflict` where the memory that the draft names has not the content that the draft expects.

    Raises `Forbidden` where a source with more authority said it.
    """
    there = None if known is None or expired(known, now) else known
    what = f"The memory with the key `{draft.key}`" if draft.key else f"Memory {draft.id}"
    if there is None and draft.if_hash != NO_MEMORY:
        raise Conflict(f"{what} is not there any more. Nothing was written.")
    if there is not None and draft.if_hash == NO_MEMORY:
        raise Conflict(f"{what} exists already. Nothing was written.")
    if there is not None and draft.if_hash != there.content_hash:
        raise Conflict(f"{what} has changed since it was read. Read it again. Nothing was written.")
    if there is not None and outranks(there, caller.origin):
        raise Forbidden(f"Memory {there.id} was said by {there.origin}, which this does not replace.")


def _insert_memory(app: App, writing: Writing, prepared: PreparedDraft, caller: Caller, review: str | None) -> Outcome:
    """Write a new memory; hide it at once where a person has rejected its source."""
    kept = None if review == REJECTED else review
    new = writing.memories.insert(new_entry(app, prepared, caller.user, caller.origin, kept))
    if review == REJECTED:
        writing.memories.hide(new, "reject")
        return Outcome(WriteStatus.STORED, str(new), ("It is hidden: its source was rejected.",))
    return Outcome(WriteStatus.STORED, str(new))


def _replaced_memory(app: App, old: Memory | None, draft: Draft) -> Memory:
    """Return the memory that the draft names, which it replaces; raise `NotFound` where it may not see that."""
    named = draft.id or draft.supersedes or ""
    if old is None or expired(old, app.clock()) or old.merged_into is not None:
        raise NotFound(f"Memory {named} not found.")
    if old.sensitivity not in allowed_levels(draft):  # the level that the draft names is let in for its own key only
        raise NotFound(f"Memory {named} not found.")
    return old


def _is_of_another(old: Memory, caller: Caller) -> bool:
    """Say whether another source said the text that is written over, so that it returns when this one is withdrawn."""
    return old.stamp != caller.origin and old.type not in OF_SESSION


def _keep_both(
    app: App, writing: Writing, prepared: PreparedDraft, old: Memory, caller: Caller, review: str | None
) -> None:
    """Keep what each of two sources says, where they say the same, so that it is there without either of them."""
    said = caller.origin
    if not _is_of_another(old, caller) or not (old.came_from or said.came_from) or review == REJECTED:
        return
    parts = writing.lookup.archived(old.id)
    if not merges.statements_of(old, parts):
        writing.memories.archive(old)
    if said not in [part.stamp for part in parts]:
        writing.memories.insert(new_entry(app, prepared, caller.user, said, review), merged_into=old.id)


def _update_memory(
    app: App, writing: Writing, prepared: PreparedDraft, action: Action, old: Memory, caller: Caller, *, keep: bool
) -> tuple[Outcome, _Kept]:
    """Write the draft over a memory, which is current from then on, whatever hid it before."""
    seen = prepared if old.deleted_at is None else prepare_revival(app, prepared, old)
    kept = writing.memories.update(old, entry_for(app, seen, old, caller.user, caller.origin), action, keep=keep)
    back = f"It is current again{f'; memory {old.superseded_by} had replaced it' if old.superseded_by else ''}."
    outcome = Outcome(WriteStatus.UPDATED, str(old.id), () if old.superseded_by is None else (back,))
    return outcome, () if kept is None else ((kept, kept_note(kept)),)


def _is_unchanged(writing: Writing, old: Memory) -> bool:
    """Say whether a memory is as it was when it was read, apart from its counts of use."""
    names = ("accessed_count", "recalled_count", "last_accessed_at", "expires_at")
    now = writing.lookup.by_id(old.id)
    return now is not None and now.model_copy(update={name: getattr(old, name) for name in names}) == old


def _write_judged(
    app: App, writing: Writing, prepared: PreparedDraft, plan: _Plan, caller: Caller, review: str | None
) -> tuple[Outcome, _Kept]:
    """Write as planned, and journal the language model's choice."""
    kept: _Kept = ()
    if plan.old is None or plan.action is Action.SUPERSEDE:
        outcome = _insert_memory(app, writing, prepared, caller, review)
    else:
        outcome, kept = _write_joined(app, writing, prepared, plan.old, plan, caller, review)
    if plan.judgement is not None:
        writing.journal.judge(int(outcome.id), plan.judgement, plan.old.id if plan.old else None)
    if plan.old is None or plan.action is not Action.SUPERSEDE:
        return outcome, kept
    writing.memories.supersede(plan.old.id, by=int(outcome.id))
    note = f"Replaces memory {plan.old.id}, which it contradicts and which is now hidden."
    return replace(outcome, notes=(note,)), kept


def _write_joined(
    app: App,
    writing: Writing,
    prepared: PreparedDraft,
    old: Memory,
    plan: _Plan,
    caller: Caller,
    review: str | None,
) -> tuple[Outcome, _Kept]:
    """Write as planned over the memory that the draft resembles; a merge keeps both texts as hidden memories."""
    entry = entry_for(app, plan.whole, old, caller.user, caller.origin)
    if plan.action is not Action.MERGE:
        _keep_both(app, writing, prepared, old, caller, review)
        writing.memories.update(old, entry, plan.action, keep=False)
        return Outcome(WriteStatus.UPDATED, str(old.id), (_CONFIRMED,)), ()
    if not merges.statements_of(old, writing.lookup.archived(old.id)):
        writing.memories.archive(old)
    part = writing.memories.insert(new_entry(app, prepared, caller.user, caller.origin, review), merged_into=old.id)
    writing.memories.update(old, entry, plan.action, keep=False)
    kept = (part, f"The new text by itself is kept as memory {part}, which is hidden.")
    return Outcome(WriteStatus.MERGED, str(old.id), (f"Merged into memory {old.id}.",)), (kept,)
