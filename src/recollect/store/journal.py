"""The append-only journal: every mutation leaves a line, each line carries the hash of the one before.

Lines name fields, never their values: neither a secret nor a forgotten text survives here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, insert, select

from recollect.domain import JournalEntry
from recollect.store.rows import journal

_FIRST = "0" * 64


def append(
    connection: Connection,
    *,
    at: datetime,
    actor: str,
    namespace: str,
    action: str,
    memory_id: int | None,
    changes: dict[str, Any],
) -> None:
    """Add one line inside the caller's write transaction."""
    last = select(journal.c.hash).order_by(journal.c.id.desc()).limit(1)
    previous = connection.execute(last).scalar() or _FIRST
    line = {
        "at": at.astimezone(UTC).isoformat(timespec="microseconds"),
        "actor": actor,
        "namespace": namespace,
        "action": action,
        "memory_id": memory_id,
        "changes": changes,
    }
    connection.execute(
        insert(journal).values(**(line | {"at": at, "previous": previous, "hash": _hash(previous, line)}))
    )


def history(connection: Connection, memory_id: int, namespaces: Sequence[str]) -> list[JournalEntry]:
    """Return the lines of one memory, oldest first, as far as they lie in `namespaces`."""
    mine = (journal.c.memory_id == memory_id) & journal.c.namespace.in_(namespaces)
    rows = connection.execute(select(journal).where(mine).order_by(journal.c.id))
    return [
        JournalEntry(row.id, row.at, row.actor, row.namespace, row.action, row.memory_id, row.changes, row.hash)
        for row in rows
    ]


def first_broken(connection: Connection) -> int | None:
    """Walk the whole chain; return the id of the first line that was tampered with, or None."""
    previous = _FIRST
    for row in connection.execute(select(journal).order_by(journal.c.id)).yield_per(1000):
        line = {
            "at": row.at.astimezone(UTC).isoformat(timespec="microseconds"),
            "actor": row.actor,
            "namespace": row.namespace,
            "action": row.action,
            "memory_id": row.memory_id,
            "changes": row.changes,
        }
        if row.previous != previous or row.hash != _hash(previous, line):
            return int(row.id)
        previous = row.hash
    return None


def _hash(previous: str, line: dict[str, Any]) -> str:
    canonical = json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{previous}\n{canonical}".encode()).hexdigest()
