"""The SQLModel tables: `memory` and its children are canonical, all else is derived from them.

Datetimes are stored as UTC and come back aware on every database. The text index of SQLite hangs on
triggers that the first migration creates.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, Index, LargeBinary, Text, TypeDecorator, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

metadata = SQLModel.metadata

AnyJson = JSON().with_variant(JSONB(), "postgresql")


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC datetime, also where the database knows no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _: Dialect) -> datetime | None:
        """Bring an aware datetime to UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, _: Dialect) -> datetime | None:
        """Return what was stored as an aware UTC datetime."""
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _where_set(column: str) -> Index:
    """Index the few rows in which `column` of `memory` is set; an index of all would lure SQLite into walking it."""
    known = text(f"{column} IS NOT NULL")
    return Index(f"ix_memory_{column}", column, sqlite_where=known, postgresql_where=known)


class Namespace(SQLModel, table=True):
    """One tenant's room: `user:U`, `project:T/P` or `team:T`, and how many memories it holds, whatever their state."""

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True, sa_type=Text)
    memories: int = Field(default=0, sa_column_kwargs={"server_default": "0"})


class MemoryRow(SQLModel, table=True):
    """One memory. Ids are never reused, because text index and vectors refer to them."""

    __tablename__ = "memory"
    __table_args__ = (
        Index("uq_memory_namespace_id_key", "namespace_id", "key", unique=True),
        Index("ix_memory_namespace_id_content_hash", "namespace_id", "content_hash"),
        Index("ix_memory_namespace_id_fact_type", "namespace_id", "fact_type"),
        Index("ix_memory_namespace_id_category", "namespace_id", "category"),
        Index("ix_memory_namespace_id_type", "namespace_id", "type"),
        Index("ix_memory_namespace_id_project", "namespace_id", "project"),
        Index("ix_memory_namespace_id_speaker", "namespace_id", "speaker"),
        Index("ix_memory_namespace_id_created_at", "namespace_id", "created_at"),
        Index("ix_memory_namespace_id_session_id_position", "namespace_id", "session_id", "position"),
        Index("ix_memory_expires_at", "expires_at"),
        _where_set("merged_into"),
        _where_set("superseded_by"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True)
    namespace_id: int = Field(foreign_key="namespace.id")
    key: str | None = Field(default=None, sa_type=Text)
    content: str = Field(sa_type=Text)
    title: str = Field(default="", sa_type=Text)
    subtitle: str = Field(default="", sa_type=Text)
    abstract: str = Field(default="", sa_type=Text)
    overview: str = Field(default="", sa_type=Text)
    keywords: str = Field(default="", sa_type=Text)
    fact_type: str = Field(sa_type=Text)
    type: str | None = Field(default=None, sa_type=Text)
    category: str | None = Field(default=None, sa_type=Text)
    importance: float
    confidence: float
    trust: float
    sensitivity: str = Field(sa_type=Text)
    session_id: str | None = Field(default=None, sa_type=Text)
    project: str | None = Field(default=None, sa_type=Text)
    discovery_tokens: int | None = None
    speaker: str | None = Field(default=None, sa_type=Text)
    position: int | None = None
    author: str = Field(sa_type=Text)
    source: str = Field(sa_type=Text)
    content_hash: str = Field(max_length=64)
    created_at: datetime = Field(sa_type=UtcDateTime)
    updated_at: datetime = Field(sa_type=UtcDateTime)
    observed_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    expires_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    deleted_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    ttl_days: float | None = None
    superseded_by: int | None = None
    merged_into: int | None = None


class Label(SQLModel, table=True):
    """A tag, concept, file or entity of a memory, in its order.

    `kind` is tag, concept, file_read, file_modified, or `entity_` and the entity's type.
    """

    memory_id: int = Field(primary_key=True, foreign_key="memory.id", ondelete="CASCADE")
    kind: str = Field(primary_key=True, max_length=20)
    position: int = Field(primary_key=True)
    value: str = Field(sa_type=Text)


class Usage(SQLModel, table=True):
    """How often a memory was read: `accessed` by id, `recalled` as a hit."""

    memory_id: int = Field(primary_key=True, foreign_key="memory.id", ondelete="CASCADE")
    accessed_count: int = 0
    recalled_count: int = 0
    last_accessed_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class VectorRow(SQLModel, table=True):
    """One chunk of a memory: character offsets into its content, float32 bytes, and its tokens as packed signs.

    `tokens` stands last, so that SQLite reads the others without it; null until the embedding model has given them.
    """

    __tablename__ = "vector"

    memory_id: int = Field(primary_key=True, foreign_key="memory.id", ondelete="CASCADE")
    ordinal: int = Field(primary_key=True)
    start: int
    stop: int
    embedding: bytes = Field(sa_type=LargeBinary)
    tokens: bytes | None = Field(default=None, sa_type=LargeBinary)


class VectorBeside(SQLModel, table=True):
    """One chunk as another embedding model reads it, kept aside until the whole store can move to that model.

    `content_hash` tells whether the memory changed since.
    """

    __tablename__ = "vector_beside"

    memory_id: int = Field(primary_key=True, foreign_key="memory.id", ondelete="CASCADE")
    ordinal: int = Field(primary_key=True)
    start: int
    stop: int
    embedding: bytes = Field(sa_type=LargeBinary)
    tokens: bytes | None = Field(default=None, sa_type=LargeBinary)
    content_hash: str = Field(max_length=64)


class FactRow(SQLModel, table=True):
    """One triple and when it held; it goes with the memory that said it.

    What is compared are the folded parts, and the hash of the folded object.
    """

    __tablename__ = "fact"
    __table_args__ = (
        Index("ix_fact_namespace_id_subject_folded", "namespace_id", "subject_folded", "predicate_folded"),
        Index("ix_fact_namespace_id_predicate_folded", "namespace_id", "predicate_folded"),
        Index("ix_fact_namespace_id_object_hash", "namespace_id", "object_hash"),
        Index("ix_fact_memory_id", "memory_id"),
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
    memory_id: int | None = Field(default=None, foreign_key="memory.id", ondelete="CASCADE")
    valid_from: datetime = Field(sa_type=UtcDateTime)
    valid_to: datetime | None = Field(default=None, sa_type=UtcDateTime)
    sensitivity: str = Field(sa_type=Text)
    author: str = Field(sa_type=Text)
    created_at: datetime = Field(sa_type=UtcDateTime)
    updated_at: datetime = Field(sa_type=UtcDateTime)


class Outbox(SQLModel, table=True):
    """A memory whose vectors must still be brought to the index; it may be gone from `memory` by now.

    `chunks` is how many vectors the index may hold of it; `embedded` is false while the model has not seen it.
    """

    __table_args__ = (
        Index("ix_outbox_embedded_memory_id", "embedded", "memory_id"),
        Index("ix_outbox_namespace_id_embedded_memory_id", "namespace_id", "embedded", "memory_id"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True)
    memory_id: int = Field(index=True)
    namespace_id: int
    chunks: int = 0
    embedded: bool = True


class Word(SQLModel, table=True):
    """The vocabulary of a namespace, with the number of memories that use each word."""

    __table_args__ = (
        Index("uq_word_namespace_id_text", "namespace_id", "text", unique=True),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True)
    namespace_id: int = Field(foreign_key="namespace.id")
    text: str = Field(sa_type=Text)
    uses: int = 0


class Speaker(SQLModel, table=True):
    """A folded word of the name of somebody who speaks in a namespace; it goes with the last memory of that name."""

    __table_args__ = (Index("ix_speaker_namespace_id_name", "namespace_id", "name"),)

    namespace_id: int = Field(primary_key=True, foreign_key="namespace.id")
    word: str = Field(primary_key=True, sa_type=Text)
    name: str = Field(primary_key=True, sa_type=Text)


class MemoryWords(SQLModel, table=True):
    """The words a memory gave to its namespace's vocabulary, so that deleting takes exactly those back."""

    __tablename__ = "memory_words"

    memory_id: int = Field(primary_key=True, foreign_key="memory.id", ondelete="CASCADE")
    words: str = Field(sa_type=Text)


class Journal(SQLModel, table=True):
    """The append-only journal; triggers refuse UPDATE and DELETE, `hash` chains each line to the one before."""

    __table_args__ = (
        Index("ix_journal_memory_id", "memory_id"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True)
    at: datetime = Field(sa_type=UtcDateTime)
    actor: str = Field(sa_type=Text)
    namespace: str = Field(sa_type=Text)
    action: str = Field(max_length=20)
    memory_id: int | None = None
    changes: dict[str, Any] = Field(default_factory=dict, sa_type=AnyJson)
    previous: str = Field(max_length=64)
    hash: str = Field(max_length=64)


class Answered(SQLModel, table=True):
    """The outcome of a write, kept for a while under its request's id: a client that retries gets it again."""

    request_id: str = Field(primary_key=True, max_length=64)
    done: str = Field(max_length=20)
    memory_id: str = Field(sa_type=Text)
    at: datetime = Field(sa_type=UtcDateTime, index=True)
    notes: str = Field(default="[]", sa_type=Text, sa_column_kwargs={"server_default": "[]"})


class Stamp(SQLModel, table=True):
    """What the store knows of itself: its embedding model, its index generation."""

    name: str = Field(primary_key=True, max_length=50)
    value: str = Field(sa_type=Text)
