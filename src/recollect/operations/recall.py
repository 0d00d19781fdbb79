"""Recall: search by meaning, by word and by typo, fuse, load what the caller may see, rank and explain."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.domain import Caller, Hit, Query, Recalled, Signals, Standing, View, found
from recollect.operations.dual import dual
from recollect.operations.evidence import gather
from recollect.operations.rerank import passages, reranked
from recollect.operations.usage import used
from recollect.operations.view import view_of
from recollect.policy import rank
from recollect.ports import App

_FAR = 0.25  # of the floor


def recall(app: App, query: Query, caller: Caller | None = None) -> Recalled:
    """Return the memories that answer `query`, best first, each with its score explained part by part.

    Below the model card's floor the answer is "Nothing relevant found." A query with filters and a `min_score` of
    0 has no floor: it asks for whatever passes, the best first. Whatever could not be searched is said in the
    notes; it is never an error.
    """
    caller = caller or app.caller
    view = view_of(app, query, caller)
    evidence = gather(app, query, view)
    matches = app.fusion.matches(evidence.found, evidence.asked)
    matches, said = reranked(app, query.query, matches, passages(app, view, evidence.vector))
    ranked = _ranked(app, query, view, evidence.standings, matches)
    hits = _loaded(app, view, ranked[: query.limit], evidence.found)
    recalled = Recalled(tuple(hits), found(len(hits)), (*evidence.notes, *said))
    if query.max_tokens is not None:
        recalled = dual(app, recalled, {number: -score for score, _, number, _ in ranked}, view, query.max_tokens)
    used(app, [hit.memory.id for hit in recalled.hits], view.now, caller, accessed=False)
    return recalled


def _ranked(
    app: App,
    query: Query,
    view: View,
    standings: Sequence[Standing],
    matches: dict[int, float],
) -> list[tuple[float, float, int, dict[str, float]]]:
    """Rank the candidates; where even the best match is below the model's floor, there is none.

    An index is of all that matches, so there each must be above the floor itself; elsewhere one far below it is left
    out, unless the query has no `min_score`: it would be there for its age and importance alone.
    """
    floor = 0.0 if _unfloored(query, view) else app.embedder.card.floor
    if max(matches.values(), default=0.0) < floor:
        return []
    weights = rank.PROFILES[query.profile]
    least = floor if query.max_tokens is not None else floor * _FAR if query.min_score else 0.0
    ranked: list[tuple[float, float, int, dict[str, float]]] = []
    for one in standings:
        score, parts = rank.weigh(one, matches[one.id], weights, view.now)
        if score >= query.min_score and matches[one.id] >= least:
            ranked.append((-score, -matches[one.id], one.id, parts))
    return sorted(ranked, key=lambda found: found[:3])


def _unfloored(query: Query, view: View) -> bool:
    return view.filtered and query.min_score == 0.0


def _loaded(
    app: App, view: View, best: Sequence[tuple[float, float, int, dict[str, float]]], signals: dict[int, Signals]
) -> list[Hit]:
    memories = app.records.load([number for _, _, number, _ in best], view)
    return [
        Hit(memories[number], -match, -score, parts, signals[number])
        for score, match, number, parts in best
        if number in memories
    ]
