"""One write: the row, its children, vocabulary, vectors, outbox and journal line, all in one transaction."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, text, update

from recollect.domain import Done, Draft, Memory, Outcome
from recollect.errors import NotFound
from recollect.ports import Chunk, Entry
from recollect.store import journal, rows

_SCALARS = (
    "key",
    "fact_type",
    "type",
    "category",
    "importance",
    "trust",
    "sensitivity",
    "session_id",
    "project",
    "discovery_tokens",
    "observed_at",
    "speaker",
    "position",
    "source",
    "subtitle",
)
_LABELS = {"tags": "tag", "concepts": "concept", "files_read": "file_read", "files_modified": "file_modified"}

_TAKE_UP = text(
    "INSERT INTO word (namespace_id, text, uses) VALUES (:namespace, :word, 1) "
    "ON CONFLICT (namespace_id, text) DO UPDATE SET uses = word.uses + 1"
)
_SCRUB = text(
    "INSERT INTO stamp (name, value) VALUES ('scrub', :token) ON CONFLICT (name) DO UPDATE SET value = :token"
)
_GIVE_BACK = text("UPDATE word SET uses = uses - 1 WHERE namespace_id = :namespace AND text = :word")
_COUNT = text("UPDATE namespace SET memories = memories + :change WHERE id = :namespace")
_NAME = text("INSERT INTO speaker (namespace_id, name, word) VALUES (:namespace, :name, :word) ON CONFLICT DO NOTHING")
_UNNAME = text(
    "DELETE FROM speaker WHERE namespace_id = :namespace AND name = :name "
    "AND NOT EXISTS (SELECT 1 FROM memory WHERE namespace_id = :namespace AND speaker = :name)"
)
_PRUNE = text("DELETE FROM word WHERE namespace_id = :namespace AND text = :word AND uses <= 0")


class SqlWriting:
    """The `Writing` port over one open transaction; `now` is the time of whatever it writes."""

    def __init__(self, connection: Connection, namespace: str, actor: str, now: datetime) -> None:
        self._connection = connection
        self._namespace = namespace
        self._actor = actor
        self._now = now
        self._ids = rows.namespace_ids(connection, [namespace])
        self.changed = False

    def answered(self, request_id: str) -> Outcome | None:
        """Return how this very request ended when it was made before, so that a retry does nothing twice."""
        mine = rows.answered.c.request_id == self._own(request_id)
        row = self._connection.execute(select(rows.answered).where(mine)).first() if request_id else None
        return None if row is None else Outcome(Done(row.done), row.memory_id)

    def answer(self, request_id: str, outcome: Outcome) -> None:
        """Keep the outcome under the request's id, in the transaction of the write itself."""
        if request_id:
            values = {
                "request_id": self._own(request_id),
                "done": str(outcome.done),
                "memory_id": outcome.id,
                "at": self._now,
            }
            self._connection.execute(insert(rows.answered).values(**values))

    def _own(self, request_id: str) -> str:
        """Return the id as this actor's own: nobody else's request can have been this one."""
        return hashlib.sha256(f"{self._actor}\n{request_id}".encode()).hexdigest()

    def by_key(self, key: str) -> Memory | None:
        """Find the memory with this key, expired or deleted ones included, since the key is taken all the same."""
        return self._one(rows.memory.c.key == key)

    def by_hash(self, content_hash: str) -> Memory | None:
        """Find the oldest undeleted memory with this content."""
        return self._one((rows.memory.c.content_hash == content_hash) & rows.memory.c.deleted_at.is_(None))

    def insert(self, entry: Entry) -> int:
        """Write a new memory and return its id."""
        draft = entry.cleared.value
        values = {name: _plain(getattr(draft, name)) for name in _SCALARS} | self._derived(entry)
        values |= {"namespace_id": self._namespace_id(), "created_at": entry.at}
        result = self._connection.execute(insert(rows.memory).values(**_never_null(values)))
        memory_id = int(result.inserted_primary_key[0])  # type: ignore[index]
        self._count(1)
        self._name(entry)
        self._put_labels(memory_id, draft, _LABELS)
        self._put_words(memory_id, entry.words, frozenset(), new=True)
        put_chunks(self._connection, memory_id, entry.chunks or ())
        self._queue(memory_id, held=0, embedded=entry.chunks is not None)
        self._journal("insert", memory_id, sorted(entry.given))
        return memory_id

    def update(self, old: Memory, entry: Entry, action: str) -> None:
        """Write the given fields and what follows from them over `old`; vectors change with the content only.

        Raises `NotFound` when `old` is not a memory of this namespace.
        """
        draft = entry.cleared.value
        values = {name: _plain(getattr(draft, name)) for name in _SCALARS if name in entry.given}
        values |= self._derived(entry) | {"deleted_at": None}
        mine = (rows.memory.c.id == old.id) & (rows.memory.c.namespace_id == self._namespace_id())
        if not self._connection.execute(update(rows.memory).where(mine).values(**_never_null(values))).rowcount:
            raise NotFound(f"Memory {old.id} not found.")
        if "speaker" in entry.given and draft.speaker != old.speaker:
            self._name(entry)
            self._unname(old.speaker)
        self._write_labels(old.id, draft, entry.given & frozenset(_LABELS))
        self._write_words(old.id, entry.words)
        if entry.content_hash != old.content_hash:
            self._write_chunks(old.id, entry.chunks)
        self._journal(action, old.id, sorted(entry.given))

    def delete(self, memory_id: int) -> bool:
        """Remove the memory and all its traces; say whether it was there, expired ones included."""
        number = self._ids.get(self._namespace)
        mine = (rows.memory.c.id == memory_id) & (rows.memory.c.namespace_id == number)
        row = self._connection.execute(select(rows.memory.c.speaker).where(mine)).first() if number else None
        if row is None:
            return False
        self._write_words(memory_id, frozenset())
        self._enqueue(memory_id, embedded=True)
        self._connection.execute(delete(rows.memory).where(mine))
        self._count(-1)
        self._unname(row.speaker)
        self._connection.execute(_SCRUB, {"token": secrets.token_hex(8)})
        self._journal("delete", memory_id, [])
        return True

    def _one(self, condition: ColumnElement[bool]) -> Memory | None:
        number = self._ids.get(self._namespace)
        if number is None:
            return None
        found = rows.load(self._connection, condition & (rows.memory.c.namespace_id == number))
        return min(found, key=lambda memory: memory.id, default=None)

    def _namespace_id(self) -> int:
        if self._namespace not in self._ids:
            result = self._connection.execute(insert(rows.namespace).values(name=self._namespace))
            self._ids[self._namespace] = int(result.inserted_primary_key[0])  # type: ignore[index]
        return self._ids[self._namespace]

    def _derived(self, entry: Entry) -> dict[str, Any]:
        return {
            "content": entry.cleared.value.content,
            "content_hash": entry.content_hash,
            "title": entry.title,
            "abstract": entry.abstract,
            "overview": entry.overview,
            "keywords": entry.keywords,
            "confidence": entry.confidence,
            "updated_at": entry.at,
            "expires_at": entry.expires_at,
            "author": entry.author,
        }

    def _count(self, change: int) -> None:
        self._connection.execute(_COUNT, {"namespace": self._namespace_id(), "change": change})

    def _name(self, entry: Entry) -> None:
        mine = {"namespace": self._namespace_id(), "name": entry.cleared.value.speaker}
        if values := [mine | {"word": word} for word in sorted(entry.speaker_words)]:
            self._connection.execute(_NAME, values)

    def _unname(self, speaker: str | None) -> None:
        """Forget the name with the last memory of whoever bore it."""
        if speaker is not None:
            self._connection.execute(_UNNAME, {"namespace": self._namespace_id(), "name": speaker})

    def _write_labels(self, memory_id: int, draft: Draft, fields: Iterable[str]) -> None:
        for name in fields:
            mine = (rows.label.c.memory_id == memory_id) & (rows.label.c.kind == _LABELS[name])
            self._connection.execute(delete(rows.label).where(mine))
        self._put_labels(memory_id, draft, fields)

    def _put_labels(self, memory_id: int, draft: Draft, fields: Iterable[str]) -> None:
        values = [
            {"memory_id": memory_id, "kind": _LABELS[name], "position": position, "value": str(value)}
            for name in fields
            for position, value in enumerate(getattr(draft, name))
        ]
        if values:
            self._connection.execute(insert(rows.label), values)

    def _write_words(self, memory_id: int, words: frozenset[str]) -> None:
        mine = rows.memory_words.c.memory_id == memory_id
        stored = self._connection.execute(select(rows.memory_words.c.words).where(mine)).scalar()
        self._put_words(memory_id, words, frozenset((stored or "").split()), new=stored is None)

    def _put_words(self, memory_id: int, words: frozenset[str], old: frozenset[str], *, new: bool) -> None:
        """Take up what the memory says now and give back what it no longer says."""
        words = frozenset(" ".join(words).split())
        for statement, changed in ((_TAKE_UP, words - old), (_GIVE_BACK, old - words), (_PRUNE, old - words)):
            if changed:
                values = [{"namespace": self._namespace_id(), "word": one} for one in sorted(changed)]
                self._connection.execute(statement, values)
        text_of = {"words": " ".join(sorted(words))}
        if new:
            self._connection.execute(insert(rows.memory_words).values(memory_id=memory_id, **text_of))
        elif words != old:
            mine = rows.memory_words.c.memory_id == memory_id
            self._connection.execute(update(rows.memory_words).where(mine).values(text_of))

    def _write_chunks(self, memory_id: int, chunks: tuple[Chunk, ...] | None) -> None:
        self._enqueue(memory_id, embedded=chunks is not None)
        replace_chunks(self._connection, memory_id, chunks or ())

    def _enqueue(self, memory_id: int, *, embedded: bool) -> None:
        mine = rows.vector.c.memory_id == memory_id
        held = self._connection.execute(select(func.count()).select_from(rows.vector).where(mine)).scalar_one()
        if embedded:
            mark_embedded(self._connection, memory_id)
        self._queue(memory_id, held=held, embedded=embedded)

    def _queue(self, memory_id: int, *, held: int, embedded: bool) -> None:
        values = {"memory_id": memory_id, "namespace_id": self._namespace_id(), "chunks": held, "embedded": embedded}
        self._connection.execute(insert(rows.outbox).values(**values))
        self.changed = True

    def _journal(self, action: str, memory_id: int, fields: list[str]) -> None:
        changes = {"fields": fields} if fields else {}
        journal.append(
            self._connection,
            at=self._now,
            actor=self._actor,
            namespace=self._namespace,
            action=action,
            memory_id=memory_id,
            changes=changes,
        )


def replace_chunks(connection: Connection, memory_id: int, chunks: Iterable[Chunk]) -> None:
    """Put `chunks` in the place of whatever vectors the memory had."""
    connection.execute(delete(rows.vector).where(rows.vector.c.memory_id == memory_id))
    put_chunks(connection, memory_id, chunks)


def put_chunks(connection: Connection, memory_id: int, chunks: Iterable[Chunk]) -> None:
    """Write the vectors of a memory that has none."""
    values = [
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
    if values:
        connection.execute(insert(rows.vector), values)


def mark_embedded(connection: Connection, memory_id: int) -> None:
    """Let nothing that is queued of the memory wait for the model any longer."""
    mine = rows.outbox.c.memory_id == memory_id
    connection.execute(update(rows.outbox).where(mine).values(embedded=True))


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value


def _never_null(values: dict[str, Any]) -> dict[str, Any]:
    return values | {"subtitle": values["subtitle"] or ""} if "subtitle" in values else values
