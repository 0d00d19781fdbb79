"""Lists of memories: pages in an order, counts by kind, and how long those that are used may stay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Text, func, select, type_coerce, update

from recollect.domain.enums import IMPORTANCE_DAYS, IMPORTANT, Order, Scope
from recollect.domain.lifecycle import OBSERVED
from recollect.domain.results import Stats
from recollect.domain.search import View
from recollect.store import journal
from recollect.store.sql import facts, mapping, tables
from recollect.store.sql.database import Database
from recollect.store.sql.statements import count, select_in
from recollect.store.sql.visibility import alive, inside, namespace_ids, of_levels, passing, shown, values_of, visible

_STEP: Final = timedelta(days=1)  # a shorter gain is not worth a line in the journal
_memory = tables.memory.c

_UPDATED = (_memory.updated_at.desc(), _memory.id.desc())
_used = func.coalesce(tables.usage.c.accessed_count, 0) + func.coalesce(tables.usage.c.recalled_count, 0)
_ORDERS: dict[Order, tuple[ColumnElement[Any], ...]] = {
    Order.NEWEST: (_memory.created_at.desc(), _memory.id.desc()),
    Order.OLDEST: (_memory.created_at, _memory.id),
    Order.UPDATED: _UPDATED,
    Order.USED: (_used.desc(), *_UPDATED),
    Order.IMPORTANT: (_memory.importance.desc(), *_UPDATED),
}


class SqlListQueries:
    """The part of `Records` that lists, counts and keeps alive what may be seen."""

    _database: Database

    def list_ids(self, view: View, order: Order, limit: int, offset: int) -> list[int]:
        """Return the ids of one page of what `view` may see, in `order`."""
        with self._database.reading() as connection:
            query = select(_memory.id).where(_memory.id.in_(passing(view)))
            if order is Order.USED:
                query = query.outerjoin(tables.usage, tables.usage.c.memory_id == _memory.id)
            page = query.order_by(*_ORDERS[order]).limit(limit).offset(offset)
            return list(connection.execute(page, values_of(connection, view)).scalars())

    def stats(self, view: View) -> Stats:
        """Count what the view may see by kind, and what of its levels is out of sight."""
        with self._database.reading() as connection:
            here = inside(connection, view.namespaces)
            seen = visible(connection, view) & here
            level = of_levels(_memory.sensitivity, view.sensitivities)
            by_space = _counted(connection, _memory.namespace_id, seen)
            ids = namespace_ids(connection, view.namespaces)
            scopes = {str(mapping.scope_of(name)): by_space.get(number, 0) for name, number in ids.items()}
            span = select(func.min(_memory.created_at), func.max(_memory.created_at)).where(seen)
            oldest, newest = connection.execute(span).one()
            number = partial(count, connection, tables.memory, here, level)
            return Stats(
                memories=sum(by_space.values()),
                by_scope={str(one): scopes.get(str(one), 0) for one in Scope},
                by_fact_type=_named(connection, _memory.fact_type, seen),
                by_type=_named(connection, _memory.type, seen),
                by_category=_named(connection, _memory.category, seen),
                facts=count(connection, tables.fact, facts.visible(connection, view)),
                expired=number(shown(), _memory.expires_at <= view.now),
                deleted=number(_memory.deleted_at.is_not(None)),
                superseded=number(alive(view.now), _memory.superseded_by.is_not(None)),
                merged=number(_memory.merged_into.is_not(None)),
                oldest_at=oldest,
                newest_at=newest,
            )

    def extend_expiry(self, ids: Sequence[int], at: datetime, actor: str, captured_days: float = 0.0) -> None:
        """Let those of `ids` that are important, and expire because of their importance, live on from `at`.

        With `captured_days` instead those that were captured, for so long. One that would gain less than a day, or a
        tenth of these, is left alone; each of the others gets a line in the journal.
        """
        with self._database.reading() as connection:
            wanted = _extendable(connection, ids, at, captured_days)
        for namespace in sorted(wanted):
            with self._database.writing(namespace) as connection:
                level = type_coerce(_memory.sensitivity, Text).label("level")
                due = select(_memory.id, _memory.importance, level).where(_memory.expires_at > at)
                found = list(select_in(connection, due, _memory.id, wanted[namespace]))
                for row in found:
                    mine = update(tables.memory).where(_memory.id == row.id)
                    connection.execute(mine.values(expires_at=_until(at, row.importance, captured_days)))
                lines = [(row.id, row.level, {"fields": ["expires_at"]}) for row in found]
                journal.extend(connection, namespace, actor, at, "refresh", lines)


def _extendable(connection: Connection, ids: Sequence[int], at: datetime, captured_days: float) -> dict[str, list[int]]:
    """Return what may live on, has no `ttl_days` of its own and gains enough by living on from `at`, by namespace."""
    found: dict[str, list[int]] = defaultdict(list)
    may = _memory.source.in_(OBSERVED) if captured_days else _memory.importance >= IMPORTANT
    step = max(_STEP, timedelta(days=captured_days / 10))
    query = (
        select(_memory.id, _memory.importance, _memory.expires_at, tables.namespace.c.name)
        .join(tables.namespace, tables.namespace.c.id == _memory.namespace_id)
        .where(_memory.ttl_days.is_(None), may, _memory.expires_at > at)
    )
    for row in select_in(connection, query, _memory.id, ids):
        if _until(at, row.importance, captured_days) - row.expires_at >= step:
            found[row.name].append(row.id)
    return found


def _until(at: datetime, importance: float, captured_days: float) -> datetime:
    return at + timedelta(days=captured_days or importance * IMPORTANCE_DAYS)


def _counted(connection: Connection, column: ColumnElement[Any], seen: ColumnElement[bool]) -> dict[Any, int]:
    query = select(column, func.count()).select_from(tables.memory).where(seen).group_by(column)
    return {value: int(held) for value, held in connection.execute(query)}


def _named(connection: Connection, column: ColumnElement[Any], seen: ColumnElement[bool]) -> dict[str, int]:
    counted = _counted(connection, column, seen)
    named = {str(value): held for value, held in counted.items() if value is not None}
    return dict(sorted(named.items(), key=lambda pair: (-pair[1], pair[0])))
