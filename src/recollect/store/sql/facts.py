"""Facts in SQL: triples with the time in which they held. A fact is seen only where its memory may be seen."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, exists, or_, select

from recollect.domain.fields import fold_part
from recollect.domain.requests import FactQuery
from recollect.domain.results import Fact
from recollect.domain.search import View
from recollect.store.sql import mapping
from recollect.store.sql.database import Database
from recollect.store.sql.statements import count
from recollect.store.sql.tables import fact, memory
from recollect.store.sql.visibility import alive, condensed, inside, of_levels

PARTS = {"subject", "predicate", "object"}
"""The fields of a fact that are compared."""
_states = memory.c.id == fact.c.memory_id


@dataclass(frozen=True, slots=True)
class Facts:
    """Reads facts."""

    _database: Database

    def find(self, query: FactQuery, view: View) -> tuple[list[Fact], int]:
        """Return one page of what `view` may see and `query` asks for, what held last first, and how many there are."""
        with self._database.reading() as connection:
            wanted = and_(visible(connection, view), *_query_conditions(query, view))
            page = mapping.FACTS.where(wanted).order_by(fact.c.valid_from.desc(), fact.c.id.desc())
            found = mapping.facts(connection, page.limit(query.limit).offset(query.offset))
            return found, count(connection, fact, wanted)


def compared(parts: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns by which subject, predicate and object are compared: their folded text, the object's hash."""
    folded = {f"{name}_folded": fold_part(part) for name, part in parts.items() if part is not None}
    if (named := folded.pop("object_folded", None)) is not None:
        folded["object_hash"] = hashlib.sha256(named.encode()).hexdigest()
    return folded


def same_parts(parts: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    """Return the conditions on a fact that it has these parts, letter case aside; a part may be None or absent."""
    return [fact.c[name] == value for name, value in compared(parts).items()]


def holds_after(at: datetime) -> ColumnElement[bool]:
    """Select the facts that hold later than `at`."""
    return or_(fact.c.valid_to.is_(None), fact.c.valid_to > at)


def visible(connection: Connection, view: View) -> ColumnElement[bool]:
    """Select the facts that `view` may see: by their namespace, their own level, and by that of their memory.

    The facts of a replaced memory are seen only if the view asks for replaced memories. Those of a condensed memory
    stay in sight.
    """
    stated = exists().where(_states, of_levels(memory.c.sensitivity, view.sensitivities), alive(view.now))
    if not view.superseded:
        stated = stated.where(or_(memory.c.superseded_by.is_(None), condensed()))
    return of_view(connection, view) & or_(fact.c.memory_id.is_(None), stated.correlate(fact))


def of_view(connection: Connection, view: View) -> ColumnElement[bool]:
    """Select the facts of the view's namespaces and levels."""
    here = inside(connection, view.namespaces, fact.c.namespace_id)
    return here & of_levels(fact.c.sensitivity, view.sensitivities)


def known(levels: Sequence[str], *, away: bool = True) -> ColumnElement[bool]:
    """Select the facts that a writer of these levels finds, by their own level and by that of their memory."""
    stated = exists().where(_states, of_levels(memory.c.sensitivity, levels, away=True)).correlate(fact)
    mine = of_levels(fact.c.sensitivity, levels, away=away)
    return mine & or_(fact.c.memory_id.is_(None), stated)


def _query_conditions(query: FactQuery, view: View) -> list[ColumnElement[bool]]:
    """Return the conditions on a fact that a query makes: its parts, confidence, memory and time."""
    conditions = same_parts(query.model_dump(include=PARTS))
    if query.min_confidence:
        conditions.append(fact.c.confidence >= query.min_confidence)
    if query.memory_id is not None:
        known = query.memory_id.isascii() and query.memory_id.isdecimal() and len(query.memory_id) < 11
        number = int(query.memory_id) if known else 0
        number = number if number < 2**31 else 0  # PostgreSQL refuses larger ones
        members = select(memory.c.id).where(memory.c.superseded_by == number, condensed())
        conditions.append(or_(fact.c.memory_id == number, fact.c.memory_id.in_(members)))
    at = query.as_of or view.now
    if query.as_of is not None or not query.history:
        conditions += [fact.c.valid_from <= at, holds_after(at)]
    return conditions
