"""Embedding what was written: at once when the model is warm, else as soon as it is."""

from __future__ import annotations

from collections.abc import Callable

from recollect.policy.chunk import chunk
from recollect.ports import App, Chunk, Embedder, Records

_RESERVED = 2  # the model's own tokens at either end
_OVERLAP = 32
_BATCH = 64


def chunks_of(embedder: Embedder, content: str) -> tuple[Chunk, ...]:
    """Cut `content` into stretches below the model's token limit and embed each."""
    spans = chunk(content, embedder.spans(content), embedder.card.max_tokens - _RESERVED, _OVERLAP)
    vectors = embedder.embed([content[start:end] for start, end in spans])
    return tuple(Chunk(start, end, vector) for (start, end), vector in zip(spans, vectors, strict=True))


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

    app.text.rebuild()
    embed_pending(app.records, app.embedder, advance)
    app.vectors.sync()
    return total


def stamps_of(embedder: Embedder) -> dict[str, str]:
    """Return what a store must say of its embedding model."""
    card = embedder.card
    return {"model": card.id, "revision": card.sha256 or card.revision, "dimensions": str(card.dimensions)}
