"""The nouns of export and import: formats, what a file holds, and what became of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

from pydantic import BeforeValidator, Field, computed_field
from pydantic.dataclasses import dataclass

from recollect.domain.answer import LAZY, Answer
from recollect.domain.enums import OnSecret, Scope, Standing
from recollect.domain.fields import (
    Count,
    Kind,
    Label,
    Moment,
    Place,
    ReadScope,
    Request,
    SomeLevel,
    Text,
    WriteScope,
    blank_to_none,
    lower,
)
from recollect.domain.origin import Origin, SaidBy
from recollect.domain.requests import Draft, Levels, ReadAccess, StoreFact

MAX_BATCH: Final = 2_000
"""How many memories and facts one request of an import may hold."""
_LONGEST_PLACE: Final = 8_192  # characters of a path, with a line or the heading of a section
_MOST_SECTIONS: Final = 100_000  # of one file

RowId = Annotated[int, Field(ge=1, le=2**31 - 1)]

IMPORT_COUNTS: Final = ("new", "updated", "unchanged", "refused", "failed", "facts")
"""The fields of `Imported` that are counts."""


class ImportFormat(StrEnum):
    """What wrote the file that is to be imported."""

    RECOLLECT = "recollect"
    MARKDOWN = "markdown"
    MEMORY_JSON = "memory-json"
    MEMORIES_JSONL = "memories-jsonl"
    MCP_MEMORY_SERVICE = "mcp-memory-service"
    MEM0 = "mem0"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    CLAUDE_MEM = "claude-mem"
    MEMORIES_DB = "memories-db"


class ExportFormat(StrEnum):
    """How an export looks: JSON lines with everything, or Markdown for people."""

    JSONL = "jsonl"
    MARKDOWN = "markdown"


class ItemKind(StrEnum):
    """What one item of a file is."""

    MEMORY = "memory"
    FACT = "fact"


class ImportItem(Request):
    """A memory or a fact as a file holds it, not checked yet; `where` says where in the file it stands.

    `former_key` is the one that its memory had before it was moved, `former_hash` that of its text (SHA-256) before
    somebody wrote in the file.
    `said` is who said it, where the door knows that by itself: no file can say it. Without it that is the import.
    """

    kind: ItemKind
    where: str
    fields: dict[str, Any]
    said: Origin | None = None
    former_key: Label = None
    former_hash: Label = None


class FileRecord(Request):
    """What an export says of anything: where in the file it stands (`origin`), its id there, who wrote it and when.

    `said_by` and `came_from` are who said it, and where that stood.
    """

    origin: str = ""
    id: RowId | None = None
    author: Label = None
    created_at: Moment | None = None
    updated_at: Moment | None = None
    said_by: SaidBy | None = None
    came_from: Place = None


class MemoryState(FileRecord):
    """What an export says of a memory beside its draft; `superseded_by` and `merged_into` are ids of the file."""

    last_accessed_at: Moment | None = None
    expires_at: Moment | None = None
    deleted_at: Moment | None = None
    accessed_count: Count = 0
    recalled_count: Count = 0
    superseded_by: Count | None = None
    merged_into: Count | None = None
    standing: Annotated[Standing | None, BeforeValidator(blank_to_none), BeforeValidator(lower)] = None
    review: Label = None

    @property
    def hidden(self) -> bool:
        """Say whether no index holds it: it was softly deleted, or merged into another."""
        return self.deleted_at is not None or self.merged_into is not None


class MemoryRecord(MemoryState, Draft):
    """A memory out of a file."""


class FactRecord(FileRecord, StoreFact):
    """A fact out of a file."""


class MemoryLink(Request):
    """Which memories of this store superseded the one with this id or took it up, as the file says at `where`."""

    where: str
    id: RowId
    superseded_by: RowId | None = None
    merged_into: RowId | None = None


class FileSections(Request):
    """The keys of all sections of a file; the key of each section that it ever had begins with `prefix`."""

    where: Annotated[str, Field(max_length=_LONGEST_PLACE)]
    prefix: Annotated[str, Field(max_length=_LONGEST_PLACE)]
    keys: Annotated[frozenset[Annotated[str, Field(max_length=_LONGEST_PLACE)]], Field(max_length=_MOST_SECTIONS)]


class ImportBatch(Levels):
    """A part of what is imported, in its order; the `last` one ends the import.

    `scope` and `fact_type` win over what a file says, `category` fills in where it says nothing. `links` come once all
    memories are there, and the `sections` of a file with its last items. What is stored at a level of sensitivity that
    neither the batch lets in nor an item of it names does not exist for it. With `in_step` the files are what holds: a
    section that is gone is hidden, and one that was hidden and is there is in sight again.
    """

    items: Annotated[tuple[ImportItem, ...], Field(max_length=MAX_BATCH)] = Field(
        default=(), description="Memories and facts, in their order"
    )
    links: Annotated[tuple[MemoryLink, ...], Field(max_length=MAX_BATCH)] = Field(
        default=(), description="Which memory of the file replaces which, or was merged into which"
    )
    sections: Annotated[tuple[FileSections, ...], Field(max_length=MAX_BATCH)] = Field(
        default=(), description="The keys that a file has now, so that the others below its prefix are hidden"
    )
    last: bool = Field(default=False, description="The last batch, which ends the import")
    scope: Annotated[ReadScope, BeforeValidator(blank_to_none)] = Field(
        default=None, description="Into this scope, whatever the file says"
    )
    category: Label = Field(default=None, description="Category of memories that have none")
    fact_type: Kind | None = Field(default=None, description="Kind of knowledge, whatever the file says")
    sensitivity: SomeLevel = Field(default=None, description="At this level, unless the file names a stricter one")
    on_secret: OnSecret | None = Field(default=None, description="Leave out what contains a secret, or mask the secret")
    own: bool = Field(
        default=False,
        description="The files are your own: what names nobody else as its author or speaker is approved, and what "
        "your own export says of you stays so",
    )
    in_step: bool = Field(default=False, description="Hide what is gone from a file, and show what is back in it")
    dry_run: bool = Field(default=False, description="Say what would happen; write nothing")


class Said(Request):
    """One message of a conversation: who said it, and what."""

    speaker: Annotated[str, Field(max_length=200)]
    content: Text


class ExtractMemories(Request):
    """Messages that a conversation is about to discard, in their order, out of which memories are to be made."""

    messages: Annotated[tuple[Said, ...], Field(max_length=MAX_BATCH)] = Field(
        description="Messages in their order: `speaker` and `content`"
    )
    session_id: Label = Field(default=None, description="Session of the messages")
    scope: WriteScope = Field(default=Scope.PROJECT, description="Who shares the memories")


class ExportPage(ReadAccess):
    """What to export, from where the page before ended: the caller's namespaces, or that of one scope."""

    after: Annotated[str, Field(pattern=r"^(memory|fact|journal):\d{1,10}$")] = Field(
        default="memory:0", description="Where the page before ended, as its answer says"
    )


@dataclass(frozen=True, config=LAZY)
class Page(Answer):
    """Lines of an export as JSON objects; `after` is where the next page begins, or empty when this was the last.

    `unreadable` names what a damaged store could not give: `memory 17`.
    """

    lines: tuple[dict[str, Any], ...]
    after: str
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, config=LAZY)
class Problem(Answer):
    """What was left out or looks wrong: where in the file or answer, and why, in a sentence without any secret."""

    where: str
    why: str


@dataclass(frozen=True, kw_only=True, config=LAZY)
class Extracted(Answer):
    """What became of messages: memories by outcome, what was left out, and parts read now, before, and not at all.

    `problems` name each candidate that was left out, by its place in the model's answer.
    """

    new: int = 0
    updated: int = 0
    left_out: int = 0
    parts: int = 0
    known: int = 0
    unread: int = 0
    why: str = ""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, kw_only=True, config=LAZY)
class Imported(Answer):
    """What became of a file: memories by outcome, facts, problems, and how many secrets of each kind were refused.

    `waiting` counts those of its memories that wait for a decision. `ids` maps its ids to those of this store,
    `outcomes` are those of the items of a batch: a count's name, or none.
    """

    internal: ClassVar = frozenset({"ids", "outcomes"})

    new: int = 0
    updated: int = 0
    unchanged: int = 0
    refused: int = 0
    failed: int = 0
    facts: int = 0
    problems: tuple[Problem, ...]
    refused_kinds: dict[str, int] = Field(default_factory=dict)
    waiting: int = 0
    ids: tuple[tuple[int, int], ...] = ()
    outcomes: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Return everything that is a count, by its name."""
        return {name: getattr(self, name) for name in IMPORT_COUNTS}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def message(self) -> str:
        """Say in a sentence what became of it."""
        memories = ((name, count) for name, count in self.counts.items() if name != "facts")
        parts = [f"{count} {name}" for name, count in memories if count or name == "new"]
        more = f"; {self.facts} {'fact' if self.facts == 1 else 'facts'}" if self.facts else ""
        return f"Memories: {', '.join(parts)}{more}."
