"""The rows of an export: memories with their history, facts and journal lines, a page at a time.

Only levels of sensitivity that are asked for leave; a level nobody knows never does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, exists, or_, select, true
from sqlalchemy.exc import DatabaseError

from recollect.domain.results import Fact, JournalEntry, Memory
from recollect.domain.search import View
from recollect.errors import StoreUnusable
from recollect.store.sql import facts, mapping, store_metadata
from recollect.store.sql.accounts import ACCOUNTS
from recollect.store.sql.database import Database
from recollect.store.sql.person_rows import facts_of_person, of_person
from recollect.store.sql.statements import count
from recollect.store.sql.tables import fact, memory
from recollect.store.sql.tables import journal as journal_table
from recollect.store.sql.visibility import inside, of_levels, of_lines, unexpired

T = TypeVar("T")
_Read: TypeAlias = Callable[[Connection, ColumnElement[bool], int], list[T]]

_DAMAGED = (DatabaseError, StoreUnusable)


class ExportReader:
    """The `ExportReader` port over one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._unreadable: list[str] = []

    def stamps(self) -> dict[str, str]:
        """Return what the store says of its embedding model."""
        with self._database.reading() as connection:
            return store_metadata.model_of(store_metadata.read(connection))

    def memories(self, view: View, after: int, limit: int) -> list[Memory]:
        """Return the next memories that may leave in the order of their ids, hidden ones too, expired ones not."""

        def read(connection: Connection, mine: ColumnElement[bool], most: int) -> list[Memory]:
            wanted = _may_leave(view) & inside(connection, view.namespaces) & mine
            page = connection.execute(select(memory.c.id).where(wanted).order_by(memory.c.id).limit(most)).scalars()
            return sorted(
                mapping.load(connection, memory.c.id.in_(page.all()), view.sensitivities), key=lambda one: one.id
            )

        return self._read_page(memory, read, after, limit)

    def facts(self, view: View, after: int, limit: int) -> list[Fact]:
        """Return the next facts that may leave in the order of their ids, also those that hold no longer."""

        def read(connection: Connection, mine: ColumnElement[bool], most: int) -> list[Fact]:
            wanted = mapping.FACTS.where(_facts_of_view(connection, view) & mine)
            return mapping.facts(connection, wanted.order_by(fact.c.id).limit(most))

        return self._read_page(fact, read, after, limit)

    def lines(self, view: View, after: int, limit: int) -> list[JournalEntry]:
        """Return the next journal lines of the view's namespaces and levels."""

        def read(connection: Connection, mine: ColumnElement[bool], most: int) -> list[JournalEntry]:
            return mapping.lines(connection, _lines_of_view(view) & mine, most)

        return self._read_page(journal_table, read, after, limit)

    def lines_naming(self, user: str, view: View, after: int, limit: int) -> list[JournalEntry]:
        """Return the next journal lines that a user caused in the view's namespaces, or that name their account."""
        name, changes = journal_table.c.namespace, journal_table.c.changes
        of_accounts = ((name == ACCOUNTS) | name.startswith("team:")) & journal_table.c.memory_id.is_(None)
        about = of_accounts & (changes["user"].as_string() == user)
        caused = (journal_table.c.actor == user) & (_lines_of_view(view) | (name == ACCOUNTS))

        def read(connection: Connection, mine: ColumnElement[bool], most: int) -> list[JournalEntry]:
            return mapping.lines(connection, (about | caused) & mine, most)

        return self._read_page(journal_table, read, after, limit)

    def counts(self, view: View) -> dict[str, int]:
        """Count what may leave; a damaged store is not counted."""
        try:
            with self._database.reading() as connection:
                memories = count(connection, memory, _may_leave(view), inside(connection, view.namespaces))
                triples = count(connection, fact, _facts_of_view(connection, view))
                return {
                    "memories": memories,
                    "facts": triples,
                    "journal": count(connection, journal_table, _lines_of_view(view)),
                }
        except _DAMAGED:
            return {}

    def take_unreadable(self) -> tuple[str, ...]:
        """Name what could not be read since this was last asked: `memory 17`."""
        found, self._unreadable = tuple(self._unreadable), []
        return found

    def _read_page(self, table: Table, read: _Read[T], after: int, limit: int) -> list[T]:
        """Read a page; where the file is damaged, row by row, passing over those that cannot be read."""
        with self._database.reading() as connection:
            try:
                return read(connection, table.c.id > after, limit)
            except _DAMAGED:
                found: list[T] = []
                for number in range(after + 1, self._database.dialect.highest_id(connection, table) + 1):
                    try:
                        found += read(connection, table.c.id == number, 1)
                    except _DAMAGED:
                        self._unreadable.append(f"{table.name} {number}")
                    if len(found) == limit:
                        break
                return found


def _may_leave(view: View) -> ColumnElement[bool]:
    """Select rows of a level that may leave which have not expired; of an author where the view names any."""
    theirs = true() if view.author is None else of_person(view.author)
    return of_levels(memory.c.sensitivity, view.sensitivities) & unexpired(view.now) & theirs


def _facts_of_view(connection: Connection, view: View) -> ColumnElement[bool]:
    """Select facts by their own level and by what becomes of the memory that states them."""
    theirs = true() if view.author is None else facts_of_person(view.author)
    mine = of_levels(memory.c.sensitivity, view.sensitivities) & unexpired(view.now)
    exported = exists().where(memory.c.id == fact.c.memory_id, mine).correlate(fact)
    return facts.of_view(connection, view) & or_(fact.c.memory_id.is_(None), exported) & theirs


def _lines_of_view(view: View) -> ColumnElement[bool]:
    """Select lines by their namespace and by the level of their subject."""
    return journal_table.c.namespace.in_(view.namespaces) & of_lines(view.sensitivities)
