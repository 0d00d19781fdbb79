"""What hangs on a memory's row: labels and entities, words, names of speakers, chunks, and its place in the queue.

Everything happens inside the caller's write transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, text, update

from recollect.domain import Draft, Entity
from recollect.ports import Chunk, Entry
from recollect.store import rows
from recollect.store.filters import ENTITIES

LABELS = {"tags": "tag", "concepts": "concept", "files_read": "file_read", "files_modified": "file_modified"}

_TAKE_UP = text(
    "INSERT INTO word (namespace_id, text, uses) VALUES (:namespace, :word, 1) "
    "ON CONFLICT (namespace_id, text) DO UPDATE SET uses = word.uses + 1"
)
_GIVE_BACK = text("UPDATE word SET uses = uses - 1 WHERE namespace_id = :namespace AND text = :word")
_PRUNE = text("DELETE FROM word WHERE namespace_id = :namespace AND text = :word AND uses <= 0")
NAME = text("INSERT INTO speaker (namespace_id, name, word) VALUES (:namespace, :name, :word) ON CONFLICT DO NOTHING")
"""Files a speaker under one word of their name."""
_UNNAME = text(
    "DELETE FROM speaker WHERE namespace_id = :namespace AND name = :name "
    "AND NOT EXISTS (SELECT 1 FROM memory WHERE namespace_id = :namespace AND speaker = :name)"
)


class Children:
    """The children of memories of one namespace, over one open transaction."""

    def __init__(self, connection: Connection, namespace_id: int) -> None:
        self._connection = connection
        self._namespace_id = namespace_id

    def name(self, speaker: str | None, words: Collection[str]) -> None:
        """File whoever speaks under the words of their name."""
        mine = {"namespace": self._namespace_id, "name": speaker}
        if values := [mine | {"word": word} for word in sorted(words)]:
            self._connection.execute(NAME, values)

    def unname(self, speaker: str | None) -> None:
        """Forget the name with the last memory of whoever bore it."""
        if speaker is not None:
            self._connection.execute(_UNNAME, {"namespace": self._namespace_id, "name": speaker})

    def put_labels(self, memory_id: int, entry: Entry) -> None:
        """Write the labels and entities of a memory that has none."""
        _insert_labels(self._connection, memory_id, [*_labels(entry.cleared.value, LABELS), *_entities(entry)])

    def write_labels(self, memory_id: int, entry: Entry) -> None:
        """Write the labels that were given and the entities in the place of those that stood there."""
        fields = entry.given & frozenset(LABELS)
        kinds = [*(LABELS[name] for name in fields), *ENTITIES]
        mine = (rows.label.c.memory_id == memory_id) & rows.label.c.kind.in_(kinds)
        self._connection.execute(delete(rows.label).where(mine))
        _insert_labels(self._connection, memory_id, [*_labels(entry.cleared.value, fields), *_entities(entry)])

    def write_words(self, memory_id: int, words: frozenset[str]) -> None:
        """Take up what the memory says now and give back what it no longer says."""
        mine = rows.memory_words.c.memory_id == memory_id
        stored = self._connection.execute(select(rows.memory_words.c.words).where(mine)).scalar()
        self.put_words(memory_id, words, frozenset((stored or "").split()), new=stored is None)

    def put_words(self, memory_id: int, words: frozenset[str], old: frozenset[str], *, new: bool) -> None:
        """Do so where it is known which words it had."""
        words = frozenset(" ".join(words).split())
        for statement, changed in ((_TAKE_UP, words - old), (_GIVE_BACK, old - words), (_PRUNE, old - words)):
            if changed:
                values = [{"namespace": self._namespace_id, "word": one} for one in sorted(changed)]
                self._connection.execute(statement, values)
        text_of = {"words": " ".join(sorted(words))}
        if new:
            self._connection.execute(insert(rows.memory_words).values(memory_id=memory_id, **text_of))
        elif words != old:
            mine = rows.memory_words.c.memory_id == memory_id
            self._connection.execute(update(rows.memory_words).where(mine).values(text_of))

    def enqueue(self, memory_id: int, *, embedded: bool) -> None:
        """Let the vector index look at the memory again; it may hold as many vectors of it as SQL does now."""
        mine = rows.vector.c.memory_id == memory_id
        held = self._connection.execute(select(func.count()).select_from(rows.vector).where(mine)).scalar_one()
        if embedded:
            mark_embedded(self._connection, memory_id)
        self.queue(memory_id, held=held, embedded=embedded)

    def queue(self, memory_id: int, *, held: int, embedded: bool) -> None:
        """Put a line into the outbox."""
        values = {"memory_id": memory_id, "namespace_id": self._namespace_id, "chunks": held, "embedded": embedded}
        self._connection.execute(insert(rows.outbox).values(**values))


def replace_chunks(connection: Connection, memory_id: int, chunks: Iterable[Chunk]) -> None:
    """Put `chunks` in the place of whatever vectors the memory had."""
    connection.execute(delete(rows.vector).where(rows.vector.c.memory_id == memory_id))
    put_chunks(connection, memory_id, chunks)


def put_chunks(connection: Connection, memory_id: int, chunks: Iterable[Chunk]) -> None:
    """Write the vectors of a memory that has none."""
    if values := chunk_rows(memory_id, chunks):
        connection.execute(insert(rows.vector), values)


def chunk_rows(memory_id: int, chunks: Iterable[Chunk]) -> list[dict[str, Any]]:
    """Return the rows that hold the chunks of a memory."""
    return [
        {
            "memory_id": memory_id,
            "ordinal": ordinal,
            "start": chunk.start,
            "stop": chunk.end,
            "embedding": chunk.vector.tobytes(),
            "tokens": chunk.tokens or None,
        }
        for ordinal, chunk in enumerate(chunks)
    ]


def mark_embedded(connection: Connection, memory_id: int) -> None:
    """Let nothing that is queued of the memory wait for the model any longer."""
    mine = rows.outbox.c.memory_id == memory_id
    connection.execute(update(rows.outbox).where(mine).values(embedded=True))


def name_anew(connection: Connection, memory_id: int, entities: Sequence[Entity]) -> None:
    """Put these entities in the place of what the memory was said to name; nothing is written where it is the same."""
    wanted = {(kind, position): value for kind, position, value in _filed(entities)}
    mine = (rows.label.c.memory_id == memory_id) & rows.label.c.kind.in_(ENTITIES)
    held = {(row.kind, row.position): row.value for row in connection.execute(select(rows.label).where(mine))}
    if wanted == held:
        return
    connection.execute(delete(rows.label).where(mine))
    _insert_labels(connection, memory_id, _filed(entities))


def _insert_labels(connection: Connection, memory_id: int, labels: Iterable[tuple[str, int, str]]) -> None:
    values = [
        {"memory_id": memory_id, "kind": kind, "position": position, "value": value} for kind, position, value in labels
    ]
    if values:
        connection.execute(insert(rows.label), values)


def _labels(draft: Draft, fields: Iterable[str]) -> Iterable[tuple[str, int, str]]:
    for name in fields:
        for position, value in enumerate(getattr(draft, name)):
            yield LABELS[name], position, str(value)


def _entities(entry: Entry) -> Iterable[tuple[str, int, str]]:
    return _filed(entry.entities)


def _filed(entities: Iterable[Entity]) -> Iterable[tuple[str, int, str]]:
    return ((f"entity_{one.type}", position, one.name) for position, one in enumerate(entities))
