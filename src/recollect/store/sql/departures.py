"""Users who were deleted: what was chosen for their memories, how far that is, and the receipt at the end.

The row is written before anything of a person goes, and each step counts what it removed in its own transaction. So
whoever finds a departure without a receipt goes on with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from recollect.domain.leaving import Choice
from recollect.domain.limits import Holder, HolderKind
from recollect.store.journal import hash_of
from recollect.store.sql.database import Database
from recollect.store.sql.person_rows import drop_sessions, forget_members
from recollect.store.sql.request_rates import RATES, forget_requests
from recollect.store.sql.tables import departure, journal

SIGNING = "receipt"
"""The action of the line of the journal that holds the hash of a receipt."""


@dataclass(frozen=True, slots=True)
class DepartureState:
    """A deletion of a user as it stands; `line` is the id of the journal's line with which it began."""

    id: int
    user: str
    choice: Choice
    target: str
    actor: str
    begun_at: datetime
    line: int
    done: Mapping[str, int]
    receipt: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Signature:
    """The line of the journal that signs a receipt: its id, its hash, and whether both are as they were written."""

    line: int
    hash: str
    proven: bool


@dataclass(frozen=True, slots=True)
class Departures:
    """Reads the departures of a database."""

    _database: Database

    def of(self, user: str | None = None) -> list[DepartureState]:
        """Return the departures of a user, or all, the newest first."""
        query = select(departure).order_by(departure.c.id.desc())
        rows = self._database.rows(query if user is None else query.where(departure.c.person == user))
        return [_state_of(row) for row in rows]

    def unfinished(self, user: str) -> DepartureState | None:
        """Return the departure of a user that has no receipt yet, None without any."""
        return next((state for state in self.of(user) if state.receipt is None), None)

    def signature(self, state: DepartureState) -> Signature:
        """Return the line of the journal that signs the receipt of a departure, and compare both."""
        lines = select(journal).where(journal.c.action == SIGNING, journal.c.id > state.line).order_by(journal.c.id)
        for row in self._database.rows(lines):
            if row.changes.get("departure") == state.id:
                same = row.changes.get("sha256") == sha256_of(state.receipt or {})
                return Signature(row.id, row.hash, same and row.hash == hash_of(row))
        return Signature(0, "", False)

    def drop_sessions(self, state: DepartureState, seen: Callable[[object], None]) -> None:
        """Delete the sessions of the person who leaves, and how often they asked; `seen` first gets their texts."""
        with self._database.exclusive() as connection:
            add_done(connection, state.id, drop_sessions(connection, state.user, seen))
            add_done(connection, state.id, {RATES: forget_requests(connection, Holder(HolderKind.USER, state.user))})
            if state.choice is Choice.ERASE:
                forget_members(connection, state.user)

    def ids(self, state: DepartureState, action: str) -> list[int]:
        """Return the ids of the memories about which the journal has lines of this action since the departure began."""
        lines = select(journal.c.memory_id).where(journal.c.action == action, journal.c.id > state.line)
        rows = self._database.rows(lines.where(journal.c.memory_id.is_not(None)).distinct())
        return sorted(row.memory_id for row in rows)


@dataclass(frozen=True, slots=True)
class DepartureWriting:
    """Writes departures in an open transaction."""

    _connection: Connection

    def begin(self, user: str, choice: Choice, target: str, actor: str, at: datetime, line: int) -> None:
        """Write that the deletion of a user has begun."""
        values = {"person": user, "choice": str(choice), "target": target, "actor": actor, "begun_at": at}
        self._connection.execute(insert(departure).values(values | {"line": line, "done": {}}))

    def unfinished(self, user: str) -> DepartureState | None:
        """Return the departure of a user that has no receipt yet, None without any."""
        query = select(departure).where(departure.c.person == user, departure.c.ended_at.is_(None))
        row = self._connection.execute(query).first()
        return None if row is None else _state_of(row)

    def end(self, number: int, receipt: Mapping[str, Any], at: datetime) -> None:
        """Write the receipt of a departure, which ends it."""
        here = update(departure).where(departure.c.id == number)
        self._connection.execute(here.values(receipt=dict(receipt), ended_at=at))


def add_done(connection: Connection, number: int, counts: Mapping[str, int]) -> None:
    """Add to what a departure has removed, in the transaction that removes it."""
    here = departure.c.id == number
    before = connection.execute(select(departure.c.done).where(here).with_for_update()).scalar_one()
    done = {name: before.get(name, 0) + counts.get(name, 0) for name in sorted({*before, *counts})}
    connection.execute(update(departure).where(here).values(done=done))


def sha256_of(receipt: Mapping[str, Any]) -> str:
    """Return the SHA-256 in hex of a receipt as JSON with sorted names and no spaces."""
    canonical = json.dumps(receipt, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _state_of(row: Row[Any]) -> DepartureState:
    return DepartureState(
        id=row.id,
        user=row.person,
        choice=Choice(row.choice),
        target=row.target,
        actor=row.actor,
        begun_at=row.begun_at,
        line=row.line,
        done=dict(row.done),
        receipt=row.receipt,
    )
