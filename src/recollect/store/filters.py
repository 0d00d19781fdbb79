"""Filters in SQL: what a view asks of a memory beside being let in, and where a database best begins to look for it.

Labels are always compared as functions of their value. An index on the plain value would tempt SQLite to walk
everything that carries a label once for each memory it checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, literal, or_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import Text

from recollect.domain import EntityType, View
from recollect.store import tables

_memory = tables.metadata.tables["memory"]
_label = tables.metadata.tables["label"]

_EQUAL = ("fact_type", "category", "type", "project", "session_id", "sensitivity")
_FILES = ("file_read", "file_modified")
ENTITIES = tuple(f"entity_{one}" for one in EntityType)


class folded(GenericFunction[str]):  # noqa: N801 - a function of SQL
    """A text without its letter case; SQLite's own `lower` knows the letters of English only."""

    type = Text()
    inherit_cache = True


@compiles(folded)
def _lower(element: folded, compiler: SQLCompiler, **options: Any) -> str:
    return f"lower({compiler.process(element.clauses, **options)})"


@compiles(folded, "sqlite")
def _lowered(element: folded, compiler: SQLCompiler, **options: Any) -> str:
    return f"lowered({compiler.process(element.clauses, **options)})"


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
    tags = [_carries(("tag",), tag) for tag in view.tags]
    files = [] if view.file is None else [_label.c.kind.in_(_FILES) & _is_at(view.file)]
    entities = [] if view.entity is None else [_carries(ENTITIES, view.entity)]
    return [*tags, *entities, *files, *(_carries(("concept",), str(concept)) for concept in view.concepts)]


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
