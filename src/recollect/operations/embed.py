"""Embedding what was written: at once when the model is warm, else as soon as it is."""

from __future__ import annotations

from collections.abc import Callable

from recollect.policy.chunk import chunk
from recollect.policy.names import words_of
from recollect.policy.terms import worded
from recollect.ports import App, Chunk, Embedder, Records

_RESERVED = 2  # the model's own tokens at either end
_SIZE = 128  # tokens: a shorter stretch says one thing, and its vector is nearer to a question about it
_OVERLAP = 16
_READ = 32  # the tokens' float rows of more chunks than this never lie in memory at once
_BATCH = 64


def chunks_of(embedder: Embedder, content: str) -> tuple[Chunk, ...]:
    """Cut `content` into stretches that say about one thing each, below the model's token limit, and read each."""
    size = min(_SIZE, embedder.card.max_tokens - _RESERVED)
    spans = chunk(content, embedder.spans(content), size, _OVERLAP)
    found: list[Chunk] = []
    for first in range(0, len(spans), _READ):
        some = spans[first : first + _READ]
        readings = embedder.read([content[start:end] for start, end in some])
        found += [Chunk(*span, one.vector, one.signs) for span, one in zip(some, readings, strict=True)]
    return tuple(found)


def embed_pending(records: Records, embedder: Embedder, more: Callable[[int], bool] = lambda _: True) -> None:
    """Embed what was written while the model was not ready, as long as `more`, told each count done, says so."""
    while waiting := records.unembedded(_BATCH):
        for one in waiting:
            records.attach(one, chunks_of(embedder, one.content))
        if not more(len(waiting)):
            break


def reindex(app: App, progress: Callable[[int, int], None] = lambda _done, _all: None) -> int:
    """Embed everything anew with the configured model and rebuild every index; return how many memories.

    `progress` is told how many are done and how many there are. Text search answers meanwhile.
    """
    total, done = app.records.forget_vectors(stamps_of(app.embedder)), 0

    def advance(count: int) -> bool:
        nonlocal done
        done += count
        progress(done, total)
        return True

    app.text.rebuild(worded)
    app.records.recount(words_of)
    embed_pending(app.records, app.embedder, advance)
    app.vectors.sync()
    return total


def stamps_of(embedder: Embedder) -> dict[str, str]:
    """Return what a store must say of its embedding model."""
    card = embedder.card
    return {"model": card.id, "revision": card.sha256 or card.revision, "dimensions": str(card.dimensions)}
