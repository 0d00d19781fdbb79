"""Rerank fusion: what a reranker scores of the best candidates moves their match, in log-odds and within bounds.

A reranker's scores are compared with each other, hardly trusted: what 0.2 means differs between models, and outside
of what a model was trained on all of its scores are low.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median

_SCORE_WEIGHT = 0.4
_LIMIT = 8.0
_EDGE = 1e-4


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
    moved = {one: _moved(matches[one], odds[one], moves[one] + shift) for one in scores}
    return {**matches, **moved}


def _moved(match: float, odds: float, change: float) -> float:
    return 1.0 / (1.0 + math.exp(-odds - change)) if abs(change) > 1e-9 else match


def _log_odds(share: float, edge: float) -> float:
    inside = min(max(share, edge), 1.0 - edge)
    return math.log(inside / (1.0 - inside))
