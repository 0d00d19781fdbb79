"""Facts in SQL: triples with the time in which they held. A fact is seen only where its memory may be seen."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, func, insert, or_, select, update

from recollect.domain.enums import Observation
from recollect.domain.fields import fold_part
from recollect.domain.requests import FactQuery
from recollect.domain.results import Fact
from recollect.domain.search import View
from recollect.domain.transfer import FactRecord
from recollect.ports import FactEntry
from recollect.store.sql.mapping import fact_of, select_facts
from recollect.store.sql.tables import fact, memory
from recollect.store.sql.visibility import alive, namespace_ids, of_levels

_summary = memory.alias("summary")


def put(connection: Connection, namespace_id: int, entry: FactEntry, own: Mapping[str, Any]) -> None:
    """Write a fact with its `own` id and times."""
    asked = entry.cleared.value
    values = {
        "namespace_id": namespace_id,
        "subject": asked.subject,
        "predicate": asked.predicate,
        "object": asked.object,
        "subject_folded": fold_part(asked.subject),
        "predicate_folded": fold_part(asked.predicate),
        "object_hash": _hash(asked.object),
        "confidence": asked.confidence,
        "memory_id": entry.memory_id,
        "valid_from": entry.valid_from,
        "valid_to": asked.valid_to,
        "sensitivity": entry.sensitivity,
        "author": entry.author,
    }
    connection.execute(insert(fact).values(**values, **own))


def change(connection: Connection, fact_id: int, values: dict[str, Any]) -> None:
    """Write some columns of a fact."""
    connection.execute(update(fact).where(fact.c.id == fact_id).values(**values))


def delete(connection: Connection, namespace_id: int, fact_id: int) -> bool:
    """Remove a fact of a namespace; say whether it was there."""
    mine = (fact.c.id == fact_id) & (fact.c.namespace_id == namespace_id)
    return bool(connection.execute(fact.delete().where(mine)).rowcount)


def rewrite(connection: Connection, fact_id: int, parts: Mapping[str, str]) -> None:
    """Write subject, predicate or object anew, and what they are compared by."""
    values: dict[str, Any] = dict(parts)
    values |= {f"{name}_folded": fold_part(parts[name]) for name in ("subject", "predicate") if name in parts}
    if "object" in parts:
        values["object_hash"] = _hash(parts["object"])
    change(connection, fact_id, values)


def page(connection: Connection, namespace_id: int, after: int, limit: int) -> list[Fact]:
    """Return the next facts of a namespace in the order of their ids, whatever their state."""
    mine = (fact.c.namespace_id == namespace_id) & (fact.c.id > after)
    return _read(connection, select_facts().where(mine).order_by(fact.c.id).limit(limit))


def holding(connection: Connection, namespace_id: int, subject: str, predicate: str, at: datetime) -> list[Fact]:
    """Return the facts of a subject and a predicate that hold `at` a time or later, oldest first."""
    about = and_(
        fact.c.namespace_id == namespace_id,
        fact.c.subject_folded == fold_part(subject),
        fact.c.predicate_folded == fold_part(predicate),
        or_(fact.c.valid_to.is_(None), fact.c.valid_to > at),
    )
    return _read(connection, select_facts().where(about).order_by(fact.c.id))


def same(connection: Connection, namespace_id: int, record: FactRecord) -> Fact | None:
    """Find the same triple: from the same time on, or where the file has none, one that still holds."""
    about = and_(
        fact.c.namespace_id == namespace_id,
        fact.c.subject_folded == fold_part(record.subject),
        fact.c.predicate_folded == fold_part(record.predicate),
        fact.c.object_hash == _hash(record.object),
        fact.c.valid_to.is_(None) if record.valid_from is None else fact.c.valid_from == record.valid_from,
    )
    return next(iter(_read(connection, select_facts().where(about).order_by(fact.c.id))), None)


def search(connection: Connection, query: FactQuery, view: View) -> tuple[list[Fact], int]:
    """Return one page of what `view` may see and `query` asks for, what held last first, and how many there are."""
    wanted = and_(visible(connection, view), *_asked(query, view))
    total = connection.execute(select(func.count()).select_from(fact).where(wanted)).scalar_one()
    page = select_facts().where(wanted).order_by(fact.c.valid_from.desc(), fact.c.id.desc())
    return _read(connection, page.limit(query.limit).offset(query.offset)), int(total)


def visible(connection: Connection, view: View) -> ColumnElement[bool]:
    """Select the facts that `view` may see: by their namespace, their own level, and by that of their memory.

    A memory that was put right takes its facts along, unless the view asks for such; one that was condensed does not.
    """
    stated = exists().where(memory.c.id == fact.c.memory_id, of_levels(memory.c.sensitivity, view), alive(view.now))
    if not view.superseded:
        condensed = exists().where(
            _summary.c.id == memory.c.superseded_by, _summary.c.type == str(Observation.COMPRESSED_SUMMARY)
        )
        stated = stated.where(or_(memory.c.superseded_by.is_(None), condensed.correlate(memory)))
    return of_view(connection, view) & or_(fact.c.memory_id.is_(None), stated.correlate(fact))


def of_view(connection: Connection, view: View) -> ColumnElement[bool]:
    """Select the facts of the view's namespaces and levels."""
    numbers = namespace_ids(connection, view.namespaces).values()
    return fact.c.namespace_id.in_(numbers) & of_levels(fact.c.sensitivity, view)


def _asked(query: FactQuery, view: View) -> list[ColumnElement[bool]]:
    conditions = [fact.c.confidence >= query.min_confidence] if query.min_confidence else []
    if query.subject is not None:
        conditions.append(fact.c.subject_folded == fold_part(query.subject))
    if query.predicate is not None:
        conditions.append(fact.c.predicate_folded == fold_part(query.predicate))
    if query.object is not None:
        conditions.append(fact.c.object_hash == _hash(query.object))
    if query.memory_id is not None:
        known = query.memory_id.isascii() and query.memory_id.isdecimal() and len(query.memory_id) < 11
        number = int(query.memory_id) if known else 0
        conditions.append(fact.c.memory_id == (number if number < 2**31 else 0))  # PostgreSQL refuses larger ones
    at = query.as_of or view.now
    if query.as_of is not None or not query.history:
        conditions += [fact.c.valid_from <= at, or_(fact.c.valid_to.is_(None), fact.c.valid_to > at)]
    return conditions


def _read(connection: Connection, query: Select[Any]) -> list[Fact]:
    return [fact_of(row) for row in connection.execute(query)]


def _hash(part: str) -> str:
    return hashlib.sha256(fold_part(part).encode()).hexdigest()
