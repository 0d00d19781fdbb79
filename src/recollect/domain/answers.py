"""What is answered: memories, facts, hits, outcomes, lists and journal lines."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from recollect.domain.findings import Signals
from recollect.domain.kinds import EntityType, FactType, Layer, Observation, Scope, Sensitivity, Source


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that a memory names, as it is written there."""

    name: str
    type: EntityType


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One remembered thing as it is stored.

    `superseded_by` is the memory that puts this one right; `merged_into` the one that took it up, whose earlier or
    other text this is. `ttl_days` is how long somebody said it is to be kept.
    """

    id: int
    namespace: str
    scope: Scope
    key: str | None
    content: str
    title: str
    subtitle: str
    abstract: str
    overview: str
    fact_type: FactType
    type: Observation | None
    concepts: tuple[str, ...]
    category: str | None
    tags: tuple[str, ...]
    importance: float
    confidence: float
    trust: float
    sensitivity: Sensitivity
    files_read: tuple[str, ...]
    files_modified: tuple[str, ...]
    session_id: str | None
    project: str | None
    discovery_tokens: int | None
    speaker: str | None
    position: int | None
    author: str
    source: Source
    content_hash: str
    accessed_count: int
    recalled_count: int
    created_at: datetime
    updated_at: datetime
    last_accessed_at: datetime | None
    observed_at: datetime | None
    expires_at: datetime | None
    deleted_at: datetime | None
    ttl_days: float | None = None
    superseded_by: int | None = None
    merged_into: int | None = None
    entities: tuple[Entity, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """One recalled memory: its calibrated match and ranked score (0–1), and what each part gave.

    `layer` is how deep the answer shows it: all of it, unless a budget was given.
    """

    memory: Memory
    match: float
    score: float
    parts: dict[str, float]
    signals: Signals
    layer: Layer = Layer.CONTENT

    @property
    def text(self) -> str:
        """Return the memory as deep as the answer shows it."""
        return str(getattr(self.memory, self.layer))


@dataclass(frozen=True, slots=True)
class IndexLine:
    """One match in the index of an answer: its abstract of at most 20 words, and its ranked score (0–1)."""

    id: int
    abstract: str
    score: float


@dataclass(frozen=True, slots=True)
class Index:
    """Every match in one line each, best first, as far as the budget goes.

    `omitted` counts the matches that the answer shows no details of, `unlisted` those that have no line either.
    """

    lines: tuple[IndexLine, ...]
    omitted: int
    unlisted: int


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer to a query, best first; `notes` say what could not be searched or was corrected.

    A query with a budget has an `index` of all that matches; its hits are the details that the budget left room for.
    """

    hits: tuple[Hit, ...]
    message: str
    notes: tuple[str, ...] = ()
    index: Index | None = None


NOTHING: Final = "Nothing relevant found."


def found(count: int) -> str:
    """Say how many memories answer a query."""
    return f"{count} {'memory' if count == 1 else 'memories'} found." if count else NOTHING


class Done(StrEnum):
    """How a write ended."""

    STORED = "stored"
    UPDATED = "updated"
    MERGED = "merged"
    RESTORED = "restored"
    DELETED = "deleted"
    NOT_FOUND = "not_found"


_MESSAGES: Final = {
    Done.STORED: "{what} stored successfully with ID: {id}",
    Done.UPDATED: "{what} updated successfully (ID: {id})",
    Done.MERGED: "{what} updated successfully (ID: {id})",
    Done.RESTORED: "{what} {id} restored.",
    Done.DELETED: "{what} {id} deleted.",
    Done.NOT_FOUND: "{what} {id} not found.",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a write ended, and for which memory or fact."""

    done: Done
    id: str
    notes: tuple[str, ...] = ()
    what: str = "Memory"

    @property
    def message(self) -> str:
        """Return the sentence that every door gives back."""
        return _MESSAGES[self.done].format(what=self.what, id=self.id)


@dataclass(frozen=True, slots=True)
class Listed:
    """One page of memories in the order asked for, and how many there are in all."""

    memories: tuple[Memory, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A triple that held from `valid_from` until `valid_to` (None: still); `memory_id` is where it was said."""

    id: int
    namespace: str
    scope: Scope
    subject: str
    predicate: str
    object: str
    confidence: float
    memory_id: int | None
    valid_from: datetime
    valid_to: datetime | None
    sensitivity: Sensitivity
    author: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class FactsFound:
    """One page of facts, the newest first, and how many there are in all."""

    facts: tuple[Fact, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Similar:
    """A memory that says nearly what was asked about, and the cosine of its best chunk (-1–1)."""

    memory: Memory
    cosine: float


@dataclass(frozen=True, slots=True)
class Purged:
    """Which memories were removed for good."""

    ids: tuple[int, ...]

    @property
    def message(self) -> str:
        """Say how many they were."""
        return f"{len(self.ids)} expired {'memory' if len(self.ids) == 1 else 'memories'} removed."


@dataclass(frozen=True, slots=True)
class Exposed:
    """A stored secret: in which memory or fact, in which field, and of which kinds; never its value."""

    what: str
    id: int
    field: str
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rescanned:
    """How much was looked at, which secrets are stored, and how many memories and facts were changed for that."""

    scanned: int
    exposed: tuple[Exposed, ...]
    changed: int

    @property
    def message(self) -> str:
        """Say what was found."""
        return f"{self.scanned} memories and facts scanned, {len(self.exposed)} secrets found, {self.changed} changed."


@dataclass(frozen=True, slots=True)
class Summarized:
    """Which summaries were written, and of how many memories; the originals give way to them in recall."""

    ids: tuple[int, ...]
    condensed: int

    @property
    def message(self) -> str:
        """Say how much was condensed into how little."""
        many = "summary" if len(self.ids) == 1 else "summaries"
        return f"{self.condensed} memories condensed into {len(self.ids)} {many}."


@dataclass(frozen=True, slots=True)
class Prompt:
    """Markdown to put before a model, and which memories it shows."""

    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What the caller's namespaces hold: public memories that live, by several of their fields, and how much else."""

    memories: int
    by_scope: dict[str, int]
    by_fact_type: dict[str, int]
    by_type: dict[str, int]
    by_category: dict[str, int]
    facts: int
    expired: int
    deleted: int
    superseded: int
    merged: int
    other_sensitivity: int
    oldest_at: datetime | None
    newest_at: datetime | None


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One line of the append-only journal; `changes` never holds a secret's value or a forgotten text."""

    id: int
    at: datetime
    actor: str
    namespace: str
    action: str
    memory_id: int | None
    changes: dict[str, Any]
    hash: str
