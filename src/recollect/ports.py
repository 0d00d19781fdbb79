"""The protocols that operations need, and `App`, the frozen bag that carries them. Only names live here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from recollect.domain import Caller, Draft, JournalEntry, Memory, ModelCard, OnSecret, View
from recollect.gate import Cleared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]  # float32[d], unit length
    Matrix: TypeAlias = NDArray[np.float32]  # float32[n, d], unit rows


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a memory's content (character offsets) and its vector, absent until it is embedded."""

    start: int
    end: int
    vector: Vector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A cleared draft with everything derived from it, ready to be written."""

    cleared: Cleared[Draft]
    content_hash: str
    title: str
    abstract: str
    overview: str
    keywords: str
    words: frozenset[str]
    chunks: tuple[Chunk, ...]
    at: datetime
    expires_at: datetime | None
    author: str


@dataclass(frozen=True, slots=True)
class Term:
    """One word or phrase of a query; `weight` is below 1 for a guess at a misspelt word."""

    text: str
    weight: float = 1.0


class Writing(Protocol):
    """One open write transaction on one namespace."""

    def by_key(self, key: str) -> Memory | None: ...
    def by_hash(self, content_hash: str) -> Memory | None: ...
    def by_id(self, memory_id: int) -> Memory | None: ...
    def insert(self, entry: Entry) -> int: ...
    def update(self, old: Memory, entry: Entry, given: frozenset[str]) -> None: ...
    def refresh(self, old: Memory, entry: Entry, given: frozenset[str]) -> None: ...
    def delete(self, old: Memory) -> None: ...


class Records(Protocol):
    """The canonical rows in SQL."""

    def writing(self, namespace: str, actor: str) -> AbstractContextManager[Writing]: ...
    def refuse(self, namespace: str, actor: str, field: str, kinds: Sequence[str]) -> None: ...
    def load(self, ids: Iterable[int], view: View) -> dict[int, Memory]: ...
    def count(self, view: View) -> int: ...
    def touch(self, ids: Sequence[int], at: datetime, *, accessed: bool) -> None: ...
    def history(self, memory_id: int, namespaces: Sequence[str]) -> list[JournalEntry]: ...


class Text(Protocol):
    """The text index: words, substrings, and the vocabulary of what is stored."""

    def search(self, terms: Sequence[Term], view: View, limit: int) -> dict[int, float]: ...
    def substring(self, pieces: Sequence[str], view: View, limit: int) -> dict[int, float]: ...
    def bm25(self, terms: Sequence[Term], ids: Sequence[int]) -> dict[int, float]: ...
    def found(self, terms: Sequence[Term], ids: Sequence[int]) -> dict[int, frozenset[int]]: ...
    def frequencies(self, words: Sequence[str], view: View) -> Mapping[str, int]: ...
    def similar(self, word: str, view: View, limit: int) -> list[Term]: ...


class Vectors(Protocol):
    """The vector index over what SQL holds."""

    def nearest(self, vector: Vector, view: View, limit: int) -> dict[int, float]: ...
    def cosines(self, vector: Vector, ids: Sequence[int]) -> dict[int, float]: ...
    def sync(self) -> None: ...


class Embedder(Protocol):
    """The embedding model."""

    @property
    def card(self) -> ModelCard: ...
    @property
    def ready(self) -> bool: ...
    def warm(self) -> None: ...
    def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> Matrix: ...
    def spans(self, text: str) -> list[tuple[int, int]]: ...
