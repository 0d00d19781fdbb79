"""Forget a memory by its id, for good or until it is restored, and purge what has expired."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.domain.enums import OnSecret
from recollect.domain.requests import Caller, Forget, Purge, SoftForget
from recollect.domain.results import Memory, Outcome, Purged, WriteStatus
from recollect.domain.review import UNDOABLE_DAYS
from recollect.errors import Conflict
from recollect.memory import merges, summaries
from recollect.memory.prepare_write import Embeddings, retry_with_embeddings
from recollect.memory.reconcile import expired
from recollect.search.visibility import allowed_levels, levels_of, parse_id
from recollect.text import layers

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing

_NAME = "forget"
_HIDDEN = "The memory is hidden; `restore` brings it back."


def forget(app: App, request: Forget, caller: Caller, *, request_id: str = "") -> Outcome:
    """Delete a memory for good, with every copy of its text and the hidden memories merged into it.

    The answer quotes its first words, so that a wrong id is seen. What a legal hold keeps is hidden instead. One that
    was itself merged into another is taken out of that one's text, if that has not changed since; the lines of a
    summary that quote it go too, and what sessions keep of it. An unknown id is an outcome, not an error. A
    `request_id` seen before gives its first answer again, without the quote, since nothing of the text is kept.
    """
    return _delete_or_hide(app, request, caller, request_id, hard=True)


def memory_forget(app: App, request: SoftForget, caller: Caller, *, request_id: str = "") -> Outcome:
    """Hide a memory from every read until it is restored; with `hard`, delete it for good."""
    return _delete_or_hide(app, request, caller, request_id, hard=request.hard)


def _delete_or_hide(app: App, request: Forget, caller: Caller, request_id: str, *, hard: bool) -> Outcome:
    """Delete a memory for good if `hard`, else hide it; return the outcome, which quotes its first words."""
    namespaces, levels = caller.namespaces(request.scope), levels_of(request, caller)
    if (before := app.records.outcomes.previous(namespaces, caller.user, _NAME, request_id)) is not None:
        return before
    memory_id = parse_id(request.id)
    namespace = app.records.namespaces.of_memory(memory_id, namespaces, levels) if memory_id else None
    if namespace is None and not request_id:
        caller.writable(namespaces[0])
        return Outcome(WriteStatus.NOT_FOUND, request.id)
    before_now = (
        summaries.ids_that_replaced(app, memory_id, namespace) if memory_id and namespace and hard else frozenset()
    )
    touched: set[int] = set()
    quoted: list[str] = []

    def write(made: Embeddings) -> Outcome:
        with app.records.writing(caller.writable(namespace or namespaces[0]), caller.user, levels) as transaction:
            if (before := transaction.outcomes.previous(_NAME, request_id)) is not None:
                return before
            old = transaction.lookup.by_id(memory_id) if memory_id is not None and namespace is not None else None
            outcome = Outcome(WriteStatus.NOT_FOUND, request.id)
            quoted[:] = [layers.one_line(old.content)] if old is not None and not expired(old, app.clock()) else []
            hold = transaction.memories.hold_on(old.id) if old is not None and hard else None
            if old is not None and hold is not None:
                outcome = _hide_held(transaction, old, hold.called_by(caller.user))
            elif old is not None and not hard and transaction.memories.hide(old.id):
                outcome = Outcome(WriteStatus.DELETED, str(old.id), (_HIDDEN,))
            elif old is not None and hard:
                notes = (*_take_out_of_wholes(app, transaction, old, caller, made, before_now), *app.remaining())
                transaction.memories.delete(old.id)
                outcome = Outcome(WriteStatus.DELETED, str(old.id), notes)
            transaction.outcomes.record(_NAME, request_id, outcome)
        if old is not None:
            touched.update(one for one in (old.id, old.merged_into, old.superseded_by) if one)
        return outcome

    outcome = retry_with_embeddings(app, write)
    if outcome.status is WriteStatus.DELETED:
        outcome = replace(outcome, said="".join(quoted))  # after what is kept for a retry
        for one in sorted(touched):
            app.vectors.sync_memory(one)
        app.run_later(app.text.purge_deleted)
    return outcome


def _hide_held(transaction: Writing, old: Memory, hold: str) -> Outcome:
    """Hide a memory that a legal hold keeps; raise `Conflict` for a memory that is out of sight already."""
    if not transaction.memories.hide(old.id):
        raise Conflict(f"Memory {old.id} is not deleted: {hold} keeps it.")
    return Outcome(WriteStatus.DELETED, str(old.id), (f"It is hidden and not deleted: {hold} keeps it.",))


def _take_out_of_wholes(
    app: App, transaction: Writing, old: Memory, caller: Caller, made: Embeddings, before: frozenset[int]
) -> tuple[str, ...]:
    """Take the forgotten text out of the memory that it was merged into or summed up in; return notes on that."""
    if (
        quoting := summaries.take_quotes_out(app, transaction, old, caller.user, made, before)
    ) or old.merged_into is None:
        return tuple(f"Memory {one} no longer quotes it." for one in quoting)
    whole = old.merged_into
    merges.drop_earlier_wholes(transaction, whole, old)
    if merges.take_statement_out(app, transaction, old, caller.user, made, OnSecret.REDACT):
        return (f"Memory {whole} no longer says it.",)
    return (f"Memory {whole} keeps its present text.",)


def purge_expired(app: App, request: Purge, caller: Caller, *, request_id: str = "") -> Purged:
    """Delete for good what has expired; private and secret memories only if the request includes them.

    What a legal hold keeps stays, out of sight as before.
    """
    del request_id  # a second purge removes nothing
    gone: list[int] = []
    kept = 0
    for namespace in app.records.namespaces.existing(caller.writable_namespaces(request.scope)):
        with app.records.writing(namespace, caller.user, allowed_levels(request)) as transaction:
            gone += [one for one in transaction.retention.expired() if transaction.memories.delete(one, "purge")]
            gone += transaction.withdrawals.drop_old(UNDOABLE_DAYS)
            kept += transaction.retention.held()
    if gone:
        app.run_later(app.vectors.sync)
        app.run_later(app.text.purge_deleted)
    return Purged(tuple(gone), kept)
