"""Which memories are to be removed by rule: those past their time, and those beyond the number that may be kept."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, exists, func, select

from recollect.domain.enums import Standing
from recollect.store.sql.statements import count
from recollect.store.sql.tables import held, label, memory, usage
from recollect.store.sql.transaction import Transaction
from recollect.store.sql.visibility import STANDING, alive, of_levels

PINNED = (
    exists()
    .where(label.c.memory_id == memory.c.id, label.c.kind == STANDING, label.c.value == str(Standing.PINNED))
    .correlate(memory)
)
"""Selects the memories that somebody has pinned."""


@dataclass(frozen=True, slots=True)
class RetentionLookup:
    """Finds what is to be removed, in one open write transaction."""

    _transaction: Transaction

    def expired(self) -> list[int]:
        """Return the ids of the memories that have expired and that no legal hold keeps, in order."""
        own = self._transaction
        ended = memory.c.expires_at <= own.now
        query = select(memory.c.id).where(own.here(), ended, own.holds.free()).order_by(memory.c.id)
        return list(own.execute(query).scalars())

    def held(self) -> int:
        """Count the memories that have expired and that a legal hold keeps."""
        own = self._transaction
        return count(own.connection, memory, own.here(), memory.c.expires_at <= own.now, ~own.holds.free())

    def outlived(self, conditions: ColumnElement[bool]) -> list[int]:
        """Return the ids of the memories that meet the `conditions`, but for those that are pinned or on hold."""
        own = self._transaction
        query = select(memory.c.id).where(own.here(), conditions, ~PINNED, own.holds.free())
        return list(own.execute(query.order_by(memory.c.id)).scalars())

    def surplus(self, most: int, sparing: int) -> list[int]:
        """Return the ids of the memories beyond `most` of each level: hidden, then least used, then oldest first.

        With `most` 0 there is no limit. The memory `sparing` is never among them. A replaced memory goes before the
        memory that replaced it, or it would be current again. Each level of sensitivity is counted by itself, so that
        none tells of another.
        """
        levels = self._transaction.levels if most else ()
        return [number for level in levels for number in self._surplus_of_level(level, most, sparing)]

    def _surplus_of_level(self, level: str, most: int, sparing: int) -> list[int]:
        """Return the ids of the memories of a level beyond `most`, the first to be removed first."""
        own = self._transaction
        counted = (held.c.namespace_id == own.known_id) & (held.c.sensitivity == level)
        beyond = int(own.execute(select(held.c.memories).where(counted)).scalar() or 0) - most
        if beyond <= 0:
            return []
        of_level = of_levels(memory.c.sensitivity, [level], away=True)
        query = (
            select(memory.c.id)
            .outerjoin(usage, usage.c.memory_id == memory.c.id)
            .where(own.here(), of_level, memory.c.id != sparing, own.holds.free())
            .order_by(alive(own.now) & memory.c.superseded_by.is_(None))
            .order_by(func.coalesce(usage.c.accessed_count, 0))
            .order_by(memory.c.updated_at, memory.c.importance, memory.c.id)
            .limit(beyond)
        )
        return list(own.execute(query).scalars())
