"""One SQL database: how it is opened and how transactions begin. Knows nothing of memories.

On SQLite a writer takes the lock at BEGIN, and writers of one process queue before that, so that
"database is locked" cannot happen; readers never wait (WAL).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import OperationalError

from recollect.errors import StoreUnusable

_PRAGMAS = (
    "journal_mode=WAL",
    "busy_timeout=30000",
    "synchronous=FULL",
    "foreign_keys=ON",
    "secure_delete=ON",
    "temp_store=MEMORY",
    "cache_size=-32000",
    "mmap_size=268435456",
)
_CHAIN_LOCK = 7_236_001  # PostgreSQL: whoever appends to the journal holds this advisory lock


class _Mine(threading.local):
    """What the thread that looks has open."""

    connection: Connection | None = None


class Database:
    """An engine with two ways in: `reading()` and `writing()`, each one transaction."""

    def __init__(self, url: str) -> None:
        self.url = make_url(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self.engine: Engine = (
            _sqlite_engine(url) if self.sqlite else create_engine(url, pool_pre_ping=True, hide_parameters=True)
        )
        self._turn = threading.Lock()
        self._mine = _Mine()

    @property
    def file(self) -> Path | None:
        """Return the database file, where there is one."""
        return Path(self.url.database) if self.sqlite and self.url.database else None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open one read transaction: everything in it sees the same state. Within one, it is that one."""
        if self._mine.connection is not None:
            yield self._mine.connection
            return
        with _plainly(), self.engine.connect() as connection, connection.begin():
            self._mine.connection = connection
            try:
                yield connection
            finally:
                self._mine.connection = None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open one write transaction; it commits at the end of the block or leaves no trace."""
        if self.sqlite:
            opened = self.engine.connect
            with _plainly(), self._turn, opened().execution_options(write=True) as connection, connection.begin():
                yield connection
        else:
            with _plainly(), self.engine.connect() as connection, connection.begin():
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _CHAIN_LOCK})
                yield connection

    def checkpoint(self) -> None:
        """Move the write-ahead log into the database file, so that deleted text leaves the log too."""
        if self.sqlite:
            with self._turn, self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()


@contextmanager
def _plainly() -> Iterator[None]:
    """Say in a sentence that the database cannot be used: the disk is full, read-only or gone."""
    try:
        yield
    except OperationalError as error:
        raise StoreUnusable(f"The database cannot be used: {error.orig}.") from None


def open_file(path: Path) -> Database:
    """Open the SQLite database at `path`, making its folder; raise `StoreUnusable` when that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("ab"):
            pass
        path.chmod(0o600)
    except OSError as error:
        raise StoreUnusable(f"The data folder {path.parent} cannot be written: {error.strerror or error}.") from None
    return Database(f"sqlite:///{path}")


def _sqlite_engine(url: str) -> Engine:
    engine = create_engine(url, connect_args={"timeout": 30, "check_same_thread": False}, hide_parameters=True)

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # sqlite3's own BEGIN would be deferred
        cursor = connection.cursor()
        for pragma in _PRAGMAS:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()
        connection.create_function("lowered", 1, str.lower, deterministic=True)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine
