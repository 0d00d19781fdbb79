"""What consolidation reads and writes: importance, use and marks of memories, many at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    bindparam,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from recollect.domain.enums import ObservationType, Sensitivity, Source
from recollect.domain.lifecycle import CAPTURED
from recollect.domain.origin import APPROVED, Authority, SaidBy, authority, speaker_before_stamps
from recollect.store.entries import AgingMemory, Mark
from recollect.store.sql import store_metadata
from recollect.store.sql.database import Database
from recollect.store.sql.statements import select_in
from recollect.store.sql.tables import consolidation, label, level_of, memory, usage
from recollect.store.sql.transaction import Transaction
from recollect.store.sql.visibility import STANDING, inside, namespace_ids, of_levels, shown

_DAYS = "session_days."
_MOST_DAYS = 400
_KEPT = "kept"
"""The kind of a label that says that somebody stored by a call what was captured."""
_summary = memory.alias("compressed")
_successor_gone = exists().where(
    _summary.c.id == memory.c.superseded_by,
    _summary.c.type == str(ObservationType.COMPRESSED_SUMMARY),
    _summary.c.deleted_at.is_not(None),
)
_AGING: Select[Any] = (
    select(
        *(memory.c[name] for name in ("id", "fact_type", "type", "sensitivity", "importance", "updated_at")),
        usage.c.last_accessed_at,
        (func.coalesce(usage.c.accessed_count, 0) + func.coalesce(usage.c.recalled_count, 0)).label("accesses"),
        or_(memory.c.superseded_by.is_(None), _successor_gone.correlate(memory)).label("current"),
        consolidation.c.at,
        consolidation.c.accesses.label("counted"),
    )
    .select_from(memory)
    .outerjoin(usage, usage.c.memory_id == memory.c.id)
    .outerjoin(consolidation, consolidation.c.memory_id == memory.c.id)
    .where(shown())
    .order_by(memory.c.id)
)
_WEIGH = update(memory).where(memory.c.id == bindparam("this")).values(importance=bindparam("new"))


@dataclass(frozen=True, slots=True)
class Consolidation:
    """Reads what consolidation looks at."""

    _database: Database

    def aging(
        self, namespace: str, sources: Collection[Source], levels: Sequence[str] = (Sensitivity.PUBLIC,)
    ) -> list[AgingMemory]:
        """Return the memories in sight that came into the namespace from one of these sources, by id."""
        with self._database.reading() as connection:
            came: ColumnElement[bool] = memory.c.source.in_([str(one) for one in sources])
            if Source.TOOL not in sources:
                came &= ~_has_decision((_KEPT, STANDING))
            else:
                came &= ~_has_decision((STANDING,))
            here = inside(connection, [namespace]) & of_levels(memory.c.sensitivity, levels)
            return [_aging_memory(row) for row in connection.execute(_AGING.where(came, here))]

    def session_days(self, namespace: str) -> tuple[date, ...]:
        """Return the days on which sessions of a project ended, the last four hundred of them, in order."""
        with self._database.reading() as connection:
            number = namespace_ids(connection, [namespace]).get(namespace, 0)
            return _session_days(connection, number)


def _has_decision(kinds: Sequence[str]) -> ColumnElement[bool]:
    """Select the memories about which somebody decided something of these kinds."""
    return exists().where(label.c.memory_id == memory.c.id, label.c.kind.in_(kinds)).correlate(memory)


@dataclass(frozen=True, slots=True)
class ConsolidationWriting:
    """Writes importance and marks in one open transaction."""

    _transaction: Transaction

    def aging(self, ids: Collection[int]) -> list[AgingMemory]:
        """Return those of these memories that are in sight, in the order of their ids."""
        mine = _AGING.where(self._transaction.here(away=False))
        return [_aging_memory(row) for row in select_in(self._transaction.connection, mine, memory.c.id, sorted(ids))]

    def note_session_day(self, day: date) -> tuple[date, ...]:
        """Note that a session of the project ended on a day; return these days, in order."""
        own = self._transaction
        days = tuple(sorted({*_session_days(own.connection, own.namespace_id), day}))[-_MOST_DAYS:]
        store_metadata.write(own.connection, {f"{_DAYS}{own.namespace_id}": ",".join(map(str, days))})
        return days

    def stop_fading(self, memory_id: int) -> None:
        """Note that somebody stored by a call what the pipeline had captured: it fades and ends by itself no more.

        It is no draft any more, either, unless it came from outside or waits for a decision of its own.
        """
        own = self._transaction
        mine = (memory.c.id == memory_id) & memory.c.source.in_([str(one) for one in CAPTURED])
        row = select(memory.c.id, literal(_KEPT), literal(0), literal("")).where(mine)
        new = row.where(~exists().where(label.c.memory_id == memory_id, label.c.kind == _KEPT))
        own.execute(insert(label).from_select(["memory_id", "kind", "position", "value"], new))
        own.execute(update(memory).where(mine, memory.c.ttl_days.is_(None)).values(expires_at=None))
        found = select(memory.c.source, memory.c.trust, memory.c.said_by, memory.c.review, level_of(memory))
        old = own.execute(found.where(mine)).first()
        if old is None or old.review is not None:
            return
        said_by = SaidBy(old.said_by) if old.said_by else speaker_before_stamps(Source(old.source), old.trust)
        if authority(said_by) is not Authority.OUTSIDE:
            own.execute(update(memory).where(mine).values(review=APPROVED))
            own.journal("review", (memory_id, old[-1], {"review": APPROVED}))

    def consolidate(self, changes: Sequence[tuple[AgingMemory, float, Mark]]) -> None:
        """Write another importance and mark of memories; their `updated_at` stays, or fading would make them new."""
        own = self._transaction
        if not changes:
            return
        own.execute(_WEIGH, [{"this": one.id, "new": importance} for one, importance, _ in changes])
        put = own.dialect.insert(consolidation)
        marks = {name: put.excluded[name] for name in ("at", "accesses")}
        rows = [{"memory_id": one.id, "at": mark.at, "accesses": mark.accesses} for one, _, mark in changes]
        own.execute(put.on_conflict_do_update(index_elements=["memory_id"], set_=marks), rows)
        lines = (
            (one.id, one.sensitivity, {"fields": ["importance"], "importance": [one.importance, importance]})
            for one, importance, _ in changes
        )
        own.journal("consolidate", *lines)


def _session_days(connection: Connection, namespace_id: int) -> tuple[date, ...]:
    """Return the days on which sessions of the project ended, the oldest first."""
    known = store_metadata.read(connection).get(f"{_DAYS}{namespace_id}", "")
    return tuple(map(date.fromisoformat, filter(None, known.split(","))))


def _aging_memory(row: Row[Any]) -> AgingMemory:
    """Make what consolidation knows of a memory out of its row."""
    values = dict(row._mapping)
    at, counted, current = (values.pop(name) for name in ("at", "counted", "current"))
    return AgingMemory(**values, replaced=not current, mark=None if at is None else Mark(at, counted))
