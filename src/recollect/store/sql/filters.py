"""Filters in SQL: what a view asks of a memory beside being let in, and where a database best begins to look for it.

Labels are always compared as functions of their value. An index on the plain value would tempt SQLite to walk
everything that carries a label once for each memory it checks.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, exists, func, literal, or_

from recollect.domain.enums import EntityType
from recollect.domain.search import View
from recollect.store.sql.dialect import folded
from recollect.store.sql.tables import label as _label
from recollect.store.sql.tables import memory as _memory

_EQUAL = ("fact_type", "category", "type", "project", "session_id", "sensitivity")
_FILES = ("files_read", "files_modified")
ENTITIES = tuple(f"entity_{one}" for one in EntityType)


def asked(view: View) -> list[ColumnElement[bool]]:
    """Return a condition on a row of `memory` for each filter of the view."""
    conditions = [_memory.c[name] == str(value) for name in _EQUAL if (value := getattr(view, name)) is not None]
    happened_at = func.coalesce(_memory.c.observed_at, _memory.c.created_at)
    if view.since is not None:
        conditions.append(happened_at >= view.since)
    if view.until is not None:
        conditions.append(happened_at <= view.until)
    mine = _label.c.memory_id == _memory.c.id
    return [*conditions, *(exists().where(mine, one).correlate(_memory) for one in _labelled(view))]


def rarest(view: View) -> ColumnElement[bool] | None:
    """Return the condition on `label` that the fewest memories are likely to meet, where the view has one."""
    return next(iter(_labelled(view)), None)


def _labelled(view: View) -> list[ColumnElement[bool]]:
    tags = [_carries(("tags",), tag) for tag in view.tags]
    files = [] if view.file is None else [_label.c.kind.in_(_FILES) & _is_at(view.file)]
    entities = [] if view.entity is None else [_carries(ENTITIES, view.entity)]
    return [*tags, *entities, *files, *(_carries(("concepts",), str(concept)) for concept in view.concepts)]


def _carries(kinds: Sequence[str], name: str) -> ColumnElement[bool]:
    fold = func.lower if name.isascii() else folded
    return and_(_label.c.kind.in_(kinds), fold(_label.c.value) == fold(literal(name)))


def _is_at(path: str) -> ColumnElement[bool]:
    """Select labels that are `path`, lie below it, or end in it where a name begins; most fail at its last name."""
    stored = func.replace(_label.c.value, "\\", "/")
    folder = path if path.endswith("/") else f"{path}/"
    below = [func.substr(stored, 1, len(start)) == start for start in (folder, f"./{folder}")]
    tail = f"/{path}"
    ends = func.substr(stored, func.length(stored) - len(tail) + 1) == tail
    return _label.c.value.contains(path.rpartition("/")[2], autoescape=True) & or_(stored == path, *below, ends)
