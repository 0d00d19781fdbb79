"""Compare a restored store with the store that it was saved from: its journal, and every row of every table."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from recollect.store.journal import last_ids
from recollect.store.relocation import TABLES, table_digest
from recollect.store.sql.statements import count
from recollect.store.sql.tables import journal

Digests = dict[str, tuple[int, int]]
"""By table, how many rows it has, and the sum of their hashes."""


@dataclass(frozen=True, slots=True)
class History:
    """The relation of a copy's journal to the store's.

    `foreign` has the namespaces whose journal in the copy is no beginning of the store's; `behind` is the number of
    lines that the store has and the copy lacks.
    """

    foreign: tuple[str, ...]
    behind: int


def compare_histories(copy: Connection, store: Connection) -> History:
    """Look for the last line of each chain of the copy in the store: each hash covers all lines before it."""
    ours, theirs = last_lines(copy), last_lines(store)
    foreign = [name for name, (number, digest) in ours.items() if _hash_of_line(store, number) != digest]
    lines = count(store, journal) - count(copy, journal) if ours != theirs else 0
    return History(tuple(sorted(foreign)), max(lines, 0))


def last_lines(connection: Connection) -> dict[str, tuple[int, str]]:
    """Return the id and the hash of the last line of each namespace."""
    return {name: (number, _hash_of_line(connection, number)) for name, number in last_ids(connection).items()}


def digest_tables(connection: Connection) -> Digests:
    """Return a digest of each table, all of the same instant where the connection is in a read transaction."""
    return {table.name: table_digest(connection, table) for table in TABLES}


def differing_tables(copy: Digests, store: Digests) -> list[str]:
    """Return a sentence part for each table whose rows differ."""
    pairs = ((name, copy[name], store[name]) for name in store if copy[name] != store[name])
    return [
        f"{name} has {ours[0]} rows in the copy and {theirs[0]} in the store"
        if ours[0] != theirs[0]
        else f"{name} has other rows in the copy"
        for name, ours, theirs in pairs
    ]


def _hash_of_line(connection: Connection, number: int) -> str:
    """Return the hash of a line of the journal, an empty text where there is no such line."""
    return connection.execute(select(journal.c.hash).where(journal.c.id == number)).scalar() or ""
