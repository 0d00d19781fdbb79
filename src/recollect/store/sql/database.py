"""One SQL database: how it is opened and how transactions begin. Knows nothing of memories."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, Executable, Row, make_url
from sqlalchemy.exc import (
    DatabaseError,
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    ProgrammingError,
    TimeoutError,
)
from sqlalchemy.pool import QueuePool

from recollect.errors import StoreUnusable
from recollect.store.ownership import unwritable
from recollect.store.sql.dialect import ALONE, Dialect, begun
from recollect.store.sql.postgres import Postgres
from recollect.store.sql.sqlite import Sqlite
from recollect.store.sql.statements import KNOWN

log = logging.getLogger(__name__)

_DAMAGED = ("malformed", "not a database", "vtable constructor", "fts5", "no such table", "corrupt")
_ADVICE = (
    " Run `recollect reindex`, which builds the indexes again; if that fails, bring back a backup with "
    "`recollect backup restore FILE --force`."
)


_confirm: ContextVar[Callable[[], object] | None] = ContextVar("confirm", default=None)
"""What every transaction that writes calls first, within it: it raises where a right was taken away meanwhile."""


@contextmanager
def confirmed_by(check: Callable[[], object]) -> Iterator[None]:
    """Let each transaction that this thread writes in begin with a check."""
    token = _confirm.set(check)
    try:
        yield
    finally:
        _confirm.reset(token)


class Database:
    """An engine with two ways in: `reading()` and `writing()`, each one transaction."""

    def __init__(self, url: str, connections: int = 8) -> None:
        self.url = make_url(url)
        sqlite = self.url.get_backend_name() == "sqlite"
        self.file = Path(self.url.database) if sqlite and self.url.database else None
        self.read_only = False
        self.dialect: Dialect = Sqlite() if sqlite else Postgres()
        self.engine = self.dialect.engine(url, connections)
        self._thread = threading.local()  # the connection that this thread reads with

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open one read transaction: everything in it sees the same state. Within one, it is that one."""
        if (known := getattr(self._thread, "connection", None)) is not None:
            yield known
            return
        with _as_store_error(), begun(self.engine, {**self.dialect.reading, KNOWN: {}}) as connection:
            self._thread.connection = connection
            try:
                yield connection
            finally:
                self._thread.connection = None
                connection.rollback()  # nothing was written; and after damage was met SQLite refuses to commit

    def rows(self, query: Executable, values: Mapping[str, Any] | None = None) -> Sequence[Row[Any]]:
        """Return the rows of one query, which needs no transaction; within one of this thread it is a part of that."""
        if (known := getattr(self._thread, "connection", None)) is not None:
            return cast(Sequence[Row[Any]], known.execute(query, values).all())
        return self._run_alone(self.engine.connect, {ALONE: True, **self.dialect.reading}, query, values)

    def write_alone(self, statement: Executable, values: Mapping[str, Any]) -> Sequence[Row[Any]]:
        """Run a single statement that writes rows which the journal does not record, and return what it returns.

        It excludes nobody. Where the connection is lost meanwhile, it may be run twice.
        """
        return self._run_alone(lambda: self.dialect.writing_alone(self.engine), {}, statement, values)

    def _run_alone(
        self,
        opened: Callable[[], AbstractContextManager[Connection]],
        options: Mapping[str, Any],
        query: Executable,
        values: Mapping[str, Any] | None,
    ) -> Sequence[Row[Any]]:
        """Run a statement outside of any transaction of ours, again on a new connection where the first was lost."""
        again = True
        with _as_store_error():
            while True:
                try:
                    with opened() as connection:
                        found = connection.execution_options(**options).execute(query, values)
                        return found.all() if found.returns_rows else []
                except DBAPIError as error:
                    if not (again and error.connection_invalidated):
                        raise
                    again = False

    @contextmanager
    def writing(self, *namespaces: str) -> Iterator[Connection]:
        """Open one write transaction that excludes other writers of `namespaces`; it commits whole or leaves no trace.

        Without a namespace it excludes nobody: for rows that the journal does not record.
        """
        with _as_store_error(), self.dialect.writing(self.engine, namespaces) as connection:
            if namespaces:
                self._check_allowed(connection)
            yield connection

    @contextmanager
    def exclusive(self) -> Iterator[Connection]:
        """Open one write transaction that excludes the writers of every namespace."""
        with _as_store_error(), self.dialect.writing(self.engine, None) as connection:
            self._check_allowed(connection)
            yield connection

    def _check_allowed(self, connection: Connection) -> None:
        """Let the caller of this transaction check once more, inside it, whether it may write."""
        if (check := _confirm.get()) is None:
            return
        before, self._thread.connection = getattr(self._thread, "connection", None), connection
        try:
            check()
        finally:
            self._thread.connection = before

    @contextmanager
    def indexing(self, namespaces: Iterable[str]) -> Iterator[None]:
        """Keep other processes from writing to the vector index of `namespaces` until the block ends."""
        with _as_store_error(), self.dialect.indexing(self.engine, namespaces):
            yield

    @contextmanager
    def claiming(self, kind: str, names: Iterable[str]) -> Iterator[set[str]]:
        """Give those of `names` that no other process has claimed for work of this kind until the block ends.

        Nobody is waited for. What a process that dies had claimed can be claimed by others then.
        """
        with _as_store_error(), self.dialect.claiming(self.engine, kind, names) as ours:
            yield ours

    def checkpoint(self) -> bool:
        """Take deleted text out of the database's log too; say whether no reader kept it from that."""
        return self.dialect.checkpoint(self.engine)

    def connections(self) -> tuple[int, int]:
        """Return how many connections are in use, and how many may be at once; 0 where that has no bound."""
        pool = self.engine.pool
        if not isinstance(pool, QueuePool):
            return 0, 0
        return pool.checkedout(), pool.size() + max(0, pool._max_overflow)

    def close(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()


@contextmanager
def _as_store_error(*, addressed: bool = False) -> Iterator[None]:
    """Say in a sentence that the database cannot be used: the disk is full, read-only or gone, the file is damaged.

    The sentence holds the address of a server only where it is `addressed`, for the person who has set it.
    """
    try:
        yield
    except (DataError, IntegrityError, ProgrammingError):  # these are about a statement
        raise
    except TimeoutError:
        raise StoreUnusable("The database cannot be used: every connection to it is taken.") from None
    except (DatabaseError, InterfaceError) as error:
        advice = _ADVICE if is_damage(error) else ""
        why = str(error.orig).partition("\n")[0].rstrip(".")  # a server explains itself in the lines after it
        told = why if addressed else _reason_without_address(error.orig, why)
        raise StoreUnusable(f"The database cannot be used: {told}.{advice}") from None


def _reason_without_address(error: BaseException | None, why: str) -> str:
    """Return why a database cannot be used, without its address, which is no use to a client on another machine.

    What PostgreSQL itself says has a state; everything else is said of the connection to it.
    """
    if getattr(error, "sqlstate", "") is None:
        log.warning("the database does not answer: %s", why)
        return "it does not answer"
    return why


def is_damage(error: Exception) -> bool:
    """Say whether an error tells of a damaged file, and not of one that cannot be used just now."""
    return any(word in str(getattr(error, "orig", error)) for word in _DAMAGED)


def open_file(path: Path, connections: int = 8) -> Database:
    """Open the SQLite database at `path`, making its folder; raise `StoreUnusable` when that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("ab"):
            pass
        path.chmod(0o600)
    except OSError as error:
        raise unwritable(path.parent, error) from None
    return Database(f"sqlite:///{path}", connections)


def open_server(url: str, connections: int = 8) -> Database:
    """Open the database of a server; raise `StoreUnusable`, which names no password, when it does not answer."""
    try:
        database = Database(url, connections)
        with _as_store_error(addressed=True), database.engine.connect():
            return database
    except ModuleNotFoundError:
        raise StoreUnusable('PostgreSQL needs one package more: `pip install "recollect[server]"`.') from None


def open_read_only(path: Path) -> Database:
    """Open the SQLite database at `path`, in a folder that cannot be written, for reading alone.

    SQLite then takes the file for one that nobody changes, unless a log lies beside it.
    """
    log = path.with_name(f"{path.name}-wal")
    used = path.with_name(f"{path.name}-shm").exists() or (log.exists() and log.stat().st_size)
    fixed = "" if used else "&immutable=1"
    database = Database(f"sqlite:///{path.as_uri()}?mode=ro{fixed}&uri=true")
    database.file, database.read_only = path, True
    return database
