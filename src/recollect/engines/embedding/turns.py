"""Who uses an embedding model next: somebody waits for a query, and nobody for the rest of a long document."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from recollect.engines.loading import LazyModel

T = TypeVar("T")

_LONGEST: Final = 0.1  # seconds: documents go on beside queries that never end


class EmbeddingModel(LazyModel[T]):
    """What embedding models have in common: between two batches of a document, queries go first."""

    kind = "embedding model"

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()
        self._queries = 0

    @contextmanager
    def queries_first(self) -> Iterator[None]:
        """Let no further batch of a document begin until the block ends, or for a moment."""
        with self._changed:
            self._queries += 1
        try:
            yield
        finally:
            with self._changed:
                self._queries -= 1
                self._changed.notify_all()

    def _give_way(self) -> None:
        """Wait, before a batch of a document, until no query is under way."""
        with self._changed:
            self._changed.wait_for(lambda: not self._queries, _LONGEST)
