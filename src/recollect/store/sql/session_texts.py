"""The texts that sessions keep of what became no memory, and the words that they must forget."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select, update

from recollect.store.sql.sessions import forget_words
from recollect.store.sql.tables import observation, session
from recollect.store.sql.transaction import Transaction


class NotedText(NamedTuple):
    """What a session keeps of something that became no memory: which observation, of which session, and its texts."""

    session: int
    number: int
    session_id: str
    owner: str
    at: datetime
    summary: str
    draft: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class SessionTexts:
    """Reads and writes the texts of sessions of the transaction's project."""

    _transaction: Transaction

    def noted(self) -> list[NotedText]:
        """Return the texts that sessions of this project keep of what became no memory, with where they came from."""
        texts = (observation.c.draft.is_not(None)) | (observation.c.summary != "")
        query = select(observation, session.c.session_id, session.c.owner)
        query = query.join(session, session.c.id == observation.c.session_row)
        rows = self._transaction.execute(query.where(session.c.project == self._transaction.namespace, texts))
        return [
            NotedText(row.session_row, row.number, row.session_id, row.owner, row.at, row.summary, row.draft)
            for row in rows
        ]

    def write(self, session_row: int, number: int, summary: str, draft: dict[str, Any] | None) -> None:
        """Write the texts of an observation."""
        mine = (observation.c.session_row == session_row) & (observation.c.number == number)
        self._transaction.execute(update(observation).where(mine).values(summary=summary, draft=draft))

    def forget_words(self, memory_ids: Collection[int], sessions: Collection[int]) -> None:
        """Let sessions know no words any more of what was withdrawn."""
        forget_words(self._transaction.connection, memory_ids, sessions)
