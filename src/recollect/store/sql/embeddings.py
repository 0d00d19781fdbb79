"""The vectors that SQL keeps of each memory: which memories wait for the model, and what the model read in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, false, func, insert, select

from recollect.domain.search import View
from recollect.engines.chunks import Chunk
from recollect.store.entries import UnembeddedMemory
from recollect.store.sql import mapping, store_metadata, tables
from recollect.store.sql.child_tables import mark_embedded, replace_chunks
from recollect.store.sql.database import Database
from recollect.store.sql.expressions import any_of
from recollect.store.sql.namespaces import home_of
from recollect.store.sql.statements import count
from recollect.store.sql.tables import memory
from recollect.store.sql.visibility import HERE, LEVELS, shown, values_of

_FLOAT: Final = 4  # bytes
_CLAIM: Final = "embedding"
"""The kind of a claim on memories that a process embeds."""
_queued = tables.outbox.c.memory_id
_waiting = select(_queued).join(memory, memory.c.id == _queued).where(tables.outbox.c.embedded.is_(False))
_waiting = _waiting.group_by(_queued).order_by(_queued).limit(bindparam("limit"))
_waiting_here = _waiting.where(any_of(tables.outbox.c.namespace_id, HERE), any_of(memory.c.sensitivity, LEVELS))
_unembedded = select(memory.c.id, memory.c.content, memory.c.content_hash).order_by(memory.c.id)
_UNEMBEDDED, _UNEMBEDDED_HERE = (_unembedded.where(memory.c.id.in_(queued)) for queued in (_waiting, _waiting_here))
_WAITING = _waiting.where(_queued > bindparam("after"))
_claimed = select(_queued).where(tables.outbox.c.embedded.is_(False), any_of(_queued, mapping.IDS))
_CLAIMED = _unembedded.where(memory.c.id.in_(_claimed))


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Reads which memories have no vectors yet, and stores their vectors.

    `model` is what the store must be stamped with for our vectors to be stored; without it that is not looked at.
    """

    _database: Database
    _written: Callable[[], None]
    _model: Mapping[str, str] | None

    def unembedded(self, limit: int, view: View | None = None) -> list[UnembeddedMemory]:
        """Return memories, all or what the view may know of, that were written before the model was ready, in order."""
        with self._database.reading() as connection:
            here = {} if view is None else values_of(connection, view)
            query = _UNEMBEDDED if view is None else _UNEMBEDDED_HERE
            found = connection.execute(query, here | {"limit": limit}).all()
            ours = found and store_metadata.embeds(connection, self._model)
            return [UnembeddedMemory(*row) for row in found] if ours else []

    @contextmanager
    def claiming(self, limit: int) -> Iterator[list[UnembeddedMemory]]:
        """Give the next memories that wait for the model; no other process is given them until the block ends.

        None are given where all that wait are with others. Writers wait for nobody's claim.
        """
        after = 0
        while True:
            with self._database.reading() as connection:
                waiting = list(connection.execute(_WAITING, {"after": after, "limit": limit}).scalars())
            if not waiting:
                yield []
                return
            with self._database.claiming(_CLAIM, map(str, waiting)) as ours:
                with self._database.reading() as connection:  # another may have embedded some of them since
                    found = (
                        connection.execute(_CLAIMED, {"ids": [int(number) for number in ours]}).all() if ours else []
                    )
                    known = store_metadata.embeds(connection, self._model)
                if found or not known:
                    yield [UnembeddedMemory(*row) for row in found] if known else []
                    return
            after = waiting[-1]

    def store(self, embedded: UnembeddedMemory, chunks: tuple[Chunk, ...]) -> None:
        """Store the vectors of a memory, unless its content has changed since it was read."""
        namespace = home_of(self._database, embedded.id)
        if namespace is None:
            return
        with self._database.writing(namespace) as connection:
            found = connection.execute(select(memory.c.content_hash).where(memory.c.id == embedded.id)).scalar()
            if found == embedded.content_hash and store_metadata.embeds(connection, self._model):
                replace_chunks(connection, embedded.id, chunks, embedded.content_hash)
                mark_embedded(connection, embedded.id)
        self._written()

    def queue_missing(self, dimensions: int) -> tuple[int, int]:
        """Queue each memory without vectors of this size; return how many memories wait, and how many there are."""
        vector, outbox = tables.vector.c, tables.outbox.c
        mine = select(func.count()).where(vector.memory_id == memory.c.id)
        held, sound = mine.scalar_subquery(), func.length(vector.embedding) == dimensions * _FLOAT
        fit = mine.where(sound).scalar_subquery()
        waiting = select(outbox.memory_id).where(outbox.embedded.is_(False))
        lacking = select(memory.c.id, memory.c.namespace_id, held, false()).where(
            shown(), (held == 0) | (fit < held), memory.c.id.not_in(waiting)
        )
        columns = ["memory_id", "namespace_id", "chunks", "embedded"]
        with self._database.exclusive() as connection:
            connection.execute(insert(tables.outbox).from_select(columns, lacking))
            queued = select(func.count(outbox.memory_id.distinct())).where(outbox.embedded.is_(False))
            return connection.execute(queued).scalar_one(), count(connection, memory, shown())
