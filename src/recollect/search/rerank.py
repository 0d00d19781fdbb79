"""Reranking: the optional second look at the best matches. Whatever prevents it becomes a note, never an error.

A reranker's scores are compared with each other, hardly trusted: what 0.2 means differs between models, and outside
of what a model was trained on all of its scores are low.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.domain.search import View
from recollect.errors import RecollectError

if TYPE_CHECKING:
    from recollect.engines.embedder import Vector

_LOADING = "the reranker is still loading."
_SCORE_WEIGHT = 0.4
_LIMIT = 8.0
_EDGE = 1e-4
_NO_SCORES = "the reranker did not return one number of 0–1 for each passage."


def reranked(
    app: App, query: str, matches: Mapping[int, float], texts: Callable[[Sequence[int]], Mapping[int, str]]
) -> tuple[dict[int, float], tuple[str, ...]]:
    """Return the matches (0–1) after the reranker has looked at the best of them, and a note where it did not.

    `texts` gives for each memory the passage to score. The matches are unchanged where no reranker is configured, and
    where it does not answer; nobody waits for it to load, which takes too long.
    """
    rerank = app.capabilities.rerank
    if rerank is None or len(matches) < 2:
        return dict(matches), ()
    if not rerank.ready and (why := rerank.failure if rerank.wait(0.0) else _LOADING):
        return _without_reranking(matches, why)
    best = sorted(matches, key=lambda one: (-matches[one], one))[: rerank.top]
    passages = texts(best)
    scored = [one for one in best if one in passages]
    try:
        scores = rerank.scores(query, [passages[one] for one in scored])
    except RecollectError as error:
        return _without_reranking(matches, str(error))
    if len(scores) != len(scored) or not all(0.0 <= score <= 1.0 for score in scores):
        return _without_reranking(matches, _NO_SCORES)
    return fused(matches, dict(zip(scored, scores, strict=True))), ()


def passages(app: App, view: View, vector: Vector | None, ids: Sequence[int]) -> dict[int, str]:
    """Return, by memory id, its passage nearest to the query vector, as `<speaker>: <passage>` where it has a speaker.

    Memories that `view` may not see are absent. Where the query or the memory has no vector, the passage is the whole
    content, which the reranker cuts.
    """
    spans = {} if vector is None else app.vectors.best_spans(vector, ids)
    found: dict[int, str] = {}
    for one, memory in app.records.load(ids, view).items():
        start, end = spans.get(one, (0, 0))
        passage = memory.content[start:end] or memory.content  # an update may have shortened it since its embedding
        found[one] = f"{memory.speaker}: {passage}" if memory.speaker else passage
    return found


def _without_reranking(matches: Mapping[int, float], why: str) -> tuple[dict[int, float], tuple[str, ...]]:
    """Return the matches unchanged, and the note why they were not reranked."""
    return dict(matches), (f"Not reranked: {why}",)


def fused(matches: Mapping[int, float], scores: Mapping[int, float]) -> dict[int, float]:
    """Return `matches` with those that `scores` (0–1) judges moved, in 0–1; all others keep theirs.

    Among the judged the order is that of a convex mix of both log-odds: 0.71 of the match, 0.29 of the score, which
    spread about equally far. The level stays that of the match, which is calibrated: the usual candidate keeps its
    own, so that scores which tell nothing apart change nothing; and the best one rises only as far as the best score
    lies above even odds, so that the least bad of nothing relevant is not called relevant. The weights were set by
    hand, from what the MS MARCO and BGE rerankers are known to answer.
    """
    if not scores:
        return dict(matches)
    odds = {one: _log_odds(matches[one], _EDGE) for one in scores}
    moves = {one: _SCORE_WEIGHT * min(max(_log_odds(score, 1e-9), -_LIMIT), _LIMIT) for one, score in scores.items()}
    highest = max(odds.values()) + max(0.0, *moves.values())
    shift = min(-median(moves.values()), highest - max(odds[one] + moves[one] for one in scores))
    moved = {one: _shift_match(matches[one], odds[one], moves[one] + shift) for one in scores}
    return {**matches, **moved}


def _shift_match(match: float, odds: float, change: float) -> float:
    """Return the match whose log-odds are `odds` after `change` is added to them."""
    return 1.0 / (1.0 + math.exp(-odds - change)) if abs(change) > 1e-9 else match


def _log_odds(share: float, edge: float) -> float:
    """Return the log-odds of a share (0–1), which is kept at least `edge` away from 0 and 1."""
    inside = min(max(share, edge), 1.0 - edge)
    return math.log(inside / (1.0 - inside))
