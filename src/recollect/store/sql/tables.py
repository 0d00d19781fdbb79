"""The SQLModel tables: `memory` and its children are canonical, all else is derived from them.

Datetimes are stored as UTC and come back aware on every database. Triggers, the text index and whatever else only one
database has are declared in `sqlite.py` and `postgres.py`. Statements use the tables at the end of this module.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ColumnElement, Index, LargeBinary, Table, Text, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import declared_attr
from sqlmodel import Field, SQLModel

from recollect.domain.enums import FactType, ObservationType, Sensitivity, Source
from recollect.domain.origin import SaidBy
from recollect.store.sql.column_types import QUARANTINED, WITHDRAWN, EnumText, UtcDateTime

metadata = SQLModel.metadata
metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

_LOOKED_UP = ("content_hash", "fact_type", "category", "type", "project", "speaker", "created_at")
_FACT_TYPE: Any = EnumText(FactType)
_OBSERVATION: Any = EnumText(ObservationType)
_SOURCE: Any = EnumText(Source)
_SAID_BY: Any = EnumText(SaidBy, unknown=SaidBy.WEB)  # what is unknown has the least authority
_LEVEL: Any = EnumText(Sensitivity, unknown=Sensitivity.SECRET)  # no read and no write lets in an unknown level
_JSON: Any = JSON().with_variant(JSONB(), "postgresql")


def level_of(table: Table) -> ColumnElement[str]:
    """Select the level of a memory or fact as it is stored, with its owner, also of what is away."""
    plain = func.replace(table.c.sensitivity, QUARANTINED, "")
    return func.replace(plain, WITHDRAWN, "", type_=Text).label("level")


def _index(table: str, *columns: str, unique: bool = False) -> Index:
    """Return an index on these columns, named after the table and them."""
    return Index(f"{'uq' if unique else 'ix'}_{table}_{'_'.join(columns)}", *columns, unique=unique)


def _index_where_set(column: str) -> Index:
    """Index the few memories in which `column` is set; an index of all would lure SQLite into walking it."""
    known = text(f"{column} IS NOT NULL")
    return Index(f"ix_memory_{column}", column, sqlite_where=known, postgresql_where=known)


class _Row(SQLModel):
    @declared_attr.directive
    def __tablename__(cls) -> str:  # noqa: N805 - a method of the class
        """Name the table as the class: `memory_words` for `MemoryWordsRow`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Row")).lower()


class NamespaceRow(_Row, table=True):
    """One tenant: `user:U`, `project:T/P` or `team:T`."""

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True, sa_type=Text)


class HeldRow(_Row, table=True):
    """The number of memories of one level of sensitivity in a namespace, whatever their state."""

    namespace_id: int = Field(primary_key=True, foreign_key="namespace.id")
    sensitivity: str = Field(primary_key=True, sa_type=Text)
    memories: int


class MemoryRow(_Row, table=True):
    """One memory. Ids are never reused, because text index and vectors refer to them."""

    __table_args__ = (
        _index("memory", "namespace_id", "sensitivity", "key", unique=True),
        *(_index("memory", "namespace_id", name) for name in _LOOKED_UP),
        _index("memory", "namespace_id", "session_id", "position"),
        Index("ix_memory_namespace_id_happened_at", "namespace_id", text("coalesce(observed_at, created_at)")),
        _index_where_set("merged_into"),
        _index_where_set("superseded_by"),
        _index_where_set("review"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True)
    namespace_id: int = Field(foreign_key="namespace.id")
    key: str | None = Field(default=None, sa_type=Text)
    content: str = Field(sa_type=Text)
    title: str = Field(sa_type=Text)
    subtitle: str = Field(sa_type=Text)
    abstract: str = Field(sa_type=Text)
    overview: str = Field(sa_type=Text)
    keywords: str = Field(sa_type=Text)
    fact_type: FactType = Field(sa_type=_FACT_TYPE)
    type: ObservationType | None = Field(default=None, sa_type=_OBSERVATION)
    category: str | None = Field(default=None, sa_type=Text)
    importance: float
    confidence: float
    trust: float
    sensitivity: Sensitivity = Field(sa_type=_LEVEL)
    session_id: str | None = Field(default=None, sa_type=Text)
    project: str | None = Field(default=None, sa_type=Text)
    discovery_tokens: int | None = None
    speaker: str | None = Field(default=None, sa_type=Text)
    position: int | None = None
    author: str = Field(sa_type=Text)
    source: Source = Field(sa_type=_SOURCE)
    content_hash: str = Field(max_length=64)
    created_at: datetime = Field(sa_type=UtcDateTime)
    updated_at: datetime = Field(sa_type=UtcDateTime)
    observed_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    expires_at: datetime | None = Field(default=None, sa_type=UtcDateTime, index=True)
    deleted_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    ttl_days: float | None = None
    superseded_by: int | None = None
    merged_into: int | None = None
    said_by: SaidBy | None = Field(default=None, sa_type=_SAID_BY)
    came_from: str | None = Field(default=None, sa_type=Text)
    review: str | None = Field(default=None, sa_type=Text)


class _OfMemory(_Row):
    memory_id: int = Field(primary_key=True, foreign_key="memory.id", ondelete="CASCADE")


class LabelRow(_OfMemory, table=True):
    """A tag, concept, file or entity; `kind` is the field of the memory, or `entity_` and the type of the entity."""

    kind: str = Field(primary_key=True, max_length=20)
    position: int = Field(primary_key=True)
    value: str = Field(sa_type=Text)


class MomentRow(_OfMemory, table=True):
    """By which kind and words a moment is looked up; the label of the same position in the field `when` has its text.

    An action that it fits has both words; `*` is in every action.
    """

    __table_args__ = (_index("moment", "kind", "lead", "second", "memory_id"),)

    position: int = Field(primary_key=True)
    kind: str = Field(max_length=20)
    lead: str = Field(sa_type=Text)
    second: str = Field(sa_type=Text)


class UsageRow(_OfMemory, table=True):
    """The number of times that a memory was read: `accessed` by id, `recalled` as a hit."""

    accessed_count: int
    recalled_count: int
    last_accessed_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class _Chunk(_OfMemory):
    """One chunk: character offsets into the content, float32 bytes, their digest, its tokens as packed signs.

    `digest` is null in what an older version wrote. `tokens` stands last, so that SQLite reads the others without it;
    null until the embedding model has given them.
    """

    ordinal: int = Field(primary_key=True)
    start: int
    stop: int
    embedding: bytes = Field(sa_type=LargeBinary)
    digest: bytes | None = Field(default=None, sa_type=LargeBinary)
    tokens: bytes | None = Field(default=None, sa_type=LargeBinary)


class VectorRow(_Chunk, table=True):
    """A chunk of a memory as the store's embedding model reads it."""


class VectorShadowRow(_Chunk, table=True):
    """A chunk as another model reads it, until the whole store can move to that model.

    `content_hash` tells whether the memory changed since.
    """

    content_hash: str = Field(max_length=64)


class FactRow(_Row, table=True):
    """One triple and when it held; it goes with the memory that states it.

    Compared are the folded parts, and the hash of the folded object.
    """

    __table_args__ = (
        Index("ix_fact_namespace_id_subject_folded", "namespace_id", "subject_folded", "predicate_folded"),
        _index("fact", "namespace_id", "predicate_folded"),
        _index("fact", "namespace_id", "object_hash"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True)
    namespace_id: int = Field(foreign_key="namespace.id")
    subject: str = Field(sa_type=Text)
    predicate: str = Field(sa_type=Text)
    object: str = Field(sa_type=Text)
    subject_folded: str = Field(sa_type=Text)
    predicate_folded: str = Field(sa_type=Text)
    object_hash: str = Field(max_length=64)
    confidence: float
    memory_id: int | None = Field(default=None, foreign_key="memory.id", ondelete="CASCADE", index=True)
    valid_from: datetime = Field(sa_type=UtcDateTime)
    valid_to: datetime | None = Field(default=None, sa_type=UtcDateTime)
    sensitivity: Sensitivity = Field(sa_type=_LEVEL)
    author: str = Field(sa_type=Text)
    created_at: datetime = Field(sa_type=UtcDateTime)
    updated_at: datetime = Field(sa_type=UtcDateTime)
    said_by: SaidBy | None = Field(default=None, sa_type=_SAID_BY)
    came_from: str | None = Field(default=None, sa_type=Text)


class ConsolidationRow(_OfMemory, table=True):
    """The progress of a memory's consolidation: until when its days are counted, and how many of its accesses."""

    at: datetime = Field(sa_type=UtcDateTime)
    accesses: int


class SessionRow(_Row, table=True):
    """A session of a coding agent; `owner` is the namespace of its user, `project` that of its project.

    `state` is what the stages of the lifecycle know of it.
    """

    __table_args__ = (
        _index("session", "owner", "project", "session_id", unique=True),
        _index("session", "owner", "project", "last_at"),
        _index("session", "last_at"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True)
    owner: str = Field(sa_type=Text)
    project: str = Field(sa_type=Text)
    session_id: str = Field(sa_type=Text)
    agent: str = Field(sa_type=Text)
    started_at: datetime = Field(sa_type=UtcDateTime)
    last_at: datetime = Field(sa_type=UtcDateTime)
    ended_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    kept: int
    dropped: int
    state: dict[str, Any] = Field(sa_type=_JSON)


class ObservationRow(_Row, table=True):
    """An event of a session and what became of it; it goes with its session."""

    __table_args__ = (_index("observation", "memory_id"),)

    session_row: int = Field(primary_key=True, foreign_key="session.id", ondelete="CASCADE")
    number: int = Field(primary_key=True)
    at: datetime = Field(sa_type=UtcDateTime)
    event: str = Field(sa_type=Text)
    tool: str = Field(sa_type=Text)
    summary: str = Field(sa_type=Text)
    decision: str = Field(max_length=20)
    reason: str = Field(sa_type=Text)
    score: float | None = None
    memory_id: int | None = None
    draft: dict[str, Any] | None = Field(default=None, sa_type=_JSON)


class SourceRuleRow(_Row, table=True):
    """A person's decision on everything that comes from one source: it is approved, or it is hidden."""

    namespace_id: int = Field(primary_key=True, foreign_key="namespace.id")
    source: str = Field(primary_key=True, sa_type=Text)
    approved: bool
    author: str = Field(sa_type=Text)
    at: datetime = Field(sa_type=UtcDateTime)


class WithdrawalRow(_Row, table=True):
    """A withdrawal: its author, its time, and how to undo it; it is kept for 30 days."""

    __table_args__ = (_index("withdrawal", "namespace_id", "at"), {"sqlite_autoincrement": True})

    id: int | None = Field(default=None, primary_key=True)
    namespace_id: int = Field(foreign_key="namespace.id")
    at: datetime = Field(sa_type=UtcDateTime)
    actor: str = Field(sa_type=Text)
    sensitivity: str = Field(sa_type=Text)
    undo: dict[str, Any] = Field(sa_type=_JSON)


class OutboxRow(_Row, table=True):
    """A memory whose vectors must still be written to the index; it may be gone from `memory` by now.

    `chunks` is how many vectors the index may hold of it; `embedded` is false while the model has not seen it.
    """

    __table_args__ = (
        _index("outbox", "embedded", "memory_id"),
        _index("outbox", "namespace_id", "embedded", "memory_id"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True)
    memory_id: int = Field(index=True)
    namespace_id: int
    chunks: int
    embedded: bool


class WordRow(_Row, table=True):
    """The vocabulary of a namespace by levels of sensitivity, with the number of memories that use each word."""

    __table_args__ = (
        _index("word", "namespace_id", "sensitivity", "text", unique=True),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True)
    namespace_id: int = Field(foreign_key="namespace.id")
    sensitivity: str = Field(sa_type=Text)
    text: str = Field(sa_type=Text)
    uses: int


class SpeakerRow(_Row, table=True):
    """A folded word of a speaker's name in a namespace; it goes with the last memory of that name."""

    __table_args__ = (_index("speaker", "namespace_id", "name"),)

    namespace_id: int = Field(primary_key=True, foreign_key="namespace.id")
    word: str = Field(primary_key=True, sa_type=Text)
    name: str = Field(primary_key=True, sa_type=Text)


class MemoryWordsRow(_OfMemory, table=True):
    """The words that a memory gave to its namespace's vocabulary at its level: deleting it takes exactly those back."""

    words: str = Field(sa_type=Text)
    sensitivity: str = Field(sa_type=Text)


class JournalRow(_Row, table=True):
    """The append-only journal: triggers refuse UPDATE and DELETE; `hash` chains each line to the one before.

    `state` is the SHA-256 of the memory or fact that the line is about, as it stood then; empty where it was gone.
    `sensitivity` is the level of what the line tells of: whoever may not see that sees no such line.
    """

    __table_args__ = (_index("journal", "namespace", "id"), {"sqlite_autoincrement": True})

    id: int | None = Field(default=None, primary_key=True)
    at: datetime = Field(sa_type=UtcDateTime)
    actor: str = Field(sa_type=Text)
    namespace: str = Field(sa_type=Text)
    action: str = Field(max_length=20)
    memory_id: int | None = Field(default=None, index=True)
    sensitivity: str = Field(sa_type=Text)
    changes: dict[str, Any] = Field(sa_type=_JSON)
    state: str = Field(max_length=64)
    previous: str = Field(max_length=64)
    hash: str = Field(max_length=64)


class RequestOutcomeRow(_Row, table=True):
    """The outcome of a write, kept for a while under its request's id: a client that retries gets it again."""

    request_id: str = Field(primary_key=True, max_length=64)
    status: str = Field(max_length=20)
    memory_id: str = Field(sa_type=Text)
    at: datetime = Field(sa_type=UtcDateTime, index=True)
    notes: str = Field(sa_type=Text)


class AccountRow(_Row, table=True):
    """A user of a deployment; `admin` administers all of it."""

    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True, sa_type=Text)
    admin: bool
    created_at: datetime = Field(sa_type=UtcDateTime)
    disabled_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class IdentityRow(_Row, table=True):
    """A person as an identity provider knows them, by its address and its name for them, and their user here."""

    issuer: str = Field(primary_key=True, sa_type=Text)
    subject: str = Field(primary_key=True, sa_type=Text)
    account_id: int = Field(foreign_key="account.id", index=True)
    created_at: datetime = Field(sa_type=UtcDateTime)
    groups_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """The moment at which the provider issued what their groups were read from."""


class TeamRow(_Row, table=True):
    """A team of a deployment."""

    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True, sa_type=Text)
    created_at: datetime = Field(sa_type=UtcDateTime)


class MembershipRow(_Row, table=True):
    """The role of a user in a team."""

    team_id: int = Field(primary_key=True, foreign_key="team.id")
    account_id: int = Field(primary_key=True, foreign_key="account.id", index=True)
    role: str = Field(max_length=20)


class TeamProjectRow(_Row, table=True):
    """A registered project of a team; a `private` one is for those alone who have a role in it."""

    __table_args__ = (_index("team_project", "team_id", "name", unique=True), {"sqlite_autoincrement": True})

    id: int | None = Field(default=None, primary_key=True)
    team_id: int = Field(foreign_key="team.id")
    name: str = Field(sa_type=Text)
    private: bool
    created_at: datetime = Field(sa_type=UtcDateTime)


class ProjectMembershipRow(_Row, table=True):
    """The role of a user in a project, which counts in place of that in the team."""

    project_id: int = Field(primary_key=True, foreign_key="team_project.id")
    account_id: int = Field(primary_key=True, foreign_key="account.id", index=True)
    role: str = Field(max_length=20)


class TokenRow(_Row, table=True):
    """A bearer token or an invitation, by the SHA-256 of its text, which is kept nowhere."""

    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, primary_key=True)
    prefix: str = Field(unique=True, max_length=8)
    hash: str = Field(unique=True, max_length=64)
    account_id: int = Field(foreign_key="account.id", index=True)
    label: str = Field(sa_type=Text)
    role: str | None = Field(default=None, max_length=20)
    invitation: bool
    created_at: datetime = Field(sa_type=UtcDateTime)
    expires_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    last_used_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    revoked_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class UsageLimitRow(_Row, table=True):
    """A limit that an admin has set for a user or a team, in place of that in the settings; 0 is none.

    `kind` is `user` or `team`, `resource` what is limited.
    """

    kind: str = Field(primary_key=True, max_length=20)
    name: str = Field(primary_key=True, sa_type=Text)
    resource: str = Field(primary_key=True, max_length=20)
    most: int = Field(sa_type=BigInteger)


class LegalHoldRow(_Row, table=True):
    """A legal hold on what a user wrote, or on a team or a project of it; it holds until it is released."""

    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(sa_type=Text)
    person: str | None = Field(default=None, sa_type=Text)
    team: str | None = Field(default=None, sa_type=Text)
    project: str | None = Field(default=None, sa_type=Text)
    reason: str = Field(sa_type=Text)
    set_by: str = Field(sa_type=Text)
    set_at: datetime = Field(sa_type=UtcDateTime)
    released_by: str | None = Field(default=None, sa_type=Text)
    released_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class RetentionRuleRow(_Row, table=True):
    """The days after which memories of a team, a project or a kind are removed; 0 is never, an empty name is all."""

    team: str = Field(primary_key=True, sa_type=Text)
    project: str = Field(primary_key=True, sa_type=Text)
    fact_type: str = Field(primary_key=True, sa_type=Text)
    days: float
    set_by: str = Field(sa_type=Text)
    set_at: datetime = Field(sa_type=UtcDateTime)


class DepartureRow(_Row, table=True):
    """The deletion of a user: what was chosen for their memories, what was done so far, and the receipt at the end.

    `line` is the id of the journal's line with which it began.
    """

    __table_args__ = (_index("departure", "person"), {"sqlite_autoincrement": True})

    id: int | None = Field(default=None, primary_key=True)
    person: str = Field(sa_type=Text)
    choice: str = Field(max_length=20)
    target: str = Field(sa_type=Text)
    actor: str = Field(sa_type=Text)
    begun_at: datetime = Field(sa_type=UtcDateTime)
    line: int
    done: dict[str, Any] = Field(sa_type=_JSON)
    ended_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    receipt: dict[str, Any] | None = Field(default=None, sa_type=_JSON)


class StoreMetadataRow(_Row, table=True):
    """A property of the store itself: its embedding model, its index generation."""

    name: str = Field(primary_key=True, max_length=50)
    value: str = Field(sa_type=Text)


def _table(row: type[SQLModel]) -> Table:
    """Return the table that a row's class declares."""
    return metadata.tables[str(row.__tablename__)]


namespace, held, memory, fact = _table(NamespaceRow), _table(HeldRow), _table(MemoryRow), _table(FactRow)
label, moment, usage = _table(LabelRow), _table(MomentRow), _table(UsageRow)
memory_words = _table(MemoryWordsRow)
vector, vector_shadow, outbox = _table(VectorRow), _table(VectorShadowRow), _table(OutboxRow)
word, speaker, journal = _table(WordRow), _table(SpeakerRow), _table(JournalRow)
request_outcome, store_metadata = _table(RequestOutcomeRow), _table(StoreMetadataRow)
account, team, membership = _table(AccountRow), _table(TeamRow), _table(MembershipRow)
identity = _table(IdentityRow)
team_project, project_membership = _table(TeamProjectRow), _table(ProjectMembershipRow)
token, usage_limit = _table(TokenRow), _table(UsageLimitRow)
source_rule, withdrawal = _table(SourceRuleRow), _table(WithdrawalRow)
session, observation, consolidation = _table(SessionRow), _table(ObservationRow), _table(ConsolidationRow)
legal_hold, retention_rule, departure = _table(LegalHoldRow), _table(RetentionRuleRow), _table(DepartureRow)
