"""What is answered: memories, hits, outcomes, journal lines, and the view that a read is limited to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from recollect.domain.kinds import FactType, Observation, Scope, Sensitivity, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One remembered thing as it is stored."""

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


@dataclass(frozen=True, slots=True)
class Standing:
    """What ranking needs to know of a memory beside its match."""

    id: int
    fact_type: FactType
    importance: float
    trust: float
    updated_at: datetime
    accessed_count: int
    recalled_count: int
    speaker: str | None


@dataclass(frozen=True, slots=True)
class View:
    """What one read may see; the store turns it into SQL, so that nothing else ever leaves a table."""

    namespaces: tuple[str, ...]
    now: datetime
    sensitivities: tuple[Sensitivity, ...] = (Sensitivity.PUBLIC,)
    fact_type: FactType | None = None
    category: str | None = None

    @property
    def filtered(self) -> bool:
        """Say whether this view asks for less than everything the caller may see."""
        return self.fact_type is not None or self.category is not None


@dataclass(frozen=True, slots=True)
class Signals:
    """What the searchers found for one memory: best-chunk cosine (-1–1), bm25 (≥ 0), shares of the query (0–1).

    `spoken` says whether the query names whoever said or did it.
    """

    cosine: float = 0.0
    bm25: float = 0.0
    coverage: float = 0.0
    fuzzy: float = 0.0
    spoken: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """One recalled memory: its calibrated match and ranked score (0–1), and what each part gave."""

    memory: Memory
    match: float
    score: float
    parts: dict[str, float]
    signals: Signals


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer to a query, best first; `notes` say what could not be searched or was corrected."""

    hits: tuple[Hit, ...]
    message: str
    notes: tuple[str, ...] = ()


class Done(StrEnum):
    """How a write ended."""

    STORED = "stored"
    UPDATED = "updated"
    DELETED = "deleted"
    NOT_FOUND = "not_found"


_MESSAGES: Final = {
    Done.STORED: "Memory stored successfully with ID: {id}",
    Done.UPDATED: "Memory updated successfully (ID: {id})",
    Done.DELETED: "Memory {id} deleted.",
    Done.NOT_FOUND: "Memory {id} not found.",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a write ended, and for which memory."""

    done: Done
    id: str
    notes: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """Return the sentence that every door gives back."""
        return _MESSAGES[self.done].format(id=self.id)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """What is known of an embedding model; thresholds are on the calibrated match and on cosine."""

    id: str
    revision: str
    dimensions: int
    max_tokens: int
    pooling: str
    licence: str
    sha256: str = ""
    package: str = ""
    runtime: str = "sentence-transformers"
    query_prompt: str = ""
    document_prompt: str = ""
    floor: float = 0.1
    twin: float = 0.9
