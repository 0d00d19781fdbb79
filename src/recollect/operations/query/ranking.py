"""Ranking: candidates become hits, each with its score explained part by part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from recollect.domain.requests import Query
from recollect.domain.results import Hit
from recollect.domain.search import View
from recollect.operations.query.features import Candidates, gather
from recollect.operations.query.rerank import passages, reranked
from recollect.policy import currency, periods, rank
from recollect.ports.app import App

if TYPE_CHECKING:
    from recollect.ports.models import Vector

_BESIDE = 0.15  # of the best match: what is worse beside it does not answer
_BESIDE_NAMED = 0.35  # the same for a query of few words, which names what it wants
_FEW_WORDS = 3
_COMPARED = 10  # of the best: which of them are about one subject
_OF_PERIOD = 0.1  # of a score: as much as full trust
_ROUNDING = 1e-9  # a memory at the floor passes by its match alone


class Ranked(NamedTuple):
    """A candidate: its id, its match (0–1), its score, the parts that add up to it, and what has replaced it."""

    id: int
    match: float
    score: float
    parts: dict[str, float]
    older_than: int | None = None


class Ranking(NamedTuple):
    """The best hits of a query, all ranked candidates (best first), what could not be searched, the query's vector.

    `weights` are those of the query's stems.
    """

    hits: tuple[Hit, ...]
    ranked: Sequence[Ranked]
    notes: tuple[str, ...]
    vector: Vector | None
    weights: Mapping[str, float]


def ranking_of(app: App, query: Query, view: View) -> Ranking:
    """Search, fuse and rank; the hits are the best memories that the view shows, as many as the query's limit."""
    candidates = gather(app, query, view)
    matches = app.fusion.matches(candidates.signals, candidates.query)
    matches, notes = reranked(app, query.query, matches, partial(passages, app, view, candidates.vector))
    ranked = _by_time(app, query.query, view, candidates, _ranked(app, query, view, candidates, matches))
    if not view.superseded:
        ranked = _summaries_first(candidates, ranked)
    best = ranked[: query.limit]
    memories = app.records.load([one.id for one in best], view)
    hits = tuple(
        Hit(
            memories[one.id],
            one.match,
            one.score,
            one.parts,
            candidates.signals[one.id],
            rank.certainty(one.match),
            older_than=one.older_than if one.older_than in memories else None,
        )
        for one in best
        if one.id in memories
    )
    return Ranking(hits, ranked, (*candidates.notes, *notes), candidates.vector, candidates.weights)


def _ranked(app: App, query: Query, view: View, candidates: Candidates, matches: dict[int, float]) -> list[Ranked]:
    """Rank the candidates; where even the best match is below the model's floor, there is none.

    Each must be above the floor itself, and not far below the best, at whatever age, unless the query has no
    `min_score`. Whoever sets that to 0 gets all that passes the filters, or without filters all that has a word of
    the query.
    """
    floor = app.embedder.card.floor
    unfloored = view.filtered and query.min_score == 0.0
    asked = query.min_score == 0.0 and "min_score" in query.model_fields_set
    best = max(matches.values(), default=0.0)
    if not unfloored and best < floor:
        matches = {one: match for one, match in matches.items() if asked and candidates.signals[one].bm25 > 0.0}
        best = 0.0
    strict = query.min_score > 0.0 or (query.max_tokens is not None and not (unfloored or asked))
    beside = _BESIDE_NAMED if candidates.query.words <= _FEW_WORDS else _BESIDE
    least = max(floor, best * beside) if strict else 0.0
    weights = rank.PROFILES[query.profile]
    ranked = [
        Ranked(one.id, match, *rank.weigh(one, rank.grade(match, floor, weights.match), weights, view.now))
        for one in candidates.ranking_rows
        if (match := matches.get(one.id, -1.0)) >= least
    ]
    passing = [one for one in ranked if one.score >= query.min_score - _ROUNDING]
    return sorted(passing, key=lambda one: (-one.score, -one.match, one.id))


def _by_time(app: App, text: str, view: View, candidates: Candidates, ranked: list[Ranked]) -> list[Ranked]:
    """Lift what is of the period that the query names, and the newer of two good answers about one subject."""
    period = periods.named_period(text, view.now)
    if period is None:
        return _newest_first(app, text, candidates, ranked, {})
    fits = {one.id: periods.fit(period, currency.dated(one)) for one in candidates.ranking_rows}
    lifted = [
        one._replace(score=one.score + gain, parts=one.parts | {"period": gain})
        if (gain := min(_OF_PERIOD * fits[one.id], 1.0 - one.score)) > 0
        else one
        for one in ranked
    ]
    lifted.sort(key=lambda one: (-one.score, -one.match, one.id))
    return _newest_first(app, text, candidates, lifted, fits)


def _newest_first(
    app: App, text: str, candidates: Candidates, ranked: list[Ranked], fits: Mapping[int, float]
) -> list[Ranked]:
    """Put the newer of two good answers about one subject before the older one, or after it where the past is asked."""
    best = {one.id: one for one in ranked[:_COMPARED]}
    cosines = app.vectors.similarities(list(best)) if len(best) > 1 else {}
    pairs = currency.of_one_subject(cosines, app.embedder.card.subject)
    if not pairs:
        return ranked
    rows = {one.id: one for one in candidates.ranking_rows if one.id in best}
    newer = currency.newer_by_older(rows, {one.id: one.match for one in best.values()}, pairs)
    return _lifted(ranked, newer, past=currency.asks_past(text), fits=fits)


def _summaries_first(candidates: Candidates, ranked: list[Ranked]) -> list[Ranked]:
    """Put a summary before the memories that it is of."""
    found = {one.id for one in ranked}
    links = {row.id: row.superseded_by for row in candidates.ranking_rows if row.id in found}
    return _lifted(ranked, {old: new for old, new in links.items() if new in found}, past=False, fits={})


def _lifted(ranked: list[Ranked], newer: dict[int, int], *, past: bool, fits: Mapping[int, float]) -> list[Ranked]:
    """Let what comes before others have the score of the best of them; `newer` is what replaces which."""
    if not newer:
        return ranked
    lifted = currency.lifted({one.id: one.score for one in ranked}, newer, past=past, fits=fits)
    found = []
    for one in ranked:
        gain = lifted.get(one.id, one.score) - one.score
        parts = one.parts | {"currency": one.parts.get("currency", 0.0) + gain} if gain else one.parts
        older_than = newer.get(one.id, one.older_than)
        found.append(one._replace(score=one.score + gain, parts=parts, older_than=older_than))
    return sorted(found, key=lambda one: (-one.score, one.id not in lifted, -one.match, one.id))
