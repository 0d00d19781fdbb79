"""Reports: the history of a memory, what the caller's namespaces hold, and the health of the store."""

from __future__ import annotations

from recollect.domain.requests import Caller, Get, Inspect, ReadAccess
from recollect.domain.results import Check, JournalEntry, Stats
from recollect.domain.search import View
from recollect.errors import RecollectError
from recollect.operations.visibility import allowed_levels, parse_id
from recollect.ports.app import App


def history(app: App, request: Get, caller: Caller) -> list[JournalEntry]:
    """Return the journal of one memory, oldest line first, also after it was forgotten.

    It is empty for a memory that the caller may not see.
    """
    memory_id = parse_id(request.id)
    return app.records.history(memory_id, caller.namespaces(), allowed_levels(request)) if memory_id else []


def stats(app: App, request: ReadAccess, caller: Caller) -> Stats:
    """Count what the caller's namespaces hold, by scope, kind and state."""
    namespaces = app.records.existing_namespaces(caller.namespaces(request.scope))
    return app.records.stats(View(namespaces=namespaces, now=app.clock(), sensitivities=allowed_levels(request)))


def doctor(app: App, _request: Inspect, _caller: Caller) -> list[Check]:
    """Check every part of the store, and whether its models can be loaded."""
    return [*app.checks(), _model(app), *_rerank(app)]


def _model(app: App) -> Check:
    try:
        app.embedder.warm()
    except RecollectError as error:
        return Check("model", False, str(error), "Until then recall searches by words only.")
    card = app.embedder.card
    return Check("model", True, f"{card.id}, {card.dimensions} dimensions, {card.max_tokens} tokens")


def _rerank(app: App) -> list[Check]:
    rerank = app.capabilities.rerank
    if rerank is None:
        return []
    try:
        rerank.warm()
    except RecollectError as error:
        advice = "Set RECOLLECT_RERANK to a cross-encoder, or unset it; until then recall works without it."
        return [Check("reranker", False, str(error), advice)]
    return [Check("reranker", True, f"{rerank.model}, looks at the best {rerank.top}")]
