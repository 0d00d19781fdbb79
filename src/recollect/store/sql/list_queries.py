"""Lists of memories: pages in an order, counts by kind, and how long those that are used may stay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, Text, func, or_, select, tuple_, type_coerce, update

from recollect.domain.enums import IMPORTANCE_DAYS, IMPORTANT, Order, Scope
from recollect.domain.lifecycle import OBSERVED
from recollect.domain.results import Stats
from recollect.domain.search import View
from recollect.errors import InvalidInput
from recollect.store import journal
from recollect.store.sql import facts, mapping, tables
from recollect.store.sql.database import Database
from recollect.store.sql.statements import count, select_in
from recollect.store.sql.visibility import alive, inside, namespace_ids, of_levels, passing, shown, values_of, visible

_STEP: Final = timedelta(days=1)  # a shorter gain is not worth a line in the journal
_memory = tables.memory.c

_CHANGED: Final = "+"
"""Begins the place of a page of what has changed since a listing began."""
_SEPARATOR: Final = "_"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_used = func.coalesce(tables.usage.c.accessed_count, 0) + func.coalesce(tables.usage.c.recalled_count, 0)
_CREATED: Final = (_memory.created_at, _memory.id)
_UPDATED: Final = (_memory.updated_at, _memory.id)


class _Sorting(NamedTuple):
    """The columns of an order, whether all of them fall, and how their values are read; `moves`: writes change it."""

    columns: tuple[ColumnElement[Any], ...]
    down: bool
    read: tuple[Callable[[str], Any], ...]
    moves: bool = False

    @property
    def order(self) -> list[ColumnElement[Any]]:
        """Return what a query is ordered by."""
        return [one.desc() if self.down else one for one in self.columns]


def _instant(text: str) -> datetime:
    """Return the time that `_place_text` wrote as microseconds."""
    return _EPOCH + int(text) * _MICROSECOND


_ORDERS: Final[dict[Order, _Sorting]] = {
    Order.NEWEST: _Sorting(_CREATED, True, (_instant, int)),
    Order.OLDEST: _Sorting(_CREATED, False, (_instant, int)),
    Order.UPDATED: _Sorting(_UPDATED, True, (_instant, int), moves=True),
    Order.USED: _Sorting((_used, *_UPDATED), True, (int, _instant, int), moves=True),
    Order.IMPORTANT: _Sorting((_memory.importance, *_UPDATED), True, (float, _instant, int), moves=True),
}
_SWEEP: Final = _Sorting(_UPDATED, False, (_instant, int))
"""The order of what has changed since a listing began: what changes once more comes behind all others."""


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists, counts and keeps alive what may be seen."""

    _database: Database

    def ids(self, view: View, order: Order, limit: int, offset: int) -> list[int]:
        """Return the ids of one page of what `view` may see, in `order`."""
        with self._database.reading() as connection:
            page = _select_visible_ids(view, order).order_by(*_ORDERS[order].order).limit(limit).offset(offset)
            return list(connection.execute(page, values_of(connection, view)).scalars())

    def page(
        self, view: View, order: Order, limit: int, after: str | None = None, offset: int = 0
    ) -> tuple[list[int], str | None]:
        """Return the ids of the page behind the place `after`, or behind `offset`, and the place where it ends.

        While others write, no memory is missed: in an order that writes change, what has changed since the first page
        comes at the end, also what was listed before. The last page has no place. Raises `InvalidInput` for a place
        that no page of this order has named.
        """
        changed = after is not None and after.partition(_SEPARATOR)[2].startswith(_CHANGED)
        sorting = _SWEEP if changed else _ORDERS[order]
        began, behind = (view.now, None) if after is None else _parse_place(sorting, after)
        query = _select_visible_ids(view, order)
        with self._database.reading() as connection:
            values = values_of(connection, view)
            page = _page_after(query.where(_may_have_moved(began, order)) if changed else query, sorting, behind)
            found = connection.execute(page.limit(limit + 1).offset(offset), values).all()
            ids = [row.id for row in found[:limit]]
            if len(found) > limit:
                place = _SEPARATOR.join(map(_place_text, found[limit - 1][1:]))
                return ids, f"{_place_text(began)}{_SEPARATOR}{_CHANGED if changed else ''}{place}"
            if after is None or changed or not sorting.moves:
                return ids, None
            meanwhile = connection.execute(query.where(_may_have_moved(began, order)).limit(1), values).first()
            return ids, f"{_place_text(began)}{_SEPARATOR}{_CHANGED}" if meanwhile else None

    def stats(self, view: View) -> Stats:
        """Count what the view may see by kind, and what of its levels is out of sight."""
        with self._database.reading() as connection:
            here = inside(connection, view.namespaces)
            seen = visible(connection, view) & here
            level = of_levels(_memory.sensitivity, view.sensitivities)
            by_space = _count_by(connection, _memory.namespace_id, seen)
            ids = namespace_ids(connection, view.namespaces)
            scopes = {str(mapping.scope_of(name)): by_space.get(number, 0) for name, number in ids.items()}
            span = select(func.min(_memory.created_at), func.max(_memory.created_at)).where(seen)
            oldest, newest = connection.execute(span).one()
            number = partial(count, connection, tables.memory, here, level)
            return Stats(
                memories=sum(by_space.values()),
                by_scope={str(one): scopes.get(str(one), 0) for one in Scope},
                by_fact_type=_count_by_name(connection, _memory.fact_type, seen),
                by_type=_count_by_name(connection, _memory.type, seen),
                by_category=_count_by_name(connection, _memory.category, seen),
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
            wanted = _ids_to_extend(connection, ids, at, captured_days)
        for namespace in sorted(wanted):
            with self._database.writing(namespace) as connection:
                level = type_coerce(_memory.sensitivity, Text).label("level")
                due = select(_memory.id, _memory.importance, level).where(_memory.expires_at > at)
                found = list(select_in(connection, due, _memory.id, wanted[namespace]))
                for row in found:
                    mine = update(tables.memory).where(_memory.id == row.id)
                    connection.execute(mine.values(expires_at=_extended_expiry(at, row.importance, captured_days)))
                lines = [(row.id, row.level, {"fields": ["expires_at"]}) for row in found]
                journal.extend(connection, namespace, actor, at, "refresh", lines)


def _select_visible_ids(view: View, order: Order) -> Select[Any]:
    """Select the ids of what a view may see, with its use where the order asks for that."""
    query = select(_memory.id).where(_memory.id.in_(passing(view)))
    return query.outerjoin(tables.usage, tables.usage.c.memory_id == _memory.id) if order is Order.USED else query


def _may_have_moved(began: datetime, order: Order) -> ColumnElement[bool]:
    """Select the memories that may have moved in an order since a listing began."""
    changed = _memory.updated_at > began
    return or_(changed, tables.usage.c.last_accessed_at > began) if order is Order.USED else changed


def _page_after(query: Select[Any], sorting: _Sorting, behind: tuple[Any, ...] | None) -> Select[Any]:
    """Order a query, let it begin after these values of the order, and add each row's own values to it."""
    query = query.add_columns(*(one.label(f"place_{at}") for at, one in enumerate(sorting.columns)))
    if behind is not None:
        place, last = tuple_(*sorting.columns), tuple_(*behind)
        query = query.where(place < last if sorting.down else place > last)
    return query.order_by(*sorting.order)


def _place_text(value: Any) -> str:
    """Write a value by which a list is sorted so that it can be read again exactly."""
    return str((value - _EPOCH) // _MICROSECOND) if isinstance(value, datetime) else repr(value)


def _parse_place(sorting: _Sorting, after: str) -> tuple[datetime, tuple[Any, ...] | None]:
    """Return when a listing began and the values of its last row, None where no row of this order was listed."""
    began, _, place = after.partition(_SEPARATOR)
    texts = place.removeprefix(_CHANGED).split(_SEPARATOR)
    try:
        if place == _CHANGED:
            return _instant(began), None
        return _instant(began), tuple(read(text) for read, text in zip(sorting.read, texts, strict=True))
    except (ValueError, OverflowError):
        raise InvalidInput("after", "Invalid after: Must be where a page of the same order ended") from None


def _ids_to_extend(
    connection: Connection, ids: Sequence[int], at: datetime, captured_days: float
) -> dict[str, list[int]]:
    """Return, by namespace, the memories without `ttl_days` that gain enough by living on from `at`."""
    found: dict[str, list[int]] = defaultdict(list)
    may = _memory.source.in_(OBSERVED) if captured_days else _memory.importance >= IMPORTANT
    step = max(_STEP, timedelta(days=captured_days / 10))
    query = (
        select(_memory.id, _memory.importance, _memory.expires_at, tables.namespace.c.name)
        .join(tables.namespace, tables.namespace.c.id == _memory.namespace_id)
        .where(_memory.ttl_days.is_(None), may, _memory.expires_at > at)
    )
    for row in select_in(connection, query, _memory.id, ids):
        if _extended_expiry(at, row.importance, captured_days) - row.expires_at >= step:
            found[row.name].append(row.id)
    return found


def _extended_expiry(at: datetime, importance: float, captured_days: float) -> datetime:
    """Return when a memory expires that is used at this time: by its importance, or after the days of the captured."""
    return at + timedelta(days=captured_days or importance * IMPORTANCE_DAYS)


def _count_by(connection: Connection, column: ColumnElement[Any], seen: ColumnElement[bool]) -> dict[Any, int]:
    """Count the visible memories by the values of a column."""
    query = select(column, func.count()).select_from(tables.memory).where(seen).group_by(column)
    return {value: int(held) for value, held in connection.execute(query)}


def _count_by_name(connection: Connection, column: ColumnElement[Any], seen: ColumnElement[bool]) -> dict[str, int]:
    """Count the visible memories by the values of a column, without NULL, the commonest value first."""
    counted = _count_by(connection, column, seen)
    named = {str(value): held for value, held in counted.items() if value is not None}
    return dict(sorted(named.items(), key=lambda pair: (-pair[1], pair[0])))
