"""One write: the row, its children, vocabulary, vectors, outbox and journal line, all in one transaction."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, literal, null, select, text, update

from recollect.domain import Done, Fact, Memory, Outcome
from recollect.errors import NotFound
from recollect.ports import Chunk, Entry, FactEntry
from recollect.store import facts, journal, rows
from recollect.store.children import Children, put_chunks, replace_chunks

SCALARS = (
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
    "ttl_days",
    "source",
    "subtitle",
)
"""The columns of a memory that are fields of its draft."""
_SCRUB = text(
    "INSERT INTO stamp (name, value) VALUES ('scrub', :token) ON CONFLICT (name) DO UPDATE SET value = :token"
)
COUNT = text("UPDATE namespace SET memories = memories + :change WHERE id = :namespace")
"""Changes how many memories a namespace is said to hold."""


class SqlWriting:
    """The `Writing` port over one open transaction; `now` is the time of whatever it writes.

    Where the store has moved to another model than ours, it `embeds` nothing: what is written waits for that one.
    """

    def __init__(
        self, connection: Connection, namespace: str, actor: str, now: datetime, *, embeds: bool = True
    ) -> None:
        self._connection = connection
        self._namespace = namespace
        self._actor = actor
        self._now = now
        self._embeds = embeds
        self._ids = rows.namespace_ids(connection, [namespace])
        self.changed = False

    def answered(self, request_id: str) -> Outcome | None:
        """Return how this very request ended when it was made before, so that a retry does nothing twice."""
        mine = rows.answered.c.request_id == self._own(request_id)
        row = self._connection.execute(select(rows.answered).where(mine)).first() if request_id else None
        return None if row is None else Outcome(Done(row.done), row.memory_id, tuple(json.loads(row.notes)))

    def answer(self, request_id: str, outcome: Outcome) -> None:
        """Keep the outcome under the request's id, in the transaction of the write itself.

        What is no number names nothing, now or later; it may be any text, even a secret, and is not kept.
        """
        if request_id and outcome.id.isdecimal():
            values = {
                "request_id": self._own(request_id),
                "done": str(outcome.done),
                "memory_id": outcome.id,
                "at": self._now,
                "notes": json.dumps(outcome.notes),
            }
            self._connection.execute(insert(rows.answered).values(**values))

    def _own(self, request_id: str) -> str:
        """Return the id as this actor's own: nobody else's request can have been this one."""
        return hashlib.sha256(f"{self._actor}\n{request_id}".encode()).hexdigest()

    def by_key(self, key: str) -> Memory | None:
        """Find the memory with this key, expired or deleted ones included, since the key is taken all the same."""
        return self._one(rows.memory.c.key == key)

    def by_hash(self, content_hash: str) -> Memory | None:
        """Find the oldest memory with this content that is neither deleted nor merged into another."""
        return self._one((rows.memory.c.content_hash == content_hash) & rows.shown())

    def by_id(self, memory_id: int) -> Memory | None:
        """Find the memory with this id, whatever its state."""
        return self._one(rows.memory.c.id == memory_id)

    def insert(self, entry: Entry, merged_into: int | None = None) -> int:
        """Write a new memory and return its id; one that is merged into another is kept out of sight."""
        draft = entry.cleared.value
        values = {name: plain(getattr(draft, name)) for name in SCALARS} | self._derived(entry)
        values |= {"namespace_id": self._namespace_id(), "created_at": entry.at, "merged_into": merged_into}
        if merged_into is not None:
            values["key"] = None
        result = self._connection.execute(insert(rows.memory).values(**never_null(values)))
        memory_id = int(result.inserted_primary_key[0])  # type: ignore[index]
        self._count(1)
        self._children.name(draft.speaker, entry.speaker_words)
        self._children.put_labels(memory_id, entry)
        words = entry.words if merged_into is None else frozenset()
        self._children.put_words(memory_id, words, frozenset(), new=True)
        if merged_into is None:
            chunks = self._chunks(entry)
            put_chunks(self._connection, memory_id, chunks or ())
            self._children.queue(memory_id, held=0, embedded=chunks is not None)
            self.changed = True
        self._journal("insert", memory_id, _named(entry) | ({"merged_into": merged_into} if merged_into else {}))
        return memory_id

    def update(self, old: Memory, entry: Entry, action: str, *, revive: bool = True) -> None:
        """Write the given fields and what follows from them over `old`; vectors change with the content only.

        With `revive` a memory that was hidden, merged or superseded is in sight again. Raises `NotFound` when `old` is
        not a memory of this namespace.
        """
        draft = entry.cleared.value
        values = {name: plain(getattr(draft, name)) for name in SCALARS if name in entry.given}
        values |= self._derived(entry)
        if revive:
            values |= {"deleted_at": None, "superseded_by": None, "merged_into": None}
        mine = (rows.memory.c.id == old.id) & (rows.memory.c.namespace_id == self._namespace_id())
        if not self._connection.execute(update(rows.memory).where(mine).values(**never_null(values))).rowcount:
            raise NotFound(f"Memory {old.id} not found.")
        if "speaker" in entry.given and draft.speaker != old.speaker:
            self._children.name(draft.speaker, entry.speaker_words)
            self._children.unname(old.speaker)
        self._children.write_labels(old.id, entry)
        seen = revive or not _hidden(old)
        self._children.write_words(old.id, entry.words if seen else frozenset())
        if entry.content_hash != old.content_hash or (revive and _hidden(old)):
            self._write_chunks(old.id, entry)
        self._journal(action, old.id, _named(entry))

    def archive(self, old: Memory) -> int:
        """Keep what `old` says now as a memory of its own, merged into it and out of sight; return its id."""
        kept = [one for one in rows.memory.c if one.name not in ("id", "key", "merged_into")]
        copied = select(*kept, null(), literal(old.id)).where(rows.memory.c.id == old.id)
        names = [*(one.name for one in kept), "key", "merged_into"]
        self._connection.execute(insert(rows.memory).from_select(names, copied))
        newest = select(rows.memory.c.id).where(rows.memory.c.merged_into == old.id)
        memory_id = int(self._connection.execute(newest.order_by(rows.memory.c.id.desc()).limit(1)).scalar_one())
        labels = select(literal(memory_id), rows.label.c.kind, rows.label.c.position, rows.label.c.value)
        mine = labels.where(rows.label.c.memory_id == old.id)
        self._connection.execute(insert(rows.label).from_select(["memory_id", "kind", "position", "value"], mine))
        self._children.put_words(memory_id, frozenset(), frozenset(), new=True)
        self._count(1)
        self._journal("insert", memory_id, {"merged_into": old.id})
        return memory_id

    def archived(self, memory_id: int) -> list[Memory]:
        """Return what was merged into the memory, oldest first."""
        mine = (rows.memory.c.merged_into == memory_id) & (rows.memory.c.namespace_id == self._namespace_id())
        return sorted(rows.load(self._connection, mine), key=lambda memory: memory.id)

    def supersede(self, memory_id: int, by: int) -> None:
        """Mark a memory as put right by another: it leaves recall and stays in history."""
        mine = (rows.memory.c.id == memory_id) & (rows.memory.c.namespace_id == self._namespace_id())
        self._connection.execute(update(rows.memory).where(mine).values(superseded_by=by))
        self._journal("update", memory_id, {"superseded_by": by})

    def hide(self, memory_id: int) -> bool:
        """Delete the memory softly: its row stays, every index lets go of it. Say whether there was one in sight."""
        mine = (rows.memory.c.id == memory_id) & (rows.memory.c.namespace_id == self._ids.get(self._namespace))
        seen = mine & rows.shown()
        if not self._connection.execute(update(rows.memory).where(seen).values(deleted_at=self._now)).rowcount:
            return False
        self._children.write_words(memory_id, frozenset())
        self._children.enqueue(memory_id, embedded=True)
        self.changed = True
        self._scrub()
        self._journal("delete", memory_id, {"soft": True})
        return True

    def delete(self, memory_id: int, action: str = "delete") -> bool:
        """Remove the memory, what was merged into it and all their traces; say whether it was there."""
        number = self._ids.get(self._namespace)
        mine = (rows.memory.c.id == memory_id) & (rows.memory.c.namespace_id == number)
        columns = (rows.memory.c.speaker, rows.memory.c.superseded_by)
        row = self._connection.execute(select(*columns).where(mine)).first() if number else None
        if row is None:
            return False
        for one in self.archived(memory_id):
            self.delete(one.id, action)
        self._children.write_words(memory_id, frozenset())
        self._children.enqueue(memory_id, embedded=True)
        self._connection.execute(delete(rows.memory).where(mine))
        self._count(-1)
        self._free(memory_id, row.superseded_by)
        self._children.unname(row.speaker)
        self.changed = True
        self._scrub()
        self._journal(action, memory_id, {})
        return True

    def every(self, after: int, limit: int) -> list[Memory]:
        """Return the next memories of the namespace in the order of their ids, whatever their state."""
        mine = (rows.memory.c.namespace_id == self._ids.get(self._namespace)) & (rows.memory.c.id > after)
        page = select(rows.memory.c.id).where(mine).order_by(rows.memory.c.id).limit(limit)
        ids = list(self._connection.execute(page).scalars())
        return sorted(rows.load(self._connection, rows.memory.c.id.in_(ids)), key=lambda memory: memory.id)

    def every_fact(self, after: int, limit: int) -> list[Fact]:
        """Return the next facts of the namespace in the order of their ids."""
        return facts.every(self._connection, self._ids.get(self._namespace, 0), after, limit)

    def rewrite_fact(self, old: Fact, parts: Mapping[str, str]) -> None:
        """Write other words in the place of a fact's own."""
        facts.rewrite(self._connection, old.id, parts)
        self._journal("redact", old.memory_id, {"fact": old.id, "fields": sorted(parts)})

    def quarantine(self, memory_id: int) -> None:
        """Put a memory where no read looks: hidden, and at a level of sensitivity that nobody can ask for."""
        self.hide(memory_id)
        mine = (rows.memory.c.id == memory_id) & (rows.memory.c.namespace_id == self._namespace_id())
        self._connection.execute(update(rows.memory).where(mine).values(sensitivity=rows.QUARANTINED))
        self._journal("quarantine", memory_id, {})

    def quarantine_fact(self, old: Fact) -> None:
        """Put a fact where no read looks."""
        facts.change(self._connection, old.id, {"sensitivity": rows.QUARANTINED})
        self._journal("quarantine", old.memory_id, {"fact": old.id})

    def leave_no_trace(self) -> None:
        """Have the text index rewritten, so that nothing is left in it of what was overwritten."""
        self._scrub()

    def _free(self, memory_id: int, by: int | None) -> None:
        """Let what the memory had put right, or condensed, be current again now that it is gone.

        Where that was put right itself, what put it right takes its place.
        """
        given_way = (rows.memory.c.superseded_by == memory_id) & (rows.memory.c.namespace_id == self._namespace_id())
        freed = self._connection.execute(select(rows.memory.c.id).where(given_way)).scalars().all()
        if freed:
            self._connection.execute(update(rows.memory).where(given_way).values(superseded_by=by))
        for one in freed:
            self._journal("update", one, {"superseded_by": by})

    def expired(self) -> list[int]:
        """Return what has passed its time, in the order of its ids."""
        mine = rows.memory.c.namespace_id == self._ids.get(self._namespace)
        query = select(rows.memory.c.id).where(mine, rows.memory.c.expires_at <= self._now)
        return list(self._connection.execute(query.order_by(rows.memory.c.id)).scalars())

    def surplus(self, most: int, sparing: int) -> list[int]:
        """Return what is beyond `most` memories: first what is out of sight, then the least used, oldest, slightest.

        The memory to be spared is never among them. What was put right goes before what put it right, or it would be
        current again.
        """
        mine = rows.memory.c.namespace_id == self._namespace_id()
        held = select(rows.namespace.c.memories).where(rows.namespace.c.id == self._namespace_id())
        beyond = int(self._connection.execute(held).scalar_one()) - most
        if beyond <= 0:
            return []
        query = (
            select(rows.memory.c.id)
            .outerjoin(rows.usage, rows.usage.c.memory_id == rows.memory.c.id)
            .where(mine, rows.memory.c.id != sparing)
            .order_by(rows.alive(self._now) & rows.memory.c.superseded_by.is_(None))
            .order_by(func.coalesce(rows.usage.c.accessed_count, 0))
            .order_by(rows.memory.c.updated_at, rows.memory.c.importance, rows.memory.c.id)
            .limit(beyond)
        )
        return list(self._connection.execute(query).scalars())

    def facts_about(self, subject: str, predicate: str, at: datetime) -> list[Fact]:
        """Return the facts of this subject and predicate that hold `at` a time or later, letter case aside."""
        return facts.holding(self._connection, self._namespace_id(), subject, predicate, at)

    def put_fact(self, entry: FactEntry) -> int:
        """Write a new fact and return its id."""
        fact_id = facts.put(self._connection, self._namespace_id(), entry)
        self._journal("insert", entry.memory_id, {"fact": fact_id})
        return fact_id

    def confirm_fact(self, old: Fact, confidence: float) -> None:
        """Note that a fact was told again."""
        facts.change(self._connection, old.id, {"confidence": confidence, "updated_at": self._now})
        self._journal("refresh", old.memory_id, {"fact": old.id})

    def end_fact(self, old: Fact, at: datetime, by: int) -> None:
        """Let a fact hold no longer than until `at`, because another replaces it."""
        facts.change(self._connection, old.id, {"valid_to": at, "updated_at": self._now})
        self._journal("update", old.memory_id, {"fact": old.id, "replaced_by": by})

    def delete_fact(self, fact_id: int) -> bool:
        """Remove a fact for good; say whether it was there."""
        if not facts.delete(self._connection, self._ids.get(self._namespace, 0), fact_id):
            return False
        self._journal("delete", None, {"fact": fact_id})
        return True

    def _one(self, condition: ColumnElement[bool]) -> Memory | None:
        number = self._ids.get(self._namespace)
        if number is None:
            return None
        found = rows.load(self._connection, condition & (rows.memory.c.namespace_id == number))
        return min(found, key=lambda memory: memory.id, default=None)

    @property
    def _children(self) -> Children:
        return Children(self._connection, self._namespace_id())

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
        self._connection.execute(COUNT, {"namespace": self._namespace_id(), "change": change})

    def _write_chunks(self, memory_id: int, entry: Entry) -> None:
        chunks = self._chunks(entry)
        self._children.enqueue(memory_id, embedded=chunks is not None)
        self.changed = True
        replace_chunks(self._connection, memory_id, chunks or ())

    def _chunks(self, entry: Entry) -> tuple[Chunk, ...] | None:
        return entry.chunks if self._embeds else None

    def _scrub(self) -> None:
        self._connection.execute(_SCRUB, {"token": secrets.token_hex(8)})

    def _journal(self, action: str, memory_id: int | None, changes: dict[str, Any]) -> None:
        journal.append(
            self._connection,
            at=self._now,
            actor=self._actor,
            namespace=self._namespace,
            action=action,
            memory_id=memory_id,
            changes=changes,
        )


def _named(entry: Entry) -> dict[str, Any]:
    return {"fields": sorted(entry.given)} if entry.given else {}


def _hidden(memory: Memory) -> bool:
    return memory.deleted_at is not None or memory.merged_into is not None


def plain(value: Any) -> Any:
    """Return a member of a closed set as the text that is stored."""
    return str(value) if isinstance(value, str) else value


def never_null(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with an empty text where a column knows no null."""
    return values | {"subtitle": values["subtitle"] or ""} if "subtitle" in values else values
