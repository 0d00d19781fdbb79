"""Memories as Markdown for a prompt, fenced as data and within a budget of tokens."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from recollect.app import App
from recollect.domain.enums import POLICIES, Order, Standing
from recollect.domain.requests import Caller, ForPrompt, Query
from recollect.domain.results import Memory, Prompt
from recollect.prompt.fence import fenced, governed_memory
from recollect.search.budget import estimate
from recollect.search.candidates import snapshot_for
from recollect.search.hits import ranking_of
from recollect.search.recall import count_use
from recollect.search.scores import frequency, recency
from recollect.search.visibility import view_of

_LEADING = (Order.USED, Order.UPDATED, Order.IMPORTANT)
_CANDIDATES = 2  # times as many of each order as there are places
_SESSION: Final = timedelta(hours=12)
_IMPORTANCE, _LASTING, _RECENCY, _USE = 0.35, 0.25, 0.25, 0.15
_ROTATING: Final = 4  # one place of so many
_POOL: Final = 4  # so many days until the same is shown in it again


def format_for_prompt(app: App, request: ForPrompt, caller: Caller) -> Prompt:
    """Return the memories that answer `query`, or without one the most valuable, as fenced Markdown, a line for each.

    What in them gives orders to a model is redacted: whoever reads this has not asked for each of them.
    Only what answers a query counts as recalled: what is shown unasked would be shown for ever.
    """
    if request.query is None:
        memories = _most_valuable(app, request, caller)
    else:
        fields = {name: getattr(request, name) for name in request.model_fields_set - {"max_entries", "max_tokens"}}
        query = Query(**fields, limit=request.max_entries)
        with snapshot_for(app, query, caller) as view:
            memories = [hit.memory for hit in ranking_of(app, query, view).hits]
    text, shown = fenced(
        [governed_memory(one) for one in memories], request.max_tokens, app.embedder.counter() or estimate
    )
    if request.query is not None:
        count_use(app, [one for one in memories if one.id in shown], app.clock(), caller, accessed=False)
    return Prompt(text, tuple(shown))


def _most_valuable(app: App, request: ForPrompt, caller: Caller) -> list[Memory]:
    """Return the best of those used most, changed last and most important."""
    view = view_of(app, request, caller).model_copy(update={"condensed": False})
    with app.records.snapshot():
        pages = [app.records.lists.ids(view, order, _CANDIDATES * request.max_entries, 0) for order in _LEADING]
        pages.append(app.records.overview.pinned(view, request.max_entries))
        found = app.records.load({one for page in pages for one in page}, view)
    speaking = (one for one in found.values() if one.speaks_unasked)
    return most_valuable(speaking, request.max_entries, view.now)


def most_valuable(memories: Iterable[Memory], places: int, now: datetime) -> list[Memory]:
    """Return so many memories, the most valuable first; in a quarter of the places the next best take turns by day.

    What is pinned comes before all else, and what is buried never. Of memories that are worth the same, to the
    hundredth, the most used comes first.
    """
    ranked = sorted(
        (one for one in memories if one.standing is not Standing.BURIED),
        key=lambda one: (one.standing is None, -round(_value_to_reader(one, now), 2), -frequency(one), -one.id),
    )
    turns = places // _ROTATING
    first, pool = ranked[: places - turns], ranked[places - turns :][: turns * _POOL]
    start = now.toordinal() * turns % len(pool) if len(pool) > turns else 0
    return first + (pool[start:] + pool[:start])[:turns]


def _value_to_reader(memory: Memory, now: datetime) -> float:
    """Return what a memory is worth (0–1) to a reader who begins to work: by importance, kind, freshness and use.

    What was stored within the last half day was used in no earlier session.
    """
    used = frequency(memory) if memory.created_at <= now - _SESSION else 0.0
    lasting = POLICIES[memory.fact_type].lasting
    return _IMPORTANCE * memory.importance + _LASTING * lasting + _RECENCY * recency(memory, now) + _USE * used
