"""Restore: bring back a memory that was hidden, and undo a merge."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.domain.requests import Caller, Draft, MemoryFields, Restore
from recollect.domain.results import KEPT_AS, JournalEntry, Memory, Outcome, WriteStatus
from recollect.domain.search import View
from recollect.errors import Conflict, Forbidden
from recollect.memory import merges
from recollect.memory.prepare_write import (
    MASKED,
    Embeddings,
    draft_of,
    entry_for,
    journal_refusals,
    kept_note,
    prepare_draft,
    retry_with_embeddings,
    same_text_note,
)
from recollect.memory.reconcile import expired, lapsed
from recollect.memory.review import outranks
from recollect.search.visibility import allowed_levels, levels_of, parse_id
from recollect.text import layers

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing

_NOTHING_TO_UNDO = "It is not hidden and has no earlier text: nothing to undo."
_SAYS_AGAIN = "It says again what it said before its last change."

_NAME = "restore"
_HEADINGS = ("abstract", "overview")  # that somebody wrote for a text, and that went with it
_FADED = "consolidate"  # in the journal, where importance was lowered for want of use


def restore_memory(
    app: App, request: Restore, caller: Caller, *, request_id: str = "", content: str | None = None
) -> Outcome:
    """Bring back a memory that was hidden, replaced, merged into another, expired or quarantined.

    Taking a merge apart takes the text out of the other memory, if that has not changed since. What had passed its time
    gets the same term again, and what faded the importance that it had before. The text passes today's gate first. What
    nothing hides stays as it is. An id that is unknown, or deleted for good, is an outcome, not an error. A
    `request_id` seen before gives its first answer again. With a `content` it comes back in these words of the caller.
    Raises `Conflict` for what a withdrawal took away: only undoing that brings it back.
    """
    memory_id = parse_id(request.id)
    namespaces, levels = caller.namespaces(request.scope), levels_of(request, caller)
    namespace = app.records.namespaces.of_memory(memory_id, namespaces, levels) if memory_id else None
    if memory_id is None or namespace is None:
        before = app.records.outcomes.previous(namespaces, caller.user, _NAME, request_id)
        return before or Outcome(WriteStatus.NOT_FOUND, request.id)
    write = partial(_bring_back, app, request, (namespace, memory_id), caller, request_id, content=content)
    return retry_with_embeddings(app, write)


def _bring_back(
    app: App,
    request: Restore,
    place: tuple[str, int],
    caller: Caller,
    request_id: str,
    made: Embeddings,
    *,
    content: str | None,
) -> Outcome:
    """Bring back the memory with this namespace and id in one transaction."""
    namespace, memory_id = place
    levels = levels_of(request, caller)
    lines = app.records.journal.history(memory_id, [namespace], levels)
    faded_from = importance_before(lines)
    view = View(namespaces=(namespace,), now=app.clock(), sensitivities=levels)
    untouched = faded_from is None and memory_id in app.records.load([memory_id], view)
    with (
        journal_refusals(app, namespace, caller, allowed_levels(request)[-1]),
        app.records.writing(caller.writable(namespace), caller.user, levels) as transaction,
    ):
        if (before := transaction.outcomes.previous(_NAME, request_id)) is not None:
            return before
        old = transaction.lookup.by_id(memory_id)
        if old is None:
            return Outcome(WriteStatus.NOT_FOUND, str(memory_id))
        if untouched:
            earlier = _earlier_text(transaction, memory_id, lines)
            outcome = _write_back(app, transaction, old, *earlier, caller, made) if earlier else _nothing_to_undo(old)
            transaction.outcomes.record(_NAME, request_id, outcome)
            return outcome
        if number := transaction.withdrawals.hiding(memory_id):
            undo = f"only `recollect withdraw --undo {number}` brings it back, with all that came from there"
            raise Conflict(f"Memory {memory_id} was taken back with its source by withdrawal {number}: {undo}.")
        draft = draft_of(old, ttl_days=old.ttl_days if lapsed(old, app.clock()) else None)
        if faded_from is not None:
            draft = draft.model_copy(update={"importance": faded_from})
        if content is not None:
            draft = draft.model_copy(update={"content": content, "title": "", "abstract": "", "overview": ""})
        back = prepare_draft(app, draft, old, made)
        notes: tuple[str, ...] = (MASKED,) if back.draft != draft else ()
        notes += _undo_merge(app, transaction, old, caller, made)
        notes += same_text_note(transaction, back, old, app.clock())
        said = None if content is None else caller.origin
        entry = entry_for(app, back, old, caller.user, said)  # what it said holds what the gate masks, or refuses
        transaction.memories.update(old, entry, _NAME, keep=False)
        outcome = Outcome(WriteStatus.RESTORED, str(memory_id), notes)
        transaction.outcomes.record(_NAME, request_id, outcome)
    return outcome


def _nothing_to_undo(old: Memory) -> Outcome:
    """Return the outcome for a memory that nothing hides."""
    return Outcome(WriteStatus.UNCHANGED, str(old.id), (_NOTHING_TO_UNDO,))


def _earlier_text(
    transaction: Writing, memory_id: int, history: Iterable[JournalEntry]
) -> tuple[Memory, frozenset[str]] | None:
    """Return a memory as it was before its text last changed, and the fields that changed with it; None without."""
    last = next((one.changes for one in reversed([*history]) if KEPT_AS in one.changes), {})
    kept = transaction.lookup.by_id(last[KEPT_AS]) if last else None
    if kept is None or kept.merged_into != memory_id:
        return None
    return kept, frozenset(last.get("fields", ()))


def _write_back(
    app: App,
    transaction: Writing,
    old: Memory,
    kept: Memory,
    changed: frozenset[str],
    caller: Caller,
    made: Embeddings,
) -> Outcome:
    """Write the earlier text back over a memory, with what changed with it; keep the present text as hidden.

    So what was undone can be undone. Raises `Forbidden` for the words of a source with more authority.
    """
    if outranks(old, caller.origin):
        raise Forbidden(f"Memory {old.id} was said by {old.origin}, which this does not replace.")
    written = {name for name in _HEADINGS if getattr(kept, name) != getattr(layers, name)(kept.content)}
    names = (changed & MemoryFields.model_fields.keys() - {"key", "ttl_days"}) | written | {"content"}
    taken = {name: getattr(kept, name) for name in names}
    draft = Draft(**{"scope": old.scope, "confidence": old.confidence} | taken)
    back = prepare_draft(app, draft, old, made)
    notes: tuple[str, ...] = (MASKED,) if back.draft != draft else ()
    now_kept = transaction.memories.update(old, entry_for(app, back, old, caller.user, kept.stamp), _NAME)
    transaction.memories.delete(kept.id)
    notes += (_SAYS_AGAIN,) if now_kept is None else (_SAYS_AGAIN, kept_note(now_kept))
    return Outcome(WriteStatus.RESTORED, str(old.id), notes)


def _undo_merge(app: App, transaction: Writing, old: Memory, caller: Caller, made: Embeddings) -> tuple[str, ...]:
    """Take the text of `old` out of the memory that it was merged into, where that has not changed since."""
    whole = transaction.lookup.by_id(old.merged_into) if old.merged_into is not None else None
    if whole is None or expired(whole, app.clock()):
        return ()
    apart = merges.take_statement_out(app, transaction, old, caller.user, made, app.on_secret)
    return (f"Memory {whole.id} {'no longer says it' if apart else 'keeps its present text'}.",)


def importance_before(history: Iterable[JournalEntry]) -> float | None:
    """Return the importance of a memory before it was consolidated, None where it was not since somebody set it.

    `history` are the lines of its journal, oldest first.
    """
    before: float | None = None
    for line in history:
        if line.action == _FADED:
            before = line.changes["importance"][0] if before is None else before
        elif "importance" in line.changes.get("fields", ()):
            before = None
    return before
