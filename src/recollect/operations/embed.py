"""Embedding what was written: at once when the model is warm, else as soon as it is."""

from __future__ import annotations

from collections.abc import Callable

from recollect.policy.chunk import chunk
from recollect.ports import Chunk, Embedder, Records

_RESERVED = 2  # the model's own tokens at either end
_SIZE = 128  # tokens: a shorter stretch says one thing, and its vector is nearer to a question about it
_OVERLAP = 16
_READ = 32  # the tokens' float rows of more chunks than this never lie in memory at once
_BATCH = 64


def chunks_of(embedder: Embedder, content: str) -> tuple[Chunk, ...]:
    """Cut `content` into stretches that say about one thing each, below the model's token limit, and read each."""
    spans = spans_of(embedder, content)
    found: list[Chunk] = []
    for first in range(0, len(spans), _READ):
        some = spans[first : first + _READ]
        readings = embedder.read([content[start:end] for start, end in some])
        found += [Chunk(*span, one.vector, one.signs) for span, one in zip(some, readings, strict=True)]
    return tuple(found)


def spans_of(embedder: Embedder, content: str) -> list[tuple[int, int]]:
    """Return where `content` is cut: character offsets (start, end), at least one pair."""
    size = min(_SIZE, embedder.card.max_tokens - _RESERVED)
    return chunk(content, embedder.spans(content), size, _OVERLAP)


def embed_pending(records: Records, embedder: Embedder, more: Callable[[int], bool] = lambda _: True) -> None:
    """Embed what was written while the model was not ready, as long as `more`, told each count done, says so."""
    while waiting := records.unembedded(_BATCH):
        for one in waiting:
            records.attach(one, chunks_of(embedder, one.content))
        if not more(len(waiting)):
            break


def stamps_of(embedder: Embedder) -> dict[str, str]:
    """Return what a store must say of its embedding model."""
    card = embedder.card
    return {"model": card.id, "revision": card.sha256 or card.revision, "dimensions": str(card.dimensions)}
