"""Statements that many rooms need: over more values than one statement takes, counts, and answers that are kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, func, insert, select

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


def keep(connection: Connection, key: Hashable, found: object) -> None:
    """Let `once` return what was found for a key by another statement, where the connection reads one state."""
    known: dict[Hashable, Any] | None = connection.get_execution_options().get(KNOWN)
    if known is not None:
        known[key] = found


def once(connection: Connection, key: Hashable, ask: Callable[[], T]) -> T:
    """Return what `ask` finds; while a connection reads one state, `ask` is called once for each key.

    A connection that writes calls it each time.
    """
    known: dict[Hashable, Any] | None = connection.get_execution_options().get(KNOWN)
    if known is None:
        return ask()
    if key not in known:
        known[key] = ask()
    found: T = known[key]
    return found
