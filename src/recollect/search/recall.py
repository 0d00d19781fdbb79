"""Recall: search, fuse, rank what the caller may see, explain every score, and keep to a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from recollect.app import App
from recollect.domain.compact import CompactRecalled
from recollect.domain.enums import Layer, Retention
from recollect.domain.requests import Caller, CompactQuery, Query
from recollect.domain.results import Hit, Index, IndexLine, Memory, Recalled, found_message
from recollect.domain.search import View
from recollect.errors import StoreUnusable
from recollect.search import budget
from recollect.search.candidates import snapshot_for
from recollect.search.hits import Answer, ranking_of
from recollect.search.order import Ranking
from recollect.search.other_projects import note_of_hits, with_other_projects, with_project
from recollect.search.passages import LONG, Proximity, best_passage
from recollect.search.signals import Candidates
from recollect.text import layers

_DEEPEST = 500  # hits: nobody reads further page by page
ESTIMATED = "The answer's size is estimated on the safe side: the embedding model's tokenizer is not loaded yet."


def recall(app: App, query: Query, caller: Caller) -> Recalled:
    """Return the memories that answer `query`, best first, each with its score explained part by part.

    Below the model card's floor the answer is "Nothing relevant found." A query with a `min_score` of 0 has no floor:
    it asks for the best there is. What could not be searched stands in the notes; it is never an error.
    """
    recalled = recall_uncounted(app, query, caller)
    count_use(app, [hit.memory for hit in recalled.hits], app.clock(), caller, accessed=False)
    return recalled


def recall_uncounted(app: App, query: Query, caller: Caller) -> Recalled:
    """Return what `recall` does for a query that somebody is still typing: its hits do not count as recalled."""
    with snapshot_for(app, query, caller) as seen:
        view = with_other_projects(app, seen, caller, query.scope) if query.everywhere else seen
        ranking, hits, notes = _ranked_page(app, query, view, caller)
        recalled = Recalled(hits, found_message(len(hits)), notes, nearest=ranking.nearest)
        if query.max_tokens is not None:
            recalled = _within_budget(app, recalled, ranking.ranked, view, query.max_tokens)
    return recalled


def recall_compact(app: App, query: CompactQuery, caller: Caller) -> CompactRecalled:
    """Return a page of the memories that answer `query`, within its budget; long ones are shown by their best passage.

    It finds and ranks as `recall` does without a budget. Only what is shown counts as recalled.
    """
    upto = min(query.offset + query.limit, _DEEPEST)
    with snapshot_for(app, query, caller) as seen:
        view = with_other_projects(app, seen, caller, query.scope) if query.everywhere else seen
        whole = query.model_copy(update={"limit": upto, "max_tokens": None})
        ranking, hits, notes = _ranked_page(app, whole, view, caller, query.offset)
    page = CompactRecalled(
        tuple(replace(hit, layer=Layer.PASSAGE) if hit.passage else hit for hit in hits),
        found=len(ranking.ranked),
        offset=query.offset,
        user=caller.user,
        notes=notes,
    )
    page = budget.page_within(page, query.max_tokens, app.embedder.counter() or budget.estimate)
    count_use(app, [hit.memory for hit in page.hits], view.now, caller, accessed=False)
    return page


def count_use(app: App, memories: Sequence[Memory], at: datetime, caller: Caller, *, accessed: bool) -> None:
    """Count that these memories were read: `accessed` by id, else recalled as hits."""
    if not memories:
        return
    with suppress(StoreUnusable):  # what can be read is read, also where nothing can be written
        app.usage.add([one.id for one in memories], at, accessed=accessed)
    ending = [one.id for one in memories if one.expires_at is not None and one.ttl_days is None]

    def extend() -> None:
        """Let the found memories live on, by their importance or for the days of the captured."""
        if app.retention_rules.retention is Retention.IMPORTANCE:
            app.records.lists.extend_expiry(ending, at, caller.user)
        elif ending and app.lifecycle.default_ttl_days:
            app.records.lists.extend_expiry(ending, at, caller.user, app.lifecycle.default_ttl_days)

    if ending:
        app.run_later(extend)


def _ranked_page(
    app: App, query: Query, view: View, caller: Caller, offset: int = 0
) -> tuple[Answer, tuple[Hit, ...], tuple[str, ...]]:
    """Rank; return the ranking, the hits after the first `offset`, and the notes on them.

    A hit of another project names that project; a long hit has the passage that answers the query best.
    """
    ranking = ranking_of(app, query, view)
    hits = ranking.hits[offset:]
    if query.everywhere:
        hits = tuple(replace(hit, memory=with_project(hit.memory, caller)) for hit in hits)
    notes = ranking.notes if ranking.ranked else (*ranking.notes, *note_of_hits(app, query, view, caller))
    return ranking, _with_passages(app, ranking.candidates, hits), notes


def _with_passages(app: App, candidates: Candidates, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Return those of the hits that are long, with the passage that answers the query best."""
    long = [hit.memory.id for hit in hits if len(hit.memory.content) > LONG]
    if not long:
        return hits
    spans = app.vectors.best_spans(candidates.vector, long) if candidates.vector is not None else {}
    proximity = Proximity(candidates.found.terms.weights)
    return tuple(
        replace(hit, passage=best_passage(hit.memory.content, proximity, spans.get(hit.memory.id)))
        if len(hit.memory.content) > LONG
        else hit
        for hit in hits
    )


def _within_budget(app: App, recalled: Recalled, ranked: Ranking, view: View, max_tokens: int) -> Recalled:
    """Return an index of all `ranked` memories and the details that fit `max_tokens`, estimated without tokenizer."""
    ids = ranked.ids
    abstracts = app.records.abstracts(ids, view)
    lines = tuple(
        IndexLine(one, layers.one_line(abstracts[one]), match)
        for one, match in zip(ids, ranked.matches, strict=True)
        if one in abstracts
    )
    counter = app.embedder.counter()
    notes = recalled.notes if counter else (ESTIMATED, *recalled.notes)
    index = Index(lines, omitted=len(lines), unlisted=0)
    whole = replace(recalled, message=found_message(len(lines)), notes=notes, index=index)
    return budget.recalled_within(whole, max_tokens, counter or budget.estimate)
