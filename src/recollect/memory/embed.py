"""Embedding what was written: at once when the model is warm, else as soon as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.engines.embedder import Embedder
from recollect.errors import RecollectError
from recollect.store.entries import Chunk
from recollect.text.chunk import chunk

if TYPE_CHECKING:
    from recollect.store.sql.records import Records

_RESERVED = 2  # the model's own tokens at either end
_SIZE = 128  # tokens: a shorter stretch says one thing, and its vector is nearer to a question about it
_OVERLAP = 16
_READ = 16  # chunks in one call of the model: more take no less time each, and their tokens' rows more memory
_BATCH = 64
_AT_ONCE = 64  # chunks that a caller waits for, a few seconds
_BRIEF = 4_000  # characters that are never more
_FEW = 8


class Stopped(Exception):
    """A text was not read to its end, as the process ends."""


def chunks_of(embedder: Embedder, content: str) -> tuple[Chunk, ...]:
    """Cut `content` into stretches that say about one thing each, below the model's token limit, and read each."""
    return chunks_of_each(embedder, [content])[0]


def chunks_of_each(
    embedder: Embedder, contents: Sequence[str], stopping: Callable[[], bool] = lambda: False
) -> list[tuple[Chunk, ...]]:
    """Do so for many contents: stretches of one length are read together, since each costs what the longest does.

    Raises `Stopped` as soon as `stopping` says so.
    """
    pieces = [(number, *span) for number, content in enumerate(contents) for span in spans_of(embedder, content)]
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


def spans_of(embedder: Embedder, content: str) -> list[tuple[int, int]]:
    """Return where `content` is cut: character offsets (start, end), at least one pair."""
    size = min(_SIZE, embedder.card.max_tokens - _RESERVED)
    return chunk(content, embedder.spans(content), size, _OVERLAP)


def is_long(embedder: Embedder, content: str) -> bool:
    """Say whether a text is so long that the background embeds it, and its caller does not wait for it."""
    return len(content) > _BRIEF and len(spans_of(embedder, content)) > _AT_ONCE


def embed_pending(
    records: Records,
    embedder: Embedder,
    embedded: Callable[[], None] = lambda: None,
    stopping: Callable[[], bool] = lambda: False,
) -> bool:
    """Embed what waits for its vectors; `embedded` is called after each memory, and `stopping` may end it at any time.

    What other replicas are embedding is left to them. Return whether nothing waits any more.
    """
    waiting = True
    while waiting:
        with records.embeddings.claiming(_BATCH) as claimed:
            waiting = bool(claimed)
            for one in claimed:
                try:
                    (chunks,) = chunks_of_each(embedder, [one.content], stopping)
                except Stopped:
                    return False
                records.embeddings.store(one, chunks)
                embedded()
    return not records.embeddings.unembedded(1)


def embed_missed(app: App, memory_id: str) -> None:
    """Embed a memory that was written without vectors while the model became ready: the catch-up may not have seen it.

    Where many wait, or it cannot be done now, the background does it; what was written stays written.
    """
    if app.embedder.ready:
        with suppress(RecollectError):
            waiting = app.records.embeddings.unembedded(_FEW + 1)
            for one in (one for one in waiting if str(one.id) == memory_id and not is_long(app.embedder, one.content)):
                app.records.embeddings.store(one, chunks_of(app.embedder, one.content))


def stamps_of(embedder: Embedder) -> dict[str, str]:
    """Return what a store must say of its embedding model."""
    card = embedder.card
    return {"model": card.id, "revision": card.version, "dimensions": str(card.dimensions)}
