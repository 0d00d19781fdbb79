"""What leaves the store in an export: memories with their history, facts and journal lines, a page at a time.

Only levels of sensitivity that are asked for leave; a level nobody knows never does.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, or_, select

from recollect.domain.results import Fact, JournalEntry, Memory
from recollect.domain.search import View
from recollect.store.sql import facts, mapping, store_metadata
from recollect.store.sql.database import Database
from recollect.store.sql.statements import count
from recollect.store.sql.tables import fact, journal, memory
from recollect.store.sql.visibility import inside, of_levels, unexpired


class SqlExportReader:
    """The `ExportReader` port over one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def stamps(self) -> dict[str, str]:
        """Return what the store says of its embedding model."""
        with self._database.reading() as connection:
            return store_metadata.model_of(store_metadata.read(connection))

    def memories(self, view: View, after: int, limit: int) -> list[Memory]:
        """Return the next memories that may leave in the order of their ids, hidden ones too, expired ones not."""
        with self._database.reading() as connection:
            wanted = _exported(view) & inside(connection, view.namespaces) & (memory.c.id > after)
            page = select(memory.c.id).where(wanted).order_by(memory.c.id).limit(limit)
            found = mapping.load(connection, memory.c.id.in_(page), view.sensitivities)
            return sorted(found, key=lambda one: one.id)

    def facts(self, view: View, after: int, limit: int) -> list[Fact]:
        """Return the next facts that may leave in the order of their ids, also those that hold no longer."""
        with self._database.reading() as connection:
            wanted = _facts(connection, view) & (fact.c.id > after)
            return mapping.facts(connection, mapping.FACTS.where(wanted).order_by(fact.c.id).limit(limit))

    def lines(self, view: View, after: int, limit: int) -> list[JournalEntry]:
        """Return the next journal lines of the view's namespaces and levels."""
        with self._database.reading() as connection:
            return mapping.lines(connection, _lines(view) & (journal.c.id > after), limit)

    def counts(self, view: View) -> dict[str, int]:
        """Count what may leave."""
        with self._database.reading() as connection:
            memories = count(connection, memory, _exported(view), inside(connection, view.namespaces))
            triples = count(connection, fact, _facts(connection, view))
            return {"memories": memories, "facts": triples, "journal": count(connection, journal, _lines(view))}


def _exported(view: View) -> ColumnElement[bool]:
    """Select what has a level that may leave and has not passed its time."""
    return of_levels(memory.c.sensitivity, view.sensitivities) & unexpired(view.now)


def _facts(connection: Connection, view: View) -> ColumnElement[bool]:
    """Select facts by their own level and by what becomes of the memory that states them."""
    exported = select(memory.c.id).where(_exported(view))
    return facts.of_view(connection, view) & or_(fact.c.memory_id.is_(None), fact.c.memory_id.in_(exported))


def _lines(view: View) -> ColumnElement[bool]:
    """Select lines by their namespace and by the level of what they tell of."""
    return journal.c.namespace.in_(view.namespaces) & of_levels(journal.c.sensitivity, view.sensitivities)
