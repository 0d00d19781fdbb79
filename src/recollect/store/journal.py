"""The append-only journal: every mutation leaves a line, each carries the hash of the one before in its namespace.

Lines name fields, never their values: neither a secret nor a forgotten text survives here. Whoever appends holds the
write lock of the namespace, so that each namespace has one chain; lines without a namespace have one of their own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, select

from recollect.store.sql.statements import insert_all
from recollect.store.sql.tables import journal

FIRST = "0" * 64
"""Stands for the hash of the line before the first."""

_SIGNED = ("at", "actor", "namespace", "action", "memory_id", "changes")


def extend(
    connection: Connection,
    namespace: str,
    actor: str,
    at: datetime,
    action: str,
    changes: Iterable[tuple[int | None, dict[str, Any]]],
) -> None:
    """Add a line for each memory and what changed in it, inside the caller's write transaction."""
    newest = select(journal.c.hash).where(journal.c.namespace == namespace).order_by(journal.c.id.desc()).limit(1)
    previous = connection.execute(newest).scalar() or FIRST
    rows = []
    for memory_id, changed in changes:
        line = {"at": at, "actor": actor, "namespace": namespace, "action": action}
        line |= {"memory_id": memory_id, "changes": changed}
        rows.append(line | {"previous": previous, "hash": chained(previous, line)})
        previous = rows[-1]["hash"]
    insert_all(connection, journal, rows)


def broken(connection: Connection) -> dict[str, int]:
    """Walk every chain; return the first line that was tampered with in each namespace that has one."""
    tips: dict[str, str] = {}
    found: dict[str, int] = {}
    for row in connection.execute(select(journal).order_by(journal.c.id)).yield_per(1000):
        line = {name: getattr(row, name) for name in _SIGNED}
        if row.previous != tips.get(row.namespace, FIRST) or row.hash != chained(row.previous, line):
            found.setdefault(row.namespace, row.id)
        tips[row.namespace] = row.hash
    return found


def chained(previous: str, line: dict[str, Any]) -> str:
    """Return the hash of a line that follows the one with the hash `previous`."""
    dated = line | {"at": line["at"].astimezone(UTC).isoformat(timespec="microseconds")}
    canonical = json.dumps(dated, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{previous}\n{canonical}".encode()).hexdigest()
