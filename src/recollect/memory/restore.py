"""Restore: bring back a memory that was hidden, and undo a merge."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.domain.requests import Caller, Restore
from recollect.domain.results import JournalEntry, Memory, Outcome, WriteStatus
from recollect.domain.search import View
from recollect.gate import clear
from recollect.memory import duplicates
from recollect.memory.prepare_write import (
    MASKED,
    Embeddings,
    draft_of,
    entry_for,
    journal_refusals,
    prepare,
    retry_with_embeddings,
    same_text_note,
)
from recollect.memory.reconcile import expired, lapsed
from recollect.search.visibility import allowed_levels, levels_of, parse_id

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing

_NAME = "restore"
_FADED = "consolidate"  # in the journal, where importance was lowered for want of use


def restore_memory(app: App, request: Restore, caller: Caller, *, request_id: str = "") -> Outcome:
    """Bring back a memory that was softly forgotten, superseded, merged into another, expired or quarantined.

    Taking a merge apart takes the text out of the other memory, if that has not changed since. What had passed its time
    gets the same term again, and what faded the importance that it had before. The text passes today's gate first. What
    nothing hides stays as it is. An id that is unknown, or deleted for good, is an outcome, not an error. A
    `request_id` seen before gives its first answer again.
    """
    memory_id = parse_id(request.id)
    namespaces, levels = caller.namespaces(request.scope), levels_of(request, caller)
    namespace = app.records.namespace_of(memory_id, namespaces, levels) if memory_id else None
    if memory_id is None or namespace is None:
        before = app.records.previous_outcome(namespaces, caller.user, _NAME, request_id)
        return before or Outcome(WriteStatus.NOT_FOUND, request.id)
    return retry_with_embeddings(app, partial(_restore, app, request, (namespace, memory_id), caller, request_id))


def _restore(
    app: App, request: Restore, place: tuple[str, int], caller: Caller, request_id: str, made: Embeddings
) -> Outcome:
    """Bring back the memory with this namespace and id in one transaction."""
    namespace, memory_id = place
    levels = levels_of(request, caller)
    faded_from = importance_before(app.records.history(memory_id, [namespace], levels))
    view = View(namespaces=(namespace,), now=app.clock(), sensitivities=levels)
    untouched = faded_from is None and memory_id in app.records.load([memory_id], view)
    with (
        journal_refusals(app, namespace, caller, allowed_levels(request)[-1]),
        app.records.writing(caller.writable(namespace), caller.user, levels) as transaction,
    ):
        if (before := transaction.previous_outcome(_NAME, request_id)) is not None:
            return before
        old = transaction.by_id(memory_id)
        if old is None:
            return Outcome(WriteStatus.NOT_FOUND, str(memory_id))
        if untouched:
            return Outcome(WriteStatus.UNCHANGED, str(memory_id))
        draft = draft_of(old, ttl_days=old.ttl_days if lapsed(old, app.clock()) else None)
        if faded_from is not None:
            draft = draft.model_copy(update={"importance": faded_from})
        back = prepare(app, clear(draft, app.on_secret), old, made)
        notes: tuple[str, ...] = (MASKED,) if back.draft != draft else ()
        notes += _undo_merge(app, transaction, old, caller, made)
        notes += same_text_note(transaction, back, old, app.clock())
        transaction.update(old, entry_for(app, back, old, caller.user), "restore")
        outcome = Outcome(WriteStatus.RESTORED, str(memory_id), notes)
        transaction.record_outcome(_NAME, request_id, outcome)
    return outcome


def _undo_merge(app: App, transaction: Writing, old: Memory, caller: Caller, made: Embeddings) -> tuple[str, ...]:
    """Take the text of `old` out of the memory that it was merged into, where that has not changed since."""
    whole = transaction.by_id(old.merged_into) if old.merged_into is not None else None
    if whole is None or expired(whole, app.clock()):
        return ()
    apart = duplicates.without(app, transaction, old, caller.user, made, app.on_secret)
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
