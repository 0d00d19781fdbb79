"""Checksums of memories and facts, as the journal keeps them, so that a row changed by hand shows.

A checksum covers every column and every list that somebody wrote, and nothing that is derived (keywords, words,
entities, vectors, usage), which can be built again from these.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, Row, Text, select, type_coerce

from recollect.store.sql.column_types import EnumText
from recollect.store.sql.mapping import LISTS
from recollect.store.sql.statements import select_in
from recollect.store.sql.tables import fact, journal, label, memory

Subject: TypeAlias = tuple[str, int]
"""The memory or fact that a line is about: `memory` or `fact`, and its id."""

_DERIVED = {"keywords"}
_LATER = {"said_by", "came_from", "review"}
"""Columns that came after the first lines: what has none of them has the checksum that it had before."""
_TABLES = {"memory": memory, "fact": fact}
# A closed set is read as its text, so that a value from outside the set has a checksum too.
_COLUMNS = {
    name: [type_coerce(one, Text).label(one.name) if isinstance(one.type, EnumText) else one for one in table.c]
    for name, table in _TABLES.items()
}


class Signed(NamedTuple):
    """The last line about a memory or fact: its checksum, and the id of the memory, or of the memory of the fact."""

    state: str
    memory_id: int | None


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
            found[kind, row.id] = _checksum(row, lists[row.id] if kind == "memory" else {})
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


def _checksum(row: Row[Any], lists: Mapping[str, list[str]]) -> str:
    """Return the SHA-256 (hex) of a row and of its lists of labels, without derived columns."""
    said = ((name, value) for name, value in row._mapping.items() if name not in _DERIVED)
    values = {name: value for name, value in said if name not in _LATER or value is not None}
    dated = {name: _utc_text(value) if isinstance(value, datetime) else value for name, value in values.items()}
    canonical = json.dumps([dated, lists], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _utc_text(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds")
