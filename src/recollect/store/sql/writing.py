"""One write: the row, its children, vocabulary, vectors, outbox and journal line, all in one transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, literal, null, select, update

from recollect.domain.results import Fact, Memory, Outcome, WriteStatus
from recollect.domain.search import View
from recollect.domain.transfer import FactRecord, MemoryLink, MemoryState
from recollect.errors import NotFound
from recollect.gate import Cleared
from recollect.ports import Chunk, Entry, FactEntry, ImportedMemory
from recollect.store import journal
from recollect.store.sql import child_tables, facts, mapping
from recollect.store.sql.dialect import Dialect
from recollect.store.sql.tables import fact, label, memory, namespace, outbox, request_outcome, usage, vector
from recollect.store.sql.visibility import QUARANTINED, alive, namespace_ids, shown, visible

_HIGHEST = 2**30  # no file may use up the ids that SQL and `parse_id` know, which go on to twice that
_LINKED_LATER = 0  # stands for a memory of the same file, until it is known which id it has here


class SqlWriting:
    """The `Writing` port over one open transaction; `now` is the time of whatever it writes.

    Where the store has moved to another model than ours, it `embeds` nothing: what is written waits for that one.
    """

    def __init__(
        self,
        connection: Connection,
        dialect: Dialect,
        namespace: str,
        actor: str,
        now: datetime,
        *,
        embeds: bool = True,
    ) -> None:
        self._connection = connection
        self._dialect = dialect
        self._namespace = namespace
        self._actor = actor
        self._now = now
        self._embeds = embeds
        self._id = 0
        self.changed = False

    def previous_outcome(self, request_id: str) -> Outcome | None:
        """Return how this very request ended when it was made before, so that a retry does nothing twice."""
        mine = request_outcome.c.request_id == self._own(request_id)
        row = self._connection.execute(select(request_outcome).where(mine)).first() if request_id else None
        return None if row is None else Outcome(WriteStatus(row.status), row.memory_id, tuple(json.loads(row.notes)))

    def record_outcome(self, request_id: str, outcome: Outcome) -> None:
        """Keep the outcome under the request's id, in the transaction of the write itself.

        What is no number names nothing, now or later; it may be any text, even a secret, and is not kept.
        """
        if request_id and outcome.id.isdecimal():
            values = {
                "request_id": self._own(request_id),
                "status": str(outcome.status),
                "memory_id": outcome.id,
                "at": self._now,
                "notes": json.dumps(outcome.notes),
            }
            self._connection.execute(insert(request_outcome).values(**values))

    def _own(self, request_id: str) -> str:
        """Return the id as this actor's own: nobody else's request can have been this one."""
        return hashlib.sha256(f"{self._actor}\n{request_id}".encode()).hexdigest()

    def by_key(self, key: str) -> Memory | None:
        """Find the memory with this key, expired or deleted ones included, since the key is taken all the same."""
        return self._first(memory.c.key == key)

    def by_hash(self, content_hash: str) -> Memory | None:
        """Find the oldest memory with this content that is neither deleted nor merged into another."""
        return self._first((memory.c.content_hash == content_hash) & shown())

    def by_id(self, memory_id: int) -> Memory | None:
        """Find the memory with this id, whatever its state."""
        return self._first(memory.c.id == memory_id)

    def insert(self, entry: Entry, merged_into: int | None = None) -> int:
        """Write a new memory and return its id; one that is merged into another is kept out of sight."""
        (memory_id,) = self._insert([(entry, MemoryState(merged_into=merged_into))], merged_into=merged_into)
        self._journal("insert", memory_id, _fields(entry) | ({"merged_into": merged_into} if merged_into else {}))
        return memory_id

    def insert_many(self, imported: Sequence[ImportedMemory]) -> list[int]:
        """Write memories out of a file and return their ids: those they had, where no memory here ever had them.

        Which memories they gave way to is not known before all of the file are there: `link` says so.
        """
        pairs = [(one.entry, one.record.value) for one in imported]
        ids = self._insert(pairs)
        named = [(one, _fields(entry) | _origin(state.origin)) for one, (entry, state) in zip(ids, pairs, strict=True)]
        journal.extend(self._connection, [self._line("import", one, changes) for one, changes in named])
        return ids

    def update(self, old: Memory, entry: Entry, action: str, *, revive: bool = True) -> None:
        """Write the given fields and what follows from them over `old`; vectors change with the content only.

        With `revive` a memory that was hidden, merged or superseded is in sight again. Raises `NotFound` when `old` is
        not a memory of this namespace.
        """
        values = mapping.columns_of(entry, entry.given)
        if revive:
            values |= {"deleted_at": None, "superseded_by": None, "merged_into": None}
        if not self._connection.execute(update(memory).where(self._is(old.id)).values(**values)).rowcount:
            raise NotFound(f"Memory {old.id} not found.")
        if "speaker" in entry.given and entry.cleared.value.speaker != old.speaker:
            child_tables.add_speakers(self._connection, self._namespace_id, [entry])
            child_tables.prune_speaker(self._connection, self._namespace_id, old.speaker)
        child_tables.replace_labels(self._connection, old.id, entry)
        hidden = old.deleted_at is not None or old.merged_into is not None
        self._write_words(old.id, entry.words if revive or not hidden else frozenset())
        if entry.content_hash != old.content_hash or (revive and hidden):
            chunks = self._chunks(entry)
            self._enqueue(old.id, embedded=chunks is not None)
            child_tables.replace_chunks(self._connection, old.id, chunks or ())
        self._journal(action, old.id, _fields(entry))

    def archive(self, old: Memory) -> int:
        """Keep what `old` says now as a memory of its own, merged into it and out of sight; return its id."""
        memory_id = self._dialect.claim_ids(self._connection, memory, [None])[0]
        changed = {"id": literal(memory_id), "key": null(), "merged_into": literal(old.id)}
        copied = [changed.get(one.name, one) for one in memory.c]
        row = select(*copied).where(memory.c.id == old.id)
        self._connection.execute(insert(memory).from_select([one.name for one in memory.c], row))
        labels = select(literal(memory_id), label.c.kind, label.c.position, label.c.value)
        self._connection.execute(
            insert(label).from_select(
                ["memory_id", "kind", "position", "value"], labels.where(label.c.memory_id == old.id)
            )
        )
        self._write_words(memory_id, frozenset(), new=True)
        self._count(1)
        self._journal("insert", memory_id, {"merged_into": old.id})
        return memory_id

    def archived(self, memory_id: int) -> list[Memory]:
        """Return what was merged into the memory, oldest first."""
        return self._find(memory.c.merged_into == memory_id)

    def supersede(self, memory_id: int, by: int) -> None:
        """Mark a memory as replaced by another: no recall shows it, its history does."""
        self._connection.execute(update(memory).where(self._is(memory_id)).values(superseded_by=by))
        self._journal("update", memory_id, {"superseded_by": by})

    def hide(self, memory_id: int) -> bool:
        """Delete the memory softly: its row stays, no index holds it. Say whether there was one in sight."""
        seen = self._is(memory_id) & shown()
        if not self._connection.execute(update(memory).where(seen).values(deleted_at=self._now)).rowcount:
            return False
        self._leave_indexes(memory_id)
        self._journal("delete", memory_id, {"soft": True})
        return True

    def delete(self, memory_id: int, action: str = "delete") -> bool:
        """Remove the memory, what was merged into it and all their traces; say whether it was there."""
        columns = (memory.c.speaker, memory.c.superseded_by)
        row = self._connection.execute(select(*columns).where(self._is(memory_id))).first()
        if row is None:
            return False
        for one in self.archived(memory_id):
            self.delete(one.id, action)
        self._leave_indexes(memory_id)
        self._connection.execute(delete(memory).where(self._is(memory_id)))
        self._count(-1)
        self._hand_on(memory_id, row.superseded_by)
        child_tables.prune_speaker(self._connection, self._namespace_id, row.speaker)
        self._journal(action, memory_id, {})
        return True

    def page(self, after: int, limit: int) -> list[Memory]:
        """Return the next memories of the namespace in the order of their ids, whatever their state."""
        page = select(memory.c.id).where(self._here, memory.c.id > after).order_by(memory.c.id).limit(limit)
        return self._find(memory.c.id.in_(self._connection.execute(page).scalars().all()))

    def fact_page(self, after: int, limit: int) -> list[Fact]:
        """Return the next facts of the namespace in the order of their ids."""
        return facts.page(self._connection, self._known_id, after, limit)

    def rewrite_fact(self, old: Fact, parts: Mapping[str, str]) -> None:
        """Write other words in the place of a fact's own."""
        facts.rewrite(self._connection, old.id, parts)
        self._journal("redact", old.memory_id, {"fact": old.id, "fields": sorted(parts)})

    def quarantine(self, memory_id: int) -> None:
        """Put a memory where no read looks: hidden, and at a level of sensitivity that nobody can ask for."""
        self.hide(memory_id)
        self._connection.execute(update(memory).where(self._is(memory_id)).values(sensitivity=QUARANTINED))
        self._journal("quarantine", memory_id, {})

    def quarantine_fact(self, old: Fact) -> None:
        """Put a fact where no read looks."""
        facts.change(self._connection, old.id, {"sensitivity": QUARANTINED})
        self._journal("quarantine", old.memory_id, {"fact": old.id})

    def request_purge(self) -> None:
        """Have the text index rewritten, so that nothing is left in it of what was overwritten."""
        self._dialect.mark_deleted_text(self._connection)

    def expired(self) -> list[int]:
        """Return what has passed its time, in the order of its ids."""
        query = select(memory.c.id).where(self._here, memory.c.expires_at <= self._now).order_by(memory.c.id)
        return list(self._connection.execute(query).scalars())

    def evictable(self, most: int, sparing: int) -> list[int]:
        """Return what is beyond `most` memories: first what is out of sight, then the least used, oldest, slightest.

        The memory to be spared is never among them. What was replaced goes before what replaced it, or it would be
        current again.
        """
        held = select(namespace.c.memories).where(namespace.c.id == self._namespace_id)
        beyond = int(self._connection.execute(held).scalar_one()) - most
        if beyond <= 0:
            return []
        query = (
            select(memory.c.id)
            .outerjoin(usage, usage.c.memory_id == memory.c.id)
            .where(self._here, memory.c.id != sparing)
            .order_by(alive(self._now) & memory.c.superseded_by.is_(None))
            .order_by(func.coalesce(usage.c.accessed_count, 0))
            .order_by(memory.c.updated_at, memory.c.importance, memory.c.id)
            .limit(beyond)
        )
        return list(self._connection.execute(query).scalars())

    def find(self, keys: Iterable[str], hashes: Iterable[str]) -> list[Memory]:
        """Return the memories that have one of these keys or contents, whatever their state."""
        found: dict[int, Memory] = {}
        for column, values in ((memory.c.key, keys), (memory.c.content_hash, hashes)):
            for batch in mapping.in_batches(values):
                found |= {one.id: one for one in self._find(column.in_(batch))}
        return [found[one] for one in sorted(found)]

    def keys_with_prefix(self, prefix: str) -> dict[str, int]:
        """Return the memories whose key begins so and that everybody in the namespace may see, by their key."""
        seen = visible(self._connection, View(namespaces=(self._namespace,), now=self._now, superseded=True))
        mine = memory.c.key.startswith(prefix, autoescape=True)
        found = self._connection.execute(select(memory.c.key, memory.c.id).where(self._here, mine, seen))
        return {row.key: row.id for row in found}

    def link(self, one: MemoryLink) -> bool:
        """Say which memory an imported one gave way to, now that all are there; say whether that can be.

        A memory gives way within its namespace, and never to itself, at whatever remove.
        """
        possible = True
        for name in ("superseded_by", "merged_into"):
            target = getattr(one, name)
            if target is not None and self._leads(one.id, target, name):
                waiting = self._is(one.id) & (memory.c[name] == _LINKED_LATER)
                self._connection.execute(update(memory).where(waiting).values({name: target}))
            elif target is not None:
                possible = False
        return possible

    def facts_about(self, subject: str, predicate: str, at: datetime) -> list[Fact]:
        """Return the facts of this subject and predicate that hold `at` a time or later, letter case aside."""
        return facts.holding(self._connection, self._known_id, subject, predicate, at)

    def put_fact(self, entry: FactEntry) -> int:
        """Write a new fact and return its id."""
        fact_id = self._put_fact(entry, None, entry.at, entry.at)
        self._journal("insert", entry.memory_id, {"fact": fact_id})
        return fact_id

    def import_fact(self, entry: FactEntry, record: Cleared[FactRecord]) -> bool:
        """Write a fact with the id and the times it had; say whether it, or that it holds no more, was new."""
        had = record.value
        known = facts.same(self._connection, self._known_id, had)
        if known is None:
            fact_id = self._put_fact(entry, had.id, had.created_at or entry.at, had.updated_at or entry.at)
            self._journal("import", entry.memory_id, {"fact": fact_id} | _origin(had.origin))
            return True
        ended = had.valid_to is not None and known.valid_to is None
        if ended:
            facts.change(self._connection, known.id, {"valid_to": had.valid_to, "updated_at": self._now})
            self._journal("update", entry.memory_id, {"fact": known.id} | _origin(had.origin))
        return ended

    def confirm_fact(self, old: Fact, confidence: float) -> None:
        """Note that a fact was stated again."""
        facts.change(self._connection, old.id, {"confidence": confidence, "updated_at": self._now})
        self._journal("refresh", old.memory_id, {"fact": old.id})

    def end_fact(self, old: Fact, at: datetime, by: int) -> None:
        """Let a fact hold no longer than until `at`, because another replaces it."""
        facts.change(self._connection, old.id, {"valid_to": at, "updated_at": self._now})
        self._journal("update", old.memory_id, {"fact": old.id, "replaced_by": by})

    def delete_fact(self, fact_id: int) -> bool:
        """Remove a fact for good; say whether it was there."""
        if not facts.delete(self._connection, self._known_id, fact_id):
            return False
        self._journal("delete", None, {"fact": fact_id})
        return True

    def refuse(self, field: str, kinds: Sequence[str]) -> None:
        """Journal that the gate refused something: the field and the kinds, never a value."""
        self._journal("refuse", None, {"field": field, "kinds": list(kinds)})

    @property
    def _known_id(self) -> int:
        """Return the namespace's id, or 0 while nothing was stored in it."""
        if not self._id:
            self._id = namespace_ids(self._connection, [self._namespace]).get(self._namespace, 0)
        return self._id

    @property
    def _namespace_id(self) -> int:
        """Return the namespace's id; it is made when there is none."""
        if not self._known_id:
            result = self._connection.execute(insert(namespace).values(name=self._namespace))
            self._id = int(result.inserted_primary_key[0])  # type: ignore[index]
        return self._id

    @property
    def _here(self) -> ColumnElement[bool]:
        return memory.c.namespace_id == self._known_id

    def _is(self, memory_id: int) -> ColumnElement[bool]:
        return (memory.c.id == memory_id) & self._here

    def _find(self, condition: ColumnElement[bool]) -> list[Memory]:
        found = mapping.load(self._connection, condition & self._here) if self._known_id else []
        return sorted(found, key=lambda one: one.id)

    def _first(self, condition: ColumnElement[bool]) -> Memory | None:
        return next(iter(self._find(condition)), None)

    def _insert(self, pairs: Sequence[tuple[Entry, MemoryState]], merged_into: int | None = _LINKED_LATER) -> list[int]:
        """Write new memories with all that hangs on them; the journal is the caller's."""
        number = self._namespace_id
        wanted = [state.id if state.id is None or state.id <= _HIGHEST else None for _, state in pairs]
        ids = self._dialect.claim_ids(self._connection, memory, wanted)
        rows = []
        for memory_id, (entry, state) in zip(ids, pairs, strict=True):
            merged, superseded = state.merged_into is not None, state.superseded_by is not None
            row = mapping.columns_of(entry) | {"id": memory_id, "namespace_id": number}
            row |= {"created_at": state.created_at or entry.at, "deleted_at": state.deleted_at}
            row |= {"merged_into": merged_into if merged else None, "key": None if state.merged_into else row["key"]}
            rows.append(row | {"superseded_by": _LINKED_LATER if superseded else None})
        self._connection.execute(insert(memory), rows)
        self._count(len(ids))
        named = list(zip(ids, pairs, strict=True))
        self._put_children(number, [(memory_id, entry) for memory_id, (entry, _) in named])
        counts = [_usage(memory_id, state) for memory_id, (_, state) in named if _used(state)]
        if counts:
            self._connection.execute(insert(usage), counts)
        hidden = {one for one, (_, state) in named if state.hidden}
        self._put_in_indexes(number, {one: entry for one, (entry, _) in named}, hidden)
        return ids

    def _put_children(self, number: int, entries: Sequence[tuple[int, Entry]]) -> None:
        child_tables.add_speakers(self._connection, number, (entry for _, entry in entries))
        labels = (row for memory_id, entry in entries for row in child_tables.labels_of(memory_id, entry))
        child_tables.put_labels(self._connection, labels)

    def _put_in_indexes(self, number: int, entries: Mapping[int, Entry], hidden: Collection[int]) -> None:
        """Write words and vectors of new memories in sight, and queue these for the vector index."""
        words = {one: frozenset() if one in hidden else entry.words for one, entry in entries.items()}
        child_tables.write_words(self._connection, number, words, new=True)
        found = {one: self._chunks(entry) for one, entry in entries.items() if one not in hidden}
        vectors = [row for one, chunks in found.items() for row in child_tables.chunk_rows(one, chunks or ())]
        if vectors:
            self._connection.execute(insert(vector), vectors)
        queued = [
            {"memory_id": one, "namespace_id": number, "chunks": 0, "embedded": chunks is not None}
            for one, chunks in found.items()
        ]
        if queued:
            self._connection.execute(insert(outbox), queued)
            self.changed = True

    def _leave_indexes(self, memory_id: int) -> None:
        """Take a memory out of the vocabulary, and let both indexes forget what they hold of it."""
        self._write_words(memory_id, frozenset())
        self._enqueue(memory_id, embedded=True)
        self._dialect.mark_deleted_text(self._connection)

    def _hand_on(self, memory_id: int, by: int | None) -> None:
        """Let what a deleted memory had replaced be current again, or replaced by what had replaced that one."""
        replaced = self._here & (memory.c.superseded_by == memory_id)
        freed = self._connection.execute(select(memory.c.id).where(replaced)).scalars().all()
        if freed:
            self._connection.execute(update(memory).where(replaced).values(superseded_by=by))
        for one in freed:
            self._journal("update", one, {"superseded_by": by})

    def _leads(self, memory_id: int, to: int, name: str) -> bool:
        """Say whether both memories are of this namespace and the way on from the second never comes to the first."""
        query = select(func.count()).where(self._here, memory.c.id.in_({memory_id, to}))
        if self._connection.execute(query).scalar_one() != 2:
            return False
        at: int | None = to
        while at and at != memory_id:
            at = self._connection.execute(select(memory.c[name]).where(memory.c.id == at)).scalar()
        return at != memory_id

    def _put_fact(self, entry: FactEntry, wanted: int | None, created_at: datetime, updated_at: datetime) -> int:
        wanted = wanted if wanted is not None and wanted <= _HIGHEST else None
        fact_id = self._dialect.claim_ids(self._connection, fact, [wanted])[0]
        times = {"created_at": created_at, "updated_at": updated_at}
        facts.put(self._connection, self._namespace_id, entry, {"id": fact_id} | times)
        return fact_id

    def _count(self, change: int) -> None:
        held = namespace.c.memories + change
        self._connection.execute(update(namespace).where(namespace.c.id == self._namespace_id).values(memories=held))

    def _write_words(self, memory_id: int, words: frozenset[str], *, new: bool = False) -> None:
        child_tables.write_words(self._connection, self._namespace_id, {memory_id: words}, new=new)

    def _enqueue(self, memory_id: int, *, embedded: bool) -> None:
        child_tables.enqueue(self._connection, self._namespace_id, memory_id, embedded=embedded)
        self.changed = True

    def _chunks(self, entry: Entry) -> tuple[Chunk, ...] | None:
        return entry.chunks if self._embeds else None

    def _journal(self, action: str, memory_id: int | None, changes: dict[str, Any]) -> None:
        journal.extend(self._connection, [self._line(action, memory_id, changes)])

    def _line(self, action: str, memory_id: int | None, changes: dict[str, Any]) -> dict[str, Any]:
        line = {"at": self._now, "actor": self._actor, "namespace": self._namespace, "action": action}
        return line | {"memory_id": memory_id, "changes": changes}


def _fields(entry: Entry) -> dict[str, Any]:
    return {"fields": sorted(entry.given)} if entry.given else {}


def _origin(place: str) -> dict[str, str]:
    return {"from": place} if place else {}


def _used(state: MemoryState) -> bool:
    return bool(state.accessed_count or state.recalled_count or state.last_accessed_at)


def _usage(memory_id: int, state: MemoryState) -> dict[str, Any]:
    return {"memory_id": memory_id} | {one.name: getattr(state, one.name) for one in usage.c if one.name != "memory_id"}
