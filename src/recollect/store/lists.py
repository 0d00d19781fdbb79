"""Whole shelves of memories: pages in an order, counts by kind, and how long what is used may stay."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, func, select, update

from recollect.domain import IMPORTANCE_DAYS, IMPORTANT, Order, Scope, Stats, View
from recollect.store import facts, journal, rows

_STEP: Final = timedelta(days=1)  # a shorter gain is not worth a line in the journal
_memory = rows.memory.c

_ORDERS: dict[Order, tuple[ColumnElement[Any], ...]] = {
    Order.NEWEST: (_memory.created_at.desc(), _memory.id.desc()),
    Order.OLDEST: (_memory.created_at, _memory.id),
    Order.UPDATED: (_memory.updated_at.desc(), _memory.id.desc()),
    Order.USED: (
        (func.coalesce(rows.usage.c.accessed_count, 0) + func.coalesce(rows.usage.c.recalled_count, 0)).desc(),
        _memory.updated_at.desc(),
        _memory.id.desc(),
    ),
    Order.IMPORTANT: (_memory.importance.desc(), _memory.updated_at.desc(), _memory.id.desc()),
}


def page(connection: Connection, view: View, order: Order, limit: int, offset: int) -> list[int]:
    """Return the ids of one page of what `view` may see."""
    passing = rows.passing(view, rows.namespace_ids(connection, view.namespaces).values())
    query = select(_memory.id).where(_memory.id.in_(passing))
    if order is Order.USED:
        query = query.outerjoin(rows.usage, rows.usage.c.memory_id == _memory.id)
    return list(connection.execute(query.order_by(*_ORDERS[order]).limit(limit).offset(offset)).scalars())


def stats(connection: Connection, view: View) -> Stats:
    """Count what the view's namespaces hold: what it may see by kind, and how much else there is."""
    ids = rows.namespace_ids(connection, view.namespaces)
    inside = rows.inside(ids.values())
    seen = rows.visible(view, ids.values()) & inside
    level = _memory.sensitivity.in_([str(one) for one in view.sensitivities])
    by_space = _counted(connection, _memory.namespace_id, seen)
    scopes = {str(rows.scope_of(name)): by_space.get(number, 0) for name, number in ids.items()}
    span = select(func.min(_memory.created_at), func.max(_memory.created_at)).where(seen)
    oldest, newest = connection.execute(span).one()

    def number(condition: ColumnElement[bool]) -> int:
        return int(connection.execute(select(func.count()).select_from(rows.memory).where(condition)).scalar_one())

    held = select(func.count()).select_from(rows.fact).where(facts.visible(view, list(ids.values())))
    return Stats(
        memories=sum(by_space.values()),
        by_scope={str(one): scopes.get(str(one), 0) for one in Scope},
        by_fact_type=_named(connection, _memory.fact_type, seen),
        by_type=_named(connection, _memory.type, seen),
        by_category=_named(connection, _memory.category, seen),
        facts=int(connection.execute(held).scalar_one()),
        expired=number(inside & level & rows.shown() & (_memory.expires_at <= view.now)),
        deleted=number(inside & level & _memory.deleted_at.is_not(None)),
        superseded=number(inside & level & rows.alive(view.now) & _memory.superseded_by.is_not(None)),
        merged=number(inside & level & _memory.merged_into.is_not(None)),
        other_sensitivity=number(inside & rows.alive(view.now) & ~level),
        oldest_at=oldest,
        newest_at=newest,
    )


def prolong(connection: Connection, ids: Sequence[int], at: datetime, actor: str) -> None:
    """Put off the end of what is important and has no `ttl_days` of its own; each that gains a day is journalled."""
    for batch in rows.in_batches(ids):
        mine = _memory.id.in_(batch) & _memory.ttl_days.is_(None) & (_memory.importance >= IMPORTANT)
        query = (
            select(_memory.id, _memory.importance, _memory.expires_at, rows.namespace.c.name)
            .join(rows.namespace, rows.namespace.c.id == _memory.namespace_id)
            .where(mine, _memory.expires_at > at)
        )
        for row in connection.execute(query).all():
            until = at + timedelta(days=row.importance * IMPORTANCE_DAYS)
            if until - row.expires_at < _STEP:
                continue
            connection.execute(update(rows.memory).where(_memory.id == row.id).values(expires_at=until))
            journal.append(
                connection,
                at=at,
                actor=actor,
                namespace=row.name,
                action="refresh",
                memory_id=row.id,
                changes={"fields": ["expires_at"]},
            )


def _counted(connection: Connection, column: ColumnElement[Any], seen: ColumnElement[bool]) -> dict[Any, int]:
    query = select(column, func.count()).select_from(rows.memory).where(seen).group_by(column)
    return {value: int(count) for value, count in connection.execute(query)}


def _named(connection: Connection, column: ColumnElement[Any], seen: ColumnElement[bool]) -> dict[str, int]:
    counted = _counted(connection, column, seen)
    named = {str(value): count for value, count in counted.items() if value is not None}
    return dict(sorted(named.items(), key=lambda pair: (-pair[1], pair[0])))
