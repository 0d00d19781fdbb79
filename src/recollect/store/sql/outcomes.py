"""How requests ended, kept for a while: a client that did not hear the answer asks again under the same id."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection, or_, select

from recollect.domain.results import Outcome, WriteStatus
from recollect.errors import InvalidInput
from recollect.store.sql.tables import request_outcome

OF_NOTHING: Final = "0"
"""The id in an outcome that names no memory."""


_OF_ID: Final = 40
"""How many of the 64 characters that are kept come from the id; the others come from what was asked."""


def own_id(namespace: str, actor: str, operation: str, request_id: str) -> str:
    """Return the id as that of this actor, place and operation: no other request can have been this one.

    What follows a line break in the id is what was asked under it, and makes the last characters.
    """
    key, _, asked = request_id.partition("\n")
    known = hashlib.sha256(json.dumps([namespace, actor, operation, key]).encode()).hexdigest()
    return known[:_OF_ID] + hashlib.sha256(asked.encode()).hexdigest()[_OF_ID:]


def previous(
    connection: Connection, namespaces: Iterable[str], actor: str, operation: str, request_id: str
) -> Outcome | None:
    """Return how this very request ended in one of these namespaces; None for an empty id.

    Raises `InvalidInput` where something else was asked under the same id.
    """
    if not request_id:
        return None
    mine = [own_id(name, actor, operation, request_id) for name in namespaces]
    ids = request_outcome.c.request_id
    of_id = [ids.between(one[:_OF_ID], one[:_OF_ID] + "g") for one in mine]  # "g" comes after all hexadecimal digits
    row = connection.execute(select(request_outcome).where(or_(*of_id))).first()
    if row is not None and row.request_id not in mine:
        raise InvalidInput(
            "Idempotency-Key", "Invalid Idempotency-Key: Another request was sent with it; each one needs its own"
        )
    return None if row is None else Outcome(WriteStatus(row.status), row.memory_id, tuple(json.loads(row.notes)))
