"""The append-only journal: every mutation leaves a line, each carries the hash of the one before in its namespace.

Lines name fields, never their values: neither a secret nor a forgotten text survives here. Each line also holds the
checksum of the row it is about (`journal_state`). Whoever appends holds the write lock of the namespace, so that each
namespace has one chain; lines without a namespace have one of their own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Integer, Row, Select, Subquery, Text, column, func, select, text

from recollect.domain.requests import Caller
from recollect.gate import clear
from recollect.store.journal_state import Signed, Subject, states_of, subject_of
from recollect.store.sql.statements import insert_all
from recollect.store.sql.tables import journal

FIRST = "0" * 64
"""The hash that a first line names as that of the line before."""

SIGNED = ("at", "actor", "namespace", "action", "memory_id", "sensitivity", "changes", "state")
"""The columns that the hash of a line covers, besides the hash of the line before."""
_LAST_IDS = text(
    """WITH RECURSIVE known(namespace) AS (
        SELECT min(namespace) FROM journal UNION ALL
        SELECT (SELECT min(namespace) FROM journal WHERE namespace > known.namespace)
        FROM known WHERE namespace IS NOT NULL)
    SELECT namespace, (SELECT max(id) FROM journal WHERE journal.namespace = known.namespace) AS id
    FROM known WHERE namespace IS NOT NULL"""
)


@dataclass(frozen=True, slots=True)
class Walked:
    """The result of a walk along the chains: how many lines it read, and whether those were all.

    `broken` has the first line of each namespace that does not follow from the one before, or was changed; `signed`
    what the last line of each memory and fact says.
    """

    lines: int
    whole: bool
    broken: dict[str, int]
    signed: dict[Subject, Signed]


def extend(
    connection: Connection,
    namespace: str,
    actor: str,
    at: datetime,
    action: str,
    changes: Iterable[tuple[int | None, str, dict[str, Any]]],
) -> None:
    """Add a line for each memory, its level and what changed in it, inside the transaction that has written it."""
    refuse_secret_names(namespace, actor)
    newest = select(journal.c.hash).where(journal.c.namespace == namespace).order_by(journal.c.id.desc()).limit(1)
    previous = connection.execute(newest).scalar() or FIRST
    wanted = [(one, level, changed, subject_of(one, changed)) for one, level, changed in changes]
    states = states_of(connection, (subject for *_, subject in wanted if subject is not None))
    rows = []
    for memory_id, level, changed, subject in wanted:
        line = {"at": at, "actor": actor, "namespace": namespace, "action": action, "memory_id": memory_id}
        line |= {"sensitivity": str(level), "changes": changed, "state": states.get(subject, "") if subject else ""}
        rows.append(line | {"previous": previous, "hash": chained(previous, line)})
        previous = rows[-1]["hash"]
    insert_all(connection, journal, rows)


@lru_cache(maxsize=256)
def refuse_secret_names(namespace: str, actor: str) -> None:
    """Raise `SecretFound` for a user, team or project whose name holds a secret; every write comes by here.

    It is not journalled: the line itself would hold the secret.
    """
    scope, _, name = namespace.partition(":")
    team, _, project = name.partition("/") if scope == "project" else (name * (scope == "team"), "", "")
    for user in {actor, name if scope == "user" else actor}:
        clear(Caller.model_construct(user=user, team=team, project=project))


def walk(connection: Connection, newest: int | None = None) -> Walked:
    """Walk every chain and check each line; with `newest` only so many of the last lines of the whole journal."""
    tips: dict[str, str] = {}
    found: dict[str, int] = {}
    signed: dict[Subject, Signed] = {}
    lines = 0
    query, partly = _from_newest(connection, newest)
    for row in connection.execute(query).yield_per(1000):
        follows = row.previous == tips.get(row.namespace, row.previous if partly else FIRST)
        if not follows or row.hash != hash_of(row):
            found.setdefault(row.namespace, row.id)
        tips[row.namespace] = row.hash
        if (subject := subject_of(row.memory_id, row.changes)) is not None:
            signed[subject] = Signed(row.state, row.memory_id)
        lines += 1
    return Walked(lines, not partly, found, signed)


def last_ids(connection: Connection) -> dict[str, int]:
    """Return the id of the last line of each namespace."""
    return {row.namespace: row.id for row in connection.execute(_LAST_IDS)}


def tips() -> Subquery:
    """Return a table of each `namespace` and the `id` of its last line, found without reading the lines before it."""
    return _LAST_IDS.columns(column("namespace", Text), column("id", Integer)).subquery("tips")


def hash_of(row: Row[Any]) -> str:
    """Return the hash that a line of the journal must have."""
    return chained(row.previous, {name: getattr(row, name) for name in SIGNED})


def chained(previous: str, line: dict[str, Any]) -> str:
    """Return the hash of a line that follows the one with the hash `previous`."""
    dated = line | {"at": line["at"].astimezone(UTC).isoformat(timespec="microseconds")}
    canonical = json.dumps(dated, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{previous}\n{canonical}".encode()).hexdigest()


def _from_newest(connection: Connection, newest: int | None) -> tuple[Select[Any], bool]:
    """Select the lines of a walk in their order; say whether it begins in the middle of the chains."""
    query = select(journal).order_by(journal.c.id)
    last = connection.execute(select(func.max(journal.c.id))).scalar() or 0
    if newest is None or last <= newest:
        return query, False
    return query.where(journal.c.id > last - newest), True
