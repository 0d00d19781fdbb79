"""What the store promises: the canonical rows in SQL, their way in and out, and what is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from recollect.domain.enums import FactType, Observation, Order, Retention, Sensitivity, Source
from recollect.domain.requests import Draft, FactQuery, StoreFact, WritableNamespace
from recollect.domain.results import Entity, Fact, JournalEntry, Memory, Outcome, Stats
from recollect.domain.search import RankingRow, View
from recollect.domain.transfer import FactRecord, MemoryLink, MemoryRecord
from recollect.gate import Cleared
from recollect.ports.models import Judgement

if TYPE_CHECKING:
    from recollect.ports.models import Vector


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a memory's content (character offsets), its vector and the packed signs of its tokens."""

    start: int
    end: int
    vector: Vector
    tokens: bytes = b""


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
class UnembeddedMemory:
    """A stored memory that the embedding model has not seen; the hash shows whether it changed meanwhile."""

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
class Mark:
    """How far a memory is consolidated: until when its days are counted, and how many of its accesses."""

    at: datetime
    accesses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgingMemory:
    """What consolidation knows of a memory; `accesses` counts every use, `mark` is None before the first time.

    One that is `replaced` gave way to another, which is in sight.
    """

    id: int
    fact_type: FactType
    type: Observation | None
    sensitivity: Sensitivity
    importance: float
    updated_at: datetime
    last_accessed_at: datetime | None
    accesses: int
    replaced: bool
    mark: Mark | None


@dataclass(frozen=True, slots=True)
class ImportedMemory:
    """A memory out of a file: what `remember` would write, and all that the file says."""

    entry: Entry
    record: Cleared[MemoryRecord]


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """How long memories are kept, and how many in one namespace at most (0: no limit)."""

    retention: Retention = Retention.KEEP
    max_memories: int = 0


N = TypeVar("N", bound=str)


class Writing(Protocol):
    """One open write transaction on one namespace for a caller who may see some levels of sensitivity.

    What it finds may be expired or hidden, and is never of another namespace or level: that does not exist for it.
    """

    def previous_outcome(self, operation: str, request_id: str) -> Outcome | None:
        """Return how this very request of the same actor ended here when it was made before; None for an empty id."""

    def record_outcome(self, operation: str, request_id: str, outcome: Outcome) -> None:
        """Keep the outcome under the request's id for a client that retries; nothing is kept without an id."""

    def by_key(self, key: str, level: Sensitivity | None = None) -> Memory | None:
        """Find the memory with this key, of this level or else the strictest, whatever its state: it holds the key."""

    def by_hash(self, content_hash: str, level: Sensitivity | None = None) -> Memory | None:
        """Find the oldest memory with this content, of this level or else the strictest, if not deleted or merged."""

    def by_id(self, memory_id: int) -> Memory | None:
        """Find the memory with this id, whatever its state."""

    def find(self, keys: Iterable[str], hashes: Iterable[str]) -> list[Memory]:
        """Return the memories that have one of these keys or contents, whatever their state, in the order of ids."""

    def keys_with_prefixes(self, prefixes: Iterable[str]) -> dict[str, dict[str, int]]:
        """Return the ids of the living memories whose key begins with a prefix, by prefix and key.

        Where one prefix begins another, a key is that of the longer one.
        """

    def page(self, after: int, limit: int) -> list[Memory]:
        """Return the next memories with ids above `after` in the order of their ids, whatever their state."""

    def insert(self, entry: Entry, merged_into: int | None = None) -> int:
        """Write a new memory and return its id; one that is merged into another is in no index."""

    def insert_many(self, imported: Sequence[ImportedMemory]) -> list[int]:
        """Write memories out of a file and return their ids: those they had, where no memory here ever had them."""

    def update(self, old: Memory, entry: Entry, action: str, *, revive: bool = True) -> None:
        """Write the given fields over `old`, journalled as `action`; raise `NotFound` when it is not there.

        With `revive` a memory that was hidden, merged or superseded is current again.
        """

    def archive(self, old: Memory, level: Sensitivity | None = None) -> int:
        """Keep what `old` says now as a hidden memory merged into it, at the stricter of both levels; return its id."""

    def archived(self, memory_id: int) -> list[Memory]:
        """Return what was merged into the memory, oldest first."""

    def supersede(self, memory_id: int, by: int) -> None:
        """Mark a memory as replaced by another: no recall shows it, its history does."""

    def note_judgement(self, memory_id: int, judgement: Judgement, about: int | None) -> None:
        """Journal what a language model said of a memory's text, and which older memory that is about."""

    def hide(self, memory_id: int, action: str = "delete") -> bool:
        """Delete a memory softly, journalled as `action`: its row stays, no index holds it; say whether it was seen."""

    def aging(self, ids: Collection[int]) -> list[AgingMemory]:
        """Return what consolidation knows of these memories, as far as they are in sight, in the order of their ids."""

    def note_session_day(self, day: date) -> tuple[date, ...]:
        """Note that a session of the project ended on a day; return these days, in order."""

    def stop_fading(self, memory_id: int) -> None:
        """Note that somebody stored by a call what the pipeline had captured: it fades and ends by itself no more."""

    def consolidate(self, changes: Sequence[tuple[AgingMemory, float, Mark]]) -> None:
        """Write another importance and mark of memories, journalled with both; their `updated_at` stays."""

    def delete(self, memory_id: int, action: str = "delete") -> bool:
        """Remove a memory and what was merged into it for good, journalled as `action`; say whether it was there."""

    def quarantine(self, memory_id: int) -> None:
        """Put a memory where no read looks: hidden, and at a level of sensitivity that nobody can ask for."""

    def request_purge(self) -> None:
        """Have the text index purged of what this transaction overwrites, as it is after a deletion."""

    def expired(self) -> list[int]:
        """Return the ids of what has passed its time, in their order."""

    def evictable(self, most: int, sparing: int) -> list[int]:
        """Return the ids of what is beyond `most` memories of a level, the least worth keeping first, not `sparing`."""

    def link(self, link: MemoryLink) -> bool:
        """Note which memory an imported one gave way to; say false where that is not possible within the namespace."""

    def refuse(self, field: str, kinds: Sequence[str], level: str = ...) -> None:
        """Journal that the gate refused a write: the field and the kinds of secret, never a value."""

    def facts_about(self, subject: str, predicate: str, at: datetime) -> list[Fact]:
        """Return the facts of a subject and a predicate, letter case aside, that hold `at` a time or later."""

    def fact_page(self, after: int, limit: int) -> list[Fact]:
        """Return the next facts with ids above `after` in the order of their ids, whatever their state."""

    def put_fact(self, entry: FactEntry) -> int:
        """Write a new fact and return its id."""

    def import_fact(self, entry: FactEntry, record: Cleared[FactRecord]) -> bool:
        """Write a fact with the id and the times it had; say whether it, or that it holds no more, was new."""

    def confirm_fact(self, old: Fact, confidence: float) -> None:
        """Note that a fact was stated again, and its confidence (0–1) now."""

    def end_fact(self, old: Fact, at: datetime, by: int, level: Sensitivity) -> None:
        """Let a fact hold no longer than until `at`, because the fact `by` of this level replaces it."""

    def rewrite_fact(self, old: Fact, parts: Mapping[str, str]) -> None:
        """Write other words in the place of a fact's subject, predicate or object."""

    def quarantine_fact(self, old: Fact) -> None:
        """Put a fact where no read looks."""

    def delete_fact(self, fact_id: int) -> bool:
        """Remove a fact for good; say whether it was there."""


class Records(Protocol):
    """The canonical rows in SQL. Every read of memories shows what its view may see, and nothing else.

    Where `levels` of sensitivity are not given, only what is public exists.
    """

    def writing(
        self, namespace: WritableNamespace, actor: str, levels: Sequence[str] = ...
    ) -> AbstractContextManager[Writing]:
        """Open one write transaction on a namespace; nothing of it exists before the block has ended well.

        What is of none of the `levels` of sensitivity does not exist for it.
        """

    def importing(
        self,
        namespaces: Sequence[WritableNamespace],
        actor: str,
        levels: Sequence[str] = ...,
        *,
        dry: bool = False,
    ) -> AbstractContextManager[Mapping[str, Writing]]:
        """Open one write transaction on several namespaces, by their names; a `dry` one leaves nothing behind."""

    def request_sync(self) -> None:
        """Have embeddings, vector index and journal file follow what was imported, soon and in the background."""

    def snapshot(self) -> AbstractContextManager[object]:
        """Let all reads of this thread, through whatever port, see one state until the block ends."""

    def session_days(self, namespace: str) -> tuple[date, ...]:
        """Return the days on which sessions of a project ended, the last four hundred of them, in order."""

    def aging(self, namespace: str, sources: Collection[Source], levels: Sequence[str] = ...) -> list[AgingMemory]:
        """Return what consolidation knows of the memories in sight that came in one of these ways, by their ids."""

    def refuse(
        self, namespace: WritableNamespace, actor: str, field: str, kinds: Sequence[str], level: str = ...
    ) -> None:
        """Journal that the gate refused a write of a level: the field and the kinds of secret, never a value."""

    def previous_outcome(
        self, namespaces: Sequence[str], actor: str, operation: str, request_id: str
    ) -> Outcome | None:
        """Return how this very request ended in one of these namespaces; None for an empty id."""

    def load(self, ids: Iterable[int], view: View) -> dict[int, Memory]:
        """Read memories by id; this is the authority on what leaves the store."""

    def contents(self, ids: Iterable[int], view: View) -> dict[int, str]:
        """Read the content of memories by id, and nothing else of them."""

    def merged_from(self, memory_id: int, view: View) -> tuple[int, ...]:
        """Return the ids of what was merged into a memory, oldest first."""

    def abstracts(self, ids: Iterable[int], view: View) -> dict[int, str]:
        """Read the one-line abstract of memories by id, and nothing else of them."""

    def ranking_rows(self, ids: Iterable[int], view: View) -> list[RankingRow]:
        """Read what ranking needs of memories, in any order."""

    def neighbours(self, ids: Iterable[int], view: View, reach: int = 1) -> dict[int, tuple[int, ...]]:
        """Return what stands up to `reach` places from each memory in its session, the nearest first."""

    def newest(self, view: View, limit: int) -> list[int]:
        """Return the ids of the memories that were stored last, newest first."""

    def list_ids(self, view: View, order: Order, limit: int, offset: int) -> list[int]:
        """Return one page of ids in `order`."""

    def count(self, view: View) -> int:
        """Count the memories that the view may see."""

    def stats(self, view: View) -> Stats:
        """Count what the view may see by kind, and what of its levels is out of sight."""

    def facts(self, query: FactQuery, view: View) -> tuple[list[Fact], int]:
        """Return one page of the facts that a query asks for, and how many there are in all."""

    def history(self, memory_id: int, namespaces: Sequence[str], levels: Sequence[str] = ...) -> list[JournalEntry]:
        """Return the journal of one memory, oldest first, as far as it lies in `namespaces` and was of `levels`."""

    def existing_namespaces(self, namespaces: Sequence[N]) -> tuple[N, ...]:
        """Return those of `namespaces` in which something was ever stored."""

    def namespace_of(self, memory_id: int, namespaces: Sequence[str], levels: Sequence[str] = ...) -> str | None:
        """Return the one of `namespaces` that holds the memory, whatever its state, if it is of one of `levels`."""

    def known_hashes(self, namespace: str, hashes: Iterable[str], levels: Sequence[str] = ...) -> set[str]:
        """Return those of `hashes` (SHA-256 in hex) that are the content of a memory here of these levels."""

    def speakers(self, view: View, words: Collection[str]) -> list[str]:
        """Return who speaks where the view may look and has one of `words`, folded, in their name, sorted."""

    def touch(self, ids: Sequence[int], at: datetime, *, accessed: bool) -> None:
        """Count one use of each memory: read by id (`accessed`), or recalled as a hit; no writer is waited for."""

    def extend_expiry(self, ids: Sequence[int], at: datetime, actor: str, captured_days: float = 0.0) -> None:
        """Let those that are important, and expire because of that, live on from `at`, or with days the captured."""

    def drop_outcomes(self, before: datetime) -> None:
        """Drop the outcomes of requests older than `before`, but none that names no memory (id 0): those are marks."""

    def unembedded(self, limit: int, view: View | None = None) -> list[UnembeddedMemory]:
        """Return memories, all or those a view may know of, that wait for the embedding model, oldest first."""

    def claiming_unembedded(self, limit: int) -> AbstractContextManager[list[UnembeddedMemory]]:
        """Give the next memories that wait for the model; no other process is given them until the block ends.

        None are given where all that wait are with others. Writers wait for nobody's claim.
        """

    def store_vectors(self, one: UnembeddedMemory, chunks: tuple[Chunk, ...]) -> None:
        """Store the vectors of a memory, unless its content has changed since it was read."""

    def queue_unembedded(self, dimensions: int) -> tuple[int, int]:
        """Queue each memory without vectors of so many dimensions; return how many wait, and how many there are."""

    def recount(self, words_of: Callable[[str], frozenset[str]]) -> None:
        """Count the memories of every namespace again, and file its speakers under the words of their names."""

    def replace_entities(self, entities_of: Callable[[str], Sequence[Entity]]) -> None:
        """Note anew what each memory names, in short steps so that writers get by."""


class ExportReader(Protocol):
    """What an export may read, page by page in the order of ids; hidden memories too, expired ones not."""

    def stamps(self) -> dict[str, str]:
        """Return what the store says of its embedding model: id, revision and dimensions."""

    def memories(self, view: View, after: int, limit: int) -> list[Memory]:
        """Return the next memories with ids above `after` that may be exported."""

    def facts(self, view: View, after: int, limit: int) -> list[Fact]:
        """Return the next facts with ids above `after` that may be exported, also those that hold no longer."""

    def lines(self, view: View, after: int, limit: int) -> list[JournalEntry]:
        """Return the next journal lines with ids above `after`, but for those of memories that may not be exported."""

    def counts(self, view: View) -> dict[str, int]:
        """Count the memories, facts and journal lines that may be exported; nothing for a damaged store."""

    def take_unreadable(self) -> tuple[str, ...]:
        """Name what could not be read since this was last asked: `memory 17`."""
