"""The outbox: brings the vector index to what SQL says, however often and wherever it is interrupted.

Nothing is told apart into inserts and deletes: for each queued memory the index is made to hold exactly the
vectors that SQL holds, so doing it twice, late or out of order ends the same.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import ColumnElement, Connection, delete, func, select

from recollect.store import rows
from recollect.store.database import Database
from recollect.store.vectors import ChromaIndex, chunk_id

if TYPE_CHECKING:
    from recollect.ports import Vector

log = logging.getLogger(__name__)

_BATCH = 200
_PAGE = 2_000
_PROBED = 10
_SAME = 0.99  # cosine of a vector with itself, less what the index may round


class Outbox:
    """Drains the queue into the index, and builds namespaces of the index again when they are in doubt."""

    def __init__(self, database: Database, index: ChromaIndex, stopping: threading.Event) -> None:
        self._database = database
        self._index = index
        self._stopping = stopping
        self._applying = threading.Lock()  # nothing is deleted between reading from SQL and putting into the index

    def drain(self) -> int:
        """Apply what is queued and embedded, one batch when the store is being closed; return how many memories."""
        done = 0
        while batch := self._next():
            self._deliver(batch)
            done += len(batch)
            if self._stopping.is_set():
                break
        return done

    def deliver(self, memory_id: int) -> None:
        """Bring the index up to date for one memory, past the rest of the queue."""
        self._deliver(self._next(rows.outbox.c.memory_id == memory_id))

    def rebuild(self, namespace: str) -> int:
        """Drop the namespace's collection and fill it from SQL; return how many vectors it holds then."""
        self._index.drop(namespace)
        held, last = 0, (0, -1)
        while found := self._copy_after(namespace, last):
            held, last = held + len(found), found[-1][:2]
            if self._stopping.is_set():
                break  # the next owner finds the count wrong and builds it again
        log.info("the vector index of one namespace was built again: %d vectors", held)
        return held

    def doubtful(self) -> list[str]:
        """Return the namespaces whose collection holds another number of vectors than SQL, or finds none of them."""
        expected = self._expected().items()
        return [name for name, held in expected if self._index.count(name) != held or not self._finds(name)]

    def differing(self) -> list[str]:
        """Return the namespaces whose collection holds other ids than SQL; each id is looked at."""
        return [name for name in self._expected() if self._index.ids(name) != self._ids(name)]

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Let nothing be brought over until the block ends."""
        with self._applying:
            yield

    def _finds(self, namespace: str) -> bool:
        """Ask the graph for the oldest vector: its files can be lost while the count, kept elsewhere, stays right."""
        oldest = self._stored_after(namespace, (0, -1), 1)
        found = [self._index.query(namespace, as_vector(blob), _PROBED) for *_, blob in oldest]
        return all(max(near.values(), default=0.0) > _SAME for near in found)

    def _deliver(self, batch: list[tuple[int, int, str, int]]) -> None:
        with self._applying:
            self._apply(batch)
            with self._database.writing() as connection:
                connection.execute(delete(rows.outbox).where(rows.outbox.c.id.in_([one for one, *_ in batch])))

    def _copy_after(self, namespace: str, last: tuple[int, int]) -> list[tuple[int, int, bytes]]:
        with self._applying:
            found = self._stored_after(namespace, last, _PAGE)
            if found:
                ids = [chunk_id(memory_id, ordinal) for memory_id, ordinal, _ in found]
                self._index.put(namespace, ids, [as_vector(blob) for _, _, blob in found])
            return found

    def _next(self, wanted: ColumnElement[bool] | None = None) -> list[tuple[int, int, str, int]]:
        query = (
            select(rows.outbox.c.id, rows.outbox.c.memory_id, rows.namespace.c.name, rows.outbox.c.chunks)
            .join(rows.namespace, rows.namespace.c.id == rows.outbox.c.namespace_id)
            .where(rows.outbox.c.embedded.is_(True) if wanted is None else wanted)
            .order_by(rows.outbox.c.id)
            .limit(_BATCH)
        )
        with self._database.reading() as connection:
            return [(row.id, row.memory_id, row.name, row.chunks) for row in connection.execute(query)]

    def _apply(self, batch: list[tuple[int, int, str, int]]) -> None:
        most: dict[str, dict[int, int]] = defaultdict(dict)
        for _, memory_id, namespace, chunks in batch:
            most[namespace][memory_id] = max(chunks, most[namespace].get(memory_id, 0))
        for namespace, chunks_of in most.items():
            with self._database.reading() as connection:
                stored = vectors_of(connection, chunks_of)
            gone = [
                chunk_id(memory_id, ordinal)
                for memory_id, chunks in chunks_of.items()
                for ordinal in range(len(stored.get(memory_id, ())), chunks)
            ]
            if gone:
                self._index.take(namespace, gone)
            ids = [chunk_id(memory_id, ordinal) for memory_id, held in stored.items() for ordinal in range(len(held))]
            if ids:
                self._index.put(namespace, ids, [one for held in stored.values() for one in held])

    def _stored_after(self, namespace: str, last: tuple[int, int], limit: int) -> list[tuple[int, int, bytes]]:
        vector = rows.vector.c
        query = (
            select(vector.memory_id, vector.ordinal, vector.embedding)
            .join(rows.memory, rows.memory.c.id == vector.memory_id)
            .join(rows.namespace, rows.namespace.c.id == rows.memory.c.namespace_id)
            .where(rows.namespace.c.name == namespace, rows.shown())
            .where((vector.memory_id > last[0]) | ((vector.memory_id == last[0]) & (vector.ordinal > last[1])))
            .order_by(vector.memory_id, vector.ordinal)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [(row.memory_id, row.ordinal, row.embedding) for row in connection.execute(query)]

    def _ids(self, namespace: str) -> set[str]:
        query = (
            select(rows.vector.c.memory_id, rows.vector.c.ordinal)
            .join(rows.memory, rows.memory.c.id == rows.vector.c.memory_id)
            .join(rows.namespace, rows.namespace.c.id == rows.memory.c.namespace_id)
            .where(rows.namespace.c.name == namespace, rows.shown())
        )
        with self._database.reading() as connection:
            return {chunk_id(row.memory_id, row.ordinal) for row in connection.execute(query)}

    def _expected(self) -> dict[str, int]:
        query = (
            select(rows.namespace.c.name, func.count(rows.vector.c.memory_id))
            .select_from(rows.namespace)
            .outerjoin(rows.memory, (rows.memory.c.namespace_id == rows.namespace.c.id) & rows.shown())
            .outerjoin(rows.vector, rows.vector.c.memory_id == rows.memory.c.id)
            .group_by(rows.namespace.c.name)
        )
        with self._database.reading() as connection:
            return {name: int(held) for name, held in connection.execute(query)}


def vectors_of(connection: Connection, ids: Iterable[int]) -> dict[int, list[Vector]]:
    """Return the vectors of each memory that the index holds, in the order of its chunks."""
    found: dict[int, list[Vector]] = defaultdict(list)
    for batch in rows.in_batches(ids):
        columns = select(rows.vector.c.memory_id, rows.vector.c.embedding)
        held = columns.join(rows.memory, rows.memory.c.id == rows.vector.c.memory_id)
        query = held.where(rows.vector.c.memory_id.in_(batch), rows.shown())
        for row in connection.execute(query.order_by(rows.vector.c.ordinal)):
            found[row.memory_id].append(as_vector(row.embedding))
    return found


def as_vector(blob: bytes) -> Vector:
    """Read a vector from its float32 bytes."""
    return np.frombuffer(blob, dtype=np.float32)
