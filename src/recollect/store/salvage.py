"""Mend a damaged database file: a new one is made by the migrations, and every row that somebody wrote is copied.

Indexes, triggers and the text index are made anew on the way. What is derived (words, vectors, the outbox) is left
empty where it cannot be read, and `reindex` fills it. Rows that nothing else holds must all be readable, or nothing is
done.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Table, text
from sqlalchemy.exc import DatabaseError

from recollect.errors import StoreUnusable
from recollect.process import DATABASE
from recollect.store.files import folder_of, usable
from recollect.store.kept_files import put_in_place, scratch
from recollect.store.sql import tables
from recollect.store.sql.database import Database, open_file
from recollect.store.sql.migrations import HEAD, migrate, revision, schema_faults
from recollect.store.store_lock import DAEMON, held, own, role_of
from recollect.store.text.fts5_schema import INDEXES

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
    """The damage that the database had, and where the damaged file lies now."""

    damage: str
    kept: Path


def mend(file: Path, free: Callable[[], object] = lambda: None) -> Mended | None:
    """Build the database `file` of a store anew when its file or its schema is damaged; None when it is not.

    `free` is called before, to end a daemon that has the store open. Raises `StoreUnusable` when rows that nothing else
    holds cannot be read; then the store is as it was. Raises `StoreOwned` when another process has the store open.
    """
    folder = folder_of(file)
    if held(folder) and role_of(folder) == DAEMON:
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
