"""Every row of a store copied: to another database, and out of a damaged one.

Moves a store from one database to another, row by row: from a data folder to a server, or back.

Every row is copied as it stands, ids, journal and quarantined levels included. What triggers make of the rows is made
by the target's own. A move that was interrupted goes on where it stopped, and ends with a comparison of all rows.

Mend a damaged database file: a new one is made by the migrations, and every row that somebody wrote is copied.

Indexes, triggers and the text index are made anew on the way. What is derived (words, vectors, the outbox) is left
empty where it cannot be read, and `reindex` fills it. Rows that nothing else holds must all be readable, or nothing is
done.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Integer, Select, Table, Text, func, insert, select, text, type_coerce
from sqlalchemy.exc import DatabaseError

from recollect.errors import InvalidInput, StoreUnusable
from recollect.process import DATABASE
from recollect.store import store_lock
from recollect.store.files import folder_of, usable
from recollect.store.kept_files import put_in_place, scratch
from recollect.store.sql import store_metadata, tables
from recollect.store.sql.database import Database, open_file
from recollect.store.sql.dialect import count, in_batches
from recollect.store.sql.migrations import HEAD, migrate, revision, schema_faults
from recollect.store.sql.tables import EnumText
from recollect.store.store_lock import DAEMON, own, role_of
from recollect.store.text.schemas import INDEXES

_MARK: Final = "moved_from"
_BATCH: Final = 500  # ids whose rows are copied in one transaction
_PAGE: Final = 2_000
_TABLES: Final = tuple(one for one in tables.metadata.sorted_tables if one is not tables.store_metadata)
_NUMBERED: Final = tuple(one for one in _TABLES if "id" in one.c)

Report = Callable[[int, int], None]
"""Is told how many rows are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Relocated:
    """How many rows of each table lie in the other database now, the same as in the first one."""

    rows: dict[str, int]


def relocate(source: Database, target: Database, report: Report = lambda _done, _total: None) -> Relocated:
    """Copy the store in `source` to `target`, which is empty or holds a part of this very store, and compare both.

    Nobody else may write to either meanwhile. `source` stays as it is. Raises `InvalidInput` where `target` holds
    something else, `StoreUnusable` where a row did not arrive as it was.
    """
    with source.exclusive() as connection:
        mark = store_metadata.own_id(connection)
    _begin(target, mark)
    with source.reading() as rows:
        total = sum(count(rows, table) for table in _TABLES)
        done = 0
        for table in _TABLES:
            for copied in _copy(rows, target, table):
                done += copied
                report(done, total)
        _finish(rows, source, target)
        found = {table.name: _compared(rows, target, table) for table in _TABLES}
    with target.exclusive() as connection:
        store_metadata.erase(connection, [_MARK])
    return Relocated(found)


def _begin(target: Database, mark: str) -> None:
    """Mark the target as a part of this store; refuse one that holds anything else."""
    with target.exclusive() as connection:
        known = store_metadata.read(connection).get(_MARK)
        if known != mark and any(count(connection, one) for one in _TABLES):
            raise InvalidInput(
                "target", "The target holds another store. Move to an empty database or an empty data folder."
            )
        store_metadata.write(connection, {_MARK: mark})


def _copy(rows: Connection, target: Database, table: Table) -> Iterator[int]:
    """Copy what the target lacks of a table; yield how many rows it had, then how many each step has added."""
    lead = table.primary_key.columns.values()[0]
    plain = _plain(table)
    if not isinstance(lead.type, Integer):
        with target.exclusive() as connection:
            connection.execute(table.delete())
            copied = _insert(connection, table, rows.execute(plain).mappings())
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
            copied = _insert(connection, table, some)
        yield copied


def _insert(connection: Connection, table: Table, rows: Iterable[Any]) -> int:
    copied = 0
    for batch in in_batches(dict(one) for one in rows):
        connection.execute(insert(_bare(table)), batch)
        copied += len(batch)
    return copied


def _plain(table: Table) -> Select[Any]:
    """Select the rows of a table, with levels of sensitivity and kinds as the texts that they are stored as."""
    return select(*(type_coerce(one, Text()).label(one.name) if _is_kind(one) else one for one in table.c))


def _bare(table: Table) -> Table:
    """Return the table with columns that take those texts as they are."""
    known = _BARE.get(table.name)
    if known is None:
        known = table.to_metadata(tables.metadata.__class__(), name=table.name)
        for column in known.c:
            if _is_kind(column):
                column.type = Text()
        _BARE[table.name] = known
    return known


_BARE: Final[dict[str, Table]] = {}


def _is_kind(column: Any) -> bool:
    return isinstance(column.type, EnumText)


def _finish(rows: Connection, source: Database, target: Database) -> None:
    """Copy what the store knows of itself, and let new ids begin beyond all that ever were."""
    with target.exclusive() as connection:
        known = store_metadata.read(rows)
        own = store_metadata.own_id(connection)
        store_metadata.write(connection, known | {store_metadata.OWN_ID: own})
        for table in _NUMBERED:
            target.dialect.begin_ids_after(connection, table, source.dialect.highest_id(rows, table))


def _compared(rows: Connection, target: Database, table: Table) -> int:
    """Return how many rows a table has; raise `StoreUnusable` where both databases do not hold the same ones."""
    with target.reading() as connection:
        ours, theirs = _digest(rows, table), _digest(connection, table)
    if ours != theirs:
        raise StoreUnusable(
            f"The table {table.name} has {theirs[0]} rows in the target and {ours[0]} in the source, or other ones. "
            "Did somebody write meanwhile? Empty the target and move again."
        )
    return ours[0]


def _digest(connection: Connection, table: Table) -> tuple[int, int]:
    """Return the number of rows, and the sum of their hashes, in whatever order they come."""
    number, total = 0, 0
    for row in connection.execute(_plain(table).execution_options(yield_per=_PAGE)):
        line = json.dumps([_value(one) for one in row], sort_keys=True, ensure_ascii=False)
        total += int.from_bytes(hashlib.sha256(line.encode("utf-8", "surrogatepass")).digest()[:16])
        number += 1
    return number, total


def _value(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case bytes() | memoryview():
            return hashlib.sha256(value).hexdigest()
        case float():
            return repr(value)
        case _:
            return value


log = logging.getLogger(__name__)

_ROWS = 1_000

_WRITTEN = (
    *(tables.namespace, tables.memory, tables.label, tables.fact, tables.journal, tables.store_metadata),
    *(tables.account, tables.team, tables.membership, tables.token),
    *(tables.team_project, tables.project_membership),  # without these, a private project is open to its team
)
_DERIVED = tuple(one for one in tables.metadata.sorted_tables if one not in _WRITTEN)


@dataclass(frozen=True, slots=True)
class Mended:
    """What was wrong with the database, and where the damaged file lies now."""

    damage: str
    kept: Path


def mend(file: Path, free: Callable[[], object] = lambda: None) -> Mended | None:
    """Build the database `file` of a store anew when its file or its schema is damaged; None when it is not.

    `free` is called before, to end a daemon that has the store open. Raises `StoreUnusable` when rows that nothing else
    holds cannot be read; then the store is as it was. Raises `StoreOwned` when another process has the store open.
    """
    folder = folder_of(file)
    if store_lock.held(folder) and role_of(folder) == DAEMON:
        if not damage_in(file):
            return None
        free()
    holder = own(folder)
    try:
        damage = damage_in(file)
        if not damage:
            return None
        with usable(f"The store in {folder} cannot be mended"), scratch(folder) as place:
            fresh = place / DATABASE
            with closing(open_file(fresh)) as database:
                migrate(database)
            _copy_rows(file, fresh)
            kept = put_in_place(file, fresh, place, "damaged")
    finally:
        holder.release()
    return Mended(damage, kept) if kept else None


def damage_in(file: Path) -> str:
    """Say what is wrong with the pages or the schema of a store's database, or return an empty string."""
    if not file.is_file() or not file.stat().st_size:
        return ""
    try:
        with closing(Database(f"sqlite:///{file}")) as database, database.reading() as connection:
            if revision(database) != HEAD:
                return ""
            found = database.dialect.damage(connection) or "; ".join(schema_faults(connection)[:3])
            for name in () if found else INDEXES:
                connection.execute(text(f"SELECT rowid FROM {name} LIMIT 1")).first()  # noqa: S608 - our own names
            return found.replace("\n", " ")
    except (DatabaseError, StoreUnusable) as error:
        return str(getattr(error, "orig", error)).rstrip(".")


def _copy_rows(damaged: Path, fresh: Path) -> None:
    """Copy every table; the damaged file is read through a connection of its own, which nothing is written through."""
    source = sqlite3.connect(f"{damaged.absolute().as_uri()}?mode=rw", uri=True)
    with closing(source), closing(sqlite3.connect(fresh, isolation_level=None)) as target:
        target.execute("BEGIN")
        for table in (*_WRITTEN, *_DERIVED):
            target.execute("SAVEPOINT one")
            try:
                _copy_table(source, target, table)
            except _Unreadable as error:
                if table in _WRITTEN:
                    raise StoreUnusable(
                        f"The table {table.name} of {damaged} cannot be read whole ({error}); nothing was changed. "
                        "Bring back a backup with `recollect backup restore FILE --force`; `recollect export FILE` "
                        "saves what can be read."
                    ) from None
                log.warning("the table %s cannot be read and is built anew: %s", table.name, error)
                target.execute("ROLLBACK TO one")
            target.execute("RELEASE one")
        highest = source.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
        target.execute("DELETE FROM sqlite_sequence")
        target.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", highest)
        target.execute("COMMIT")
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)")


class _Unreadable(Exception):
    """A table of the damaged file cannot be read to its end."""


def _copy_table(source: sqlite3.Connection, target: sqlite3.Connection, table: Table) -> None:
    columns = ", ".join(f'"{one.name}"' for one in table.c)
    places = ", ".join("?" * len(table.c))
    insert = f'INSERT INTO "{table.name}" ({columns}) VALUES ({places})'  # noqa: S608 - our own names
    try:
        rows = source.execute(f'SELECT {columns} FROM "{table.name}" NOT INDEXED')  # noqa: S608 - our own names
        while page := rows.fetchmany(_ROWS):
            target.executemany(insert, page)
    except sqlite3.DatabaseError as error:  # also for rows that break our rules: two of one key, or none
        raise _Unreadable(str(error)) from None
