"""Reranking: the optional second look at the best matches. Whatever prevents it becomes a note, never an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.domain.search import View
from recollect.errors import RecollectError
from recollect.policy.rerank_fusion import fused

if TYPE_CHECKING:
    from recollect.ports.models import Vector

_LOADING = "the reranker is still loading."
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
        return _skipped(matches, why)
    best = sorted(matches, key=lambda one: (-matches[one], one))[: rerank.top]
    passages = texts(best)
    scored = [one for one in best if one in passages]
    try:
        scores = rerank.scores(query, [passages[one] for one in scored])
    except RecollectError as error:
        return _skipped(matches, str(error))
    if len(scores) != len(scored) or not all(0.0 <= score <= 1.0 for score in scores):
        return _skipped(matches, _NO_SCORES)
    return fused(matches, dict(zip(scored, scores, strict=True))), ()


def passages(app: App, view: View, vector: Vector | None, ids: Sequence[int]) -> dict[int, str]:
    """Return of each memory that `view` may see the stretch nearest to the query's vector, after its speaker.

    Without a vector, of the query or of the memory, it is all of the content, which the reranker cuts.
    """
    spans = {} if vector is None else app.vectors.best_spans(vector, ids)
    found: dict[int, str] = {}
    for one, memory in app.records.load(ids, view).items():
        start, end = spans.get(one, (0, 0))
        passage = memory.content[start:end] or memory.content  # an update may have shortened it since its embedding
        found[one] = f"{memory.speaker}: {passage}" if memory.speaker else passage
    return found


def _skipped(matches: Mapping[int, float], why: str) -> tuple[dict[int, float], tuple[str, ...]]:
    return dict(matches), (f"Not reranked: {why}",)
