"""Hits: the best memories of a query as the store shows them, each with its score explained part by part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recollect.app import App
from recollect.domain.requests import Query
from recollect.domain.results import Hit
from recollect.domain.search import View
from recollect.search.match import certainty, matches_of
from recollect.search.order import Ranked, Ranking, ordered
from recollect.search.signals import Candidates, gather, least_score
from recollect.spans import spanned

_ROUNDING = 1e-9  # a memory at the floor passes by its match alone


class Answer(NamedTuple):
    """The best hits of a query, all that is ranked (best first), what could not be searched, and the candidates.

    `nearest` is the best of what is not relevant, where nothing is.
    """

    hits: tuple[Hit, ...]
    ranked: Ranking
    notes: tuple[str, ...]
    candidates: Candidates
    nearest: Hit | None = None


def ranking_of(app: App, query: Query, view: View) -> Answer:
    """Search, fuse and rank; the hits are the best memories that the view shows, as many as the query's limit."""
    candidates = gather(app, query, view)
    matches, notes = matches_of(app, query.query, view, candidates)
    least = least_score(query, view) - _ROUNDING
    every = ordered(app, query, view, candidates, matches, least)
    ranked = every.at_least(least)
    hits = _make_hits(app, view, candidates, ranked.best(query.limit))
    irrelevant = [one for one in every.best(0 if hits else 1) if one.match < app.embedder.card.floor]
    nearest = next(iter(_make_hits(app, view, candidates, irrelevant)), None) if irrelevant else None
    return Answer(hits, ranked, (*candidates.found.notes, *notes), candidates, nearest)


@spanned("search.hits")
def _make_hits(app: App, view: View, candidates: Candidates, best: Sequence[Ranked]) -> tuple[Hit, ...]:
    """Return a hit for each of the best memories that `view` may see, with its score explained part by part."""
    memories = app.records.load([one.id for one in best], view)
    shown = [one for one in best if one.id in memories]
    signals = candidates.signals_of([one.id for one in shown])
    return tuple(
        [
            Hit(
                memories[one.id],
                one.match,
                one.score,
                one.parts,
                measured,
                certainty(one.match),
                older_than=one.older_than if one.older_than in memories else None,
                contradicts=one.contradicts if one.contradicts in memories else None,
            )
            for one, measured in zip(shown, signals, strict=True)
        ]
    )
