"""Memories as Markdown for a prompt, fenced as data and within a budget of tokens."""

from __future__ import annotations

from recollect.domain.enums import Order
from recollect.domain.requests import Caller, ForPrompt, Query
from recollect.domain.results import Prompt
from recollect.operations.access_counts import count_use
from recollect.operations.query.ranking import ranking_of
from recollect.operations.visibility import load_page, view_of
from recollect.policy.budget import estimate
from recollect.policy.prompt import fenced
from recollect.ports.app import App


def format_for_prompt(app: App, request: ForPrompt, caller: Caller) -> Prompt:
    """Return the memories that answer `query`, else those used most, as fenced Markdown: a line for each memory."""
    if request.query is None:
        memories = load_page(app, view_of(app, request, caller), Order.USED, request.max_entries)
    else:
        fields = {name: getattr(request, name) for name in request.model_fields_set - {"max_entries", "max_tokens"}}
        query = Query(**fields, limit=request.max_entries)
        with app.records.snapshot():
            memories = [hit.memory for hit in ranking_of(app, query, view_of(app, query, caller)).hits]
    text, shown = fenced(memories, request.max_tokens, app.embedder.counter() or estimate)
    count_use(app, shown, app.clock(), caller, accessed=False)
    return Prompt(text, tuple(shown))
