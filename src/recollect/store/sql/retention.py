"""Which memories are to be removed by rule: those past their time, and those beyond the number that may be kept."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from recollect.store.sql.tables import held, memory, usage
from recollect.store.sql.transaction import Transaction
from recollect.store.sql.visibility import alive, of_levels


@dataclass(frozen=True, slots=True)
class RetentionLookup:
    """Finds what is to be removed, in one open write transaction."""

    _transaction: Transaction

    def expired(self) -> list[int]:
        """Return the ids of the memories that have expired, in order."""
        own = self._transaction
        query = select(memory.c.id).where(own.here(), memory.c.expires_at <= own.now).order_by(memory.c.id)
        return list(own.execute(query).scalars())

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
            .where(own.here(), of_level, memory.c.id != sparing)
            .order_by(alive(own.now) & memory.c.superseded_by.is_(None))
            .order_by(func.coalesce(usage.c.accessed_count, 0))
            .order_by(memory.c.updated_at, memory.c.importance, memory.c.id)
            .limit(beyond)
        )
        return list(own.execute(query).scalars())
