"""Facts in SQL: triples with the time in which they held. A fact is seen only where its memory may be seen."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, exists, func, insert, or_, select, update

from recollect.domain import Fact, FactQuery, Observation, View, folded
from recollect.ports import FactEntry
from recollect.store import rows

_summary = rows.memory.alias("summary")


def put(connection: Connection, namespace_id: int, entry: FactEntry) -> int:
    """Write a fact and return its id."""
    asked = entry.cleared.value
    values = {
        "namespace_id": namespace_id,
        "subject": asked.subject,
        "predicate": asked.predicate,
        "object": asked.object,
        "subject_folded": folded(asked.subject),
        "predicate_folded": folded(asked.predicate),
        "object_hash": _hash(asked.object),
        "confidence": asked.confidence,
        "memory_id": entry.memory_id,
        "valid_from": entry.valid_from,
        "valid_to": asked.valid_to,
        "sensitivity": str(entry.sensitivity),
        "author": entry.author,
        "created_at": entry.at,
        "updated_at": entry.at,
    }
    result = connection.execute(insert(rows.fact).values(**values))
    return int(result.inserted_primary_key[0])  # type: ignore[index]


def change(connection: Connection, fact_id: int, values: dict[str, Any]) -> None:
    """Write some columns of a fact."""
    connection.execute(update(rows.fact).where(rows.fact.c.id == fact_id).values(**values))


def delete(connection: Connection, namespace_id: int, fact_id: int) -> bool:
    """Remove a fact of a namespace; say whether it was there."""
    mine = (rows.fact.c.id == fact_id) & (rows.fact.c.namespace_id == namespace_id)
    return bool(connection.execute(rows.fact.delete().where(mine)).rowcount)


def rewrite(connection: Connection, fact_id: int, parts: Mapping[str, str]) -> None:
    """Write subject, predicate or object anew, and what they are compared by."""
    values: dict[str, Any] = dict(parts)
    values |= {f"{name}_folded": folded(parts[name]) for name in ("subject", "predicate") if name in parts}
    if "object" in parts:
        values["object_hash"] = _hash(parts["object"])
    change(connection, fact_id, values)


def every(connection: Connection, namespace_id: int, after: int, limit: int) -> list[Fact]:
    """Return the next facts of a namespace in the order of their ids, whatever their state."""
    mine = (rows.fact.c.namespace_id == namespace_id) & (rows.fact.c.id > after)
    return [fact_of(row) for row in connection.execute(selected().where(mine).order_by(rows.fact.c.id).limit(limit))]


def holding(connection: Connection, namespace_id: int, subject: str, predicate: str, at: datetime) -> list[Fact]:
    """Return the facts of a subject and a predicate that hold `at` a time or later, oldest first."""
    fact = rows.fact.c
    about = and_(
        fact.namespace_id == namespace_id,
        fact.subject_folded == folded(subject),
        fact.predicate_folded == folded(predicate),
        or_(fact.valid_to.is_(None), fact.valid_to > at),
    )
    return [fact_of(row) for row in connection.execute(selected().where(about).order_by(fact.id))]


def search(connection: Connection, query: FactQuery, view: View) -> tuple[list[Fact], int]:
    """Return one page of what `view` may see and `query` asks for, what held last first, and how many there are."""
    numbers = rows.namespace_ids(connection, view.namespaces).values()
    wanted = and_(visible(view, list(numbers)), *_asked(query, view))
    total = connection.execute(select(func.count()).select_from(rows.fact).where(wanted)).scalar_one()
    page = selected().where(wanted).order_by(rows.fact.c.valid_from.desc(), rows.fact.c.id.desc())
    return [fact_of(row) for row in connection.execute(page.limit(query.limit).offset(query.offset))], int(total)


def visible(view: View, numbers: list[int]) -> ColumnElement[bool]:
    """Select the facts of these namespaces that `view` may see: by their own level, and by that of their memory.

    A memory that was put right takes its facts along, unless the view asks for such; one that was condensed does not.
    """
    levels = [str(level) for level in view.sensitivities]
    told = exists().where(
        rows.memory.c.id == rows.fact.c.memory_id, rows.memory.c.sensitivity.in_(levels), rows.alive(view.now)
    )
    if not view.superseded:
        condensed = exists().where(
            _summary.c.id == rows.memory.c.superseded_by, _summary.c.type == str(Observation.COMPRESSED_SUMMARY)
        )
        told = told.where(or_(rows.memory.c.superseded_by.is_(None), condensed.correlate(rows.memory)))
    return and_(
        rows.fact.c.namespace_id.in_(numbers),
        rows.fact.c.sensitivity.in_(levels),
        or_(rows.fact.c.memory_id.is_(None), told.correlate(rows.fact)),
    )


def _asked(query: FactQuery, view: View) -> list[ColumnElement[bool]]:
    fact = rows.fact.c
    conditions = [fact.confidence >= query.min_confidence] if query.min_confidence else []
    if query.subject is not None:
        conditions.append(fact.subject_folded == folded(query.subject))
    if query.predicate is not None:
        conditions.append(fact.predicate_folded == folded(query.predicate))
    if query.object is not None:
        conditions.append(fact.object_hash == _hash(query.object))
    if query.memory_id is not None:
        known = query.memory_id.isascii() and query.memory_id.isdecimal() and len(query.memory_id) < 11
        number = int(query.memory_id) if known else 0
        conditions.append(fact.memory_id == (number if number < 2**31 else 0))  # PostgreSQL refuses larger ones
    at = query.as_of or view.now
    if query.as_of is not None or not query.history:
        conditions += [fact.valid_from <= at, or_(fact.valid_to.is_(None), fact.valid_to > at)]
    return conditions


def selected() -> Any:
    """Select facts with the names of their namespaces."""
    return select(rows.fact, rows.namespace.c.name.label("namespace")).join(
        rows.namespace, rows.namespace.c.id == rows.fact.c.namespace_id
    )


def _hash(part: str) -> str:
    return hashlib.sha256(folded(part).encode()).hexdigest()


def fact_of(row: Row[Any]) -> Fact:
    """Read a fact from its row; an unknown level of sensitivity counts as the strictest."""
    return Fact(
        id=row.id,
        namespace=row.namespace,
        scope=rows.scope_of(row.namespace),
        subject=row.subject,
        predicate=row.predicate,
        object=row.object,
        confidence=row.confidence,
        memory_id=row.memory_id,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        sensitivity=rows.sensitivity_of(row.sensitivity),
        author=row.author,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
