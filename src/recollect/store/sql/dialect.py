"""What each kind of database does in its own way; what most need not do at all is done here, by doing nothing.

Statements that many rooms need: over more values than one statement takes, counts, and answers that are kept.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar, Final, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, Row, Select, Table, func, insert, select
from sqlalchemy import Dialect as Language
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction, ReturnTypeFromArgs
from sqlalchemy.types import Text, UserDefinedType

INDEX: Final = "index"
"""What is claimed of a namespace whose vector index somebody writes to."""


class Dialect(ABC):
    """One kind of database.

    `insert` makes an INSERT that may say what happens where a row is there already. `reading` are the options of a
    connection whose transaction sees one state from its beginning to its end.
    """

    schema: ClassVar[Sequence[str]]  # statements that make what the tables do not declare
    functions: ClassVar[Sequence[str]] = ()  # those of them that a revision may run again
    covering: ClassVar[Sequence[str]] = ()  # those of them that spare a look at the rows
    insert: ClassVar[Any]
    reading: ClassVar[Mapping[str, Any]] = {}

    @abstractmethod
    def engine(self, url: str, connections: int) -> Engine:
        """Return an engine for the database at `url` that keeps so many connections, and opens as many more."""

    @abstractmethod
    def writing(self, engine: Engine, namespaces: Sequence[str] | None) -> AbstractContextManager[Connection]:
        """Open a write transaction that excludes other writers of `namespaces`, or with None all other writers."""

    @abstractmethod
    def claim_ids(self, connection: Connection, table: Table, wanted: Sequence[int | None]) -> list[int]:
        """Return ids for new rows: those `wanted` that no row ever had, and new ones beyond all of these."""

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
        """Return the size of each table with its indexes, in bytes; nothing where the files tell it."""
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


class folded(GenericFunction[str]):  # noqa: N801 - a function of SQL
    """A text without its letter case, whatever its alphabet; written `lower`."""

    name = "lower"
    identifier = "folded"
    type = Text()
    inherit_cache = True


class unindexed(ReturnTypeFromArgs[Any]):  # noqa: N801 - a function of SQL
    """A value as it is, which the planner should not look up in an index."""

    inherit_cache = True


class walked(ReturnTypeFromArgs[Any]):  # noqa: N801 - a function of SQL
    """The number of a namespace whose memories are walked in the index that overviews are read from.

    That one holds so many columns that it would tempt every other query to walk it too, so it begins with this.
    """

    inherit_cache = True


class Listed(UserDefinedType[Iterable[Any]]):
    """The type of a parameter that holds any number of numbers or texts, so that one statement serves for all."""

    cache_ok = True

    def bind_processor(self, dialect: Language) -> Callable[[Any], Any]:
        """Pass an array on, or JSON where a database has none."""
        return (lambda values: json.dumps(list(values))) if dialect.name == "sqlite" else list


class any_of(GenericFunction[bool]):  # noqa: N801 - a function of SQL
    """Whether the first argument is among the values of the second, a parameter of the type `Listed`.

    It is not declared a truth value: where a database has none, that is compared with 1, which no index serves.
    """

    inherit_cache = True


@compiles(any_of)
def _in_array(element: any_of, compiler: SQLCompiler, **options: Any) -> str:
    value, listed = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{value} = ANY({listed})"


@compiles(walked)
@compiles(unindexed)
def _itself(element: ReturnTypeFromArgs[Any], compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


T = TypeVar("T")

_BATCH = 500
KNOWN = "known"
"""The option of a connection that reads one state: what was found in it so far, by key."""


def in_batches(values: Iterable[T]) -> Iterator[list[T]]:
    """Cut `values` into lists short enough for one statement."""
    wanted = list(values)
    return (wanted[start : start + _BATCH] for start in range(0, len(wanted), _BATCH))


def select_in(
    connection: Connection, query: Select[Any], column: ColumnElement[Any], values: Iterable[Any]
) -> Iterator[Row[Any]]:
    """Yield the rows of `query` in which `column` is one of `values`."""
    for batch in in_batches(values):
        yield from connection.execute(query.where(column.in_(batch)))


def insert_all(connection: Connection, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    """Insert rows, however many; none at all is no error."""
    for batch in in_batches(rows):
        connection.execute(insert(table), batch)


def count(connection: Connection, table: Table, *conditions: ColumnElement[bool]) -> int:
    """Count the rows of `table` that meet every condition."""
    return connection.execute(select(func.count()).select_from(table).where(*conditions)).scalar_one()


def once(connection: Connection, key: Hashable, ask: Callable[[], T]) -> T:
    """Return what `ask` finds. Where the connection reads one state it is asked once; a writer asks each time."""
    known: dict[Hashable, Any] | None = connection.get_execution_options().get(KNOWN)
    if known is None:
        return ask()
    if key not in known:
        known[key] = ask()
    found: T = known[key]
    return found
