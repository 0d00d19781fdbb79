"""Between rows and nouns: how a memory is read from its tables, and which rows a view may see.

`visible` is the one home of scope, sensitivity, expiry and deletion: every read of memories goes through it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    func,
    literal,
    literal_column,
    or_,
    select,
)

from recollect.domain import (
    Entity,
    EntityType,
    FactType,
    Memory,
    Observation,
    Scope,
    Sensitivity,
    Source,
    Standing,
    View,
)
from recollect.store import filters, tables

_tables = tables.metadata.tables
namespace = _tables["namespace"]
memory = _tables["memory"]
label = _tables["label"]
usage = _tables["usage"]
vector = _tables["vector"]
outbox = _tables["outbox"]
word = _tables["word"]
speaker = _tables["speaker"]
memory_words = _tables["memory_words"]
journal = _tables["journal"]
stamp = _tables["stamp"]
answered = _tables["answered"]
fact = _tables["fact"]
beside = _tables["vector_beside"]

T = TypeVar("T")

QUARANTINED = "quarantined"
"""The level of sensitivity of what is in quarantine: no read lets it in, since it is none of the known ones."""

_one = memory.alias("one")

_SCOPES = {"user": Scope.PERSONAL, "project": Scope.PROJECT, "team": Scope.TEAM}
_STANDING = (
    "id",
    "fact_type",
    "importance",
    "trust",
    "updated_at",
    "speaker",
    "session_id",
    "position",
    "observed_at",
)
_BATCH = 500


def namespace_ids(connection: Connection, names: Sequence[str]) -> dict[str, int]:
    """Return the ids of those namespaces that exist; a namespace never goes, so each connection remembers it."""
    known: dict[str, int] = connection.info.setdefault("namespaces", {})
    if missing := [name for name in names if name not in known]:
        found = connection.execute(select(namespace.c.name, namespace.c.id).where(namespace.c.name.in_(missing)))
        known |= {row.name: row.id for row in found}
    return {name: known[name] for name in names if name in known}


def shown() -> ColumnElement[bool]:
    """Select what the indexes hold: neither softly deleted nor merged into another memory."""
    return and_(memory.c.deleted_at.is_(None), memory.c.merged_into.is_(None))


def alive(now: datetime) -> ColumnElement[bool]:
    """Select what is neither deleted, nor merged into another, nor expired."""
    return and_(shown(), or_(memory.c.expires_at.is_(None), memory.c.expires_at > now))


def visible(view: View, namespaces: Iterable[int]) -> ColumnElement[bool]:
    """Select what `view` may see; a level of sensitivity that is not allowed by name is denied.

    SQLite takes a namespace for more selective than a list of ids and would walk all of it at every look-up, so
    this keeps it from the index. A query that means to walk a namespace adds `inside`.
    """
    return _seen(view, tuple(namespaces))


@lru_cache(maxsize=64)  # one recall asks several times, and building the condition costs as much as running it
def _seen(view: View, namespaces: tuple[int, ...]) -> ColumnElement[bool]:
    conditions = [
        (memory.c.namespace_id + literal_column("0")).in_(namespaces),
        memory.c.sensitivity.in_([str(level) for level in view.sensitivities]),
        alive(view.now),
    ]
    if not view.superseded:
        conditions.append(memory.c.superseded_by.is_(None))
    return and_(*conditions, *filters.asked(view))


def inside(namespaces: Iterable[int]) -> ColumnElement[bool]:
    """Let a query walk these namespaces through an index; it still needs `visible`."""
    return memory.c.namespace_id.in_(list(namespaces))


def passing(view: View, namespaces: Iterable[int]) -> Select[int]:
    """Select the id of everything that `view` may see; the look-up begins with the rarest label it asks for."""
    seen, rarest = visible(view, namespaces), filters.rarest(view)
    if rarest is None:
        return select(memory.c.id).where(seen, inside(namespaces))
    labelled = select(memory.c.id).join(label, label.c.memory_id == memory.c.id)
    return labelled.where(rarest, seen).distinct()


def load(connection: Connection, condition: ColumnElement[bool]) -> list[Memory]:
    """Read every memory that meets `condition`, with its labels and usage."""
    query = (
        select(memory, namespace.c.name.label("namespace"), usage.c.accessed_count, usage.c.recalled_count)
        .add_columns(usage.c.last_accessed_at)
        .join(namespace, namespace.c.id == memory.c.namespace_id)
        .outerjoin(usage, usage.c.memory_id == memory.c.id)
        .where(condition)
    )
    rows = connection.execute(query).all()
    labels = _labels(connection, [row.id for row in rows])
    return [_memory(row, labels[row.id]) for row in rows]


def standings(connection: Connection, condition: ColumnElement[bool]) -> list[Standing]:
    """Read what ranking needs of every memory that meets `condition`."""
    query = (
        select(*(memory.c[name] for name in _STANDING), usage.c.accessed_count, usage.c.recalled_count)
        .outerjoin(usage, usage.c.memory_id == memory.c.id)
        .where(condition)
    )
    return [
        Standing(
            id=row.id,
            fact_type=FactType(row.fact_type),
            importance=row.importance,
            trust=row.trust,
            updated_at=row.updated_at,
            accessed_count=row.accessed_count or 0,
            recalled_count=row.recalled_count or 0,
            speaker=row.speaker,
            session_id=row.session_id,
            position=row.position,
            observed_at=row.observed_at,
        )
        for row in connection.execute(query)
    ]


def neighbours(
    connection: Connection, ids: Sequence[int], reach: int, seen: ColumnElement[bool]
) -> list[tuple[int, int]]:
    """Return (id, neighbour) for whatever `seen` selects at most `reach` places from one of `ids`, nearest first."""
    away = memory.c.position - _one.c.position
    far = literal(reach, BigInteger)  # the last position there can be, and one more, is no INTEGER
    query = (
        select(_one.c.id, memory.c.id.label("neighbour"))
        .join(memory, (memory.c.namespace_id == _one.c.namespace_id) & (memory.c.session_id == _one.c.session_id))
        .where(_one.c.id.in_(ids), memory.c.id != _one.c.id, seen)
        .where(memory.c.position.between(_one.c.position - far, _one.c.position + far))
        .order_by(func.abs(away), away, memory.c.id)
    )
    return [(row.id, row.neighbour) for row in connection.execute(query)]


def scope_of(name: str) -> Scope:
    """Return the scope to which a namespace of this name belongs."""
    return _SCOPES[name.partition(":")[0]]


def in_batches(values: Iterable[T]) -> Iterable[list[T]]:
    """Cut `values` into lists short enough for one statement."""
    wanted = list(values)
    return (wanted[start : start + _BATCH] for start in range(0, len(wanted), _BATCH))


def _labels(connection: Connection, ids: Sequence[int]) -> dict[int, dict[str, tuple[str, ...]]]:
    found: dict[int, dict[str, tuple[str, ...]]] = defaultdict(lambda: defaultdict(tuple))
    for batch in in_batches(ids):
        query = select(label).where(label.c.memory_id.in_(batch)).order_by(label.c.position)
        for row in connection.execute(query):
            found[row.memory_id][row.kind] += (row.value,)
    return found


def _memory(row: Row[Any], labels: dict[str, tuple[str, ...]]) -> Memory:
    return Memory(
        id=row.id,
        namespace=row.namespace,
        scope=scope_of(row.namespace),
        key=row.key,
        content=row.content,
        title=row.title,
        subtitle=row.subtitle,
        abstract=row.abstract,
        overview=row.overview,
        fact_type=FactType(row.fact_type),
        type=Observation(row.type) if row.type else None,
        concepts=labels["concept"],
        category=row.category,
        tags=labels["tag"],
        importance=row.importance,
        confidence=row.confidence,
        trust=row.trust,
        sensitivity=sensitivity_of(row.sensitivity),
        files_read=labels["file_read"],
        files_modified=labels["file_modified"],
        session_id=row.session_id,
        project=row.project,
        discovery_tokens=row.discovery_tokens,
        speaker=row.speaker,
        position=row.position,
        author=row.author,
        source=Source(row.source),
        content_hash=row.content_hash,
        accessed_count=row.accessed_count or 0,
        recalled_count=row.recalled_count or 0,
        created_at=row.created_at,
        updated_at=row.updated_at,
        last_accessed_at=row.last_accessed_at,
        observed_at=row.observed_at,
        expires_at=row.expires_at,
        deleted_at=row.deleted_at,
        ttl_days=row.ttl_days,
        superseded_by=row.superseded_by,
        merged_into=row.merged_into,
        entities=tuple(Entity(name, one) for one in EntityType for name in labels[f"entity_{one}"]),
    )


def sensitivity_of(level: str) -> Sensitivity:
    """Take an unknown level for the strictest one: only writers come here with it, `visible` denies it to readers."""
    return Sensitivity(level) if level in set(Sensitivity) else Sensitivity.SECRET
