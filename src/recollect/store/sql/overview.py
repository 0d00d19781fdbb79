"""What the page shows of many memories: pages without an offset, counts, and the journal."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, Select, Text, case, func, select, tuple_, type_coerce

from recollect.domain.enums import Order
from recollect.domain.results import JournalEntry
from recollect.domain.search import View
from recollect.errors import InvalidInput
from recollect.store.sql import mapping, tables
from recollect.store.sql.database import Database
from recollect.store.sql.expressions import any_of, walked
from recollect.store.sql.statements import count
from recollect.store.sql.tables import label, memory
from recollect.store.sql.visibility import (
    APART,
    STANDING,
    namespace_ids,
    of_levels,
    of_lines,
    passing,
    values_of,
    visible,
)

_used = func.coalesce(tables.usage.c.accessed_count, 0) + func.coalesce(tables.usage.c.recalled_count, 0)
space_walked: Final[ColumnElement[int]] = walked(memory.c.namespace_id)
"""What a query asks of that walks a namespace in the index of overviews."""
_COUNTED: Final = ("fact_type", "type", "category", "source", "author", "project")
_FIELDS: Final = (
    memory.c.id,
    _created_at := func.cast(memory.c.created_at, Text),
    *(type_coerce(memory.c[name], Text) for name in _COUNTED),
    memory.c.namespace_id,
    func.substr(_created_at, 1, 7),
)
"""The id and the time of a memory, and what is counted of it, at last its namespace and month.

Texts are read as they are stored, since there are many.
"""
_AT_ONCE: Final = 500
_COMMONEST: Final = 12
_CURSOR: Final = "~"
_KEPT: Final = 128  # counts of views
T = TypeVar("T")


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


@dataclass(frozen=True, slots=True)
class Overview:
    """Shows many memories at once."""

    _database: Database
    _counted: CountedViews

    def page_after(self, view: View, order: Order, after: str | None, limit: int) -> tuple[list[int], str | None]:
        """Return the ids of the page behind the place `after`, in an order, and the place where it ends.

        The last page has none. Raises `InvalidInput` for a place that no page has named.
        """
        sorting = _ORDERS[order]
        behind = None if after is None else _parse_cursor(sorting, after)
        with self._database.reading() as connection:
            found: list[tuple[Any, int]] = []
            if view.labelled:
                labelled = any_of(memory.c.id, mapping.IDS)
                found = _page_of_ids(
                    connection, sorting, labelled, behind, limit + 1, ids=self._ids_with_labels(connection, view)
                )
            else:  # each namespace is walked along its own index
                for number in namespace_ids(connection, view.namespaces).values():
                    here = (space_walked == number) & visible(connection, view)
                    found += _page_of_ids(connection, sorting, here, behind, limit + 1)
        found.sort(reverse=sorting.down)
        ids = [one for _, one in found[:limit]]
        return ids, _cursor_of(*found[limit - 1]) if len(found) > limit else None

    def facets(self, view: View, most: int) -> tuple[int, dict[str, dict[str, int]]]:
        """Count what the view may see and, of the newest `most` of that, how many have each of the commonest values."""
        with self._database.reading() as connection:
            return self._counted.get(connection, "facets", view, lambda: self._count_facets(connection, view, most))

    def _count_facets(self, connection: Connection, view: View, most: int) -> tuple[int, dict[str, dict[str, int]]]:
        """Return how many memories the view may see and, of the newest `most`, how many have each common value."""
        spaces = namespace_ids(connection, view.namespaces)
        if view.labelled:
            every = sorted(self._ids_with_labels(connection, view), reverse=True)
            total, these = len(every), any_of(memory.c.id, mapping.IDS)
            rows: Iterator[Row[Any]] = iter(connection.execute(select(*_FIELDS).where(these), {"ids": every[:most]}))
        else:
            seen = visible(connection, view)
            each = [_newest_rows(connection, number, seen, most) for number in spaces.values()]
            total, rows = 0, islice(merge(*each, key=itemgetter(1), reverse=True), most)
        ids, (*counted, held, months) = _tally_rows(rows)
        if not view.labelled:
            whole = len(ids) < most
            total = len(ids) if whole else count(connection, memory, seen & space_walked.in_(spaces.values()))
        counts = dict(zip(_COUNTED, counted, strict=True))
        counts["scope"] = Counter({str(mapping.scope_of(name)): held[number] for name, number in spaces.items()})
        counts["month"] = months
        tagged = select(label.c.value, func.count()).where(label.c.kind == "tags").group_by(label.c.value)
        tags = connection.execute(tagged.where(any_of(label.c.memory_id, mapping.IDS)), {"ids": ids})
        counts["tags"] = Counter(dict(map(tuple, tags)))
        return total, {name: _commonest_values(found) for name, found in counts.items()}

    def states(self, view: View) -> dict[str, int]:
        """Count the memories of the view's namespaces and levels that are out of sight, by reason."""
        conditions = {
            "hidden": memory.c.deleted_at.is_not(None),
            "replaced": memory.c.superseded_by.is_not(None),
            "merged": memory.c.merged_into.is_not(None),
            "expired": memory.c.expires_at <= view.now,
        }
        with self._database.reading() as connection:
            spaces = namespace_ids(connection, view.namespaces).values()
            here = space_walked.in_(spaces) & of_levels(memory.c.sensitivity, view.sensitivities)
            found = select(*(func.count(case((one, 1))) for one in conditions.values())).where(here)
            return self._counted.get(
                connection,
                "states",
                view,
                lambda: dict(zip(conditions, map(int, connection.execute(found).one()), strict=True)),
            )

    def _ids_with_labels(self, connection: Connection, view: View) -> list[int]:
        """Return the ids of the memories that a view may see, where the view asks for labels."""
        query, values = passing(view), values_of(connection, view)
        return self._counted.get(
            connection, "labelled", view, lambda: list(connection.execute(query, values).scalars())
        )

    def replaced_by(self, memory_id: int, limit: int) -> list[int]:
        """Return the ids of what a memory replaced, the newest first; who may see those is not looked at."""
        query = select(memory.c.id).where(memory.c.superseded_by == memory_id).order_by(memory.c.id.desc())
        with self._database.reading() as connection:
            return list(connection.execute(query.limit(limit)).scalars())

    def told_apart(self, ids: Sequence[int]) -> set[tuple[int, int]]:
        """Return which pairs of these memories somebody found to be no duplicates, the lower id first."""
        query = select(label.c.memory_id, label.c.value).where(label.c.kind == APART, label.c.memory_id.in_(ids))
        with self._database.reading() as connection:
            found = [(number, int(other)) for number, other in connection.execute(query)]
        return {(min(pair), max(pair)) for pair in found}

    def pinned(self, view: View, limit: int) -> list[int]:
        """Return the ids of what somebody pinned, as far as the view may see it."""
        mine = (label.c.kind == STANDING) & (label.c.value == "pinned")
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

    def connections(self) -> tuple[int, int]:
        """Return how many connections to the database are in use, and how many may be at once."""
        return self._database.connections()

    def sizes(self) -> dict[str, int]:
        """Return how large what is stored is, in bytes: the files beside a database in a file, else its tables."""
        if (file := self._database.file) is not None:
            return {one.name: size for one in file.parent.iterdir() if (size := _bytes_of(one))}
        with self._database.reading() as connection:
            return self._database.dialect.sizes(connection)

    def newest_line(self, namespaces: Sequence[str]) -> int:
        """Return the number of the newest line of the journal about these namespaces, 0 without any."""
        with self._database.reading() as connection:
            return max((connection.execute(_newest_line(one)).scalar() or 0 for one in namespaces), default=0)


def _newest_rows(connection: Connection, number: int, seen: ColumnElement[bool], most: int) -> Iterator[Row[Any]]:
    """Return the rows to count of the newest memories of one namespace, read along its index."""
    query = select(*_FIELDS).where(space_walked == number, seen)
    return iter(connection.execute(query.order_by(memory.c.created_at.desc()).limit(most)))


def _tally_rows(rows: Iterator[Row[Any]]) -> tuple[list[int], list[Counter[Any]]]:
    """Return the ids of rows of `_FIELDS`, and for each column after the time how often each value occurs.

    They are read some at a time: of very many at once, the garbage collector would look at all that the process holds.
    """
    ids: list[int] = []
    counts: list[Counter[Any]] = [Counter() for _ in _FIELDS[2:]]
    while some := list(islice(rows, _AT_ONCE)):
        numbers, _, *columns = zip(*some, strict=True)
        ids += numbers
        for found, values in zip(counts, columns, strict=True):
            found.update(values)
    for found in counts:
        del found[None]
    return ids, counts


class CountedViews:
    """What was counted for a view, for as long as nothing is written in its namespaces; for an hour at most."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, connection: Connection, what: str, view: View, ask: Callable[[], T]) -> T:
        """Return the count kept under `what` for the view; where nothing is kept, call `ask` and keep its answer."""
        newest = tuple(connection.execute(_newest_line(one)).scalar() or 0 for one in view.namespaces)
        key = (what, newest, view.model_copy(update={"now": view.now.replace(minute=0, second=0, microsecond=0)}))
        if key not in self._known:
            self._known[key] = ask()
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        found: T = self._known[key]
        return found


def _bytes_of(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder; 0 for what goes at this moment."""
    try:
        files = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
        return sum(one.stat().st_size for one in files)
    except OSError:
        return 0


def _newest_line(namespace: str) -> Select[int]:
    """Return the query for the number of a namespace's newest line of the journal."""
    return select(func.max(tables.journal.c.id)).where(tables.journal.c.namespace == namespace)


def _page_of_ids(
    connection: Connection,
    sorting: _Sorting,
    here: ColumnElement[bool],
    behind: tuple[Any, int] | None,
    limit: int,
    **given: Any,
) -> list[tuple[Any, int]]:
    """Return the next memories that meet a condition: value and id."""
    query = select(sorting.column.label("value"), memory.c.id)
    if sorting.column is _used:
        query = query.outerjoin_from(memory, tables.usage, tables.usage.c.memory_id == memory.c.id)
    query = query.where(here)
    if behind is not None:
        place, last = tuple_(sorting.column, memory.c.id), tuple_(*behind)
        query = query.where(place < last if sorting.down else place > last)
    order = [one.desc() if sorting.down else one for one in (sorting.column, memory.c.id)]
    found = connection.execute(query.order_by(*order).limit(limit), given)
    return [(value, number) for value, number in found]


def _commonest_values(found: Counter[str]) -> dict[str, int]:
    """Return the most frequent values, each with its count, the most frequent first."""
    held = [(name, many) for name, many in found.items() if many]
    return dict(sorted(held, key=lambda pair: (-pair[1], pair[0]))[:_COMMONEST])


def _cursor_of(value: Any, number: int) -> str:
    """Return where the next page begins: behind this value, and this memory among those with the same value."""
    text = value.isoformat() if isinstance(value, datetime) else repr(value)
    return f"{text}{_CURSOR}{number}"


def _parse_cursor(sorting: _Sorting, cursor: str) -> tuple[Any, int]:
    """Return the value and id that a cursor names; raise `InvalidInput` for one of another order."""
    value, _, number = cursor.rpartition(_CURSOR)
    try:
        return sorting.read(value), int(number)
    except ValueError:
        raise InvalidInput("after", "Invalid after: Must be where a page of the same order ended") from None
