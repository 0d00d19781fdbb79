"""What the page shows of many memories: pages without an offset, counts, the journal, and what hangs together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Text, func, select, tuple_

from recollect.domain.enums import Order
from recollect.domain.results import JournalEntry
from recollect.domain.search import View
from recollect.errors import InvalidInput
from recollect.store.sql import mapping, tables
from recollect.store.sql.database import Database
from recollect.store.sql.tables import label, memory
from recollect.store.sql.visibility import (
    ENTITIES,
    inside,
    namespace_ids,
    of_lines,
    passing,
    values_of,
    visible,
)

_used = func.coalesce(tables.usage.c.accessed_count, 0) + func.coalesce(tables.usage.c.recalled_count, 0)
_COUNTED: Final = ("fact_type", "type", "category", "source", "author", "project")
_COMMONEST: Final = 12
_CURSOR: Final = "~"


class _Sorting(NamedTuple):
    """A column by which memories are sorted, which way, and how its value is read from a cursor."""

    column: ColumnElement[Any]
    down: bool
    read: Callable[[str], Any]


_ORDERS: Final = {
    Order.NEWEST: _Sorting(memory.c.created_at, True, datetime.fromisoformat),
    Order.OLDEST: _Sorting(memory.c.created_at, False, datetime.fromisoformat),
    Order.UPDATED: _Sorting(memory.c.updated_at, True, datetime.fromisoformat),
    Order.IMPORTANT: _Sorting(memory.c.importance, True, float),
    Order.USED: _Sorting(_used, True, int),
}


class SqlOverview:
    """The part of `Records` that shows many memories at once."""

    _database: Database

    def page_after(self, view: View, order: Order, after: str | None, limit: int) -> tuple[list[int], str | None]:
        """Return the ids of the page behind the place `after`, in an order, and the place where it ends.

        The last page has none. Raises `InvalidInput` for a place that no page has named.
        """
        sorting = _ORDERS[order]
        behind = None if after is None else _place(sorting, after)
        with self._database.reading() as connection:
            found: list[tuple[Any, int]] = []
            for space in namespace_ids(connection, view.namespaces).values():
                found += _page(connection, view, sorting, space, behind, limit + 1)
        found.sort(reverse=sorting.down)
        ids = [one for _, one in found[:limit]]
        return ids, _cursor(*found[limit - 1]) if len(found) > limit else None

    def facets(self, view: View) -> dict[str, dict[str, int]]:
        """Count what the view may see by each of several fields, by scope, by month and by tag: the commonest."""
        with self._database.reading() as connection:
            here = _seen(connection, view)
            columns = [memory.c[name] for name in _COUNTED]
            month = func.substr(func.cast(memory.c.created_at, Text), 1, 7)
            query = select(*columns, memory.c.namespace_id, month.label("month"), func.count().label("held"))
            rows = connection.execute(query.where(here).group_by(*columns, memory.c.namespace_id, month)).all()
            spaces = {number: name for name, number in namespace_ids(connection, view.namespaces).items()}
            tags = _tags(connection, view)
        counts: dict[str, dict[str, int]] = {name: {} for name in (*_COUNTED, "scope", "month")}
        for row in rows:
            values = row._mapping
            named = {name: values[name] for name in _COUNTED} | {"month": row.month}
            named["scope"] = mapping.scope_of(spaces[row.namespace_id])
            for name, value in named.items():
                if value is not None:
                    counts[name][str(value)] = counts[name].get(str(value), 0) + row.held
        return {name: _commonest(found) for name, found in (counts | {"tags": tags}).items()}

    def replaced_by(self, memory_id: int, limit: int) -> list[int]:
        """Return the ids of what a memory replaced, the newest first; who may see those is not looked at."""
        query = select(memory.c.id).where(memory.c.superseded_by == memory_id).order_by(memory.c.id.desc())
        with self._database.reading() as connection:
            return list(connection.execute(query.limit(limit)).scalars())

    def pinned(self, view: View, limit: int) -> list[int]:
        """Return the ids of what somebody pinned, as far as the view may see it."""
        mine = (label.c.kind == mapping.STANDING) & (label.c.value == "pinned")
        query = select(memory.c.id).join(label, label.c.memory_id == memory.c.id).where(mine)
        with self._database.reading() as connection:
            seen = visible(connection, view)
            return list(connection.execute(query.where(seen).order_by(memory.c.id.desc()).limit(limit)).scalars())

    def journal_before(
        self, namespaces: Sequence[str], levels: Sequence[str], before: int | None, limit: int, **equal: str | None
    ) -> list[JournalEntry]:
        """Return the lines of these namespaces and levels, the newest first, with numbers below `before`."""
        journal = tables.journal
        wanted = journal.c.namespace.in_(namespaces) & of_lines(levels)
        wanted = wanted if before is None else wanted & (journal.c.id < before)
        for name, value in equal.items():
            wanted = wanted if value is None else wanted & (journal.c[name] == value)
        query = select(*(journal.c[name] for name in mapping.LINE)).where(wanted)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(journal.c.id.desc()).limit(limit))
            return [JournalEntry(**row._mapping) for row in rows]

    def newest_line(self, namespaces: Sequence[str]) -> int:
        """Return the number of the newest line of the journal about these namespaces, 0 without any."""
        journal = tables.journal.c
        with self._database.reading() as connection:
            each = (select(func.max(journal.id)).where(journal.namespace == one) for one in namespaces)
            return max((connection.execute(one).scalar() or 0 for one in each), default=0)

    def sharing_entities(self, names: Sequence[str], view: View, limit: int) -> list[tuple[str, int]]:
        """Return which memories that the view may see name these entities: name and id, the newest memories first."""
        query = select(label.c.value, memory.c.id).join(memory, memory.c.id == label.c.memory_id)
        query = query.where(label.c.kind.in_(ENTITIES), label.c.value.in_(list(names)))
        with self._database.reading() as connection:
            query = query.where(visible(connection, view)).order_by(memory.c.id.desc()).limit(limit)
            return [(name, number) for name, number in connection.execute(query)]


def _page(
    connection: Connection, view: View, sorting: _Sorting, space: int, behind: tuple[Any, int] | None, limit: int
) -> list[tuple[Any, int]]:
    """Return the next memories of one namespace: value and id. Each namespace is walked along its own index."""
    query = select(sorting.column.label("value"), memory.c.id).where(memory.c.namespace_id == space)
    if sorting.column is _used:
        query = query.outerjoin_from(memory, tables.usage, tables.usage.c.memory_id == memory.c.id)
    query = query.where(memory.c.id.in_(passing(view))) if _labelled(view) else query.where(visible(connection, view))
    if behind is not None:
        place, last = tuple_(sorting.column, memory.c.id), tuple_(*behind)
        query = query.where(place < last if sorting.down else place > last)
    order = [one.desc() if sorting.down else one for one in (sorting.column, memory.c.id)]
    found = connection.execute(query.order_by(*order).limit(limit), values_of(connection, view))
    return [(value, number) for value, number in found]


def _labelled(view: View) -> bool:
    return bool(view.tags or view.concepts or view.entity or view.file)


def _seen(connection: Connection, view: View) -> ColumnElement[bool]:
    """Select what the view may see, for a query that walks its namespaces."""
    return visible(connection, view) & inside(connection, view.namespaces)


def _tags(connection: Connection, view: View) -> dict[str, int]:
    query = select(label.c.value, func.count()).join(memory, memory.c.id == label.c.memory_id)
    query = query.where(label.c.kind == "tags", _seen(connection, view)).group_by(label.c.value)
    return dict(map(tuple, connection.execute(query)))


def _commonest(found: dict[str, int]) -> dict[str, int]:
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:_COMMONEST])


def _cursor(value: Any, number: int) -> str:
    text = value.isoformat() if isinstance(value, datetime) else repr(value)
    return f"{text}{_CURSOR}{number}"


def _place(sorting: _Sorting, cursor: str) -> tuple[Any, int]:
    value, _, number = cursor.rpartition(_CURSOR)
    try:
        return sorting.read(value), int(number)
    except ValueError:
        raise InvalidInput("after", "Invalid after: Must be where a page of the same order ended") from None
