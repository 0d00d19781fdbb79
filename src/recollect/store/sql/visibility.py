"""Which rows a view may see: the one home of scope, sensitivity, expiry and deletion for reads and writes alike.

`of_levels` decides who may know of a row at all, `visible` adds what a read shows of that. A writer finds whatever its
levels let in, in any state, since what is deleted may be restored; all else does not exist for it.

Its filters compare labels as functions of their value. An index on the plain value would tempt SQLite to walk
everything that carries a label once for each memory it checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    CursorResult,
    Select,
    and_,
    bindparam,
    exists,
    func,
    literal,
    or_,
    select,
)

from recollect.domain.enums import (
    OF_SESSION,
    RULES,
    EntityType,
    ObservationType,
    Source,
    Standing,
    owner_of,
    sensitivity_of,
)
from recollect.domain.origin import APPROVED, TOLD
from recollect.domain.search import View
from recollect.store.sql.column_types import AWAY, UtcDateTime
from recollect.store.sql.dialect import WRITE
from recollect.store.sql.expressions import Listed, any_of, folded, unindexed
from recollect.store.sql.statements import keep, once
from recollect.store.sql.tables import held, journal, label, memory, namespace

_EQUAL = ("fact_type", "category", "type", "project", "session_id", "author", "source")
_FILES = ("files_read", "files_modified")
_WHOLE = re.compile(r"/|~/|[A-Za-z]:/")  # a path from the root, the home folder or a drive
_summary = memory.alias("summary")
STANDING = "standing"
"""The kind of a label that says what somebody decided about a memory."""
APART = "apart"
"""The kind of a label that names a memory of which this one is no duplicate, as somebody decided."""
ENTITIES = tuple(f"entity_{one}" for one in EntityType)

HERE, LEVELS = bindparam("here", type_=Listed()), bindparam("levels", type_=Listed())
"""In a statement that is built once: the numbers of the view's namespaces, and its levels of sensitivity."""
_NUMBERS: Final = "namespaces"
"""What a connection knows: the numbers of namespaces by their names."""
_MINE = label.c.memory_id == memory.c.id
_NOW = bindparam("now", type_=UtcDateTime)
_NAMESPACES = select(namespace.c.name, namespace.c.id).where(
    any_of(namespace.c.name, bindparam("names", type_=Listed()))
)
_SIZE = select(func.sum(held.c.memories)).where(any_of(held.c.namespace_id, HERE), any_of(held.c.sensitivity, LEVELS))
SUMS_UP_SESSION = (
    memory.c.type.in_(sorted(OF_SESSION))
    & any_of(unindexed(memory.c.sensitivity), LEVELS)
    & memory.c.deleted_at.is_(None)
    & memory.c.merged_into.is_(None)
)
"""Selects what sums up a session among all that the levels of a view let in."""
_OF_SESSION = select(memory.c.id).where(any_of(memory.c.namespace_id, HERE), SUMS_UP_SESSION)


def namespace_ids(connection: Connection, names: Sequence[str]) -> dict[str, int]:
    """Return the ids of those namespaces that exist; a namespace never goes, so each connection remembers it.

    A writer's connection does not: what it has made may be rolled back.
    """
    writes = connection.get_execution_options().get(WRITE, False)
    known: dict[str, int] = {} if writes else connection.info.setdefault(_NUMBERS, {})
    if not known.keys() >= frozenset(names):
        found = once(connection, ("namespaces", tuple(names)), lambda: _ids_by_name(connection, names))
        known |= found
    return {name: known[name] for name in names if name in known}


def keep_namespaces(connection: Connection, names: Sequence[str], found: Mapping[str, int]) -> None:
    """Let `namespace_ids` return what another statement of a reader found of these names."""
    connection.info.setdefault(_NUMBERS, {}).update(found)
    keep(connection, ("namespaces", tuple(names)), found)


def _ids_by_name(connection: Connection, names: Sequence[str]) -> dict[str, int]:
    """Return the numbers of the namespaces that exist, by name."""
    return dict(map(tuple, connection.execute(_NAMESPACES, {"names": names})))


def kept_as(kind: str, view: View) -> tuple[object, ...]:
    """Return the key by which `once` keeps facts of one kind about a view's namespaces and levels."""
    return (kind, view.namespaces, view.sensitivities)


def size(connection: Connection, view: View) -> int:
    """Return how many memories of its levels the view's namespaces hold, but for what sums up a session."""
    key = kept_as("size", view)
    every = once(connection, key, lambda: int(connection.execute(_SIZE, values_of(connection, view)).scalar() or 0))
    return every - len(of_session(connection, view))


def of_session(connection: Connection, view: View) -> list[int]:
    """Return the ids of what sums up a session in the view's namespaces, which no statistic of words counts."""
    key = kept_as("of_session", view)
    return once(connection, key, lambda: list(connection.execute(_OF_SESSION, values_of(connection, view)).scalars()))


def shown() -> ColumnElement[bool]:
    """Select the memories that the indexes hold: neither softly deleted nor merged into another memory."""
    return and_(memory.c.deleted_at.is_(None), memory.c.merged_into.is_(None))


def unexpired(now: Any) -> ColumnElement[bool]:
    """Select the memories that have not expired, which are nearly all: no look-up should begin with it."""
    return or_(memory.c.expires_at.is_(None), unindexed(memory.c.expires_at) > now)


def alive(now: Any) -> ColumnElement[bool]:
    """Select the memories that are neither deleted, nor merged into another, nor expired."""
    return and_(shown(), unexpired(now))


def condensed() -> ColumnElement[bool]:
    """Select the memories that only a summary has replaced."""
    summary = exists().where(_summary.c.id == memory.c.superseded_by)
    return summary.where(_summary.c.type == str(ObservationType.COMPRESSED_SUMMARY)).correlate(memory)


def of_levels(column: ColumnElement[str], levels: Iterable[str], *, away: bool = False) -> ColumnElement[bool]:
    """Select rows of these levels as they are stored, any other value is denied; also what is `away` from them."""
    prefixes = ("", *AWAY) if away else ("",)
    return column.in_([prefix + level for level in levels for prefix in prefixes])


def of_lines(levels: Iterable[str]) -> ColumnElement[bool]:
    """Select lines of the journal about these levels; one from before levels had owners is for who wrote it."""
    column, older = journal.c.sensitivity, [(sensitivity_of(one), owner_of(one)) for one in levels if owner_of(one)]
    return or_(of_levels(column, levels), *(and_(column == name, journal.c.actor == user) for name, user in older))


def visible(connection: Connection, view: View) -> ColumnElement[bool]:
    """Select what `view` may see among memories looked up by id; a query that walks a namespace adds `inside`.

    A database may take the namespace for more selective than a list of ids and walk all of it at every look-up, so
    the condition is kept from its index.
    """
    numbers = namespace_ids(connection, view.namespaces).values()
    return _visible_condition(view, unindexed(memory.c.namespace_id).in_(numbers), view.now)


def _visible_condition(view: View, here: ColumnElement[bool], now: Any) -> ColumnElement[bool]:
    """Return the condition on a memory that `view` may see it, in the namespaces `here` at the time `now`."""
    replaced = memory.c.superseded_by
    current = (
        [] if view.superseded else [or_(replaced.is_(None), condensed()) if view.condensed else replaced.is_(None)]
    )
    there = and_(memory.c.deleted_at.is_(None), unexpired(now)) if view.merged else alive(now)
    if view.hidden:
        there = and_(memory.c.deleted_at.is_not(None), unexpired(now))
    return and_(here, of_levels(memory.c.sensitivity, view.sensitivities), there, *current, *_filter_conditions(view))


def run_visible(connection: Connection, query: Select[Any], view: View, **values: Any) -> CursorResult[Any]:
    """Run `query` with `values` for what of it `view` may see.

    A `query` that is built once, when its module is read, is built and compiled once for all views of one shape:
    that costs more than running it.
    """
    return connection.execute(_select_visible(query, view.shape), values | values_of(connection, view))


def values_of(connection: Connection, view: View) -> dict[str, Any]:
    """Return the values of a view's parameters."""
    here = namespace_ids(connection, view.namespaces).values()
    return {"here": here, "levels": list(view.sensitivities), "now": view.now}


@lru_cache(maxsize=256)
def _select_visible(query: Select[Any], shape: View) -> Select[Any]:
    """Return a query for the rows of some namespaces that a view of this shape may see."""
    return query.where(_visible_condition(shape, any_of(unindexed(memory.c.namespace_id), HERE), _NOW))


def inside(
    connection: Connection, namespaces: Iterable[str], column: ColumnElement[int] = memory.c.namespace_id
) -> ColumnElement[bool]:
    """Let a query walk these namespaces through an index of `column`; one of memories still needs `visible`."""
    return column.in_(namespace_ids(connection, list(namespaces)).values())


def passing(view: View) -> Select[int]:
    """Select the id of everything that `view` may see, for the values of `values_of`.

    The look-up begins with the rarest label that it asks for.
    """
    return _select_passing_ids(view.shape)


@lru_cache(maxsize=64)
def _select_passing_ids(shape: View) -> Select[int]:
    """Select the id of each memory that a view of this shape may see, beginning with its rarest label."""
    rarest = next(iter(_label_conditions(shape)), None)
    if rarest is None:
        return _select_visible(select(memory.c.id).where(any_of(memory.c.namespace_id, HERE)), shape)
    labelled = select(memory.c.id).join(label, label.c.memory_id == memory.c.id)
    return _select_visible(labelled.where(rarest).distinct(), shape)


def _filter_conditions(view: View) -> list[ColumnElement[bool]]:
    """Return a condition on a row of `memory` for each filter of the view."""
    conditions = [memory.c[name] == str(value) for name in _EQUAL if (value := getattr(view, name)) is not None]
    if view.key is not None:
        below = func.substr(memory.c.key, 1, len(view.key)) == view.key
        conditions.append(below if view.key.endswith("/") else memory.c.key == view.key)
    if view.sensitivity is not None:
        conditions.append(
            of_levels(
                memory.c.sensitivity, (one for one in view.sensitivities if sensitivity_of(one) == view.sensitivity)
            )
        )
    if view.told:  # of what has no stamp its way in and its trust tell
        conditions.append(or_(memory.c.said_by.is_(None), memory.c.said_by.in_(TOLD)))
    if view.speaking:
        told = or_(memory.c.said_by.is_(None), memory.c.said_by.in_(TOLD))
        noted = (memory.c.source == Source.HOOK) | ((memory.c.source == Source.COMPRESSION) & ~told)
        conditions.append(or_(~noted, memory.c.review == APPROVED, memory.c.fact_type.in_(RULES) & told))
    happened_at = func.coalesce(memory.c.observed_at, memory.c.created_at)
    if view.since is not None:
        conditions.append(happened_at >= view.since)
    if view.until is not None:
        conditions.append(happened_at <= view.until)
    conditions += [exists().where(_MINE, one).correlate(memory) for one in _label_conditions(view)]
    several = {"tags": view.tags, "concepts": tuple(map(str, view.concepts))}
    return [*conditions, *(_has_every_label(kind, names) for kind, names in several.items() if len(names) > 1)]


def _label_conditions(view: View) -> list[ColumnElement[bool]]:
    """Return a condition on `label` for each kind of label asked for; the one that fewest memories meet first.

    Of tags and of concepts it is about the first one.
    """
    pinned = [_has_label((STANDING,), Standing.PINNED)] if view.pinned else []
    tags = [_has_label(("tags",), tag) for tag in view.tags[:1]]
    files = [] if view.file is None else [label.c.kind.in_(_FILES) & _is_at(view.file)]
    entities = [] if view.entity is None else [_has_label(ENTITIES, view.entity)]
    return [
        *pinned,
        *tags,
        *entities,
        *files,
        *(_has_label(("concepts",), str(concept)) for concept in view.concepts[:1]),
    ]


def _has_label(kinds: Sequence[str], name: str) -> ColumnElement[bool]:
    """Select labels of these kinds with this name, letter case aside."""
    fold = func.lower if name.isascii() else folded
    return and_(label.c.kind.in_(kinds), fold(label.c.value) == fold(literal(name)))


def _has_every_label(kind: str, names: Sequence[str]) -> ColumnElement[bool]:
    """Select memories with all these labels of a kind, in one look at their labels, however many are asked for."""
    wanted = dict.fromkeys(name.lower() for name in names)
    fold = func.lower if all(map(str.isascii, wanted)) else folded
    among = fold(label.c.value).in_([fold(literal(name)) for name in wanted])
    found = select(func.count(func.distinct(fold(label.c.value)))).where(_MINE, label.c.kind == kind, among)
    return found.correlate(memory).scalar_subquery() == len(wanted)


def _is_at(path: str) -> ColumnElement[bool]:
    """Select labels that are `path`, lie below it, or end in it where a name begins; most fail at its last name.

    A whole path also selects what is stored as its end.
    """
    stored = func.replace(label.c.value, "\\", "/")
    folder = path if path.endswith("/") else f"{path}/"
    below = [func.substr(stored, 1, len(start)) == start for start in (folder, f"./{folder}")]
    tail = f"/{path}"
    ends = func.substr(stored, func.length(stored) - len(tail) + 1) == tail
    within = [stored.in_(_ends_of(path))] if _WHOLE.match(path) else []
    return label.c.value.contains(path.rpartition("/")[2], autoescape=True) & or_(stored == path, *below, ends, *within)


def _ends_of(path: str) -> list[str]:
    """Return what a path is called from each of its folders: the file alone, with its folder, and so on."""
    names = path.split("/")
    return [f"{start}{'/'.join(names[at:])}" for at in range(1, len(names)) for start in ("", "./")]
