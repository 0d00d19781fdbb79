"""Whole shelves of memories: pages in an order, counts by kind, and how long what is used may stay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, func, select, update

from recollect.domain.enums import IMPORTANCE_DAYS, IMPORTANT, Order, Scope
from recollect.domain.results import Stats
from recollect.domain.search import View
from recollect.store import journal
from recollect.store.sql import facts, mapping, tables
from recollect.store.sql.visibility import alive, inside, namespace_ids, of_levels, passing, shown, visible

_STEP: Final = timedelta(days=1)  # a shorter gain is not worth a line in the journal
_memory = tables.memory.c

_ORDERS: dict[Order, tuple[ColumnElement[Any], ...]] = {
    Order.NEWEST: (_memory.created_at.desc(), _memory.id.desc()),
    Order.OLDEST: (_memory.created_at, _memory.id),
    Order.UPDATED: (_memory.updated_at.desc(), _memory.id.desc()),
    Order.USED: (
        (func.coalesce(tables.usage.c.accessed_count, 0) + func.coalesce(tables.usage.c.recalled_count, 0)).desc(),
        _memory.updated_at.desc(),
        _memory.id.desc(),
    ),
    Order.IMPORTANT: (_memory.importance.desc(), _memory.updated_at.desc(), _memory.id.desc()),
}


def page(connection: Connection, view: View, order: Order, limit: int, offset: int) -> list[int]:
    """Return the ids of one page of what `view` may see."""
    query = select(_memory.id).where(_memory.id.in_(passing(connection, view)))
    if order is Order.USED:
        query = query.outerjoin(tables.usage, tables.usage.c.memory_id == _memory.id)
    return list(connection.execute(query.order_by(*_ORDERS[order]).limit(limit).offset(offset)).scalars())


def stats(connection: Connection, view: View) -> Stats:
    """Count what the view's namespaces hold: what it may see by kind, and how much else there is."""
    here = inside(connection, view.namespaces)
    seen = visible(connection, view) & here
    level = of_levels(_memory.sensitivity, view)
    by_space = _counted(connection, _memory.namespace_id, seen)
    ids = namespace_ids(connection, view.namespaces)
    scopes = {str(mapping.scope_of(name)): by_space.get(number, 0) for name, number in ids.items()}
    span = select(func.min(_memory.created_at), func.max(_memory.created_at)).where(seen)
    oldest, newest = connection.execute(span).one()

    def number(condition: ColumnElement[bool]) -> int:
        return int(connection.execute(select(func.count()).select_from(tables.memory).where(condition)).scalar_one())

    held = select(func.count()).select_from(tables.fact).where(facts.visible(connection, view))
    return Stats(
        memories=sum(by_space.values()),
        by_scope={str(one): scopes.get(str(one), 0) for one in Scope},
        by_fact_type=_named(connection, _memory.fact_type, seen),
        by_type=_named(connection, _memory.type, seen),
        by_category=_named(connection, _memory.category, seen),
        facts=int(connection.execute(held).scalar_one()),
        expired=number(here & level & shown() & (_memory.expires_at <= view.now)),
        deleted=number(here & level & _memory.deleted_at.is_not(None)),
        superseded=number(here & level & alive(view.now) & _memory.superseded_by.is_not(None)),
        merged=number(here & level & _memory.merged_into.is_not(None)),
        other_sensitivity=number(here & alive(view.now) & ~level),
        oldest_at=oldest,
        newest_at=newest,
    )


def extendable(connection: Connection, ids: Sequence[int], at: datetime) -> dict[str, list[int]]:
    """Return what is important, has no `ttl_days` of its own and gains a day by living on from `at`, by namespace."""
    found: dict[str, list[int]] = defaultdict(list)
    for batch in mapping.in_batches(ids):
        mine = _memory.id.in_(batch) & _memory.ttl_days.is_(None) & (_memory.importance >= IMPORTANT)
        query = (
            select(_memory.id, _memory.importance, _memory.expires_at, tables.namespace.c.name)
            .join(tables.namespace, tables.namespace.c.id == _memory.namespace_id)
            .where(mine, _memory.expires_at > at)
        )
        for row in connection.execute(query):
            if _until(at, row.importance) - row.expires_at >= _STEP:
                found[row.name].append(row.id)
    return found


def extend_expiry(connection: Connection, namespace: str, ids: Sequence[int], at: datetime, actor: str) -> None:
    """Put off the end of memories of a namespace; each gets a line in the journal."""
    due = select(_memory.id, _memory.importance).where(_memory.id.in_(ids), _memory.expires_at > at)
    for memory_id, importance in connection.execute(due).all():
        until = _until(at, importance)
        connection.execute(update(tables.memory).where(_memory.id == memory_id).values(expires_at=until))
        journal.append(
            connection,
            at=at,
            actor=actor,
            namespace=namespace,
            action="refresh",
            memory_id=memory_id,
            changes={"fields": ["expires_at"]},
        )


def _until(at: datetime, importance: float) -> datetime:
    return at + timedelta(days=importance * IMPORTANCE_DAYS)


def _counted(connection: Connection, column: ColumnElement[Any], seen: ColumnElement[bool]) -> dict[Any, int]:
    query = select(column, func.count()).select_from(tables.memory).where(seen).group_by(column)
    return {value: int(count) for value, count in connection.execute(query)}


def _named(connection: Connection, column: ColumnElement[Any], seen: ColumnElement[bool]) -> dict[str, int]:
    counted = _counted(connection, column, seen)
    named = {str(value): count for value, count in counted.items() if value is not None}
    return dict(sorted(named.items(), key=lambda pair: (-pair[1], pair[0])))
