"""Recall: search, fuse, rank what the caller may see, explain every score, and keep to a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recollect.domain.requests import Caller, Query
from recollect.domain.results import Hit, Index, IndexLine, Recalled, found_message
from recollect.domain.search import View
from recollect.operations.access_counts import count_use
from recollect.operations.query.ranking import Ranked, Ranking, ranking_of
from recollect.operations.visibility import view_of
from recollect.policy import budget
from recollect.policy.text import layers
from recollect.ports.app import App

_LONG = 1_000  # characters: about what one chunk holds
ESTIMATED = "The answer's size is estimated on the safe side: the embedding model's tokenizer is not loaded yet."


def recall(app: App, query: Query, caller: Caller) -> Recalled:
    """Return the memories that answer `query`, best first, each with its score explained part by part.

    Below the model card's floor the answer is "Nothing relevant found." A query with filters and a `min_score` of
    0 has no floor: it asks for everything that passes, the best first. What could not be searched stands in the
    notes; it is never an error.
    """
    with app.embedder.queries_first(), app.records.snapshot():
        view = view_of(app, query, caller)
        ranking = ranking_of(app, query, view)
        recalled = Recalled(ranking.hits, found_message(len(ranking.hits)), ranking.notes)
        if query.max_tokens is not None:
            recalled = replace(recalled, hits=_with_passages(app, ranking))
            recalled = _within_budget(app, recalled, ranking.ranked, view, query.max_tokens)
    count_use(app, [hit.memory.id for hit in recalled.hits], view.now, caller, accessed=False)
    return recalled


def _with_passages(app: App, ranking: Ranking) -> tuple[Hit, ...]:
    """Return the hits, the long ones with the passage that is nearest to the query."""
    long = [hit.memory.id for hit in ranking.hits if len(hit.memory.content) > _LONG]
    spans = app.vectors.best_spans(ranking.vector, long) if long and ranking.vector is not None else {}
    return tuple(
        replace(hit, passage=hit.memory.content[slice(*spans[hit.memory.id])]) if hit.memory.id in spans else hit
        for hit in ranking.hits
    )


def _within_budget(app: App, recalled: Recalled, ranked: Sequence[Ranked], view: View, max_tokens: int) -> Recalled:
    """Return an index of all `ranked` memories and the details that fit `max_tokens`, estimated without tokenizer."""
    abstracts = app.records.abstracts([one.id for one in ranked], view)
    lines = tuple(
        IndexLine(one.id, layers.one_line(abstracts[one.id]), one.score) for one in ranked if one.id in abstracts
    )
    counter = app.embedder.counter()
    notes = recalled.notes if counter else (ESTIMATED, *recalled.notes)
    index = Index(lines, omitted=len(lines), unlisted=0)
    whole = replace(recalled, message=found_message(len(lines)), notes=notes, index=index)
    return budget.within(whole, max_tokens, counter or budget.estimate)
