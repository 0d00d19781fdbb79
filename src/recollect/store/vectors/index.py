"""What a vector index promises to the store, and how it fails.

The index is derived: whatever goes wrong in it becomes `IndexBroken`, and the answer to that is always the same, to
drop it and build it again from SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from recollect.engines.embedder import Vector


SCANNED_AWAY: Final = 20_000
"""Memories that are compared one by one while the server of the vector index is away; of more, words alone answer."""


class IndexBroken(Exception):
    """The vector index failed; SQL still holds everything."""


class IndexAway(IndexBroken):
    """The server of the vector index does not answer; what it holds may be as it was."""


def chunk_id(memory_id: int, ordinal: int) -> str:
    """Return the id of one chunk in the index."""
    return f"{memory_id}.{ordinal}"


class VectorIndex(Protocol):
    """The nearest chunks of each namespace, by cosine. Every method may raise `IndexBroken`.

    `generation` changes with the model, so that the vectors of two models are never compared. Where the index is
    `proven_by_use` a namespace is only looked at when it is first asked after an opening, as there may be thousands.
    """

    generation: str
    proven_by_use: bool

    @property
    def ready(self) -> bool:
        """Say whether the index is open, so that using it costs no import."""

    def open(self) -> object:
        """Open the index, unless it is."""

    def close(self) -> None:
        """Let go of the index."""

    def proven(self) -> None:
        """Note that the whole index was asked and did no harm."""

    def discard(self) -> None:
        """Delete what the index holds, so that it is built again."""

    def compact(self) -> None:
        """Take what was deleted out of the index's files, where they are ours."""

    def adopt(self, generation: str) -> None:
        """Serve the vectors of another generation from now on."""

    def prune(self) -> None:
        """Delete the vectors of this store's other generations."""

    def drop(self, namespace: str) -> None:
        """Delete what the index holds of a namespace."""

    def put(self, namespace: str, ids: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Insert or replace vectors by the ids of their chunks."""

    def take(self, namespace: str, ids: Sequence[str]) -> None:
        """Remove vectors; ids that are absent are no error."""

    def query(self, namespace: str, vector: Vector, limit: int) -> dict[int, float]:
        """Return the memories of the `limit` nearest chunks, each with its best cosine."""

    def count(self, namespace: str) -> int:
        """Return how many vectors the index holds of a namespace."""

    def ids(self, namespace: str) -> set[str]:
        """Return every id that the index holds of a namespace."""

    def vectors(self, namespace: str, ids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of these ids, float32[d]; one that the index lacks is absent."""
