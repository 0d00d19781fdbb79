"""What the indexes promise: full-text search, vector search and a second set of vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from recollect.domain.results import Memory
from recollect.domain.search import View

if TYPE_CHECKING:
    from recollect.ports.models import Matrix, Vector, Weights


SCANNED_AWAY: Final = 20_000
"""Memories that are compared one by one while the server of the vector index is away; of more, words alone answer."""


@dataclass(frozen=True, slots=True)
class Term:
    """One word or phrase of a query; `weight` is below 1 for another spelling of a word."""

    text: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class LateInteraction:
    """How near a memory is: the cosine of its best chunk, and the late interaction of its best chunk (about -1–1).

    `late` counts every query token alike, `rare` by the weight it was given; both are None where the memory's tokens
    are not stored yet.
    """

    cosine: float
    late: float | None
    rare: float | None


class Text(Protocol):
    """The text index: words, substrings, and the vocabulary of what is stored."""

    def search(self, terms: Sequence[Term], view: View, limit: int) -> dict[int, float]:
        """Return the best `limit` memories that hold any of `terms`, with the sum of their weighted bm25 (> 0)."""

    def substring(self, piece: str, view: View, limit: int) -> list[int]:
        """Return memories in whose text `piece` (at least three characters) stands, letter case aside."""

    def frequencies(self, words: Sequence[str], view: View) -> dict[str, int]:
        """Return in how many memories of the view's namespaces and levels each word stands; unknown ones are absent."""

    def size(self, view: View) -> int:
        """Return how many memories of its levels the view's namespaces hold, whatever their state."""

    def similar(self, word: str, view: View, limit: int) -> list[Term]:
        """Return the stored words that `word` may be a misspelling or a part of, weighted 0–1, likeliest first."""

    def purge_deleted(self) -> None:
        """Rewrite the index until no trace of deleted text is left in it, in short steps so that writers get by."""

    def rebuild(self, worded: Callable[[Memory], tuple[str, frozenset[str]]] | None = None) -> None:
        """Build index and vocabulary again from the memories, with the keywords and words that `worded` gives each."""


class Vectors(Protocol):
    """The vector index over what SQL holds. Vectors are float32[d] of unit length, cosines -1–1."""

    def nearest(self, vector: Vector, view: View, limit: int) -> dict[int, float]:
        """Return the nearest memories that the view may see with their best chunk's cosine, nearest first.

        They are fewer than `limit` only where the view may see fewer that have vectors.
        """

    def cosines(self, vector: Vector, ids: Sequence[int]) -> dict[int, float]:
        """Return the exact cosine of each memory's best chunk; a memory without vectors is absent."""

    def late_interaction(
        self, vector: Vector, tokens: Matrix, weights: Weights, ids: Sequence[int]
    ) -> dict[int, LateInteraction]:
        """Return how near each memory is to a query of `tokens` float32[q, d] with `weights`, q numbers of sum 1."""

    def similarities(self, ids: Sequence[int]) -> dict[tuple[int, int], float]:
        """Return the cosine of the best chunks of each pair of memories; one without vectors is in no pair."""

    def alike(self, ids: Sequence[int], least: float) -> set[tuple[int, int]]:
        """Return the pairs of memories, the lower id first, of which two chunks have a cosine of at least `least`."""

    def best_spans(self, vector: Vector, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return where (character offsets) the best chunk of each memory lies in its content."""

    def waiting(self) -> int:
        """Return how many memories the index does not have as they are."""

    def sync(self) -> None:
        """Bring the index to what SQL says; one that fails is deleted and built again, and SQL serves meanwhile."""

    def sync_memory(self, memory_id: int) -> None:
        """Bring the index up to date for one memory at once; when that fails, the next `sync` does it."""

    def repair(self) -> None:
        """Bring the index to what SQL says, and build anew each namespace that holds other ids than SQL."""

    @property
    def state(self) -> str:
        """Say how the index is: `opening`, `rebuilding`, `ready`, `unreadable`, `away`, or `moved` to another model."""
