"""The protocols that operations need, and `App`, the frozen bag that carries them. Only names live here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from recollect.capabilities import Capabilities
from recollect.domain import (
    Asked,
    Caller,
    Draft,
    JournalEntry,
    Memory,
    ModelCard,
    OnSecret,
    Outcome,
    Signals,
    Standing,
    View,
)
from recollect.gate import Cleared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]  # float32[d], unit length
    Matrix: TypeAlias = NDArray[np.float32]  # float32[n, d], unit rows
    Weights: TypeAlias = NDArray[np.float32] | Sequence[float]  # one per row of a matrix, 1 in sum


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as the embedding model reads it: its vector, and a row per token with the characters it stands for.

    Special tokens and the prompt are left out. `signs` holds the rows' signs packed, as `Chunk` keeps them.
    """

    vector: Vector  # float32[d], unit length
    tokens: Matrix  # float32[t, d], unit rows
    spans: tuple[tuple[int, int], ...]  # t character offsets (start, end) into the text
    signs: bytes = b""  # t rows of ceil(d / 8) bytes


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a memory's content (character offsets), its vector and the packed signs of its tokens."""

    start: int
    end: int
    vector: Vector
    tokens: bytes = b""


@dataclass(frozen=True, slots=True)
class Closeness:
    """How near a memory is: the cosine of its best chunk, and the late interaction of its best chunk (about -1–1).

    `late` counts every query token alike, `rare` by the weight it was given; both are None where the memory's tokens
    are not stored yet.
    """

    cosine: float
    late: float | None
    rare: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A cleared draft with everything derived from it, ready to be written.

    `given` names the draft's fields that somebody set: an update leaves the others as they are.
    `chunks` is None while the embedding model has not seen the content.
    """

    cleared: Cleared[Draft]
    given: frozenset[str]
    content_hash: str
    title: str
    abstract: str
    overview: str
    keywords: str
    words: frozenset[str]
    speaker_words: frozenset[str]
    chunks: tuple[Chunk, ...] | None
    confidence: float
    at: datetime
    expires_at: datetime | None
    author: str


@dataclass(frozen=True, slots=True)
class Term:
    """One word or phrase of a query; `weight` is below 1 for a guess at a misspelt word."""

    text: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A stored memory that the embedding model has not seen; the hash tells whether it changed meanwhile."""

    id: int
    content: str
    content_hash: str


class Writing(Protocol):
    """One open write transaction on one namespace; what it finds may be expired, never of another namespace."""

    def answered(self, request_id: str) -> Outcome | None: ...
    def answer(self, request_id: str, outcome: Outcome) -> None: ...
    def by_key(self, key: str) -> Memory | None: ...
    def by_hash(self, content_hash: str) -> Memory | None: ...
    def insert(self, entry: Entry) -> int: ...
    def update(self, old: Memory, entry: Entry, action: str) -> None: ...
    def delete(self, memory_id: int) -> bool: ...


class Records(Protocol):
    """The canonical rows in SQL."""

    def writing(self, namespace: str, actor: str) -> AbstractContextManager[Writing]: ...
    def snapshot(self) -> AbstractContextManager[None]: ...
    def refuse(self, namespace: str, actor: str, field: str, kinds: Sequence[str]) -> None: ...
    def load(self, ids: Iterable[int], view: View) -> dict[int, Memory]: ...
    def existing(self, namespaces: Sequence[str]) -> tuple[str, ...]: ...
    def speakers(self, view: View, words: Iterable[str]) -> list[str]: ...
    def standings(self, ids: Iterable[int], view: View) -> list[Standing]: ...
    def newest(self, view: View, limit: int) -> list[int]: ...
    def contents(self, ids: Iterable[int], view: View) -> dict[int, str]: ...
    def abstracts(self, ids: Iterable[int], view: View) -> dict[int, str]: ...
    def neighbours(self, ids: Iterable[int], view: View, reach: int = 1) -> dict[int, tuple[int, ...]]: ...
    def count(self, view: View) -> int: ...
    def locate(self, memory_id: int, namespaces: Sequence[str]) -> str | None: ...
    def forget_answers(self, before: datetime) -> None: ...
    def touch(self, ids: Sequence[int], at: datetime, *, accessed: bool) -> None: ...
    def history(self, memory_id: int, namespaces: Sequence[str]) -> list[JournalEntry]: ...
    def unembedded(self, limit: int) -> list[Unembedded]: ...
    def attach(self, one: Unembedded, chunks: tuple[Chunk, ...]) -> None: ...
    def recount(self, words_of: Callable[[str], frozenset[str]]) -> None: ...
    def forget_vectors(self, stamps: Mapping[str, str]) -> int: ...


class Text(Protocol):
    """The text index: words, substrings, and the vocabulary of what is stored."""

    def search(self, terms: Sequence[Term], view: View, limit: int) -> dict[int, float]: ...
    def substring(self, piece: str, view: View, limit: int) -> list[int]: ...
    def words(self, ids: Sequence[int]) -> dict[int, frozenset[str]]: ...
    def frequencies(self, words: Sequence[str], view: View) -> dict[str, int]: ...
    def size(self, view: View) -> int: ...
    def similar(self, word: str, view: View, limit: int) -> list[Term]: ...
    def scrub(self) -> None: ...
    def rebuild(self, worded: Callable[[Memory], tuple[str, frozenset[str]]] | None = None) -> None: ...


class Vectors(Protocol):
    """The vector index over what SQL holds."""

    def nearest(self, vector: Vector, view: View, limit: int) -> dict[int, float]: ...
    def cosines(self, vector: Vector, ids: Sequence[int]) -> dict[int, float]: ...
    def closeness(
        self, vector: Vector, tokens: Matrix, weights: Weights, ids: Sequence[int]
    ) -> dict[int, Closeness]: ...
    def best_spans(self, vector: Vector, ids: Sequence[int]) -> dict[int, tuple[int, int]]: ...
    def sync(self) -> None: ...
    def deliver(self, memory_id: int) -> None: ...

    @property
    def state(self) -> str: ...


class Embedder(Protocol):
    """The embedding model."""

    @property
    def card(self) -> ModelCard: ...
    @property
    def ready(self) -> bool: ...
    def warm(self) -> None: ...
    def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> Matrix: ...
    def read(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> list[Reading]: ...
    def spans(self, text: str) -> list[tuple[int, int]]: ...
    def counter(self) -> Callable[[str], int] | None: ...


class Fusion(Protocol):
    """The learned fusion: from what the searchers found to how likely each candidate answers the query (0–1)."""

    def matches(self, found: Mapping[int, Signals], asked: Asked) -> dict[int, float]: ...


class Warmup(Protocol):
    """The loading of the embedding model in the background."""

    def wait(self, seconds: float) -> bool: ...

    @property
    def failure(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's report: what was looked at, what was seen, and what to do when it is not well."""

    name: str
    well: bool
    seen: str
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class App:
    """Everything an operation needs, chosen once by wiring. Use it as a context manager, or call `close`."""

    caller: Caller
    on_secret: OnSecret
    records: Records
    text: Text
    vectors: Vectors
    embedder: Embedder
    fusion: Fusion
    warmup: Warmup
    capabilities: Capabilities
    clock: Callable[[], datetime]
    later: Callable[[Callable[[], None]], None]
    checks: Callable[[], list[Check]]
    close: Callable[[], None]

    def __enter__(self) -> App:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
