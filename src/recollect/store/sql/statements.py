"""Statements that many rooms need: over more values than one statement takes, and counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, func, insert, select

T = TypeVar("T")

_BATCH = 500


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
