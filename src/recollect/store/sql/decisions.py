"""What people decided about single memories: which are pinned or buried, and which two are no duplicates."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, insert, update

from recollect.domain.enums import Standing
from recollect.domain.results import Memory
from recollect.store.sql.child_tables import standing_row
from recollect.store.sql.tables import label, memory
from recollect.store.sql.transaction import Transaction
from recollect.store.sql.visibility import APART, STANDING


@dataclass(frozen=True, slots=True)
class DecisionWriting:
    """Writes what somebody decided about a memory, in one open transaction."""

    _transaction: Transaction

    def set_standing(self, old: Memory, standing: Standing | None) -> None:
        """Note that somebody pinned or buried a memory, or undid that; a pinned memory does not expire."""
        own = self._transaction
        mine = (label.c.memory_id == old.id) & (label.c.kind == STANDING)
        own.execute(delete(label).where(mine))
        if standing is not None:
            own.execute(insert(label).values(standing_row(old.id, standing)))
        ends = [] if standing is not Standing.PINNED or old.expires_at is None else ["expires_at", "ttl_days"]
        if ends:
            own.execute(update(memory).where(memory.c.id == old.id).values(dict.fromkeys(ends)))
        told = {"fields": [*ends, "standing"], "standing": str(standing or "")}
        own.journal("update", (old.id, old.sensitivity, told))

    def tell_apart(self, old: Memory, other: int, *, undo: bool) -> None:
        """Note that a memory is no duplicate of another one, or with `undo` that it may be."""
        own = self._transaction
        mine = (label.c.memory_id == old.id) & (label.c.kind == APART) & (label.c.value == str(other))
        own.execute(delete(label).where(mine))
        if not undo:
            row = {"memory_id": old.id, "kind": APART, "position": other, "value": str(other)}
            own.execute(insert(label).values(row))
        told = {"fields": ["apart"], "apart": "" if undo else str(other)}
        own.journal("update", (old.id, old.sensitivity, told))
