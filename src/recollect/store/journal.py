"""The append-only journal: every mutation leaves a line, each line carries the hash of the one before.

Lines name fields, never their values: neither a secret nor a forgotten text survives here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Text, cast, exists, insert, select

from recollect.domain import JournalEntry, KeptLine, Sensitivity
from recollect.store.rows import QUARANTINED, in_batches, journal, memory

FIRST = "0" * 64
"""Stands for the hash of the line before the first."""

_SIGNED = ("at", "actor", "namespace", "action", "memory_id", "changes")


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
    line = {"at": at, "actor": actor, "namespace": namespace, "action": action}
    extend(connection, [line | {"memory_id": memory_id, "changes": changes}])


def extend(connection: Connection, lines: Sequence[dict[str, Any]]) -> None:
    """Add lines, each with what `append` takes by name, inside the caller's write transaction."""
    previous = last(connection)
    values = []
    for line in lines:
        following = chained(previous, line)
        values.append(line | {"previous": previous, "hash": following})
        previous = following
    if values:
        connection.execute(insert(journal), values)


def last(connection: Connection) -> str:
    """Return the hash of the last line, or what stands for it where there is none."""
    newest = select(journal.c.hash).order_by(journal.c.id.desc()).limit(1)
    return connection.execute(newest).scalar() or FIRST


def restore(connection: Connection, lines: Iterable[KeptLine], *, rechained: bool) -> str | None:
    """Write lines of another journal behind the last, under their own numbers, and return the hash of the last.

    With `rechained` they get new hashes; without it, None is returned and nothing written when one does not follow.
    """
    previous = last(connection)
    values = []
    for one in lines:
        line = one.model_dump(exclude={"id", "hash"})
        following = chained(previous, line)
        if not rechained and following != one.hash:
            return None
        values.append(line | {"id": one.id, "previous": previous, "hash": following})
        previous = following
    if values:
        connection.execute(insert(journal), values)
    return previous


def same(connection: Connection, lines: Sequence[KeptLine]) -> str | None:
    """Return the hash of the last of `lines` when all of them stand in the journal under their numbers."""
    found: dict[int, Any] = {}
    for batch in in_batches(one.id for one in lines):
        found |= {row.id: row for row in connection.execute(select(journal).where(journal.c.id.in_(batch)))}
    there = all(
        one.id in found and all(getattr(found[one.id], name) == getattr(one, name) for name in _SIGNED) for one in lines
    )
    return str(found[lines[-1].id].hash) if there and lines else None


def knows(connection: Connection, memory_ids: Iterable[int], namespace: str) -> set[int]:
    """Return those of `memory_ids` of which the journal tells in this namespace."""
    found: set[int] = set()
    for batch in in_batches(memory_ids):
        mine = (journal.c.namespace == namespace) & journal.c.memory_id.in_(batch)
        found.update(connection.execute(select(journal.c.memory_id).where(mine)).scalars())
    return found


def facts_told(connection: Connection, namespace: str) -> set[int]:
    """Return the facts of which the journal tells in this namespace."""
    mine = (journal.c.namespace == namespace) & cast(journal.c.changes, Text).like('%"fact"%')
    told = connection.execute(select(journal.c.changes).where(mine)).scalars()
    return {one["fact"] for one in told if isinstance(one.get("fact"), int)}


def history(
    connection: Connection, memory_id: int, namespaces: Sequence[str], levels: Sequence[Sensitivity]
) -> list[JournalEntry]:
    """Return the lines of one memory, oldest first, as far as they lie in `namespaces`.

    Of a memory that is there, but of none of the `levels`, there are none; what is in quarantine still says that.
    """
    told = [*(str(level) for level in levels), QUARANTINED]
    denied = exists().where(memory.c.id == memory_id, memory.c.sensitivity.not_in(told))
    mine = (journal.c.memory_id == memory_id) & journal.c.namespace.in_(namespaces)
    rows = connection.execute(select(journal).where(mine, ~denied).order_by(journal.c.id))
    return [
        JournalEntry(row.id, row.at, row.actor, row.namespace, row.action, row.memory_id, row.changes, row.hash)
        for row in rows
    ]


def first_broken(connection: Connection) -> int | None:
    """Walk the whole chain; return the id of the first line that was tampered with, or None."""
    previous = FIRST
    for row in connection.execute(select(journal).order_by(journal.c.id)).yield_per(1000):
        line = {name: getattr(row, name) for name in _SIGNED}
        if row.previous != previous or row.hash != chained(previous, line):
            return int(row.id)
        previous = row.hash
    return None


def chained(previous: str, line: dict[str, Any]) -> str:
    """Return the hash of a line that follows the one with the hash `previous`."""
    plain = line | {"at": line["at"].astimezone(UTC).isoformat(timespec="microseconds")}
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{previous}\n{canonical}".encode()).hexdigest()
