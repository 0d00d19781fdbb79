"""The lines of the journal about memories: read as the history of a memory, written where nothing else is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recollect.domain.enums import Sensitivity
from recollect.domain.results import JournalEntry
from recollect.engines.reconcile import Judgement
from recollect.store.sql import mapping, tables
from recollect.store.sql.database import Database
from recollect.store.sql.memory_lookup import MemoryLookup
from recollect.store.sql.transaction import Transaction
from recollect.store.sql.visibility import of_lines


@dataclass(frozen=True, slots=True)
class JournalLines:
    """Reads lines of the journal."""

    _database: Database

    def history(
        self, memory_id: int, namespaces: Sequence[str], levels: Sequence[str] = (Sensitivity.PUBLIC,)
    ) -> list[JournalEntry]:
        """Return the journal of one memory, oldest first, as far as it lies in `namespaces` and was of these levels."""
        mine = (tables.journal.c.memory_id == memory_id) & tables.journal.c.namespace.in_(namespaces)
        with self._database.reading() as connection:
            return mapping.lines(connection, mine & of_lines(levels))


@dataclass(frozen=True, slots=True)
class JournalWriting:
    """Writes lines about what changed no row, in one open transaction."""

    _transaction: Transaction
    _lookup: MemoryLookup

    def refuse(self, field: str, kinds: Sequence[str], level: str = Sensitivity.PUBLIC) -> None:
        """Journal that the gate refused something of a level: the field and the kinds, never a value."""
        self._transaction.journal("refuse", (None, level, {"field": field, "kinds": list(kinds)}))

    def judge(self, memory_id: int, judgement: Judgement, about: int | None) -> None:
        """Journal the choice of a language model about a memory's text, and which older memory that is about."""
        choice = {"choice": str(judgement.choice), "reason": str(judgement.reason)}
        row = self._lookup.row(memory_id)
        level = Sensitivity.SECRET if row is None else row.level
        self._transaction.journal("judge", (memory_id, level, choice | ({} if about is None else {"about": about})))
