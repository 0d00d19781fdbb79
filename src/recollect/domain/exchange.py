"""The nouns of export and import: formats, what a file carries, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field

from recollect.domain.fields import (
    Count,
    Kind,
    Label,
    Moment,
    Name,
    Request,
    Storable,
    Where,
    blank_to_none,
    storable,
)
from recollect.domain.kinds import OnSecret, Scope, Sensitivity

MOST_CARRIED: Final = 2_000
"""How many things one request of an import may hold."""


class Format(StrEnum):
    """What wrote the file that is to be imported."""

    RECOLLECT = "recollect"
    MARKDOWN = "markdown"
    MEMORY_JSON = "memory-json"
    MEMORIES_JSONL = "memories-jsonl"
    MCP_MEMORY_SERVICE = "mcp-memory-service"
    MEM0 = "mem0"


class Shape(StrEnum):
    """How an export looks: JSON lines with everything, or Markdown for people."""

    JSONL = "jsonl"
    MARKDOWN = "markdown"


class Load(StrEnum):
    """What one thing in a file is."""

    MEMORY = "memory"
    FACT = "fact"
    JOURNAL = "journal"
    LINK = "link"
    SECTIONS = "sections"


class Carried(Request):
    """One thing as a file carries it, not checked yet: a draft's or a fact's fields, and what was kept beside them.

    `where` says where in the file it stands.
    """

    load: Load
    where: str
    fields: dict[str, Any]
    kept: dict[str, Any] = Field(default_factory=dict)


Number = Annotated[int, Field(ge=1, le=2**31 - 1)]
Place = Annotated[int, Field(ge=1, le=2**30)]
"""The number of a line in a journal, which goes on after the last one of a file."""


def _texts(value: Any) -> Any:
    """Refuse a value in which a text stands, however deep, that SQL databases cannot hold."""
    inside = [*value.keys(), *value.values()] if isinstance(value, dict) else value
    if isinstance(inside, list):
        for part in inside:
            _texts(part)
    return storable(value) if isinstance(value, str) else value


class Kept(Request):
    """What a file says of a memory beside its draft: who it was, when, how often used, and what became of it.

    `origin` is where in the file it stood. A memory that gave way to number 0 gave way to one that is not there.
    """

    origin: str = ""
    id: Number | None = None
    author: Label = None
    created_at: Moment | None = None
    updated_at: Moment | None = None
    last_accessed_at: Moment | None = None
    expires_at: Moment | None = None
    deleted_at: Moment | None = None
    accessed_count: Count = 0
    recalled_count: Count = 0
    superseded_by: Count | None = None
    merged_into: Count | None = None


class KeptFact(Request):
    """A fact as a file carries it, with when it held; `id` is its number there."""

    subject: Name
    predicate: Name
    object: Annotated[str, Field(min_length=1, max_length=200_000)]
    confidence: Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)] = 0.5
    memory_id: Number | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    sensitivity: Sensitivity = Sensitivity.PUBLIC
    author: Label = None
    created_at: Moment | None = None
    updated_at: Moment | None = None
    scope: Where = Scope.PROJECT
    origin: str = ""
    id: Number | None = None


class KeptLine(Request):
    """A line of another store's journal, with the hash it has there."""

    id: Place
    at: Moment
    actor: Annotated[str, Field(max_length=1_000), Storable]
    namespace: Annotated[str, Field(max_length=1_000), Storable]
    action: Annotated[str, Field(max_length=20), Storable]
    memory_id: Number | None = None
    changes: Annotated[dict[str, Any], AfterValidator(_texts)] = Field(default_factory=dict)
    hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Link(Request):
    """Which memories of this store a memory gave way to, once all of a file are there."""

    id: Number
    superseded_by: Number | None = None
    merged_into: Number | None = None

    @property
    def targets(self) -> tuple[int, ...]:
        """Return the memories it gave way to."""
        return tuple(one for one in (self.superseded_by, self.merged_into) if one is not None)


class ImportBatch(Request):
    """Some things out of a file, in its order. With `dry_run` nothing is written.

    `scope` and `fact_type` win over what the file says, `category` fills in where it says nothing. `tip` is the hash
    up to which an earlier batch restored the file's journal; with `rechained` the lines get hashes of this store.
    """

    items: Annotated[tuple[Carried, ...], Field(max_length=MOST_CARRIED)]
    scope: Annotated[Where | None, BeforeValidator(blank_to_none)] = None
    category: Label = None
    fact_type: Kind | None = None
    on_secret: OnSecret | None = None
    dry_run: bool = False
    tip: str = ""
    rechained: bool = False
    last: bool = False


class Export(Request):
    """What to export: the caller's namespaces or that of one scope; levels above public only when let in."""

    shape: Shape = Shape.JSONL
    scope: Annotated[Where | None, BeforeValidator(blank_to_none)] = None
    allow_private: bool = False
    allow_secret: bool = False


class ExportPage(Export):
    """One page of an export: what comes after the cursor that the page before ended with."""

    after: Annotated[str, Field(pattern=r"^(journal|memory|fact):\d{1,10}$")] = "journal:0"


@dataclass(frozen=True, slots=True)
class Page:
    """Lines of an export as JSON objects; `after` is where the next page begins, or empty when this was the last."""

    lines: tuple[dict[str, Any], ...]
    after: str


@dataclass(frozen=True, slots=True)
class Problem:
    """What was left out or looks wrong: where in the file, and why, in a sentence without any secret."""

    where: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of a file: memories by outcome, facts and journal lines written, and every problem.

    `ids` maps the file's ids to those of this store; `tip` is the hash of the last journal line restored.
    """

    new: int = 0
    updated: int = 0
    unchanged: int = 0
    refused: int = 0
    failed: int = 0
    facts: int = 0
    journal: int = 0
    problems: tuple[Problem, ...] = ()
    ids: tuple[tuple[int, int], ...] = ()
    tip: str = ""

    @property
    def message(self) -> str:
        """Say in a sentence what became of it."""
        counts = [(self.new, "new"), (self.updated, "updated"), (self.unchanged, "unchanged")]
        counts += [(self.refused, "refused"), (self.failed, "failed")]
        said = [f"{count} {word}" for count, word in counts if count or word == "new"]
        more = f"; {self.facts} {'fact' if self.facts == 1 else 'facts'}" if self.facts else ""
        return f"Memories: {', '.join(said)}{more}."
