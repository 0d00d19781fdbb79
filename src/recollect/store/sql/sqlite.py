"""What only SQLite needs: its connections, its one writer, its ids, its triggers, and checks of its file."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event, make_url, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DatabaseError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from recollect.store.sql import limit_schema
from recollect.store.sql.dialect import ALONE, WRITE, Dialect, begun
from recollect.store.sql.expressions import any_of, folded, json_rows, unindexed, walked
from recollect.store.text import fts5_schema

_TIMEOUT = "busy_timeout=30000"
_PATIENCE = 2_000  # milliseconds that a checkpoint waits for readers
_PRAGMAS = (
    "journal_mode=WAL",
    _TIMEOUT,
    "synchronous=FULL",
    "foreign_keys=ON",
    "secure_delete=ON",
    "temp_store=MEMORY",
    "cache_size=-32000",
    "mmap_size=268435456",
)
_JOURNAL = tuple(
    f"CREATE TRIGGER journal_no_{name} BEFORE {when} BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END"
    for name, when in {
        "update": "UPDATE ON journal",
        "delete": "DELETE ON journal",
        "replace": "INSERT ON journal WHEN new.id IN (SELECT id FROM journal)",
    }.items()
)
# The covering column spares a look at the row; PostgreSQL's index entries are too short for it.
_LABELS = "CREATE INDEX ix_label_kind_folded ON label (kind, lower(value), memory_id, value)"
# Which memories a view sees, how pages of them are sorted and what is counted of them, without a look at the rows.
_OVERVIEW = (
    "CREATE INDEX ix_memory_overview ON memory (namespace_id + 0, created_at, namespace_id, sensitivity, "
    "deleted_at, merged_into, superseded_by, expires_at, review, observed_at, updated_at, importance, fact_type, type, "
    "category, source, author, project, session_id)"
)
_HIGHEST_ID = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
_RAISE_ID = text("UPDATE sqlite_sequence SET seq = max(seq, :highest) WHERE name = :name")
_FIRST_ID = text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :highest)")
_MARK_DELETED = text(
    "INSERT INTO store_metadata (name, value) VALUES (:name, :token) ON CONFLICT (name) DO UPDATE SET value = :token"
)


@compiles(folded, "sqlite")
def _lowered(element: folded, compiler: SQLCompiler, **options: Any) -> str:
    return f"lowered({compiler.process(element.clauses, **options)})"  # its own `lower` knows English letters only


@compiles(any_of, "sqlite")
def _in_json(element: any_of, compiler: SQLCompiler, **options: Any) -> str:
    """Write `any_of` for SQLite, which reads a list out of JSON."""
    value, listed = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{value} IN (SELECT value FROM json_each({listed}))"  # noqa: S608 - our own text


@compiles(json_rows, "sqlite")
def _grouped(element: json_rows, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_group_array(json_array({compiler.process(element.clauses, **options)}))"


@compiles(unindexed, "sqlite")
def _with_plus(element: unindexed, compiler: SQLCompiler, **options: Any) -> str:
    """Write a sign before a column, which keeps SQLite from using an index on it."""
    return f"+{compiler.process(element.clauses, **options)}"


@compiles(walked, "sqlite")
def _plus_nothing(element: walked, compiler: SQLCompiler, **options: Any) -> str:
    """Write a sum with 0, which keeps SQLite from using an index for the order."""
    return f"{compiler.process(element.clauses, **options)} + 0"


class Sqlite(Dialect):
    """The `Dialect` of SQLite. One writer at a time writes to the whole file; readers never wait (WAL)."""

    schema = (_LABELS, _OVERVIEW, *_JOURNAL, *fts5_schema.SQLITE_SCHEMA, *limit_schema.SCHEMA["sqlite"])
    insert = staticmethod(sqlite.insert)

    def __init__(self) -> None:
        self._write_lock = threading.Lock()

    def engine(self, url: str, connections: int) -> Engine:
        """Return an engine whose transactions begin as asked for: a writer's takes the file's lock at once."""
        arguments = {"timeout": 30, "check_same_thread": False}
        pool = {"pool_size": connections, "max_overflow": connections} if make_url(url).database else {}
        engine = create_engine(url, connect_args=arguments, hide_parameters=True, **pool)

        @event.listens_for(engine, "connect")
        def _configure(connection: Any, _: Any) -> None:
            """Set up a new connection: transactions that we begin ourselves, pragmas, and `lowered` for all scripts."""
            connection.isolation_level = None  # sqlite3's own BEGIN would be deferred
            cursor = connection.cursor()
            for pragma in _PRAGMAS:
                cursor.execute(f"PRAGMA {pragma}")
            cursor.close()
            connection.create_function("lowered", 1, str.lower, deterministic=True)

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            """Begin a transaction: a write takes the lock at once; none where the connection is used alone."""
            options = connection.get_execution_options()
            if not options.get(ALONE):
                connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get(WRITE) else "BEGIN")

        return engine

    @contextmanager
    def writing(self, engine: Engine, namespaces: Sequence[str] | None) -> Iterator[Connection]:
        """Open a write transaction; writers of one process queue before the file's lock, so that none is refused."""
        del namespaces
        with self._write_lock, begun(engine, {WRITE: True}) as connection:
            yield connection

    @contextmanager
    def writing_alone(self, engine: Engine) -> Iterator[Connection]:
        """Open a connection for one statement that writes, which SQLite begins and commits itself."""
        with self._write_lock, begun(engine, {ALONE: True}) as connection:
            yield connection

    def claim_ids(self, connection: Connection, table: Table, wanted: Sequence[int | None]) -> list[int]:
        """Return ids for new rows: those `wanted` that no row ever had, and new ones beyond all of these."""
        highest = self.highest_id(connection, table)
        free = {one for one in wanted if one is not None and one > highest}
        fresh = count(max(free, default=highest) + 1)
        claimed: list[int] = []
        for one in wanted:
            claimed.append(one if one is not None and one in free else next(fresh))
            free.discard(claimed[-1])
        return claimed

    def highest_id(self, connection: Connection, table: Table) -> int:
        """Return the highest id that a row ever had; nothing of the table is read."""
        return int(connection.execute(_HIGHEST_ID, {"name": table.name}).scalar() or 0)

    def begin_ids_after(self, connection: Connection, table: Table, highest: int) -> None:
        """Let the next id of `table` be above `highest`."""
        values = {"name": table.name, "highest": highest}
        if not connection.execute(_RAISE_ID, values).rowcount and highest:
            connection.execute(_FIRST_ID, values)

    def mark_deleted_text(self, connection: Connection) -> None:
        """Note that the text index still holds what the transaction deletes, until it is purged."""
        connection.execute(_MARK_DELETED, {"name": fts5_schema.DELETED_TEXT, "token": secrets.token_hex(8)})

    def checkpoint(self, engine: Engine) -> bool:
        """Move the write-ahead log into the database file, so that deleted text leaves the log too; say whether it did.

        A reader who needs the log keeps it. Writers wait meanwhile, so the reader gets little time.
        """
        with self._write_lock, engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(f"PRAGMA busy_timeout={_PATIENCE}")
            try:
                return not connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar()
            finally:
                connection.exec_driver_sql(f"PRAGMA {_TIMEOUT}")

    def damage(self, connection: Connection) -> str:
        """Return what is wrong with the file, or an empty string."""
        verdict = connection.exec_driver_sql("PRAGMA quick_check").scalar()
        return "" if verdict == "ok" else str(verdict)

    def text_damage(self, connection: Connection) -> str:
        """Return the name of a text index that does not agree with the memories, or an empty string."""
        for name in fts5_schema.INDEXES:
            try:
                connection.exec_driver_sql(f"INSERT INTO {name}({name}, rank) VALUES ('integrity-check', 1)")  # noqa: S608 - our own names
            except (DatabaseError, MemoryError):  # damage may ask for more memory than there is
                return name
        try:
            differs = connection.exec_driver_sql(fts5_schema.LENGTHS_DIFFER).scalar()
        except DatabaseError:
            return "text_length"
        return "text_length" if differs else ""
