"""One open write transaction on one namespace: the ids it takes, and the lines it adds to the journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, insert

from recollect.domain.enums import owned
from recollect.store import journal
from recollect.store.sql.dialect import Dialect
from recollect.store.sql.tables import namespace
from recollect.store.sql.visibility import namespace_ids

_HIGHEST = 2**30  # no file may use up the ids that SQL and `parse_id` know, which go on to twice that


@dataclass(eq=False)
class Transaction:
    """The transaction of every part of `Writing`; `now` is the time of whatever it writes.

    What is of none of its `levels`, as they are stored, it neither finds nor changes.
    Where the store has moved to another model than ours, it `embeds` nothing: what is written waits for that one.
    `changed` says whether it left something to do for the vector index.
    """

    _connection: Connection
    _dialect: Dialect
    _namespace: str
    _actor: str
    _levels: Sequence[str]
    _now: datetime
    _embeds: bool
    _id: int = field(default=0, init=False)
    changed: bool = field(default=False, init=False)

    @property
    def _known_id(self) -> int:
        """Return the namespace's id, or 0 while nothing was stored in it."""
        if not self._id:
            self._id = namespace_ids(self._connection, [self._namespace]).get(self._namespace, 0)
        return self._id

    @property
    def _namespace_id(self) -> int:
        """Return the namespace's id; it is made when there is none."""
        if not self._known_id:
            result = self._connection.execute(insert(namespace).values(name=self._namespace))
            self._id = int(result.inserted_primary_key[0])  # type: ignore[index]
        return self._id

    def _claim_ids(self, table: Table, wanted: Sequence[int | None]) -> list[int]:
        """Return ids for new rows: those `wanted` that are free and not too high, and new ones for the others."""
        possible = [None if one is None or one > _HIGHEST else one for one in wanted]
        return self._dialect.claim_ids(self._connection, table, possible)

    def _stored(self, level: str) -> str:
        """Return a level as it is stored: what is not public belongs to whoever writes."""
        return owned(level, self._actor)

    def _journal(self, action: str, *lines: tuple[int | None, str, dict[str, Any]]) -> None:
        """Add a line for each memory, its level and what changed in it, to the journal."""
        stored = ((memory_id, self._stored(level), changed) for memory_id, level, changed in lines)
        journal.extend(self._connection, self._namespace, self._actor, self._now, action, stored)


def origin(place: str) -> dict[str, str]:
    """Return what the journal says of where in a file something stood."""
    return {"from": place} if place else {}
