"""Embedding what was written: at once when the model is warm, else as soon as it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.engines.chunks import Stopped, chunks_now, chunks_of_each
from recollect.engines.embedder import Embedder
from recollect.errors import RecollectError

if TYPE_CHECKING:
    from recollect.store.sql.records import Records

_BATCH = 64
_FEW = 8


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
            missed = next((each for each in waiting if str(each.id) == memory_id), None)
            chunks = chunks_now(app.embedder, missed.content) if missed is not None else None
            if missed is not None and chunks is not None:
                app.records.embeddings.store(missed, chunks)


def stamps_of(embedder: Embedder) -> dict[str, str]:
    """Return the stamps by which a store knows its embedding model."""
    card = embedder.card
    return {"model": card.id, "revision": card.version, "dimensions": str(card.dimensions)}
