"""The rows that belong to a memory: its labels and entities, words, speaker, vectors, and its place in the outbox.

Everything happens inside the caller's write transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, select, text, update

from recollect.domain.enums import OF_SESSION, Standing
from recollect.domain.results import Entity
from recollect.engines.chunks import Chunk
from recollect.store.entries import ChunkDigests, Entry
from recollect.store.sql import store_metadata
from recollect.store.sql.column_types import QUARANTINED, WITHDRAWN
from recollect.store.sql.mapping import ENTITY, LISTS
from recollect.store.sql.statements import insert_all, select_in
from recollect.store.sql.tables import label, level_of, memory, memory_words, outbox, vector
from recollect.store.sql.visibility import ENTITIES, STANDING

_COUNT = text(
    "INSERT INTO held (namespace_id, sensitivity, memories) VALUES (:namespace, :level, :change) "
    "ON CONFLICT (namespace_id, sensitivity) DO UPDATE SET memories = held.memories + :change"
)
UNASKED = "summary:"
"""The beginning of the levels at which the words of what sums up a session are counted."""
_OF_SESSION = select(memory.c.id).where(memory.c.type.in_(sorted(OF_SESSION)))
_COUNT_WORD = text(
    "INSERT INTO word (namespace_id, sensitivity, text, uses) VALUES (:namespace, :level, :word, :change) "
    "ON CONFLICT (namespace_id, sensitivity, text) DO UPDATE SET uses = word.uses + :change"
)
_PRUNE_WORD = text(
    "DELETE FROM word WHERE namespace_id = :namespace AND sensitivity = :level AND text = :word AND uses <= 0"
)
_ADD_SPEAKER = text(
    "INSERT INTO speaker (namespace_id, name, word) VALUES (:namespace, :name, :word) ON CONFLICT DO NOTHING"
)
_PRUNE_SPEAKER = text(
    "DELETE FROM speaker WHERE namespace_id = :namespace AND name = :name "
    "AND NOT EXISTS (SELECT 1 FROM memory WHERE namespace_id = :namespace AND speaker = :name)"
)
_WRITE_WORDS = text(
    "INSERT INTO memory_words (memory_id, sensitivity, words) VALUES (:id, :level, :words) "
    "ON CONFLICT (memory_id) DO UPDATE SET words = :words, sensitivity = :level"
)
_PUT_WORDS = text(
    "INSERT INTO memory_words (memory_id, sensitivity, words) "
    "SELECT id, replace(replace(sensitivity, :quarantined, ''), :withdrawn, ''), :words FROM memory WHERE id = :id "
    "ON CONFLICT (memory_id) DO UPDATE SET words = :words"
)


def add_speakers(connection: Connection, namespace_id: int, entries: Iterable[Entry]) -> None:
    """Store each speaker's name under its words."""
    named = {(one.cleared.value.speaker, word) for one in entries for word in one.parts.speaker_words}
    values = [{"namespace": namespace_id, "name": name, "word": word} for name, word in sorted(named, key=str)]
    if values:
        connection.execute(_ADD_SPEAKER, values)


def prune_speaker(connection: Connection, namespace_id: int, speaker: str | None) -> None:
    """Delete a speaker's name once no memory has that speaker any more."""
    if speaker is not None:
        connection.execute(_PRUNE_SPEAKER, {"namespace": namespace_id, "name": speaker})


def label_rows(memory_id: int, entry: Entry, fields: Iterable[str] = LISTS) -> Iterator[dict[str, Any]]:
    """Yield a row of the label table for each value of the entry's list `fields`, and for each entity it names."""
    for kind in fields:
        for position, value in enumerate(getattr(entry.cleared.value, kind)):
            yield {"memory_id": memory_id, "kind": kind, "position": position, "value": str(value)}
    yield from _entity_rows(memory_id, entry.parts.entities)


def standing_row(memory_id: int, standing: Standing) -> dict[str, Any]:
    """Return the row of the label table that says a memory is pinned or buried."""
    return {"memory_id": memory_id, "kind": STANDING, "position": 0, "value": str(standing)}


def replace_labels(connection: Connection, memory_id: int, entry: Entry) -> None:
    """Replace the stored lists by those set in the entry, and the entities by those of the entry."""
    fields = [name for name in LISTS if name in entry.given]
    connection.execute(delete(label).where(label.c.memory_id == memory_id, label.c.kind.in_([*fields, *ENTITIES])))
    insert_all(connection, label, label_rows(memory_id, entry, fields))


def replace_entities(connection: Connection, memory_id: int, entities: Sequence[Entity]) -> None:
    """Replace the entities of a memory; write nothing where they are the same."""
    wanted = list(_entity_rows(memory_id, entities))
    mine = (label.c.memory_id == memory_id) & label.c.kind.in_(ENTITIES)
    held = [dict(row._mapping) for row in connection.execute(select(label).where(mine).order_by(label.c.position))]
    if wanted != held:
        connection.execute(delete(label).where(mine))
        insert_all(connection, label, wanted)


def count_memories(connection: Connection, namespace_id: int, level: str, change: int) -> None:
    """Add `change` to the number of memories that a namespace holds at a level."""
    connection.execute(_COUNT, {"namespace": namespace_id, "level": str(level), "change": change})


def count_by_namespace_and_level(connection: Connection) -> dict[tuple[int, str], int]:
    """Count the memories by namespace id and level of sensitivity; in quarantine they keep their level."""
    level = level_of(memory)
    query = select(memory.c.namespace_id, level, func.count()).group_by(memory.c.namespace_id, level)
    return {(number, name): many for number, name, many in connection.execute(query)}


def write_words(connection: Connection, namespace_id: int, words: Mapping[int, tuple[str, Collection[str]]]) -> None:
    """Set the words with which each memory stands in its namespace's vocabulary, at its level.

    The words of what sums up a session stand at a level that nobody asks for: they are those of other memories.
    """
    summing = {row.id for row in select_in(connection, _OF_SESSION, memory.c.id, words)}
    wanted = {
        one: (f"{UNASKED * (one in summing)}{level}", frozenset(" ".join(some).split()))
        for one, (level, some) in words.items()
    }
    changes = Counter((level, word) for level, some in wanted.values() for word in some)
    for row in select_in(connection, select(memory_words), memory_words.c.memory_id, wanted):
        changes.subtract((row.sensitivity, word) for word in row.words.split())
    changed: list[dict[str, Any]] = [
        {"namespace": namespace_id, "level": level, "word": word, "change": by}
        for (level, word), by in sorted(changes.items())
        if by
    ]
    if changed:
        connection.execute(_COUNT_WORD, changed)
    if fewer := [one for one in changed if one["change"] < 0]:
        connection.execute(_PRUNE_WORD, fewer)
    if wanted:
        rows = [{"id": one, "level": level, "words": " ".join(sorted(some))} for one, (level, some) in wanted.items()]
        connection.execute(_WRITE_WORDS, rows)


def put_words(connection: Connection, memory_id: int, words: str) -> None:
    """Store the words of a memory, separated by spaces, at its level, without counting them."""
    away = {"quarantined": QUARANTINED, "withdrawn": WITHDRAWN}
    connection.execute(_PUT_WORDS, {"id": memory_id, "words": words} | away)


def mark_embedded(connection: Connection, memory_id: int) -> None:
    """Mark a memory's rows in the outbox as no longer waiting for the model."""
    connection.execute(update(outbox).where(outbox.c.memory_id == memory_id).values(embedded=True))


def replace_chunks(connection: Connection, memory_id: int, chunks: Sequence[Chunk], content_hash: str) -> None:
    """Replace all vectors of a memory by those of these `chunks` of its content."""
    connection.execute(delete(vector).where(vector.c.memory_id == memory_id))
    model = store_metadata.model_of(store_metadata.read(connection))
    insert_all(connection, vector, chunk_rows(memory_id, chunks, content_hash, model))


def chunk_rows(
    memory_id: int, chunks: Sequence[Chunk], content_hash: str, model: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the rows that hold the chunks of a memory, which a model with these stamps has read."""
    digests = ChunkDigests(content_hash, model, len(chunks))
    for ordinal, chunk in enumerate(chunks):
        place, embedding = {"ordinal": ordinal, "start": chunk.start, "stop": chunk.end}, chunk.vector.tobytes()
        made = {"embedding": embedding, "digest": digests.of(**place, embedding=embedding)}
        yield {"memory_id": memory_id} | place | made | {"tokens": chunk.tokens or None}


def _entity_rows(memory_id: int, entities: Iterable[Entity]) -> Iterator[dict[str, Any]]:
    """Yield a row of the table of labels for each entity of a memory."""
    for position, one in enumerate(entities):
        yield {"memory_id": memory_id, "kind": f"{ENTITY}{one.type}", "position": position, "value": one.name}
