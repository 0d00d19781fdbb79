"""Reranking: the optional second look at the best matches. Whatever keeps it from looking is said, never raised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from recollect.domain import Memory, View
from recollect.errors import RecollectError
from recollect.policy.blend import blended
from recollect.ports import App

if TYPE_CHECKING:
    from recollect.ports import Vector

_LOADING = "the reranker is still loading."
_NO_SCORES = "the reranker gave something else than one number of 0–1 for each passage."


def reranked(
    app: App, query: str, matches: Mapping[int, float], texts: Callable[[Sequence[int]], Mapping[int, str]]
) -> tuple[dict[int, float], tuple[str, ...]]:
    """Return the matches (0–1) after the reranker has looked at the best of them, and what there is to say of it.

    `texts` gives for each memory the passage to judge. The matches are unchanged where no reranker is configured, and
    where it is but does not answer; the note then says why. Nobody waits for it to load: that takes too long.
    """
    rerank = app.capabilities.rerank
    if rerank is None or len(matches) < 2:
        return dict(matches), ()
    if not rerank.ready and (absent := _LOADING if not rerank.wait(0.0) else rerank.failure):
        return dict(matches), (_note(absent),)
    best = sorted(matches, key=lambda one: (-matches[one], one))[: rerank.top]
    passages = texts(best)
    judged = [one for one in best if one in passages]
    try:
        scores = rerank.scores(query, [passages[one] for one in judged])
    except RecollectError as error:
        return dict(matches), (_note(str(error)),)
    if len(scores) != len(judged) or not all(0.0 <= score <= 1.0 for score in scores):
        return dict(matches), (_note(_NO_SCORES),)
    return blended(matches, dict(zip(judged, scores, strict=True))), ()


def passages(app: App, view: View, vector: Vector | None) -> Callable[[Sequence[int]], dict[int, str]]:
    """Return what reads of each memory that `view` may see the stretch nearest to the query's vector.

    Without a vector, of the query or of the memory, it reads all of the content, which the reranker cuts.
    """

    def read(ids: Sequence[int]) -> dict[int, str]:
        spans = {} if vector is None else app.vectors.best_spans(vector, ids)
        return {one: _passage(memory, spans.get(one)) for one, memory in app.records.load(ids, view).items()}

    return read


def _passage(memory: Memory, span: tuple[int, int] | None) -> str:
    stretch = memory.content[slice(*span)] if span else ""
    said = stretch or memory.content  # an update may have shortened it since its vectors were read
    return f"{memory.speaker}: {said}" if memory.speaker else said


def _note(why: str) -> str:
    return f"Not reranked: {why}"
