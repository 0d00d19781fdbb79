"""Between rows and nouns: a field of a noun is the column, the label or the count of the same name.

So a new field of a memory is a field of `Draft` and of `Memory` and, unless it holds several values, a column in
`tables.py`; nothing here names it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from typing import Any

from pydantic import BaseModel
from sqlalchemy import Column, ColumnElement, Connection, Row, Select, Table, bindparam, case, func, select

from recollect.domain.enums import EntityType, Scope, Standing
from recollect.domain.requests import MemoryFields
from recollect.domain.results import Entity, Fact, JournalEntry, Memory
from recollect.store.entries import Entry
from recollect.store.sql.expressions import Listed, any_of, json_rows
from recollect.store.sql.tables import fact, journal, label, memory, namespace, usage
from recollect.store.sql.visibility import STANDING, of_levels
from recollect.text.text_parts import TextParts

LISTS = tuple(name for name, field in MemoryFields.model_fields.items() if field.default == ())
"""The fields of a draft that hold several values: each is a kind of label."""
ENTITY = "entity_"
"""The beginning of the kind of a label that is an entity; the type of the entity follows."""

IDS = bindparam("ids", type_=Listed())
"""The ids of memories as a parameter of a statement that is built once."""

_SCOPES = {"user": Scope.PERSONAL, "project": Scope.PROJECT, "team": Scope.TEAM}

_USAGE = [
    func.coalesce(usage.c.accessed_count, 0).label("accessed_count"),
    func.coalesce(usage.c.recalled_count, 0).label("recalled_count"),
]
_NAMESPACE = namespace.c.name.label("namespace")
_stating = memory.alias("stating")
_OWN = fact.c.said_by.is_not(None)
_ORIGIN = [case((_OWN, fact.c[name]), else_=_stating.c[name]).label(name) for name in ("said_by", "came_from")]
_LABELS = (
    select(json_rows(label.c.position, label.c.kind, label.c.value))
    .where(label.c.memory_id == memory.c.id)
    .scalar_subquery()
    .label("labels")
)
_LINKS = ("superseded_by", "merged_into")
_OF_DRAFT = tuple(name for name in MemoryFields.model_fields if name in memory.c)


def _field_names(noun: type[Any]) -> tuple[str, ...]:
    return tuple(noun.model_fields) if issubclass(noun, BaseModel) else tuple(one.name for one in fields(noun))


def _noun_columns(noun: type[Any], table: Table) -> tuple[Column[Any], ...]:
    """Return the columns of `table` that hold fields of a noun."""
    return tuple(table.c[name] for name in _field_names(noun) if name in table.c)


_MEMORY = [*_noun_columns(Memory, memory), *_USAGE, usage.c.last_accessed_at, _NAMESPACE, _LABELS]
MEMORIES = (
    select(*_MEMORY)
    .join(namespace, namespace.c.id == memory.c.namespace_id)
    .outerjoin(usage, usage.c.memory_id == memory.c.id)
)
"""All memories with their usage and labels, for whoever adds conditions."""
FACTS = (
    select(
        *(one for one in _noun_columns(Fact, fact) if one.name not in ("said_by", "came_from")), *_ORIGIN, _NAMESPACE
    )
    .join(namespace, namespace.c.id == fact.c.namespace_id)
    .outerjoin(_stating, _stating.c.id == fact.c.memory_id)
)
"""All facts, for whoever adds conditions, order and limits; one from before facts had an origin has its memory's."""
LINE = tuple(_field_names(JournalEntry))
"""The columns of a line of the journal that are shown."""
_LINE = _noun_columns(JournalEntry, journal)
_OF_ENTRY = tuple(name for name in _field_names(Entry) if name in memory.c)
_OF_PARTS = tuple(name for name in _field_names(TextParts) if name in memory.c)


def load(connection: Connection, condition: ColumnElement[bool], levels: Iterable[str]) -> list[Memory]:
    """Read every memory that meets `condition`, with its labels and usage."""
    return memories(connection, connection.execute(MEMORIES.where(condition)), levels)


def memories(connection: Connection, found: Iterable[Row[Any]], levels: Iterable[str]) -> list[Memory]:
    """Make memories of rows of `MEMORIES`.

    Where one gave way to a memory of none of these levels, it says 0 in the place of that one's id.
    """
    rows = [dict(row._mapping) for row in found]
    lists = [_list_fields(row.pop("labels")) for row in rows]
    known = _ids_of_levels(connection, {row[name] for row in rows for name in _LINKS} - {None}, levels)
    links = ({name: known.get(row[name], 0) for name in _LINKS if row[name] is not None} for row in rows)
    more = ({"scope": scope_of(row["namespace"])} | own for row, own in zip(rows, lists, strict=True))
    return [Memory(**{**row, **one, **two}) for row, one, two in zip(rows, more, links, strict=True)]


def facts(connection: Connection, query: Select[Any]) -> list[Fact]:
    """Read the facts that a query made of `FACTS` selects."""
    return [Fact(**row._mapping, scope=scope_of(row.namespace)) for row in connection.execute(query)]


def lines(connection: Connection, condition: ColumnElement[bool], limit: int | None = None) -> list[JournalEntry]:
    """Read the journal's lines that meet `condition`, in their order."""
    query = select(*_LINE).where(condition).order_by(journal.c.id).limit(limit)
    return [JournalEntry(**row._mapping) for row in connection.execute(query)]


def columns_of(entry: Entry, given: Collection[str] | None = None) -> dict[str, Any]:
    """Return the columns of a memory that an entry fills; with `given`, of the draft's fields only those."""
    draft = entry.cleared.value
    values = {name: getattr(draft, name) for name in _OF_DRAFT if given is None or name in given}
    values |= {name: one for name in _OF_ENTRY if (one := getattr(entry, name)) is not None or memory.c[name].nullable}
    values |= {name: getattr(entry.parts, name) for name in _OF_PARTS}
    values |= {"content": draft.content, "updated_at": entry.at}
    return {name: "" if one is None and not memory.c[name].nullable else one for name, one in values.items()}


def _ids_of_levels(connection: Connection, ids: Collection[int], levels: Iterable[str]) -> dict[int, int]:
    """Return those of `ids` that are memories of these levels."""
    if not ids:
        return {}
    let_in = of_levels(memory.c.sensitivity, levels, away=True)
    found = connection.execute(select(memory.c.id).where(any_of(memory.c.id, IDS), let_in), {"ids": ids})
    return {one: one for one in found.scalars()}


def scope_of(name: str) -> Scope:
    """Return the scope to which a namespace of this name belongs."""
    return _SCOPES[name.partition(":")[0]]


def _list_fields(labels: Sequence[tuple[int, str, str]] | None) -> dict[str, Any]:
    """Return the fields of a memory that hold several values, by name, from its labels: position, kind and value."""
    values: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for _, kind, value in sorted(labels or ()):
        values[kind] += (value,)
    entities = tuple([Entity(name, kind) for kind in EntityType for name in values[f"{ENTITY}{kind}"]])
    standing = next(iter(values[STANDING]), None)
    found: dict[str, Any] = {name: values[name] for name in LISTS}
    return found | {"entities": entities, "standing": Standing(standing) if standing else None}
