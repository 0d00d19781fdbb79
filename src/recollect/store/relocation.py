"""Move a store from one database to another, row by row: from a data folder to a server, or back.

Every row is copied as it stands, ids, journal and quarantined levels included. What triggers make of the rows is made
by the target's own. A move that was interrupted goes on where it stopped, and ends with a comparison of all rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Integer, Select, Table, Text, func, insert, select, type_coerce

from recollect.errors import InvalidInput, StoreUnusable
from recollect.store.sql import store_metadata, tables
from recollect.store.sql.column_types import EnumText
from recollect.store.sql.database import Database
from recollect.store.sql.statements import count, in_batches

_MARK: Final = "moved_from"
_BATCH: Final = 500  # ids whose rows are copied in one transaction
_PAGE: Final = 2_000
TABLES: Final = tuple(one for one in tables.metadata.sorted_tables if one is not tables.store_metadata)
_NUMBERED: Final = tuple(one for one in TABLES if "id" in one.c)

Report = Callable[[int, int], None]
"""A function that takes how many rows are copied, and how many there are."""

_BARE: Final[dict[str, Table]] = {}


@dataclass(frozen=True, slots=True)
class Relocated:
    """The number of rows of each table in the other database, which is that of the first database."""

    rows: dict[str, int]


def relocate(source: Database, target: Database, report: Report = lambda _done, _total: None) -> Relocated:
    """Copy the store in `source` to `target`, which is empty or holds a part of this very store, and compare both.

    Nobody else may write to either meanwhile. `source` stays as it is. Raises `InvalidInput` where `target` holds
    something else, `StoreUnusable` where a row did not arrive as it was.
    """
    with source.exclusive() as connection:
        mark = store_metadata.own_id(connection)
    _mark_target(target, mark)
    with source.reading() as rows:
        total = sum(count(rows, table) for table in TABLES)
        done = 0
        for table in TABLES:
            for copied in _copy_missing_rows(rows, target, table):
                done += copied
                report(done, total)
        _copy_metadata(rows, source, target)
        found = {table.name: _compare_table(rows, target, table) for table in TABLES}
    with target.exclusive() as connection:
        store_metadata.erase(connection, [_MARK])
    return Relocated(found)


def _mark_target(target: Database, mark: str) -> None:
    """Mark the target as a part of this store; refuse one that holds anything else."""
    with target.exclusive() as connection:
        known = store_metadata.read(connection).get(_MARK)
        if known != mark and any(count(connection, one) for one in TABLES):
            raise InvalidInput(
                "target", "The target holds another store. Move to an empty database or an empty data folder."
            )
        store_metadata.write(connection, {_MARK: mark})


def _copy_missing_rows(rows: Connection, target: Database, table: Table) -> Iterator[int]:
    """Copy what the target lacks of a table; yield how many rows it had, then how many each step has added."""
    lead = table.primary_key.columns.values()[0]
    plain = _select_stored(table)
    if not isinstance(lead.type, Integer):
        with target.exclusive() as connection:
            connection.execute(table.delete())
            copied = _insert_rows(connection, table, rows.execute(plain).mappings())
        yield copied
        return
    with target.reading() as connection:
        last, known = connection.execute(select(func.max(lead), func.count())).one()
    yield known
    query = select(lead).distinct().order_by(lead)
    ids = list(rows.execute(query if last is None else query.where(lead > last)).scalars())
    for start in range(0, len(ids), _BATCH):
        first, final = ids[start], ids[min(start + _BATCH, len(ids)) - 1]
        some = rows.execute(plain.where(lead.between(first, final))).mappings()
        with target.exclusive() as connection:
            copied = _insert_rows(connection, table, some)
        yield copied


def _insert_rows(connection: Connection, table: Table, rows: Iterable[Any]) -> int:
    """Insert rows as they are stored; return how many."""
    copied = 0
    for batch in in_batches(dict(one) for one in rows):
        connection.execute(insert(_without_types(table)), batch)
        copied += len(batch)
    return copied


def _select_stored(table: Table) -> Select[Any]:
    """Select the rows of a table with levels and kinds as their stored texts."""
    return select(*(type_coerce(one, Text()).label(one.name) if _is_kind(one) else one for one in table.c))


def _without_types(table: Table) -> Table:
    """Return the table with columns that take stored texts unchanged."""
    known = _BARE.get(table.name)
    if known is None:
        known = table.to_metadata(tables.metadata.__class__(), name=table.name)
        for column in known.c:
            if _is_kind(column):
                column.type = Text()
        _BARE[table.name] = known
    return known


def _is_kind(column: Any) -> bool:
    return isinstance(column.type, EnumText)


def _copy_metadata(rows: Connection, source: Database, target: Database) -> None:
    """Copy the stamps of the store, and let new ids begin above all that were ever used."""
    with target.exclusive() as connection:
        known = store_metadata.read(rows)
        own = store_metadata.own_id(connection)
        store_metadata.write(connection, known | {store_metadata.OWN_ID: own})
        for table in _NUMBERED:
            target.dialect.begin_ids_after(connection, table, source.dialect.highest_id(rows, table))


def _compare_table(rows: Connection, target: Database, table: Table) -> int:
    """Return how many rows a table has; raise `StoreUnusable` where both databases do not hold the same ones."""
    with target.reading() as connection:
        ours, theirs = table_digest(rows, table), table_digest(connection, table)
    if ours != theirs:
        raise StoreUnusable(
            f"The table {table.name} has {theirs[0]} rows in the target and {ours[0]} in the source, or other ones. "
            "Did somebody write meanwhile? Empty the target and move again."
        )
    return ours[0]


def table_digest(connection: Connection, table: Table) -> tuple[int, int]:
    """Return the number of rows, and the sum of their hashes, in whatever order they come."""
    number, total = 0, 0
    for row in connection.execute(_select_stored(table).execution_options(yield_per=_PAGE)):
        line = json.dumps([_comparable_value(one) for one in row], sort_keys=True, ensure_ascii=False)
        total += int.from_bytes(hashlib.sha256(line.encode("utf-8", "surrogatepass")).digest()[:16])
        number += 1
    return number, total


def _comparable_value(value: Any) -> Any:
    """Return a value in the form that both databases give it for comparison."""
    match value:
        case datetime():
            return value.isoformat()
        case bytes() | memoryview():
            return hashlib.sha256(value).hexdigest()
        case float():
            return repr(value)
        case _:
            return value
