"""What summaries keep of members that were removed by rule, and where those came from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import delete, func, insert, select

from recollect.store.sql.tables import label, memory
from recollect.store.sql.transaction import Transaction

_MEMBER: Final = "member"
"""The kind of a label of a summary that keeps what it says of a member that was removed by rule."""


@dataclass(frozen=True, slots=True)
class SummaryMembers:
    """Keeps what summaries quote of removed members, in one open transaction."""

    _transaction: Transaction

    def note(self, memory_id: int, note: dict[str, Any]) -> None:
        """Keep with a summary what it says of a member that is to be removed by rule, and where that came from."""
        mine = (label.c.memory_id == memory_id) & (label.c.kind == _MEMBER)
        last = self._transaction.execute(select(func.max(label.c.position)).where(mine)).scalar()
        place = 0 if last is None else last + 1
        row = {
            "memory_id": memory_id,
            "kind": _MEMBER,
            "position": place,
            "value": json.dumps(note, ensure_ascii=False),
        }
        self._transaction.execute(insert(label).values(row))

    def removed(self) -> list[tuple[int, int, dict[str, Any]]]:
        """Return what summaries keep of members that were removed by rule: the summary, a number, and what is kept."""
        here = self._transaction.here(away=False) & memory.c.deleted_at.is_(None) & memory.c.merged_into.is_(None)
        kept = select(label).join(memory, memory.c.id == label.c.memory_id).where(label.c.kind == _MEMBER, here)
        found = self._transaction.execute(kept.order_by(label.c.memory_id, label.c.position))
        return [(row.memory_id, row.position, json.loads(row.value)) for row in found]

    def drop(self, memory_id: int, number: int) -> None:
        """Forget what a summary keeps of a member."""
        mine = (label.c.memory_id == memory_id) & (label.c.kind == _MEMBER) & (label.c.position == number)
        self._transaction.execute(delete(label).where(mine))
