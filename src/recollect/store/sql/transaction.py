"""One open write transaction on one namespace: what it finds, the ids it takes, and the lines of its journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, Connection, CursorResult, Executable, Table, insert

from recollect.domain.enums import owned
from recollect.store import journal
from recollect.store.sql.dialect import Dialect
from recollect.store.sql.holds import NamespaceHolds, active_holds
from recollect.store.sql.tables import memory, namespace
from recollect.store.sql.visibility import namespace_ids, of_levels

_HIGHEST = 2**30  # no file may use up the ids that SQL and `parse_id` know, which go on to twice that


@dataclass(eq=False)
class Transaction:
    """What all subjects of a write share; `now` is the time of whatever it writes.

    It neither finds nor changes memories of other levels than its `levels`, which are as they are stored. What is not
    public belongs to the `owner`, who is the actor unless somebody else acts on their memories.
    Where the store has moved to another model than ours, it `embeds` nothing: what is written waits for that model.
    `changed` says whether it left something to do for the vector index.
    """

    connection: Connection
    dialect: Dialect
    namespace: str
    actor: str
    levels: Sequence[str]
    now: datetime
    embeds: bool
    owner: str = ""
    changed: bool = field(default=False, init=False)
    _id: int = field(default=0, init=False)

    @property
    def known_id(self) -> int:
        """Return the namespace's id, or 0 while nothing was stored in it."""
        if not self._id:
            self._id = namespace_ids(self.connection, [self.namespace]).get(self.namespace, 0)
        return self._id

    @property
    def namespace_id(self) -> int:
        """Return the namespace's id; it is made when there is none."""
        if not self.known_id:
            result = self.connection.execute(insert(namespace).values(name=self.namespace))
            self._id = int(result.inserted_primary_key[0])  # type: ignore[index]
        return self._id

    @cached_property
    def holds(self) -> NamespaceHolds:
        """Return the legal holds as they concern this namespace; none is set before this transaction ends."""
        return NamespaceHolds(self.namespace, active_holds(self.connection))

    def execute(self, statement: Executable, values: Any = None) -> CursorResult[Any]:
        """Run a statement in this transaction, once for each mapping where `values` is a list of them."""
        return self.connection.execute(statement, values)

    def here(self, *, away: bool = True) -> ColumnElement[bool]:
        """Select the memories that this transaction finds, also those that are `away`: all others do not exist."""
        return (memory.c.namespace_id == self.known_id) & of_levels(memory.c.sensitivity, self.levels, away=away)

    def claim_ids(self, table: Table, wanted: Sequence[int | None]) -> list[int]:
        """Return ids for new rows: those `wanted` that are free and not too high, and new ones for the others."""
        possible = [None if number is None or number > _HIGHEST else number for number in wanted]
        return self.dialect.claim_ids(self.connection, table, possible)

    def stored(self, level: str) -> str:
        """Return a level as it is stored: what is not public belongs to the owner."""
        return owned(level, self.owner or self.actor)

    def journal(self, action: str, *lines: tuple[int | None, str, dict[str, Any]]) -> None:
        """Add a line for each memory, its level and what changed in it, to the journal."""
        stored = ((memory_id, self.stored(level), changed) for memory_id, level, changed in lines)
        journal.extend(self.connection, self.namespace, self.actor, self.now, action, stored)


def origin(place: str) -> dict[str, str]:
    """Return what the journal says of where in a file something stood."""
    return {"from": place} if place else {}
