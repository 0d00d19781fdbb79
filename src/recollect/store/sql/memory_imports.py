"""Memories out of a file in a write transaction: written many at once, and linked once all of the file are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select, update

from recollect.domain.enums import strictest
from recollect.domain.transfer import MemoryLink
from recollect.store.entries import ImportedMemory
from recollect.store.sql.memory_writing import LINKED_LATER, MemoryWriting, fields_of
from recollect.store.sql.tables import level_of, memory
from recollect.store.sql.transaction import Transaction, origin


@dataclass(frozen=True, slots=True)
class MemoryImports:
    """Writes imported memories in one open transaction."""

    _transaction: Transaction
    _memories: MemoryWriting

    def insert(self, imported: Sequence[ImportedMemory]) -> list[int]:
        """Write memories out of a file and return their ids: those they had, where no memory here ever had them.

        Which memories they gave way to is not known before all of the file are there: `link` says so.
        """
        pairs = [(each.entry, each.record.value) for each in imported]
        ids = self._memories.insert_rows(pairs)
        lines = (
            (memory_id, entry.cleared.value.sensitivity, fields_of(entry) | origin(state.origin))
            for memory_id, (entry, state) in zip(ids, pairs, strict=True)
        )
        self._transaction.journal("import", *lines)
        return ids

    def link(self, wanted: MemoryLink) -> bool:
        """Write which memory an imported one gave way to, now that all are there; return whether that can be.

        A memory gives way within its namespace, and never to itself, at whatever remove.
        """
        own = self._transaction
        possible = True
        for name in ("superseded_by", "merged_into"):
            target = getattr(wanted, name)
            levels = self._levels_of_link(wanted.id, target, name) if target is not None else ()
            if levels:
                waiting = (memory.c.id == wanted.id) & own.here() & (memory.c[name] == LINKED_LATER)
                own.execute(update(memory).where(waiting).values({name: target}))
                own.journal("update", (wanted.id, strictest(*levels), {name: target}))
            elif target is not None:
                possible = False
        return possible

    def _levels_of_link(self, memory_id: int, to: int, name: str) -> Sequence[str]:
        """Return the levels of both memories, if this transaction finds them and no way on leads back to the first."""
        own = self._transaction
        both = select(level_of(memory)).where(own.here(), memory.c.id.in_({memory_id, to}))
        levels = own.execute(both).scalars().all()
        if len(levels) != 2 or (name == "merged_into" and levels[0] != levels[1]):
            return ()
        at: int | None = to
        while at and at != memory_id:
            at = own.execute(select(memory.c[name]).where(memory.c.id == at)).scalar()
        return levels if at != memory_id else ()
