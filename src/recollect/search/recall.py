"""Recall: search, fuse, rank what the caller may see, explain every score, and keep to a budget of tokens.

The other projects that the caller may read: looked at on request, and named where nothing is found in this one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final

from recollect.app import App
from recollect.domain.compact import CompactRecalled
from recollect.domain.enums import Layer, Retention, Scope
from recollect.domain.requests import Caller, CompactQuery, Query
from recollect.domain.results import ELSEWHERE, Hit, Index, IndexLine, Memory, Recalled, found_message
from recollect.domain.search import View
from recollect.errors import StoreUnusable
from recollect.prompt.neutral import neutral
from recollect.search import budget
from recollect.search.candidates import reading
from recollect.search.features import Candidates
from recollect.search.passages import LONG, Proximity, best_passage
from recollect.search.ranking import Ranked, Ranking, ranking_of
from recollect.text import layers

_LOOKED_AT: Final = 100  # hits
_NAMED: Final = 5  # projects
_MOST_PROJECTS: Final = 50  # that are searched unasked, since each has an index of its own
_LINE: Final = 80  # characters


def other_projects(app: App, caller: Caller, scope: Scope | None = None) -> tuple[str, ...]:
    """Return the namespaces of the other projects that this caller may read, where `scope` lets them in."""
    if scope not in (None, Scope.PROJECT):
        return ()
    own = caller.namespace(Scope.PROJECT)
    others = (one for one in app.records.project_namespaces(caller.team) if one != own)
    return tuple(one for one in others if caller.elsewhere.role_in(project_of(one)) is not None)


def widened(app: App, view: View, caller: Caller, scope: Scope | None) -> View:
    """Return a view that also sees the other projects that the caller may read."""
    return view.model_copy(update={"namespaces": (*view.namespaces, *other_projects(app, caller, scope))})


def with_project(memory: Memory, caller: Caller) -> Memory:
    """Name in a memory of another project that project, unless its own field `project` says something."""
    project = project_of(memory.namespace)
    if memory.project or not project or memory.namespace == caller.namespace(Scope.PROJECT):
        return memory
    return memory.model_copy(update={"project": project})


def note_of_hits(app: App, query: Query, view: View, caller: Caller) -> tuple[str, ...]:
    """Say how many memories of which other projects answer a query that found nothing here, and the best of each."""
    others = () if query.everywhere else other_projects(app, caller, query.scope)
    if not others:
        return ()
    if len(others) > _MOST_PROJECTS:
        largest = app.records.counts(view.model_copy(update={"namespaces": others})).most_common(_MOST_PROJECTS)
        others = tuple(namespace for namespace, _ in largest)
    wide = query.model_copy(update={"limit": _LOOKED_AT, "max_tokens": None})
    hits = ranking_of(app, wide, view.model_copy(update={"namespaces": others})).hits
    best = {hit.memory.namespace: hit.memory for hit in reversed(hits)}
    return _note(caller, Counter(hit.memory.namespace for hit in hits), best)


def note_of_counts(app: App, view: View, caller: Caller, scope: Scope | None) -> tuple[str, ...]:
    """Say how many memories of which other projects such a view sees."""
    others = other_projects(app, caller, scope)
    return _note(caller, app.records.counts(view.model_copy(update={"namespaces": others}))) if others else ()


def counts_of(app: App, projects: Sequence[str], caller: Caller) -> dict[str, int]:
    """Return how many memories each of these projects holds that the caller may read, without those that hold none."""
    if not projects:
        return {}
    others = tuple(one for one in other_projects(app, caller) if project_of(one) in projects)
    counts = app.records.counts(View(namespaces=others, now=app.clock())) if others else {}
    return {project_of(namespace): count for namespace, count in counts.items()}


def project_with(app: App, memory_id: int, view: View, caller: Caller) -> str:
    """Return the other project that holds a memory, an empty text where none does."""
    others = other_projects(app, caller)
    found = app.records.load([memory_id], view.model_copy(update={"namespaces": others})) if others else {}
    return project_of(found[memory_id].namespace) if memory_id in found else ""


def _note(caller: Caller, counts: Counter[str], best: Mapping[str, Memory] | None = None) -> tuple[str, ...]:
    here = f"Not in project {caller.project}, but " if Scope.PROJECT in caller.reads else "But "
    named: Sequence[tuple[str, int]] = [(one, count) for one, count in counts.most_common(_NAMED) if count]
    parts = []
    for namespace, count in named:
        line = layers.shortened(" ".join(best[namespace].abstract.split()), _LINE).rstrip(".") if best else ""
        parts.append(f"{count} in {project_of(namespace)}" + (f', nearest: "{line}"' if line else ""))
    return (neutral(f"{here}{ELSEWHERE}{'; '.join(parts)}."),) if parts else ()


def project_of(namespace: str) -> str:
    """Return the name of the project whose namespace this is, an empty text for another scope."""
    scope, _, name = namespace.partition(":")
    return name.partition("/")[2] if scope == "project" else ""


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
    with reading(app, query, caller) as seen:
        view = widened(app, seen, caller, query.scope) if query.everywhere else seen
        ranking, hits, notes = _answer(app, query, view, caller)
        recalled = Recalled(hits, found_message(len(hits)), notes, nearest=ranking.nearest)
        if query.max_tokens is not None:
            recalled = _within_budget(app, recalled, ranking.ranked, view, query.max_tokens)
    return recalled


def recall_compact(app: App, query: CompactQuery, caller: Caller) -> CompactRecalled:
    """Return a page of the memories that answer `query`, within its budget; long ones are shown by their best passage.

    It finds and ranks as `recall` does without a budget. Only what is shown counts as recalled.
    """
    upto = min(query.offset + query.limit, _DEEPEST)
    with reading(app, query, caller) as seen:
        view = widened(app, seen, caller, query.scope) if query.everywhere else seen
        whole = query.model_copy(update={"limit": upto, "max_tokens": None})
        ranking, hits, notes = _answer(app, whole, view, caller, query.offset)
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
    ids = [one.id for one in memories]
    if not ids:
        return
    ending = [one.id for one in memories if one.expires_at is not None and one.ttl_days is None]

    def extend() -> None:
        if app.retention_rules.retention is Retention.IMPORTANCE:
            app.records.extend_expiry(ending, at, caller.user)
        elif ending and app.lifecycle.default_ttl_days:
            app.records.extend_expiry(ending, at, caller.user, app.lifecycle.default_ttl_days)

    def count() -> None:
        app.records.touch(ids, at, accessed=accessed)
        extend()

    if not accessed:
        app.run_later(count)
        return
    with suppress(StoreUnusable):  # what can be read is read, also where nothing can be written
        app.records.touch(ids, at, accessed=True)
    app.run_later(extend)


def _answer(
    app: App, query: Query, view: View, caller: Caller, offset: int = 0
) -> tuple[Ranking, tuple[Hit, ...], tuple[str, ...]]:
    """Rank, and return the hits after the first `offset` and what is to be said of them.

    A hit of another project names that; a long one has the passage that answers the query best.
    """
    ranking = ranking_of(app, query, view)
    hits = ranking.hits[offset:]
    if query.everywhere:
        hits = tuple(replace(hit, memory=with_project(hit.memory, caller)) for hit in hits)
    notes = ranking.notes if ranking.ranked else (*ranking.notes, *note_of_hits(app, query, view, caller))
    return ranking, _with_passages(app, ranking.candidates, hits), notes


def _with_passages(app: App, candidates: Candidates, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Return some of the hits, the long ones with the passage that answers the query best."""
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


def _within_budget(app: App, recalled: Recalled, ranked: Sequence[Ranked], view: View, max_tokens: int) -> Recalled:
    """Return an index of all `ranked` memories and the details that fit `max_tokens`, estimated without tokenizer."""
    abstracts = app.records.abstracts([one.id for one in ranked], view)
    lines = tuple(
        IndexLine(one.id, layers.one_line(abstracts[one.id]), one.match) for one in ranked if one.id in abstracts
    )
    counter = app.embedder.counter()
    notes = recalled.notes if counter else (ESTIMATED, *recalled.notes)
    index = Index(lines, omitted=len(lines), unlisted=0)
    whole = replace(recalled, message=found_message(len(lines)), notes=notes, index=index)
    return budget.within(whole, max_tokens, counter or budget.estimate)
