"""The operations that each kind of database does in its own way; those that most do not need do nothing here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, ClassVar, Final

from sqlalchemy import Connection, Engine, RootTransaction, Table, func, select
from sqlalchemy.exc import DBAPIError

INDEX: Final = "index"
"""The kind of claim on a namespace whose vector index a process writes to."""
ALONE: Final = "alone"
"""The option of a connection whose single statement is no part of a transaction."""
WRITE: Final = "write"
"""The option of a connection whose transaction writes."""


@contextmanager
def begun(engine: Engine, options: Mapping[str, Any]) -> Iterator[Connection]:
    """Give a connection whose transaction has begun, and commit it when the block ends well.

    A connection that was lost while nobody used it shows at the beginning, and another one takes its place, once.
    """
    with ExitStack() as closing:
        try:
            transaction = _begin(engine, options, closing)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            transaction = _begin(engine, options, closing)
        with transaction:
            yield transaction.connection


def _begin(engine: Engine, options: Mapping[str, Any], closing: ExitStack) -> RootTransaction:
    """Begin a transaction with these options, on a connection that `closing` gives back."""
    return closing.enter_context(engine.connect()).execution_options(**options).begin()


class Dialect(ABC):
    """One kind of database.

    `insert` makes an INSERT that may say what happens where a row is there already. `reading` are the options of a
    connection whose transaction sees one state from its beginning to its end.
    """

    schema: ClassVar[Sequence[str]]  # statements that make what the tables do not declare
    insert: ClassVar[Any]
    reading: ClassVar[Mapping[str, Any]] = {}
    row_lock: ClassVar[str] = ""  # what a query ends with whose rows nobody else may write until its statement ends

    @abstractmethod
    def engine(self, url: str, connections: int) -> Engine:
        """Return an engine for the database at `url` that keeps so many connections, and opens as many more."""

    @abstractmethod
    def writing(self, engine: Engine, namespaces: Sequence[str] | None) -> AbstractContextManager[Connection]:
        """Open a write transaction that excludes other writers of `namespaces`, or with None all other writers."""

    def writing_alone(self, engine: Engine) -> AbstractContextManager[Connection]:
        """Open a connection for one statement that writes; it excludes nobody, and is a transaction by itself."""
        return begun(engine, {ALONE: True})

    @abstractmethod
    def claim_ids(self, connection: Connection, table: Table, wanted: Sequence[int | None]) -> list[int]:
        """Return ids for new rows: those `wanted` that no row ever had, and new ones beyond all of these."""

    def lock(self, connection: Connection, name: str) -> None:
        """Let a transaction that writes also exclude others that lock this name, until it ends."""
        del connection, name

    def indexing(self, engine: Engine, namespaces: Iterable[str]) -> AbstractContextManager[object]:
        """Keep other processes from writing to the vector index of `namespaces` until the block ends."""
        del engine, namespaces
        return nullcontext()

    @contextmanager
    def claiming(self, engine: Engine, kind: str, names: Iterable[str]) -> Iterator[set[str]]:
        """Give those of `names` that no other process works on until the block ends; nobody is waited for."""
        del engine, kind
        yield set(names)

    def highest_id(self, connection: Connection, table: Table) -> int:
        """Return the highest id that a row of `table` has, or may have had."""
        return int(connection.execute(select(func.max(table.c.id))).scalar() or 0)

    @abstractmethod
    def begin_ids_after(self, connection: Connection, table: Table, highest: int) -> None:
        """Let the next id of `table` be above `highest`."""

    def mark_deleted_text(self, connection: Connection) -> None:
        """Note that the text index still holds what the transaction deletes, until it is purged."""
        del connection

    def checkpoint(self, engine: Engine) -> bool:
        """Take deleted text out of the database's log too; say whether no reader kept it from that."""
        del engine
        return True

    def sizes(self, connection: Connection) -> dict[str, int]:
        """Return the size of each table with its indexes, in bytes; nothing where the size of the files shows it."""
        del connection
        return {}

    def damage(self, connection: Connection) -> str:
        """Return what is wrong with the database's file, or an empty string."""
        del connection
        return ""

    def text_damage(self, connection: Connection) -> str:
        """Return the name of a text index that does not agree with the memories, or an empty string."""
        del connection
        return ""
