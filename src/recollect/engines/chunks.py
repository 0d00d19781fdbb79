"""Texts cut into stretches that say about one thing each, and the vector of each stretch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.engines.embedder import Embedder
from recollect.errors import ModelMismatch, ModelUnusable
from recollect.text.chunk import chunk

if TYPE_CHECKING:
    from recollect.engines.embedder import Vector

_RESERVED = 2  # the model's own tokens at either end
_SIZE = 128  # tokens: a shorter stretch says one thing, and its vector is nearer to a question about it
_OVERLAP = 16
_READ = 16  # chunks in one call of the model: more take no less time each, and their tokens' rows more memory
_AT_ONCE = 64  # chunks that a caller waits for, a few seconds


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a memory's content (character offsets), its vector and the packed signs of its tokens."""

    start: int
    end: int
    vector: Vector
    tokens: bytes = b""


class Stopped(Exception):
    """A text was not read to its end, as the process ends."""


def chunks_of(embedder: Embedder, content: str) -> tuple[Chunk, ...]:
    """Cut `content` into stretches about one subject each, below the model's token limit, and embed each."""
    return chunks_of_each(embedder, [content])[0]


def chunks_of_each(
    embedder: Embedder, contents: Sequence[str], stopping: Callable[[], bool] = lambda: False
) -> list[tuple[Chunk, ...]]:
    """Cut and embed many contents; stretches of similar length are embedded together, as the longest sets the cost.

    Raises `Stopped` as soon as `stopping` says so.
    """
    return _embed_spans(embedder, contents, [chunk_spans(embedder, content) for content in contents], stopping)


def chunks_now(embedder: Embedder, content: str) -> tuple[Chunk, ...] | None:
    """Cut and embed a text; None for a text that the background embeds, so that its caller does not wait.

    That is any text while the model is not loaded, and a text so long that it takes seconds.
    """
    try:
        spans = chunk_spans(embedder, content)
        return None if len(spans) > _AT_ONCE else _embed_spans(embedder, [content], [spans])[0]
    except (ModelUnusable, ModelMismatch):
        return None


def _embed_spans(
    embedder: Embedder,
    contents: Sequence[str],
    spans: Sequence[list[tuple[int, int]]],
    stopping: Callable[[], bool] = lambda: False,
) -> list[tuple[Chunk, ...]]:
    """Return the chunks of each content, cut at its spans, in the order of the contents."""
    pieces = [(number, *span) for number, each in enumerate(spans) for span in each]
    pieces.sort(key=lambda piece: piece[2] - piece[1])
    found: list[list[Chunk]] = [[] for _ in contents]
    for first in range(0, len(pieces), _READ):
        if stopping():
            raise Stopped
        some = pieces[first : first + _READ]
        readings = embedder.read([contents[number][start:end] for number, start, end in some])
        for (number, start, end), one in zip(some, readings, strict=True):
            found[number].append(Chunk(start, end, one.vector, one.signs))
    return [tuple(sorted(chunks, key=lambda chunk: chunk.start)) for chunks in found]


def chunk_spans(embedder: Embedder, content: str) -> list[tuple[int, int]]:
    """Return where `content` is cut: character offsets (start, end), at least one pair."""
    size = min(_SIZE, embedder.card.max_tokens - _RESERVED)
    return chunk(content, embedder.spans(content), size, _OVERLAP)
