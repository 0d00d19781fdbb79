"""What leaves the store in an export: memories with their history, facts and journal lines, a page at a time.

Only levels of sensitivity that are asked for leave; a level nobody knows never does.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, and_, func, or_, select

from recollect.domain import Fact, JournalEntry, Memory, View
from recollect.store import facts, rows, stamps
from recollect.store.database import Database


class SqlLeaving:
    """The `Leaving` port over one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def stamps(self) -> dict[str, str]:
        """Return what the store says of its embedding model."""
        with self._database.reading() as connection:
            return stamps.model_of(stamps.read(connection))

    def memories(self, view: View, after: int, limit: int) -> list[Memory]:
        """Return the next memories that may leave in the order of their ids, hidden ones too, expired ones not."""
        with self._database.reading() as connection:
            numbers = rows.namespace_ids(connection, view.namespaces).values()
            wanted = _leaving(view) & rows.inside(numbers) & (rows.memory.c.id > after)
            ids = select(rows.memory.c.id).where(wanted).order_by(rows.memory.c.id).limit(limit)
            found = list(connection.execute(ids).scalars())
            pages = (rows.load(connection, rows.memory.c.id.in_(batch)) for batch in rows.in_batches(found))
            return sorted((one for page in pages for one in page), key=lambda memory: memory.id)

    def facts(self, view: View, after: int, limit: int) -> list[Fact]:
        """Return the next facts that may leave in the order of their ids, also those that hold no longer."""
        with self._database.reading() as connection:
            numbers = rows.namespace_ids(connection, view.namespaces).values()
            wanted = _facts(view, list(numbers)) & (rows.fact.c.id > after)
            found = connection.execute(facts.selected().where(wanted).order_by(rows.fact.c.id).limit(limit))
            return [facts.fact_of(row) for row in found]

    def lines(self, view: View, after: int, limit: int) -> list[JournalEntry]:
        """Return the next journal lines of the view's namespaces but for those of memories that may not leave."""
        column = rows.journal.c
        with self._database.reading() as connection:
            wanted = _lines(view) & (column.id > after)
            found = connection.execute(select(rows.journal).where(wanted).order_by(column.id).limit(limit))
            return [
                JournalEntry(row.id, row.at, row.actor, row.namespace, row.action, row.memory_id, row.changes, row.hash)
                for row in found
            ]

    def counts(self, view: View) -> dict[str, int]:
        """Count what may leave, and under `all` every line of the journal."""
        with self._database.reading() as connection:
            numbers = list(rows.namespace_ids(connection, view.namespaces).values())
            conditions = {
                "memories": (rows.memory, _leaving(view) & rows.inside(numbers)),
                "facts": (rows.fact, _facts(view, numbers)),
                "journal": (rows.journal, _lines(view)),
                "all": (rows.journal, rows.journal.c.id > 0),
            }
            return {
                name: int(connection.execute(select(func.count()).select_from(table).where(wanted)).scalar_one())
                for name, (table, wanted) in conditions.items()
            }


def _leaving(view: View) -> ColumnElement[bool]:
    """Select what has a level that may leave and has not passed its time."""
    memory = rows.memory.c
    return and_(memory.sensitivity.in_(_levels(view)), _unexpired(view.now))


def _unexpired(now: datetime) -> ColumnElement[bool]:
    return or_(rows.memory.c.expires_at.is_(None), rows.memory.c.expires_at > now)


def _facts(view: View, numbers: Sequence[int]) -> ColumnElement[bool]:
    """Select facts by their own level and by what becomes of the memory that told them."""
    told = select(rows.memory.c.id).where(_leaving(view))
    fact = rows.fact.c
    return and_(
        fact.namespace_id.in_(numbers),
        fact.sensitivity.in_(_levels(view)),
        or_(fact.memory_id.is_(None), fact.memory_id.in_(told)),
    )


def _lines(view: View) -> ColumnElement[bool]:
    """Select lines by their namespace; those of a memory that is there but may not leave stay with it."""
    line = rows.journal.c
    kept = select(rows.memory.c.id).where(rows.memory.c.sensitivity.not_in(_levels(view)))
    return and_(line.namespace.in_(view.namespaces), or_(line.memory_id.is_(None), line.memory_id.not_in(kept)))


def _levels(view: View) -> list[str]:
    return [str(level) for level in view.sensitivities]
