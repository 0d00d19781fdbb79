"""Look without touching: the history of a memory, and the health of the store with its model."""

from __future__ import annotations

from recollect.domain import Caller, Get, Inspect, JournalEntry
from recollect.errors import RecollectError
from recollect.operations.view import levels, number_of
from recollect.ports import App, Check


def history(app: App, request: Get, caller: Caller | None = None) -> list[JournalEntry]:
    """Return the journal of one memory, forgotten ones too, oldest first; empty where the caller sees none.

    What is of a level that is not let in has no history either.
    """
    caller = caller or app.caller
    memory_id = number_of(request.id)
    return app.records.history(memory_id, caller.namespaces(), levels(request)) if memory_id else []


def doctor(app: App, _: Inspect, __: Caller | None = None) -> list[Check]:
    """Return what was found in every part of the store, and whether its models can be loaded."""
    return [*app.checks(), _model(app), *_rerank(app)]


def _model(app: App) -> Check:
    try:
        app.embedder.warm()
    except RecollectError as error:
        return Check("model", False, str(error), "Recall answers by words meanwhile.")
    card = app.embedder.card
    return Check("model", True, f"{card.id}, {card.dimensions} dimensions, {card.max_tokens} tokens")


def _rerank(app: App) -> list[Check]:
    rerank = app.capabilities.rerank
    if rerank is None:
        return []
    try:
        rerank.warm()
    except RecollectError as error:
        advice = "Set RECOLLECT_RERANK to a cross-encoder, or unset it; recall answers without it meanwhile."
        return [Check("reranker", False, str(error), advice)]
    return [Check("reranker", True, f"{rerank.model}, looks at the best {rerank.top}")]
