"""Bringing in what a file carries: many memories in one transaction, with the numbers, times and counts they had.

Only import comes here. What it writes is what `SqlWriting` would have written one memory at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select, text, update

from recollect.domain import KeptFact, KeptLine, Link, Memory, View, folded
from recollect.gate import Cleared
from recollect.ports import Brought, FactEntry
from recollect.store import facts, journal, rows, stamps
from recollect.store.children import LABELS, NAME, chunk_rows
from recollect.store.database import Database
from recollect.store.writing import COUNT, SCALARS, SqlWriting, never_null, plain

_HIGHEST = 2**30  # no file may use up the numbers that SQL and `number_of` know, which go on to twice that
_NOWHERE = 0  # stands for a memory that is in the file, until it is known which number it has here
_TAKE_UP = text(
    "INSERT INTO word (namespace_id, text, uses) VALUES (:namespace, :word, :uses) "
    "ON CONFLICT (namespace_id, text) DO UPDATE SET uses = word.uses + :uses"
)
_LINKS = ("superseded_by", "merged_into")
_SEQUENCE = text("SELECT pg_get_serial_sequence(:table, 'id')")


class _Room(SqlWriting):
    """One namespace of the transaction."""

    @property
    def number(self) -> int:
        """Return the id of the namespace, which is made when there is none."""
        return self._namespace_id()

    def columns(self, one: Brought) -> dict[str, Any]:
        """Return the columns that come from the entry."""
        values = {name: plain(getattr(one.entry.cleared.value, name)) for name in SCALARS}
        return never_null(values | self._derived(one.entry))


class SqlBringing:
    """The `Bringing` port over one open transaction; `now` is the time of whatever it writes.

    Where the store has moved to another model than ours, it `embeds` nothing: what is written waits for that one.
    """

    def __init__(self, connection: Connection, actor: str, now: datetime, *, embeds: bool = True) -> None:
        self._connection = connection
        self._actor = actor
        self._now = now
        self._embeds = embeds
        self._told: dict[str, set[int]] = {}
        self.changed = False

    def standing(self, namespace: str, keys: Iterable[str], hashes: Iterable[str]) -> list[Memory]:
        """Return the memories of a namespace that have one of these keys or contents, whatever their state."""
        number = rows.namespace_ids(self._connection, [namespace]).get(namespace)
        if number is None:
            return []
        found: dict[int, Memory] = {}
        for column, values in ((rows.memory.c.key, keys), (rows.memory.c.content_hash, hashes)):
            for batch in rows.in_batches(values):
                mine = (rows.memory.c.namespace_id == number) & column.in_(batch)
                found |= {one.id: one for one in rows.load(self._connection, mine)}
        return [found[one] for one in sorted(found)]

    def keyed(self, namespace: str, prefix: str) -> dict[str, int]:
        """Return the memories whose key begins so and that everybody in the namespace may see, by their key."""
        numbers = rows.namespace_ids(self._connection, [namespace]).values()
        seen = rows.visible(View((namespace,), self._now, superseded=True), numbers) & rows.inside(numbers)
        mine = rows.memory.c.key.startswith(prefix, autoescape=True)
        found = self._connection.execute(select(rows.memory.c.key, rows.memory.c.id).where(mine, seen))
        return {row.key: row.id for row in found}

    def insert(self, namespace: str, brought: Sequence[Brought]) -> list[int]:
        """Write new memories and return their ids: those they had, where no memory here ever had them."""
        wanted = [one.kept.value.id for one in brought]
        ids = _numbers(self._connection, rows.memory, wanted)
        room = self._writing(namespace)
        number = room.number
        values = [
            room.columns(one) | _kept_columns(one, number, memory_id)
            for one, memory_id in zip(brought, ids, strict=True)
        ]
        self._connection.execute(insert(rows.memory), values)
        _advance(self._connection, rows.memory, max(ids))
        self._connection.execute(COUNT, {"namespace": number, "change": len(ids)})
        pairs = list(zip(ids, brought, strict=True))
        self._put_children(number, pairs)
        self._put_vectors(number, pairs)
        self._tell(namespace, pairs)
        return ids

    def update(self, namespace: str, old: Memory, one: Brought, *, revive: bool) -> None:
        """Write what a file says over a memory that is there; with `revive` it is in sight again."""
        writing = self._writing(namespace)
        writing.update(old, one.entry, "update", revive=revive)
        self.changed |= writing.changed

    def refuse(self, namespace: str, field: str, kinds: Sequence[str]) -> None:
        """Journal that the gate refused something: the field and the kinds, never a value."""
        changes = {"field": field, "kinds": list(kinds)}
        self._extend([self._line(namespace, "refuse", None, changes)])

    def link(self, links: Iterable[Link], namespaces: Sequence[str]) -> list[Link]:
        """Say which memories gave way to which, now that all are there; return the links that cannot be.

        A memory gives way within its namespace, and never to itself, at whatever remove.
        """
        inside = rows.inside(rows.namespace_ids(self._connection, namespaces).values())
        refused = []
        for one in links:
            mine = inside & (rows.memory.c.id == one.id)
            named = [(name, value) for name in _LINKS if (value := getattr(one, name)) is not None]
            for name, value in named:
                if self._leads(one.id, value, name):
                    awaited = mine & (rows.memory.c[name] == _NOWHERE)
                    self._connection.execute(update(rows.memory).where(awaited).values({name: value}))
                elif one not in refused:
                    refused.append(one)
        return refused

    def _leads(self, memory_id: int, to: int, name: str) -> bool:
        """Say whether both memories are of one namespace and the way on from the second never comes to the first."""
        column = rows.memory.c
        query = select(func.count(column.namespace_id.distinct()), func.count()).where(column.id.in_([memory_id, to]))
        if tuple(self._connection.execute(query).one()) != (1, 2):
            return False
        at: int | None = to
        while at and at != memory_id:
            at = self._connection.execute(select(column[name]).where(column.id == at)).scalar()
        return at != memory_id

    def put_fact(self, namespace: str, entry: FactEntry, kept: Cleared[KeptFact]) -> bool:
        """Write a fact with the number and the times it had; say whether it, or that it holds no more, was new."""
        known, fact = self._known_fact(namespace, kept.value), kept.value
        if known is not None:
            ended = fact.valid_to is not None and known[1] is None
            if ended:
                facts.change(self._connection, known[0], {"valid_to": fact.valid_to, "updated_at": self._now})
                self._extend([self._line(namespace, "update", entry.memory_id, {"fact": known[0]})])
            return ended
        number = _numbers(self._connection, rows.fact, [fact.id])[0]
        written = facts.put(self._connection, self._namespace_id(namespace), entry)
        times = {"created_at": fact.created_at or entry.at, "updated_at": fact.updated_at or entry.at}
        facts.change(self._connection, written, times | {"id": number})
        _advance(self._connection, rows.fact, number)
        if fact.id != number or not self._tells(namespace, number):
            self._extend([self._line(namespace, "insert", entry.memory_id, {"fact": number})])
        return True

    def _known_fact(self, namespace: str, fact: KeptFact) -> tuple[int, datetime | None] | None:
        """Find the same triple: from the same time on, or where the file tells none, one that still holds."""
        column = rows.fact.c
        when = column.valid_to.is_(None) if fact.valid_from is None else column.valid_from == fact.valid_from
        about = (
            (column.namespace_id == self._namespace_id(namespace))
            & (column.subject_folded == folded(fact.subject))
            & (column.predicate_folded == folded(fact.predicate))
        )
        found = self._connection.execute(select(column.id, column.object, column.valid_to).where(about, when))
        same = folded(fact.object)
        return next(((row.id, row.valid_to) for row in found if folded(row.object) == same), None)

    def _tells(self, namespace: str, fact_id: int) -> bool:
        """Say whether the journal tells of this fact already; its lines are read once in a transaction."""
        if namespace not in self._told:
            self._told[namespace] = journal.facts_told(self._connection, namespace)
        return fact_id in self._told[namespace]

    def owns(self, memory_id: int, namespaces: Sequence[str]) -> bool:
        """Say whether the memory is one of these namespaces."""
        inside = rows.inside(rows.namespace_ids(self._connection, namespaces).values())
        query = select(rows.memory.c.id).where(inside, rows.memory.c.id == memory_id)
        return self._connection.execute(query).scalar() is not None

    def restore(self, lines: Sequence[Cleared[KeptLine]], tip: str, *, rechained: bool) -> tuple[str, int] | None:
        """Write lines of another journal behind those already restored; return the hash of the last, and how many.

        `tip` is that of the last one before; the journal must end there, or be empty, or hold these lines already.
        Returns None and writes nothing when it does not, or when a line's hash is not what follows from the one before;
        `rechained` lines get new ones.
        """
        if journal.last(self._connection) != (tip or journal.FIRST):
            there = journal.same(self._connection, [one.value for one in lines])
            return None if there is None else (there, 0)
        end = journal.restore(self._connection, [one.value for one in lines], rechained=rechained)
        if end is None:
            return None
        _advance(self._connection, rows.journal, lines[-1].value.id)
        return end, len(lines)

    def close(self, namespaces: Sequence[str]) -> None:
        """See to it that no number that the journal tells of is given to another memory or fact."""
        line = rows.journal.c.memory_id
        memories = self._connection.execute(select(func.max(line)).where(line <= _HIGHEST)).scalar() or 0
        told = [journal.facts_told(self._connection, namespace) for namespace in namespaces]
        _advance(self._connection, rows.memory, memories)
        facts_there = (one for some in told for one in some if one <= _HIGHEST)
        _advance(self._connection, rows.fact, max(facts_there, default=0))

    def _writing(self, namespace: str) -> _Room:
        return _Room(self._connection, namespace, self._actor, self._now, embeds=self._embeds)

    def _namespace_id(self, namespace: str) -> int:
        return self._writing(namespace).number

    def _extend(self, lines: Sequence[dict[str, Any]]) -> None:
        journal.extend(self._connection, lines)

    def _put_children(self, number: int, pairs: Sequence[tuple[int, Brought]]) -> None:
        """Write labels, entities, words, names and counts of new memories."""
        connection, uses = self._connection, Counter[str]()
        words = []
        for memory_id, one in pairs:
            said = frozenset() if one.hidden else frozenset(" ".join(one.entry.words).split())
            uses.update(said)
            words.append({"memory_id": memory_id, "words": " ".join(sorted(said))})
        connection.execute(insert(rows.memory_words), words)
        taken = [{"namespace": number, "word": word, "uses": times} for word, times in sorted(uses.items())]
        names = {(one.entry.cleared.value.speaker, word) for _, one in pairs for word in one.entry.speaker_words}
        named = [{"namespace": number, "name": name, "word": word} for name, word in sorted(names, key=str)]
        labels = [label for memory_id, one in pairs for label in _labels(memory_id, one)]
        counts = [_usage(memory_id, one) for memory_id, one in pairs if _used(one)]
        statements: list[tuple[Any, list[dict[str, Any]]]] = [(_TAKE_UP, taken), (NAME, named)]
        statements += [(insert(rows.label), labels), (insert(rows.usage), counts)]
        for statement, values in statements:
            if values:
                connection.execute(statement, values)

    def _put_vectors(self, number: int, pairs: Sequence[tuple[int, Brought]]) -> None:
        """Write the vectors of new memories in sight, and queue those for the index."""
        seen = [(memory_id, one) for memory_id, one in pairs if not one.hidden]
        vectors = [
            row
            for memory_id, one in seen
            for row in chunk_rows(memory_id, (one.entry.chunks or ()) if self._embeds else ())
        ]
        waiting = {"namespace_id": number, "chunks": 0}
        queued = [
            waiting | {"memory_id": memory_id, "embedded": self._embeds and one.entry.chunks is not None}
            for memory_id, one in seen
        ]
        if vectors:
            self._connection.execute(insert(rows.vector), vectors)
        if queued:
            self._connection.execute(insert(rows.outbox), queued)
            self.changed = True

    def _tell(self, namespace: str, pairs: Sequence[tuple[int, Brought]]) -> None:
        """Journal new memories, except those whose history stands there already."""
        own = [memory_id for memory_id, one in pairs if one.kept.value.id == memory_id]
        known = journal.knows(self._connection, own, namespace)
        lines = [
            self._line(namespace, "insert", memory_id, _told(one)) for memory_id, one in pairs if memory_id not in known
        ]
        self._extend(lines)

    def _line(self, namespace: str, action: str, memory_id: int | None, changes: dict[str, Any]) -> dict[str, Any]:
        line = {"at": self._now, "actor": self._actor, "namespace": namespace, "action": action}
        return line | {"memory_id": memory_id, "changes": changes}


class SqlImports:
    """The `Imports` port; `clock` dates what is written, `written` is told when an import that left work is over.

    `model` is what the store is stamped with as long as our vectors are of use to it; without it that is not looked at.
    """

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        written: Callable[[], None],
        model: Mapping[str, str] | None = None,
    ) -> None:
        self._database = database
        self._model = model
        self._clock = clock
        self.over = written

    def known(self, namespace: str, hashes: Iterable[str]) -> set[str]:
        """Return those of `hashes` that are the content of a memory of this namespace."""
        found: set[str] = set()
        with self._database.reading() as connection:
            number = rows.namespace_ids(connection, [namespace]).get(namespace)
            for batch in rows.in_batches(hashes):
                mine = (rows.memory.c.namespace_id == number) & rows.memory.c.content_hash.in_(batch)
                found.update(connection.execute(select(rows.memory.c.content_hash).where(mine)).scalars())
        return found

    @contextmanager
    def bringing(self, actor: str, *, dry: bool = False) -> Iterator[SqlBringing]:
        """Open one write transaction over any namespaces; a `dry` one leaves nothing behind."""
        with self._database.writing() as connection:
            kept = False
            try:
                with connection.begin_nested() as inner:
                    embeds = stamps.embeds(connection, self._model)
                    yield SqlBringing(connection, actor, self._clock(), embeds=embeds)
                    if dry:
                        inner.rollback()
                kept = not dry
            finally:
                if not kept:
                    connection.info.pop("namespaces", None)  # those made in it are gone again


def _kept_columns(one: Brought, namespace_id: int, memory_id: int) -> dict[str, Any]:
    entry, kept = one.entry, one.kept.value
    return {
        "id": memory_id,
        "namespace_id": namespace_id,
        "key": None if kept.merged_into else entry.cleared.value.key,
        "created_at": kept.created_at or entry.at,
        "deleted_at": kept.deleted_at,
        "superseded_by": None if kept.superseded_by is None else _NOWHERE,
        "merged_into": None if kept.merged_into is None else _NOWHERE,
    }


def _labels(memory_id: int, one: Brought) -> Iterator[dict[str, Any]]:
    draft = one.entry.cleared.value
    for field, kind in LABELS.items():
        for position, value in enumerate(getattr(draft, field)):
            yield {"memory_id": memory_id, "kind": kind, "position": position, "value": str(value)}
    for position, found in enumerate(one.entry.entities):
        yield {"memory_id": memory_id, "kind": f"entity_{found.type}", "position": position, "value": found.name}


def _used(one: Brought) -> bool:
    kept = one.kept.value
    return bool(kept.accessed_count or kept.recalled_count or kept.last_accessed_at)


def _usage(memory_id: int, one: Brought) -> dict[str, Any]:
    kept = one.kept.value
    counts = {"accessed_count": kept.accessed_count, "recalled_count": kept.recalled_count}
    return {"memory_id": memory_id, **counts, "last_accessed_at": kept.last_accessed_at}


def _told(one: Brought) -> dict[str, Any]:
    fields = {"fields": sorted(one.entry.given)} if one.entry.given else {}
    return fields | ({"from": one.kept.value.origin} if one.kept.value.origin else {})


def _numbers(connection: Connection, table: Table, wanted: Sequence[int | None]) -> list[int]:
    """Give each its own number where it was never given before, and new ones beyond all of these to the rest."""
    high = _high(connection, table)
    own = {one for one in wanted if one is not None and high < one <= _HIGHEST}
    fresh = count(max(own, default=high) + 1)
    given: list[int] = []
    for one in wanted:
        free = one is not None and one in own
        given.append(one if one is not None and free else next(fresh))
        if one is not None:
            own.discard(one)
    return given


def _high(connection: Connection, table: Table) -> int:
    """Return the highest number that a row of `table` ever had."""
    if connection.dialect.name == "sqlite":
        found = connection.execute(text("SELECT seq FROM sqlite_sequence WHERE name = :name"), {"name": table.name})
        return int(found.scalar() or 0)
    name = connection.execute(_SEQUENCE, {"table": table.name}).scalar()
    found = connection.execute(text("SELECT pg_sequence_last_value(CAST(:name AS regclass))"), {"name": name})
    return int(found.scalar() or 0)


def _advance(connection: Connection, table: Table, number: int) -> None:
    """Let numbers that are given by themselves go on after `number`."""
    if number <= _high(connection, table):
        return
    if connection.dialect.name == "sqlite":
        changed = connection.execute(
            text("UPDATE sqlite_sequence SET seq = :number WHERE name = :name"), {"number": number, "name": table.name}
        )
        if not changed.rowcount:
            connection.execute(
                text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :number)"),
                {"number": number, "name": table.name},
            )
        return
    name = connection.execute(_SEQUENCE, {"table": table.name}).scalar()
    connection.execute(text("SELECT setval(CAST(:name AS regclass), :number)"), {"name": name, "number": number})
