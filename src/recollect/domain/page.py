"""What only the page asks: pages of memories with counts, near duplicates, sessions at a glance, and a standing."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from recollect.domain import fields
from recollect.domain.answer import LAZY, Answer, Id
from recollect.domain.enums import Order, Standing
from recollect.domain.fields import blank_to_none, lower
from recollect.domain.lifecycle import ListSessions, SessionSummary, ShownObservation
from recollect.domain.requests import Filters, Levels, ReadAccess
from recollect.domain.results import JournalEntry, MemoryPreview


class Browse(Filters):
    """A page of memories behind the one where the page before ended; `hidden` shows what was softly forgotten."""

    hidden: bool = Field(default=False, description="Only what is hidden and can be restored")
    ids: Annotated[tuple[fields.Id, ...], Field(max_length=fields.MAX_LIMIT)] = Field(
        default=(), description="Only these memories, in their order"
    )
    replaced_by: fields.Label = Field(default=None, description="Only what this memory replaces")
    order: Annotated[Order, BeforeValidator(lower)] = Field(default=Order.NEWEST, description="Which come first")
    after: fields.Label = Field(default=None, description="Where the page before ended, as that said")
    limit: fields.Limit = 50


class Facets(Filters):
    """How many memories there are of each kind."""

    hidden: bool = Field(default=False, description="Only what is hidden and can be restored")
    states: bool = Field(default=False, description="Also how many are out of sight, and why")


class ReadJournal(ReadAccess):
    """Which lines of the journal to show, the newest first; only lines about what the caller may see."""

    before: fields.Count | None = Field(default=None, description="Only lines with numbers below this one")
    actor: fields.Label = Field(default=None, description="Only what this user did")
    action: fields.Label = Field(default=None, description="Only lines of this kind, such as delete")
    limit: fields.Limit = 50


class GlanceAtSessions(ListSessions):
    """Which of your sessions to list by their first prompts."""

    everywhere: bool = Field(default=False, description="Also in your other projects")


class ReadNearPairs(ReadAccess):
    """Which pairs of memories say nearly the same, the nearest first."""

    limit: fields.Limit = 20


class ReplaceMemory(Levels):
    """Which memory gives its place to another one that is stored."""

    id: fields.Id
    by: fields.Id


class TellApart(Levels):
    """Which two memories are no duplicates, however near; with `undo` they may be again."""

    id: fields.Id
    other: fields.Id
    undo: bool = False


class UsesOf(ReadAccess):
    """Which memory was shown to agents; only in the sessions of who asks, in their project."""

    id: fields.Id
    limit: fields.Limit = 10


class SetStanding(Levels):
    """Which memory to pin or to bury; without a standing it is as any other again."""

    id: fields.Id
    standing: Annotated[Standing | None, BeforeValidator(blank_to_none), BeforeValidator(lower)] = Field(
        default=None, description="Pinned or buried"
    )


@dataclass(frozen=True, config=LAZY)
class Browsed(Answer):
    """A page of memories, and where the next one begins; absent on the last."""

    memories: tuple[MemoryPreview, ...]
    after: str | None = None


@dataclass(frozen=True, config=LAZY)
class Counted(Answer):
    """How many memories there are in all, how many of the newest were looked at, and how often fields have which value.

    `states` counts what is out of sight, and why.
    """

    total: int
    looked_at: int
    counts: dict[str, dict[str, int]]
    states: dict[str, int] = Field(default_factory=dict)


@dataclass(frozen=True, config=LAZY)
class JournalLine(Answer):
    """A line of the journal with its number."""

    number: int
    at: datetime
    actor: str
    scope: str
    action: str
    memory_id: Id | None = None
    changes: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def of(cls, entry: JournalEntry) -> JournalLine:
        """Return a line as the page shows it."""
        return cls(entry.id, entry.at, entry.actor, entry.namespace, entry.action, entry.memory_id, entry.changes)


@dataclass(frozen=True, config=LAZY)
class JournalPage(Answer):
    """Lines of the journal, the newest first, and the number that asks for the next page; absent on the last."""

    lines: tuple[JournalLine, ...]
    before: int | None = None


@dataclass(frozen=True, config=LAZY)
class Use(Answer):
    """When an agent was shown a memory, in which session, and at which event of that; absent where that is not kept."""

    at: datetime
    agent: str
    session_id: str
    event: ShownObservation | None = None


@dataclass(frozen=True, config=LAZY)
class NearPair(Answer):
    """Two memories that say nearly the same, the cosine of their best chunks (-1–1), and what both say together."""

    older: MemoryPreview
    newer: MemoryPreview
    cosine: float
    merged: str


@dataclass(frozen=True, config=LAZY)
class NearPairs(Answer):
    """Pairs of memories that say nearly the same, and how many such pairs there are."""

    pairs: tuple[NearPair, ...]
    total: int


@dataclass(frozen=True, config=LAZY)
class SessionGlance(Answer):
    """A session, its project, its first prompt as far as that was kept, and the first memories that it made."""

    session: SessionSummary
    project: str
    prompt: str
    learnt: tuple[MemoryPreview, ...]
    learnt_count: int


@dataclass(frozen=True, config=LAZY)
class SessionGlances(Answer):
    """A page of sessions, the latest first, and how many there are."""

    sessions: tuple[SessionGlance, ...]
    total: int
