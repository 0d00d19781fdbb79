"""The append-only journal: every mutation leaves a line, each carries the hash of the one before in its namespace.

Lines name fields, never their values: neither a secret nor a forgotten text survives here. Each line also holds the
checksum of the row it is about, so that a row changed by hand shows: of every column and every list that somebody
wrote, and nothing that is derived (keywords, words, entities, vectors, usage). Whoever appends holds the write lock of
the namespace, so that each namespace has one chain; lines without a namespace have one of their own.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, Row, Select, Text, func, select, text, type_coerce

from recollect.domain.requests import Caller
from recollect.gate import clear
from recollect.store.sql.dialect import insert_all, select_in
from recollect.store.sql.mapping import LISTS
from recollect.store.sql.tables import EnumText, fact, journal, label, memory

Subject: TypeAlias = tuple[str, int]
"""What a line is about: `memory` or `fact`, and its id."""


class Signed(NamedTuple):
    """What the last line about something says: its checksum, and the memory it is or belongs to."""

    state: str
    memory_id: int | None


_DERIVED = {"keywords"}
_LATER = {"said_by", "came_from", "review"}
"""Columns that came after the first lines: what has none of them has the checksum that it had before."""
_TABLES = {"memory": memory, "fact": fact}
# A closed set is read as its text, so that a value from outside the set has a checksum too.
_COLUMNS = {
    name: [type_coerce(one, Text).label(one.name) if isinstance(one.type, EnumText) else one for one in table.c]
    for name, table in _TABLES.items()
}

FIRST = "0" * 64
"""Stands for the hash of the line before the first."""

SIGNED = ("at", "actor", "namespace", "action", "memory_id", "sensitivity", "changes", "state")
"""What the hash of a line covers, besides the hash of the line before."""
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
    """What a walk along the chains found: how many lines it read, and whether that were all.

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


def subject_of(memory_id: int | None, changes: Mapping[str, Any]) -> Subject | None:
    """Return what a line is about: the fact it names, else the memory; None for a line about neither."""
    if "fact" in changes:
        return "fact", int(changes["fact"])
    return None if memory_id is None else ("memory", memory_id)


def states_of(connection: Connection, subjects: Iterable[Subject]) -> dict[Subject, str]:
    """Return the checksum of each memory and fact as it stands now; one that is gone is absent."""
    ids: dict[str, set[int]] = defaultdict(set)
    for kind, number in subjects:
        ids[kind].add(number)
    lists: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    listed = select(label).where(label.c.kind.in_(LISTS)).order_by(label.c.memory_id, label.c.kind, label.c.position)
    for row in select_in(connection, listed, label.c.memory_id, ids["memory"]):
        lists[row.memory_id][row.kind].append(row.value)
    found = {}
    for kind in tuple(ids):
        table = _TABLES[kind]
        for row in select_in(connection, select(*_COLUMNS[kind]), table.c.id, ids[kind]):
            found[kind, row.id] = _state(row, lists[row.id] if kind == "memory" else {})
    return found


def altered(connection: Connection, signed: Mapping[Subject, Signed], *, whole: bool) -> Iterator[str]:
    """Name each memory and fact that differs from what its last line says, or is gone, or was never written.

    `signed` is of the `whole` journal, or of its newest lines.
    """
    now = states_of(connection, signed)
    for (kind, number), (state, memory_id) in sorted(signed.items()):
        stated_by = signed.get(("memory", memory_id or 0))
        if kind == "fact" and stated_by is not None and not stated_by.state:
            state = ""  # it went with the memory that stated it
        if now.get((kind, number), "") != state:
            yield f"{kind} {number} " + ("is gone" if (kind, number) not in now else "was changed")
    lines = select(journal.c.memory_id).where(journal.c.memory_id.is_not(None))
    added = [
        ("memory", one) for one in connection.execute(select(memory.c.id).where(memory.c.id.not_in(lines))).scalars()
    ]
    if whole:
        added += [
            ("fact", one) for one in connection.execute(select(fact.c.id)).scalars() if ("fact", one) not in signed
        ]
    yield from (f"{kind} {number} was added" for kind, number in added)
    columns = select(memory.c.id, memory.c.content, memory.c.content_hash)
    for row in select_in(connection, columns, memory.c.id, (number for kind, number in signed if kind == "memory")):
        if hashlib.sha256(row.content.encode()).hexdigest() != row.content_hash:
            yield f"the content of memory {row.id} does not have its hash"


def _state(row: Row[Any], lists: Mapping[str, list[str]]) -> str:
    said = ((name, value) for name, value in row._mapping.items() if name not in _DERIVED)
    values = {name: value for name, value in said if name not in _LATER or value is not None}
    dated = {name: _moment(value) if isinstance(value, datetime) else value for name, value in values.items()}
    canonical = json.dumps([dated, lists], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _moment(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds")
