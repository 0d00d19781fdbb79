"""Forget a memory by its id, for good or until it is restored; an id counts only inside the caller's namespaces."""

from __future__ import annotations

from recollect.domain.requests import Caller, Forget, SoftForget
from recollect.domain.results import Outcome, WriteStatus
from recollect.operations.visibility import allowed_levels, parse_id
from recollect.ports.app import App

_NAME = "forget"
_HIDDEN = "The memory is hidden; `restore` brings it back."


def forget(app: App, request: Forget, caller: Caller, *, request_id: str = "") -> Outcome:
    """Delete a memory from SQL, the text index and the vector index, and the hidden memories merged into it.

    An unknown id is an outcome, not an error. A `request_id` seen before gives its first answer again.
    """
    return _forget(app, request, caller, request_id, hard=True)


def memory_forget(app: App, request: SoftForget, caller: Caller, *, request_id: str = "") -> Outcome:
    """Hide a memory from every read until it is restored; with `hard`, delete it for good."""
    return _forget(app, request, caller, request_id, hard=request.hard)


def _forget(app: App, request: Forget, caller: Caller, request_id: str, *, hard: bool) -> Outcome:
    memory_id = parse_id(request.id)
    namespaces, levels = caller.namespaces(request.scope), allowed_levels(request)
    if (before := app.records.previous_outcome(namespaces, caller.user, _NAME, request_id)) is not None:
        return before
    namespace = app.records.namespace_of(memory_id, namespaces, levels) if memory_id else None
    with app.records.writing(namespace or namespaces[0], caller.user, levels) as transaction:
        if (before := transaction.previous_outcome(_NAME, request_id)) is not None:
            return before
        gone = False
        if memory_id is not None and namespace is not None:
            gone = transaction.delete(memory_id) if hard else transaction.hide(memory_id)
        outcome = Outcome(WriteStatus.NOT_FOUND, request.id)
        if gone:
            notes = tuple(app.remaining()) if hard else (_HIDDEN,)
            outcome = Outcome(WriteStatus.DELETED, str(memory_id), notes)
        transaction.record_outcome(_NAME, request_id, outcome)
    if memory_id is None or not gone:
        return outcome
    app.vectors.sync_memory(memory_id)
    app.run_later(app.text.purge_deleted)
    return outcome
