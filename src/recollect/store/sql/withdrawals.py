"""Withdrawals: everything that came from a source is hidden where only the undoing of its withdrawal looks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import and_, delete, insert, or_, select, update

from recollect.domain.enums import OF_SESSION, ObservationType, strictest
from recollect.domain.origin import places_of
from recollect.domain.results import Memory
from recollect.store.sql.column_types import QUARANTINED, WITHDRAWN
from recollect.store.sql.memory_lookup import MemoryLookup
from recollect.store.sql.memory_writing import MemoryWriting
from recollect.store.sql.tables import memory, withdrawal
from recollect.store.sql.transaction import Transaction
from recollect.store.sql.visibility import of_levels, shown

_IN_FILE: Final = re.compile(r"(?:[:#][ ]?\d{1,12}){1,4}$")
"""The end of an address that says where in a file something stood."""
_MADE: Final = sorted(str(kind) for kind in (*OF_SESSION, ObservationType.COMPRESSED_SUMMARY))
"""The types of what is made of other memories."""


def ids_hidden_by(undo: Mapping[str, list[Any]]) -> list[int]:
    """Return the ids that a withdrawal hid: of memories, their parts, and the kept copies of rewritten texts."""
    parts, copies = ([part for part, _ in undo["parts"]], [copy for _, copy in undo["copies"]])
    return [*undo["hidden"], *undo.get("forgotten", ()), *undo.get("quarantined", ()), *parts, *copies]


@dataclass(frozen=True, slots=True)
class WithdrawalWriting:
    """Finds what came from a source, withdraws it and undoes that, in one open transaction."""

    _transaction: Transaction
    _lookup: MemoryLookup
    _memories: MemoryWriting

    def sources(self) -> list[str]:
        """Return the sources of the memories that this transaction finds: each file, address, page and command once."""
        named = select(memory.c.came_from).where(self._transaction.here(), memory.c.came_from.is_not(None)).distinct()
        found = self._transaction.execute(named).scalars().all()
        return list(dict.fromkeys(_IN_FILE.sub("", place) for one in found for place in places_of(one) if place))

    def from_origin(
        self,
        source: str | None,
        session_id: str | None,
        author: str | None,
        times: Sequence[datetime | None],
        *,
        quarantined: bool = False,
        forgotten: bool = False,
    ) -> list[Memory]:
        """Return what came from there, but for what is made of other memories.

        Of a `source` the address is, begins with, or has the host `source`; the caller checks that. What was softly
        deleted is among it with `forgotten`. With `quarantined` it is what is in quarantine instead.
        """
        away = QUARANTINED if quarantined else ""
        asked = [or_(memory.c.type.is_(None), memory.c.type.not_in(_MADE))]
        if quarantined:
            asked.append(memory.c.merged_into.is_(None))
        elif not forgotten:
            asked.append(memory.c.deleted_at.is_(None))
        if source is not None:
            asked.append(memory.c.came_from.contains(source, autoescape=True))
        if session_id is not None:
            asked.append(memory.c.session_id == session_id)
        if author is not None:
            asked.append(memory.c.author == author)
        since, until = times
        asked += [memory.c.created_at >= since] if since else []
        asked += [memory.c.created_at <= until] if until else []
        return self._lookup.in_state(and_(*asked), away)

    def replaced_by(self, ids: Iterable[int]) -> list[Memory]:
        """Return what gave way to one of these memories."""
        return self._lookup.in_state(memory.c.superseded_by.in_(list(ids)))

    def withdraw(self, memory_id: int, *, forgotten: bool = False) -> bool:
        """Hide a memory where only the undoing of its withdrawal looks; say whether there was one in sight.

        With `forgotten` it is one that was softly deleted before, and stays so.
        """
        own = self._transaction
        deleted = memory.c.deleted_at.is_not(None) & of_levels(memory.c.sensitivity, own.levels)
        row = self._lookup.row(memory_id, deleted if forgotten else shown())
        if row is None:
            return False
        own.execute(update(memory).where(memory.c.id == memory_id).values(sensitivity=WITHDRAWN + row.level))
        if forgotten:
            own.journal("withdraw", (memory_id, row.level, {"soft": True}))
        return forgotten or self._memories.hide(memory_id, "withdraw")

    def put_away(self, old: Memory) -> None:
        """Hide a memory where only the undoing of its withdrawal looks, a part of nothing any more."""
        own = self._transaction
        values = {
            "deleted_at": own.now,
            "merged_into": None,
            "sensitivity": WITHDRAWN + own.stored(old.sensitivity),
        }
        own.execute(update(memory).where(memory.c.id == old.id).values(values))
        own.journal("withdraw", (old.id, old.sensitivity, {"soft": True}))

    def set_link(self, old: Memory, by: int | None) -> None:
        """Let a memory be replaced by another one, or be current again."""
        self._transaction.execute(update(memory).where(memory.c.id == old.id).values(superseded_by=by))
        self._transaction.journal("withdraw", (old.id, old.sensitivity, {"superseded_by": by}))

    def set_part_of(self, old: Memory, whole: int | None) -> None:
        """Let a memory be a part of another one again, out of sight."""
        own = self._transaction
        values = {"deleted_at": None, "merged_into": whole, "sensitivity": own.stored(old.sensitivity)}
        own.execute(update(memory).where(memory.c.id == old.id).values(values))
        own.journal("restore", (old.id, old.sensitivity, {"merged_into": whole}))

    def leave_forgotten(self, old: Memory) -> None:
        """Let a memory that was withdrawn after it was softly deleted be only that again."""
        own = self._transaction
        level = own.stored(old.sensitivity)
        own.execute(update(memory).where(memory.c.id == old.id).values(sensitivity=level))
        own.journal("restore", (old.id, old.sensitivity, {"soft": True}))

    def note(self, undo: dict[str, Any], levels: Sequence[str]) -> int:
        """Keep how to undo a withdrawal, and return its id."""
        own = self._transaction
        (new,) = own.claim_ids(withdrawal, [None])
        row = {
            "id": new,
            "namespace_id": own.namespace_id,
            "at": own.now,
            "actor": own.actor,
            "undo": undo,
        }
        own.execute(insert(withdrawal).values(row | {"sensitivity": strictest("public", *levels)}))
        own.journal("withdraw", (None, strictest("public", *levels), {"withdrawal": new}))
        return new

    def undo_of(self, number: int) -> dict[str, Any] | None:
        """Return how to undo a withdrawal of this namespace, None where there is none of it."""
        mine = (withdrawal.c.id == number) & (withdrawal.c.namespace_id == self._transaction.known_id)
        found: dict[str, Any] | None = self._transaction.execute(select(withdrawal.c.undo).where(mine)).scalar()
        return found

    def hiding(self, memory_id: int) -> int | None:
        """Return the withdrawal that hides a memory, None where none does."""
        own = self._transaction
        away = memory.c.sensitivity.in_([WITHDRAWN + level for level in own.levels])
        mine = (memory.c.id == memory_id) & (memory.c.namespace_id == own.known_id) & away
        if own.execute(select(memory.c.id).where(mine)).first() is None:
            return None
        here = select(withdrawal.c.id, withdrawal.c.undo).where(withdrawal.c.namespace_id == own.known_id)
        for row in own.execute(here.order_by(withdrawal.c.id.desc())):
            if memory_id in ids_hidden_by(row.undo):
                return int(row.id)
        return None

    def note_undone(self, number: int, back: dict[str, Any]) -> None:
        """Keep what came back with a withdrawal in the place of how to undo it."""
        self._transaction.execute(update(withdrawal).where(withdrawal.c.id == number).values(undo=back))
        self._transaction.journal("restore", (None, "public", {"withdrawal": number}))

    def drop(self, number: int) -> None:
        """Forget a withdrawal."""
        self._transaction.execute(delete(withdrawal).where(withdrawal.c.id == number))
        self._transaction.journal("purge", (None, "public", {"withdrawal": number}))

    def old(self, days: int) -> list[tuple[int, dict[str, Any]]]:
        """Return the withdrawals of this namespace that are older than so many days."""
        own = self._transaction
        mine = (withdrawal.c.at < own.now - timedelta(days=days)) & (withdrawal.c.namespace_id == own.known_id)
        return [(row.id, row.undo) for row in own.execute(select(withdrawal).where(mine))]

    def drop_old(self, days: int) -> list[int]:
        """Remove for good what was withdrawn more than so many days ago, if it is still hidden; return the ids."""
        gone: list[int] = []
        hidden = memory.c.deleted_at.is_not(None)
        for number, undo in self.old(days):
            away = [taken for taken in ids_hidden_by(undo) if self._lookup.row(taken, hidden) is not None]
            if any(self._memories.hold_on(taken) for taken in away):
                continue  # until the hold is released
            gone += [taken for taken in away if self._memories.delete(taken, "purge")]
            self.drop(number)
        return gone
