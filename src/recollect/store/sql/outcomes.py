"""How requests ended: kept under a hash of the request's id, so that a retry gets its first answer again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, delete, insert, or_, select

from recollect.domain.results import Outcome, WriteStatus
from recollect.errors import InvalidInput
from recollect.store.sql.database import Database
from recollect.store.sql.tables import request_outcome
from recollect.store.sql.transaction import Transaction

OF_NOTHING: Final = "0"
"""The id in an outcome that names no memory."""
_OF_ID: Final = 40
"""How many of the 64 characters that are kept of a request come from its id; the others from what was asked."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Reads how requests ended, and drops old outcomes."""

    _database: Database

    def previous(self, namespaces: Sequence[str], actor: str, operation: str, request_id: str) -> Outcome | None:
        """Return how this very request ended in one of these namespaces; None for an empty id."""
        if not request_id:
            return None
        with self._database.reading() as connection:
            return _previous_outcome(connection, namespaces, actor, operation, request_id)

    def drop(self, before: datetime) -> None:
        """Drop the outcomes of requests older than `before`: nobody retries those any more.

        Those that name no memory stay: they say that something was done once and for all.
        """
        kept = request_outcome
        with self._database.writing() as connection:
            connection.execute(delete(kept).where((kept.c.at < before) & (kept.c.memory_id != OF_NOTHING)))


@dataclass(frozen=True, slots=True)
class OutcomeWriting:
    """Reads and keeps the outcomes of requests in one open transaction."""

    _transaction: Transaction

    def previous(self, operation: str, request_id: str) -> Outcome | None:
        """Return how this very request ended when it was made before, so that a retry does nothing twice."""
        own = self._transaction
        return _previous_outcome(own.connection, [own.namespace], own.actor, operation, request_id)

    def record(self, operation: str, request_id: str, outcome: Outcome) -> None:
        """Keep the outcome under the request's id, in the transaction of the write itself.

        An id that is no number names no memory, now or later; it may be any text, even a secret, and is not kept.
        """
        own = self._transaction
        if request_id and outcome.id.isdecimal():
            kept = {"status": str(outcome.status), "memory_id": outcome.id, "notes": json.dumps(outcome.notes)}
            kept["request_id"] = _hash_of_request(own.namespace, own.actor, operation, request_id)
            own.execute(insert(request_outcome).values(at=own.now, **kept))


def _hash_of_request(namespace: str, actor: str, operation: str, request_id: str) -> str:
    """Return the hash of a request's id with its actor, namespace and operation, so that no other request has it.

    What follows a line break in the id is what was asked under it, and makes the last characters.
    """
    key, _, asked = request_id.partition("\n")
    known = hashlib.sha256(json.dumps([namespace, actor, operation, key]).encode()).hexdigest()
    return known[:_OF_ID] + hashlib.sha256(asked.encode()).hexdigest()[_OF_ID:]


def _previous_outcome(
    connection: Connection, namespaces: Iterable[str], actor: str, operation: str, request_id: str
) -> Outcome | None:
    """Return how the request with this id ended in one of these namespaces; None for an empty or unknown id.

    Raises `InvalidInput` where something else was asked under the same id.
    """
    if not request_id:
        return None
    mine = [_hash_of_request(name, actor, operation, request_id) for name in namespaces]
    ids = request_outcome.c.request_id
    of_id = [ids.between(own[:_OF_ID], own[:_OF_ID] + "g") for own in mine]  # "g" comes after all hexadecimal digits
    row = connection.execute(select(request_outcome).where(or_(*of_id))).first()
    if row is not None and row.request_id not in mine:
        raise InvalidInput(
            "Idempotency-Key", "Invalid Idempotency-Key: Another request was sent with it; each one needs its own"
        )
    return None if row is None else Outcome(WriteStatus(row.status), row.memory_id, tuple(json.loads(row.notes)))
