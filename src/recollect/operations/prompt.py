"""Memories as Markdown for a prompt, fenced as data and within a budget of tokens."""

from __future__ import annotations

from recollect.domain.enums import Order, Profile
from recollect.domain.requests import Caller, ForPrompt, Query
from recollect.domain.results import Memory, Prompt
from recollect.operations.access_counts import count_use
from recollect.operations.query.ranking import ranking_of
from recollect.operations.visibility import view_of
from recollect.policy import rank
from recollect.policy.budget import estimate
from recollect.policy.prompt import fenced
from recollect.ports.app import App

_LEADING = (Order.USED, Order.UPDATED, Order.IMPORTANT)


def format_for_prompt(app: App, request: ForPrompt, caller: Caller) -> Prompt:
    """Return the memories that answer `query`, else the most worthwhile, as fenced Markdown: a line for each memory.

    Only what answers a query counts as used: what is shown unasked would be shown for ever.
    """
    if request.query is None:
        memories = _most_worthwhile(app, request, caller)
    else:
        fields = {name: getattr(request, name) for name in request.model_fields_set - {"max_entries", "max_tokens"}}
        query = Query(**fields, limit=request.max_entries)
        with app.records.snapshot():
            memories = [hit.memory for hit in ranking_of(app, query, view_of(app, query, caller)).hits]
    text, shown = fenced(memories, request.max_tokens, app.embedder.counter() or estimate)
    if request.query is not None:
        count_use(app, shown, app.clock(), caller, accessed=False)
    return Prompt(text, tuple(shown))


def _most_worthwhile(app: App, request: ForPrompt, caller: Caller) -> list[Memory]:
    """Return the best of those used most, changed last and most important: by use, age and importance."""
    view = view_of(app, request, caller).model_copy(update={"condensed": False})
    with app.records.snapshot():
        pages = (app.records.list_ids(view, order, request.max_entries, 0) for order in _LEADING)
        rows = {row.id: row for row in app.records.ranking_rows({one for page in pages for one in page}, view)}
        worth = {one: rank.weigh(row, 0.0, rank.PROFILES[Profile.HABIT], view.now)[0] for one, row in rows.items()}
        best = sorted(rows, key=lambda one: (-worth[one], -one))[: request.max_entries]
        found = app.records.load(best, view)
    return [found[one] for one in best if one in found]
