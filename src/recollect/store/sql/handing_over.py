"""Memories that change their namespace as they are: ids, history, versions, standing and usage stay theirs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Row, delete, insert, select, update

from recollect.domain.enums import Sensitivity
from recollect.store.sql import child_tables
from recollect.store.sql.statements import count, select_in
from recollect.store.sql.tables import fact, level_of, memory, memory_words, outbox, speaker, vector
from recollect.store.sql.transaction import Transaction
from recollect.store.sql.visibility import alive, shown, unexpired

_PUBLIC = str(Sensitivity.PUBLIC)
ACTION = "hand_over"
"""The action of the lines of the journal about what changed its namespace, in each of both chains."""


@dataclass(frozen=True, slots=True)
class HandingOver:
    """Moves public memories from the namespace of an open transaction to that of another on the same connection."""

    _source: Transaction
    _target: Transaction

    def waiting(self, limit: int) -> list[int]:
        """Return the next public memories that are neither hidden nor expired, and what was merged into them."""
        own = self._source
        here = (memory.c.namespace_id == own.known_id) & (memory.c.sensitivity == _PUBLIC)
        living = select(memory.c.id).where(here, alive(own.now)).order_by(memory.c.id).limit(limit)
        found = list(own.execute(living).scalars())
        parts = select(memory.c.id).where(here, memory.c.deleted_at.is_(None), unexpired(own.now))
        return found + [row.id for row in select_in(own.connection, parts, memory.c.merged_into, found)]

    def move(self, ids: Collection[int]) -> None:
        """Move these memories, with the facts that they state."""
        source, target = self._source, self._target
        columns = (memory.c.id, memory.c.key, memory.c.speaker, shown().label("shown"))
        rows = list(select_in(source.connection, select(*columns), memory.c.id, ids))
        self._free_keys(rows)
        self._move_words(ids)
        child_tables.count_memories(source.connection, source.namespace_id, _PUBLIC, -len(rows))
        child_tables.count_memories(target.connection, target.namespace_id, _PUBLIC, len(rows))
        self._queue(row.id for row in rows if row.shown)
        source.execute(update(memory).where(memory.c.id.in_(ids)).values(namespace_id=target.namespace_id))
        self._move_speakers({row.speaker for row in rows} - {None})
        stated = fact.c.memory_id.in_(ids)
        self._drop_private_facts(ids)
        source.execute(update(fact).where(stated).values(namespace_id=target.namespace_id))
        self._journal([(row.id, {}) for row in rows])
        facts = source.execute(select(fact.c.id, fact.c.memory_id).where(stated).order_by(fact.c.id)).all()
        self._journal([(row.memory_id, {"fact": row.id}) for row in facts])
        source.dialect.mark_deleted_text(source.connection)
        source.changed = target.changed = True

    def move_facts(self) -> int:
        """Move the public facts that no memory states; return how many."""
        source, target = self._source, self._target
        here = (fact.c.namespace_id == source.known_id) & fact.c.memory_id.is_(None) & (fact.c.sensitivity == _PUBLIC)
        ids = list(source.execute(select(fact.c.id).where(here).order_by(fact.c.id)).scalars())
        source.execute(update(fact).where(here).values(namespace_id=target.namespace_id))
        self._journal([(None, {"fact": number}) for number in ids])
        return len(ids)

    def _drop_private_facts(self, ids: Collection[int]) -> None:
        """Delete the facts that these memories state and that were never for others."""
        source = self._source
        here = fact.c.memory_id.in_(ids) & (fact.c.sensitivity != _PUBLIC)
        rows = source.execute(select(fact.c.id, level_of(fact)).where(here).order_by(fact.c.id)).all()
        source.execute(delete(fact).where(here))
        source.journal("erase", *((None, row.level, {"fact": row.id}) for row in rows))

    def _free_keys(self, rows: Sequence[Row[tuple[object, ...]]]) -> None:
        """Take the keys from memories that come where another memory has that key."""
        target = self._target
        keys = {row.key: row.id for row in rows if row.key is not None}
        there = select(memory.c.key).where(memory.c.namespace_id == target.known_id, memory.c.sensitivity == _PUBLIC)
        taken = {row.key for row in select_in(target.connection, there, memory.c.key, keys)}
        for key in sorted(taken):
            target.execute(update(memory).where(memory.c.id == keys[key]).values(key=None))

    def _move_words(self, ids: Collection[int]) -> None:
        """Take the words of memories out of the vocabulary that they leave, and put them into the other."""
        source, target = self._source, self._target
        rows = list(select_in(source.connection, select(memory_words), memory_words.c.memory_id, ids))
        words = {row.memory_id: frozenset(row.words.split()) for row in rows}
        none: frozenset[str] = frozenset()
        gone = dict.fromkeys(words, (_PUBLIC, none))
        child_tables.write_words(source.connection, source.namespace_id, gone)
        there = {number: (_PUBLIC, some) for number, some in words.items()}
        child_tables.write_words(target.connection, target.namespace_id, there)

    def _queue(self, ids: Iterable[int]) -> None:
        """Queue memories so that the vector index drops them here and takes them in there."""
        for number in ids:
            held = count(self._source.connection, vector, vector.c.memory_id == number)
            of_memory = select(outbox.c.embedded).where(outbox.c.memory_id == number, ~outbox.c.embedded).limit(1)
            waits = self._source.execute(of_memory).first() is not None
            rows = ((self._source.namespace_id, held, True), (self._target.namespace_id, 0, not waits))
            self._source.execute(delete(outbox).where(outbox.c.memory_id == number, ~outbox.c.embedded))
            for place, chunks, embedded in rows:
                values = {"memory_id": number, "namespace_id": place, "chunks": chunks, "embedded": embedded}
                self._source.execute(insert(outbox).values(values))

    def _move_speakers(self, names: Collection[str]) -> None:
        """Let the names of speakers be known where their memories are."""
        source, target = self._source, self._target
        for name in sorted(names):
            here = (speaker.c.namespace_id == source.namespace_id) & (speaker.c.name == name)
            words = set(source.execute(select(speaker.c.word).where(here)).scalars())
            there = (speaker.c.namespace_id == target.namespace_id) & (speaker.c.name == name)
            words -= set(target.execute(select(speaker.c.word).where(there)).scalars())
            rows = [{"namespace_id": target.namespace_id, "word": word, "name": name} for word in sorted(words)]
            if rows:
                target.execute(insert(speaker), rows)
            child_tables.prune_speaker(source.connection, source.namespace_id, name)

    def _journal(self, lines: Sequence[tuple[int | None, dict[str, int]]]) -> None:
        """Write a line about each in the chain that it leaves and in the chain that it comes to."""
        for own, other, name in ((self._source, self._target, "to"), (self._target, self._source, "from")):
            own.journal(ACTION, *((number, _PUBLIC, more | {name: other.namespace}) for number, more in lines))
