"""What a text index promises: words, substrings, and the vocabulary of what is stored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from recollect.domain.results import Memory
from recollect.domain.search import View


@dataclass(frozen=True, slots=True)
class Term:
    """One word or phrase of a query; `weight` is below 1 for another spelling of a word."""

    text: str
    weight: float = 1.0


class TextIndex(Protocol):
    """Finds memories by their words; every search stays inside the view."""

    def search(self, terms: Sequence[Term], view: View, limit: int) -> dict[int, float]:
        """Return the best `limit` memories that hold any of `terms`, with the sum of their weighted bm25 (> 0)."""

    def ranked(self, terms: Sequence[Term], view: View, limit: int) -> dict[int, float]:
        """Return the best `limit` memories of the view's namespaces and levels, whatever its other filters."""

    def held(self, phrases: Collection[str], view: View) -> frozenset[str]:
        """Return those of these words and phrases that stand in a memory which the view may see."""

    def substring(self, piece: str, view: View, limit: int) -> list[int]:
        """Return memories in whose text `piece` (at least three characters) stands, letter case aside."""

    def frequencies(self, words: Sequence[str], view: View) -> dict[str, int]:
        """Return, by word, how many memories of the view's namespaces and levels have it; unknown words are absent."""

    def size(self, view: View) -> int:
        """Return how many memories of its levels the view's namespaces hold, whatever their state."""

    def similar(self, word: str, view: View, limit: int) -> list[Term]:
        """Return the stored words that `word` may be a misspelling or a part of, weighted 0–1, likeliest first."""

    def purge_deleted(self) -> None:
        """Rewrite the index until no trace of deleted text is left in it, in short steps so that writers get by."""

    def rebuild(self, worded: Callable[[Memory], tuple[str, frozenset[str]]] | None = None) -> None:
        """Build index and vocabulary again from the memories, with the keywords and words that `worded` gives each."""
