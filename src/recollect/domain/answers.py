"""What is answered: memories, hits, outcomes, journal lines, and the view that a read is limited to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from recollect.domain.kinds import Concept, FactType, Layer, Observation, Scope, Sensitivity, Source


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
    session_id: str | None
    position: int | None
    observed_at: datetime | None


FILTERS: Final = (
    "fact_type",
    "category",
    "type",
    "tags",
    "concepts",
    "project",
    "session_id",
    "file",
    "since",
    "until",
    "sensitivity",
)
"""What a query may ask of memories beside their match; a view carries each under the same name."""


@dataclass(frozen=True, slots=True)
class View:
    """What one read may see; the store turns it into SQL, so that nothing else ever leaves a table.

    A level of `sensitivity` that is asked for is seen only when `sensitivities` lets it in.
    """

    namespaces: tuple[str, ...]
    now: datetime
    sensitivities: tuple[Sensitivity, ...] = (Sensitivity.PUBLIC,)
    fact_type: FactType | None = None
    category: str | None = None
    type: Observation | None = None
    tags: tuple[str, ...] = ()
    concepts: tuple[Concept, ...] = ()
    project: str | None = None
    session_id: str | None = None
    file: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    sensitivity: Sensitivity | None = None

    @property
    def filtered(self) -> bool:
        """Say whether this view asks for less than everything the caller may see."""
        return any(getattr(self, name) not in (None, ()) for name in FILTERS)


@dataclass(frozen=True, slots=True)
class Near:
    """What the searchers found for a memory's neighbour in its session; zeros where there is none."""

    bm25: float = 0.0
    cosine: float = 0.0
    late: float = 0.0


@dataclass(frozen=True, slots=True)
class Signals:
    """What the searchers found for one memory: best-chunk cosine (-1–1), bm25 (≥ 0), shares of the query (0–1).

    `late` and `rare` are the late interaction of its best chunk, plain and by the rarity of the query's words, None
    where it was not searched. `passage` and `phrase` are the greatest shares within a few sentences and within a
    clause, `around` is the coverage with its neighbours, `before` and `after` are those. `spoken` says whether the
    query names whoever said or did it, `dated` (0–1) whether it was observed when the query says, `timed` and
    `counted` whether it tells a time or a number to a query that asks for one, `asking` and `asked` which share of
    it, and of what came before it, are questions. `length` is in characters.
    """

    cosine: float = 0.0
    bm25: float = 0.0
    coverage: float = 0.0
    fuzzy: float = 0.0
    spoken: bool = False
    late: float | None = None
    rare: float | None = None
    passage: float = 0.0
    phrase: float = 0.0
    around: float = 0.0
    before: Near = Near()
    after: Near = Near()
    in_session: bool = False
    dated: float = 0.0
    timed: bool = False
    counted: bool = False
    asking: float = 0.0
    asked: float = 0.0
    length: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """What ranking needs to know of a query: how many words tell, how rare the rarest stored one is (its idf).

    `unknown` is the share (0–1) of its weight in words that nobody stored, `semantic` whether meaning was searched.
    """

    words: int
    rarest: float
    unknown: float
    semantic: bool


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
    multilingual: bool = True
    floor: float = 0.08
    twin: float = 0.7
