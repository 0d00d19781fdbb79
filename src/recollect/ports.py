"""The protocols that operations need, and `App`, the frozen bag that carries them. Only names live here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from recollect.capabilities import Capabilities
from recollect.domain import (
    Asked,
    Caller,
    Draft,
    Entity,
    Fact,
    FactQuery,
    JournalEntry,
    Kept,
    KeptFact,
    KeptLine,
    Link,
    Memory,
    ModelCard,
    OnSecret,
    Order,
    Outcome,
    Retention,
    Sensitivity,
    Signals,
    Standing,
    Stats,
    StoreFact,
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
    entities: tuple[Entity, ...]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEntry:
    """A cleared fact, ready to be written; `memory_id` is a memory of the same namespace."""

    cleared: Cleared[StoreFact]
    memory_id: int | None
    sensitivity: Sensitivity
    valid_from: datetime
    at: datetime
    author: str


@dataclass(frozen=True, slots=True)
class Brought:
    """A memory out of a file: what `remember` would write, and what the file says beside it."""

    entry: Entry
    kept: Cleared[Kept]

    @property
    def hidden(self) -> bool:
        """Say whether no index holds it: it was softly deleted, or merged into another."""
        return self.kept.value.deleted_at is not None or self.kept.value.merged_into is not None


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long memories are kept, and how many in one namespace at most (0: no limit)."""

    retention: Retention = Retention.KEEP
    max_memories: int = 0


class Writing(Protocol):
    """One open write transaction on one namespace; what it finds may be expired, never of another namespace.

    `update` brings the memory back into sight when `revive`; `archive` keeps its present text as a hidden memory merged
    into it; `delete` takes those along. `every` pages by id through all there is, whatever its state. What is in
    quarantine is in nobody's sight. After `leave_no_trace` the text index forgets what it held before. `surplus` are
    the least valuable memories beyond `most`, never the one to be spared; `facts_about` finds what holds `at` a time or
    later.
    """

    def answered(self, request_id: str) -> Outcome | None: ...
    def answer(self, request_id: str, outcome: Outcome) -> None: ...
    def by_key(self, key: str) -> Memory | None: ...
    def by_hash(self, content_hash: str) -> Memory | None: ...
    def by_id(self, memory_id: int) -> Memory | None: ...
    def insert(self, entry: Entry, merged_into: int | None = None) -> int: ...
    def update(self, old: Memory, entry: Entry, action: str, *, revive: bool = True) -> None: ...
    def archive(self, old: Memory) -> int: ...
    def archived(self, memory_id: int) -> list[Memory]: ...
    def supersede(self, memory_id: int, by: int) -> None: ...
    def hide(self, memory_id: int) -> bool: ...
    def delete(self, memory_id: int, action: str = "delete") -> bool: ...
    def every(self, after: int, limit: int) -> list[Memory]: ...
    def every_fact(self, after: int, limit: int) -> list[Fact]: ...
    def rewrite_fact(self, old: Fact, parts: Mapping[str, str]) -> None: ...
    def quarantine(self, memory_id: int) -> None: ...
    def quarantine_fact(self, old: Fact) -> None: ...
    def leave_no_trace(self) -> None: ...
    def expired(self) -> list[int]: ...
    def surplus(self, most: int, sparing: int) -> list[int]: ...
    def facts_about(self, subject: str, predicate: str, at: datetime) -> list[Fact]: ...
    def put_fact(self, entry: FactEntry) -> int: ...
    def delete_fact(self, fact_id: int) -> bool: ...
    def confirm_fact(self, old: Fact, confidence: float) -> None: ...
    def end_fact(self, old: Fact, at: datetime, by: int) -> None: ...


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
    def listed(self, view: View, order: Order, limit: int, offset: int) -> list[int]: ...
    def facts(self, query: FactQuery, view: View) -> tuple[list[Fact], int]: ...
    def stats(self, view: View) -> Stats: ...
    def prolong(self, ids: Sequence[int], at: datetime, actor: str) -> None: ...
    def locate(self, memory_id: int, namespaces: Sequence[str]) -> str | None: ...
    def forget_answers(self, before: datetime) -> None: ...
    def touch(self, ids: Sequence[int], at: datetime, *, accessed: bool) -> None: ...
    def history(
        self, memory_id: int, namespaces: Sequence[str], levels: Sequence[Sensitivity] = ...
    ) -> list[JournalEntry]: ...
    def unembedded(self, limit: int, namespaces: Sequence[str] | None = None) -> list[Unembedded]: ...
    def attach(self, one: Unembedded, chunks: tuple[Chunk, ...]) -> None: ...
    def recount(self, words_of: Callable[[str], frozenset[str]]) -> None: ...
    def name_entities(self, entities_of: Callable[[str], Sequence[Entity]]) -> None: ...
    def queue_unread(self, dimensions: int) -> tuple[int, int]: ...


class Bringing(Protocol):
    """One open write transaction of an import, over the namespaces it is told."""

    def standing(self, namespace: str, keys: Iterable[str], hashes: Iterable[str]) -> list[Memory]: ...
    def keyed(self, namespace: str, prefix: str) -> dict[str, int]: ...
    def insert(self, namespace: str, brought: Sequence[Brought]) -> list[int]: ...
    def update(self, namespace: str, old: Memory, one: Brought, *, revive: bool) -> None: ...
    def refuse(self, namespace: str, field: str, kinds: Sequence[str]) -> None: ...
    def link(self, links: Iterable[Link], namespaces: Sequence[str]) -> list[Link]: ...
    def owns(self, memory_id: int, namespaces: Sequence[str]) -> bool: ...
    def put_fact(self, namespace: str, entry: FactEntry, kept: Cleared[KeptFact]) -> bool: ...
    def restore(self, lines: Sequence[Cleared[KeptLine]], tip: str, *, rechained: bool) -> tuple[str, int] | None: ...
    def close(self, namespaces: Sequence[str]) -> None: ...


class Imports(Protocol):
    """The way into SQL for what a file carries; a `dry` transaction leaves nothing behind. `over` ends an import."""

    def known(self, namespace: str, hashes: Iterable[str]) -> set[str]: ...
    def bringing(self, actor: str, *, dry: bool = False) -> AbstractContextManager[Bringing]: ...
    def over(self) -> None: ...


class Leaving(Protocol):
    """What an export may read, page by page in the order of ids; hidden memories too, expired ones not."""

    def stamps(self) -> dict[str, str]: ...
    def memories(self, view: View, after: int, limit: int) -> list[Memory]: ...
    def facts(self, view: View, after: int, limit: int) -> list[Fact]: ...
    def lines(self, view: View, after: int, limit: int) -> list[JournalEntry]: ...
    def counts(self, view: View) -> dict[str, int]: ...


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
    def mend(self) -> None: ...

    @property
    def state(self) -> str: ...


class Beside(Protocol):
    """A second set of vectors of the same memories, built while the first one serves, and the change of places."""

    def serves(self, model: Mapping[str, str]) -> bool: ...
    def begin(self, model: Mapping[str, str]) -> None: ...
    def counts(self) -> tuple[int, int]: ...
    def missing(self, after: int, limit: int) -> list[Unembedded]: ...
    def put(self, found: Sequence[tuple[Unembedded, tuple[Chunk, ...]]]) -> None: ...
    def index(self, tick: Callable[[], None]) -> None: ...
    def switch(self, read: Callable[[str], tuple[Chunk, ...]]) -> bool: ...


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
    keeping: Keeping
    records: Records
    imports: Imports
    leaving: Leaving
    text: Text
    vectors: Vectors
    beside: Beside
    embedder: Embedder
    open_model: Callable[[str, Path | None], Embedder]
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
