"""Ranking: candidates become hits, each with its score explained part by part."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from recollect.domain.requests import Query
from recollect.domain.results import Hit
from recollect.domain.search import View
from recollect.operations.query.features import Candidates, gather
from recollect.operations.query.rerank import passages, reranked
from recollect.policy import rank
from recollect.ports.app import App

_FAR = 0.25  # of the floor


class Ranked(NamedTuple):
    """A candidate: its id, its match (0–1), its score, and the parts that add up to the score."""

    id: int
    match: float
    score: float
    parts: dict[str, float]


class Ranking(NamedTuple):
    """The best hits of a query, all ranked candidates (best first), and what could not be searched."""

    hits: tuple[Hit, ...]
    ranked: Sequence[Ranked]
    notes: tuple[str, ...]


def ranking_of(app: App, query: Query, view: View) -> Ranking:
    """Search, fuse and rank; the hits are the best memories that the view shows, as many as the query's limit."""
    candidates = gather(app, query, view)
    matches = app.fusion.matches(candidates.signals, candidates.query)
    matches, notes = reranked(app, query.query, matches, partial(passages, app, view, candidates.vector))
    ranked = _ranked(app, query, view, candidates, matches)
    best = ranked[: query.limit]
    memories = app.records.load([one.id for one in best], view)
    hits = tuple(
        Hit(memories[one.id], one.match, one.score, one.parts, candidates.signals[one.id])
        for one in best
        if one.id in memories
    )
    return Ranking(hits, ranked, (*candidates.notes, *notes))


def _ranked(app: App, query: Query, view: View, candidates: Candidates, matches: dict[int, float]) -> list[Ranked]:
    """Rank the candidates; where even the best match is below the model's floor, there is none.

    An index is of all that matches, so there each must be above the floor itself; elsewhere one far below it is left
    out, unless the query has no `min_score`: it would be there for its age and importance alone.
    """
    floor = 0.0 if view.filtered and query.min_score == 0.0 else app.embedder.card.floor
    if max(matches.values(), default=0.0) < floor:
        return []
    least = floor if query.max_tokens is not None else floor * _FAR if query.min_score else 0.0
    weights = rank.PROFILES[query.profile]
    relevant = [one for one in candidates.ranking_rows if matches[one.id] >= least]
    ranked = [Ranked(one.id, matches[one.id], *rank.weigh(one, matches[one.id], weights, view.now)) for one in relevant]
    passing = [one for one in ranked if one.score >= query.min_score]
    return sorted(passing, key=lambda one: (-one.score, -one.match, one.id))
