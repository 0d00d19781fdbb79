"""What waits for a person's decision, and what was decided of sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, case, delete, func, insert, or_, select, true, union_all, update

from recollect.domain.enums import Sensitivity
from recollect.domain.origin import APPROVED, Origin, SaidBy, places_of
from recollect.domain.results import Memory
from recollect.domain.search import View
from recollect.store.sql import mapping
from recollect.store.sql.column_types import QUARANTINED
from recollect.store.sql.database import Database
from recollect.store.sql.memory_lookup import MemoryLookup
from recollect.store.sql.overview import CountedViews, space_walked
from recollect.store.sql.tables import journal, memory, namespace, source_rule
from recollect.store.sql.transaction import Transaction
from recollect.store.sql.visibility import inside, namespace_ids, of_levels, visible

_RULE: Final = select(source_rule.c.approved).join(namespace, namespace.c.id == source_rule.c.namespace_id)
_ARRIVED: Final = select(func.min(journal.c.at)).where(journal.c.memory_id == memory.c.id).scalar_subquery()
"""When a memory came into the store: what is imported keeps the date on which it was made."""


def waits() -> ColumnElement[bool]:
    """Select what waits for a decision: two ranges of the index, which holds all that is approved between them."""
    return or_(memory.c.review < APPROVED, memory.c.review > APPROVED)


class StoredRule(NamedTuple):
    """The rule for everything from a source in a namespace."""

    namespace: str
    source: str
    approved: bool
    author: str
    at: datetime


class Queue(NamedTuple):
    """A page of what waits and since when, the longest first; how much there is, since when, and how much is late."""

    page: dict[int, datetime]
    total: int
    since: datetime | None
    late: int


def _in_quarantine(view: View) -> ColumnElement[bool]:
    """Select what is in quarantine, of the levels of a view."""
    return memory.c.sensitivity.in_([QUARANTINED + level for level in view.sensitivities])


@dataclass(frozen=True, slots=True)
class Reviews:
    """Reads what waits for a decision, and what was decided of sources."""

    _database: Database
    _counted: CountedViews

    def source_rule(self, name: str, source: str) -> bool | None:
        """Return whether everything from a source is approved in a namespace; None where nobody has decided."""
        query = _RULE.where(namespace.c.name == name, source_rule.c.source == source)
        with self._database.reading() as connection:
            return connection.execute(query).scalar()

    def source_rules(self, view: View, user: str) -> list[StoredRule]:
        """Return the rules for sources in the namespaces of a view, the newest first.

        What somebody else decided is shown to whom the view shows a memory of that source, deleted or not: a source
        that only private memories of others came from does not exist for anybody else.
        """
        rules = select(source_rule, namespace.c.name).join(namespace, namespace.c.id == source_rule.c.namespace_id)
        rules = rules.where(namespace.c.name.in_(view.namespaces))
        rules = rules.order_by(source_rule.c.at.desc(), source_rule.c.source)
        with self._database.reading() as connection:
            found = connection.execute(rules).all()
            seen = [one for one in found if one.author == user or _has_memory_from(connection, one, view.sensitivities)]
        return [StoredRule(one.name, one.source, one.approved, one.author, one.at) for one in seen]

    def waiting(self, view: View, limit: int, offset: int, late: datetime) -> Queue:
        """Return a page of what waits for a decision, and how much there is; what is in quarantine waits too."""
        with self._database.reading() as connection:
            walked = space_walked.in_(namespace_ids(connection, view.namespaces).values())
            open_ones = select(memory.c.id, func.coalesce(_ARRIVED, memory.c.created_at).label("since"))
            away = select(memory.c.id, func.coalesce(memory.c.deleted_at, memory.c.updated_at).label("since"))
            each = union_all(
                open_ones.where(waits() & visible(connection, view) & walked),
                away.where(_in_quarantine(view) & inside(connection, view.namespaces)),
            ).subquery()
            page = select(each.c.id, each.c.since).order_by(each.c.since, each.c.id).limit(limit).offset(offset)
            counts = select(func.count(), func.min(each.c.since), func.count(case((each.c.since < late, 1))))
            total, since, overdue = connection.execute(counts.select_from(each)).one()
            return Queue(dict(map(tuple, connection.execute(page))), int(total), since, int(overdue))

    def in_quarantine(self, ids: Iterable[int], view: View) -> dict[int, Memory]:
        """Read those memories of `ids` that are in quarantine, of the namespaces and levels of a view."""
        with self._database.reading() as connection:
            mine = memory.c.id.in_(list(ids)) & _in_quarantine(view) & inside(connection, view.namespaces)
            return {one.id: one for one in mapping.load(connection, mine, view.sensitivities)}

    def count_waiting(self, view: View, most: int) -> int:
        """Count what waits for a decision, up to `most`."""

        def counted(connection: Connection) -> int:
            """Count what waits or is in quarantine, up to `most`, of which no more than that is looked at."""
            mine = (waits() & visible(connection, view), _in_quarantine(view) & inside(connection, view.namespaces))
            parts = (select(memory.c.id).where(one).limit(most).subquery() for one in mine)
            counts = (connection.execute(select(func.count()).select_from(one)).scalar_one() for one in parts)
            return min(sum(counts), most)

        with self._database.reading() as connection:
            return self._counted.get(connection, "waiting", view, lambda: counted(connection))


def _has_memory_from(connection: Connection, rule: Any, levels: Iterable[str]) -> bool:
    """Say whether a memory of these levels came from the source of a row of `source_rule`."""
    said_by, _, place = rule.source.partition(":")
    mine = (memory.c.namespace_id == rule.namespace_id) & of_levels(memory.c.sensitivity, levels)
    there = func.lower(memory.c.came_from).contains(places_of(place)[0].lower(), autoescape=True)
    named = select(memory.c.came_from).where(mine, memory.c.said_by == said_by, there if place else true()).distinct()
    origins = (Origin(said_by=SaidBy(said_by), came_from=one or "") for one in connection.execute(named).scalars())
    return any(rule.source in (one.source, *one.sources) for one in origins)


@dataclass(frozen=True, slots=True)
class ReviewWriting:
    """Writes what was decided of memories and sources, in one open transaction."""

    _transaction: Transaction
    _lookup: MemoryLookup

    def decide(self, old: Memory, review: str | None) -> None:
        """Write what was decided of a memory that waits."""
        self._transaction.execute(update(memory).where(memory.c.id == old.id).values(review=review))
        self._transaction.journal("review", (old.id, old.sensitivity, {"review": review or ""}))

    def decide_source(self, source: str, level: str, *, approved: bool) -> None:
        """Write what was decided of everything from a source, from now on; `level` is that of what it came with."""
        own = self._transaction
        mine = (source_rule.c.namespace_id == own.namespace_id) & (source_rule.c.source == source)
        own.execute(delete(source_rule).where(mine))
        row = {"namespace_id": own.namespace_id, "source": source, "approved": approved}
        own.execute(insert(source_rule).values(row | {"author": own.actor, "at": own.now}))
        own.journal("review", (None, level, {"source": source, "approved": approved}))

    def drop_source_rule(self, source: str) -> None:
        """Remove the rule for a source, if there is one."""
        own = self._transaction
        mine = (source_rule.c.namespace_id == own.known_id) & (source_rule.c.source == source)
        row = own.execute(select(source_rule).where(mine)).first()
        if row is not None:
            level = (
                Sensitivity.PUBLIC
                if _has_memory_from(own.connection, row, [Sensitivity.PUBLIC])
                else Sensitivity.PRIVATE
            )
            own.execute(delete(source_rule).where(mine))
            own.journal("review", (None, level, {"source": source, "approved": None}))

    def waiting(self) -> list[Memory]:
        """Return all that waits for a decision here and is in sight."""
        return self._lookup.in_state(waits() & memory.c.deleted_at.is_(None) & memory.c.merged_into.is_(None))
