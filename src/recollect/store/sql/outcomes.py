"""How requests ended, kept for a while: a client that did not hear the answer asks again under the same id."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection, select

from recollect.domain.results import Outcome, WriteStatus
from recollect.store.sql.tables import request_outcome

OF_NOTHING: Final = "0"
"""The id in an outcome that names no memory."""


def own_id(namespace: str, actor: str, operation: str, request_id: str) -> str:
    """Return the id as that of this actor, place and operation: no other request can have been this one."""
    return hashlib.sha256(json.dumps([namespace, actor, operation, request_id]).encode()).hexdigest()


def previous(
    connection: Connection, namespaces: Iterable[str], actor: str, operation: str, request_id: str
) -> Outcome | None:
    """Return how this very request ended in one of these namespaces; None for an empty id."""
    if not request_id:
        return None
    mine = request_outcome.c.request_id.in_([own_id(name, actor, operation, request_id) for name in namespaces])
    row = connection.execute(select(request_outcome).where(mine)).first()
    return None if row is None else Outcome(WriteStatus(row.status), row.memory_id, tuple(json.loads(row.notes)))
