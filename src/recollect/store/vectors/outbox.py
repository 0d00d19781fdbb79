"""The outbox: brings the vector index to what SQL says, however often and wherever it is interrupted.

Inserts and deletes are treated alike: for each queued memory the index is made to hold exactly the
vectors that SQL holds, so doing it twice, late or out of order ends the same.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Row, delete, func, select

from recollect.store.entries import ChunkDigests
from recollect.store.sql import store_metadata, tables
from recollect.store.sql.database import Database
from recollect.store.sql.dialect import INDEX
from recollect.store.sql.statements import select_in
from recollect.store.sql.visibility import shown
from recollect.store.text.fts5_schema import DELETED_TEXT
from recollect.store.vectors.exact import FLOAT, as_vector, vectors_of
from recollect.store.vectors.index import VectorIndex, chunk_id

if TYPE_CHECKING:
    from recollect.engines.embedder import Vector

log = logging.getLogger(__name__)

_BATCH = 200
_EMBEDDED = tables.outbox.c.embedded.is_(True)
_PAGE = 2_000
_FIRST = (0, -1)
_PROBED = 10
_SAMPLE = 100  # vectors of a namespace that are compared when the index is opened
_PROBES = 10  # of those that are searched for
_STALE = "stale_vectors."
_ROUNDED = 1e-4  # what the index may round of a number
_SAME = 0.99  # cosine of a vector with itself, less what the index may round

_vector = tables.vector.c


class Outbox:
    """Drains the queue into the index, and builds namespaces of the index again when they are in doubt."""

    def __init__(self, database: Database, index: VectorIndex, stopping: threading.Event) -> None:
        self._database = database
        self._index = index
        self._stopping = stopping
        self._applying = threading.Lock()  # nothing is deleted between reading from SQL and putting into the index

    def drain(self) -> bool:
        """Apply what is queued and embedded; only one batch when the store is being closed.

        Namespaces that another replica is at are left to it. Say whether there were none.
        """
        name, theirs = tables.namespace.c.name, set[str]()
        while batch := self._next_batch(_EMBEDDED, name.not_in(theirs)):
            named = {namespace for _, _, namespace, _ in batch}
            with self._applying, self._database.claiming(INDEX, named) as ours:
                theirs |= named - ours
                # Others may have done the first ones.
                self._settle_batch(self._next_batch(_EMBEDDED, name.in_(ours)) if ours else [])
            if self._stopping.is_set():
                break
        return not theirs

    def sync_memory(self, memory_id: int) -> None:
        """Bring the index up to date for one memory, past the rest of the queue."""
        self._sync_batch(self._next_batch(tables.outbox.c.memory_id == memory_id))

    def rebuild(self, namespace: str) -> None:
        """Drop what the index holds of the namespace and fill it from SQL."""
        with self._exclude_others([namespace]):
            self._index.drop(namespace)
        held, last = 0, _FIRST
        while not self._stopping.is_set():  # the next owner finds the count wrong and builds it again
            with self._exclude_others([namespace]):
                page = _chunks_after(self._database, namespace, last, _PAGE)
                if page:
                    ids = [chunk_id(one.memory_id, one.ordinal) for one in page]
                    self._index.put(namespace, ids, [as_vector(one.embedding) for one in page])
            if not page:
                break
            held, last = held + len(page), (page[-1].memory_id, page[-1].ordinal)
        log.info("the vector index of one namespace was built again: %d vectors", held)

    def agrees(self, namespace: str) -> bool:
        """Say whether the index holds as many vectors of a namespace as SQL, and a sample of them as SQL does.

        What is queued may be in the index or not. A graph whose files are lost or cut off finds nothing of what they
        held, though its count, which is kept elsewhere, stays right. A vector that was changed in SQL, as its digest
        shows, is no fault of the index, and has to stay different from it until somebody has seen it. Raises
        `IndexBroken`.
        """
        least, most, sample = self._expected_counts(namespace)
        if not least <= self._index.count(namespace) <= most:
            return False
        changed = set[int]()
        if wrong := _differing_memories(self._index, namespace, sample):
            changed = self._changed_in_sql(wrong)
            if wrong - changed:
                return False
        sample = [one for one in sample if one.memory_id not in changed]
        probes = sample[:: max(1, len(sample) // _PROBES)]
        nearest = (self._index.query(namespace, as_vector(one.embedding), _PROBED) for one in probes)
        return all(max(near.values(), default=0.0) > _SAME for near in nearest)

    def _expected_counts(self, namespace: str) -> tuple[int, int, Sequence[Row[int, int, bytes]]]:
        """Return how many vectors the index should hold, at least and at most, and some that are not queued.

        These lie at even distances from the oldest one on: what a file lost is seldom one vector.
        """
        memory, vector, queue = tables.memory.c, tables.vector.c, tables.outbox.c
        number = select(tables.namespace.c.id).where(tables.namespace.c.name == namespace).scalar_subquery()
        queued = select(queue.memory_id).where(queue.namespace_id == number)
        here = (memory.namespace_id == number) & shown()
        mine = select(func.count()).join_from(tables.vector, tables.memory).where(here)
        place = func.row_number().over(order_by=(vector.memory_id, vector.ordinal)).label("place")
        settled = select(vector.memory_id, vector.ordinal, place).join_from(tables.vector, tables.memory)
        row = settled.where(here, vector.memory_id.not_in(queued)).subquery().c
        own = (vector.memory_id == row.memory_id) & (vector.ordinal == row.ordinal)
        with self._database.reading() as connection:
            held = connection.execute(mine).scalar_one()
            new = connection.execute(mine.where(vector.memory_id.in_(queued))).scalar_one()
            old = select(func.coalesce(func.sum(queue.chunks), 0)).where(queue.namespace_id == number)
            beyond = connection.execute(old).scalar_one()
            step = max(1, (held - new) // _SAMPLE)
            some = select(_vector.memory_id, _vector.ordinal, _vector.embedding)
            some = some.join(row.place.table, own).where((row.place - 1) % step == 0).order_by(row.place)
            return held - new, held + beyond, connection.execute(some).all()

    def _changed_in_sql(self, ids: Iterable[int]) -> set[int]:
        """Return those of these memories that have a vector in SQL which its digest does not prove."""
        memory, vector = tables.memory.c, tables.vector.c
        of_chunk = [vector[name] for name in ("memory_id", "ordinal", "start", "stop", "embedding", "digest")]
        query = select(*of_chunk, memory.content_hash).join_from(tables.vector, tables.memory)
        with self._database.reading() as connection:
            model = store_metadata.model_of(store_metadata.read(connection))
            rows = list(select_in(connection, query, vector.memory_id, ids))
        many = Counter(one.memory_id for one in rows)
        return {one.memory_id for one in rows if not _is_whole(one, model, many[one.memory_id])}

    def differing(self, namespace: str, sample: int | None = None) -> set[int]:
        """Return the memories whose vectors the index does not hold as SQL does, what is queued aside.

        With a `sample` only so many memories are looked at, drawn by chance.
        """
        wrong, last = set[int](), _FIRST
        while True:
            with self._database.exclusive() as connection:  # nothing changes between the two looks
                queued = set(connection.execute(select(tables.outbox.c.memory_id)).scalars())
                page = _chunks_after(self._database, namespace, last, _PAGE, sample)
                wrong |= _differing_memories(self._index, namespace, page) - queued
            if sample is not None or len(page) < _PAGE:
                return wrong
            last = (page[-1].memory_id, page[-1].ordinal)

    def halted(self) -> AbstractContextManager[bool]:
        """Let nothing be written to the index until the block ends."""
        return self._applying

    def _sync_batch(self, batch: list[tuple[int, int, str, int]]) -> None:
        with self._exclude_others({namespace for _, _, namespace, _ in batch}):
            self._settle_batch(batch)

    def _settle_batch(self, batch: list[tuple[int, int, str, int]]) -> None:
        """Apply a batch while nobody else writes to its namespaces of the index, and take it out of the queue."""
        if not batch:
            return
        self._apply_batch(batch)
        column = tables.outbox.c.id
        done = select(column).where(column.in_([one for one, *_ in batch]))
        with self._database.writing() as connection:  # what a writer changes at this moment is written again
            _mark_stale(connection, batch)
            connection.execute(delete(tables.outbox).where(column.in_(done.with_for_update(skip_locked=True))))

    @contextmanager
    def _exclude_others(self, namespaces: Iterable[str]) -> Iterator[None]:
        """Let no other thread and no other replica write to these namespaces of the index until the block ends.

        Otherwise vectors read from SQL could reach the index after a later change by another writer.
        """
        with self._applying, self._database.indexing(namespaces):
            yield

    def _next_batch(self, *wanted: ColumnElement[bool]) -> list[tuple[int, int, str, int]]:
        """Return the next queued rows that meet the conditions: number, memory id, namespace and count of vectors."""
        columns = (tables.outbox.c.id, tables.outbox.c.memory_id, tables.namespace.c.name, tables.outbox.c.chunks)
        query = select(*columns).join(tables.namespace, tables.namespace.c.id == tables.outbox.c.namespace_id)
        in_order = (tables.outbox.c.memory_id, tables.outbox.c.id)  # as the indexes have it, so that nothing is sorted
        query = query.where(*wanted).order_by(*in_order).limit(_BATCH)
        with self._database.reading() as connection:
            return [tuple(row) for row in connection.execute(query)]

    def _apply_batch(self, batch: list[tuple[int, int, str, int]]) -> None:
        """Make the index hold exactly the vectors that SQL holds of the memories in the batch."""
        most: dict[str, dict[int, int]] = defaultdict(dict)
        for _, memory_id, namespace, chunks in batch:
            most[namespace][memory_id] = max(chunks, most[namespace].get(memory_id, 0))
        for namespace, chunks_of in most.items():
            with self._database.reading() as connection:
                stored = vectors_of(connection, chunks_of, namespace)
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


def stale_namespaces(known: Mapping[str, str]) -> dict[str, str]:
    """Return the namespaces whose collection may still hold the bytes of forgotten vectors, by their marks."""
    return {mark: value.partition(" ")[2] for mark, value in known.items() if mark.startswith(_STALE)}


def _mark_stale(connection: Connection, batch: Sequence[tuple[int, int, str, int]]) -> None:
    """Mark the namespaces in which a vector was taken from the index whose memory is gone, or was to be purged."""
    held = {memory_id: namespace for _, memory_id, namespace, chunks in batch if chunks}
    if not held:
        return
    columns = (tables.memory.c.id, shown().label("shown"))
    known = {row.id: row.shown for row in select_in(connection, select(*columns), tables.memory.c.id, held)}
    purging = DELETED_TEXT in store_metadata.read(connection)
    gone = {name for one, name in held.items() if one not in known or (purging and known[one])}
    # The value changes with each mark, so that one that is made during a purge outlives it.
    marks = {
        f"{_STALE}{hashlib.sha256(one.encode()).hexdigest()[:16]}": f"{secrets.token_hex(8)} {one}" for one in gone
    }
    if marks:
        store_metadata.write(connection, marks)


def _chunks_after(
    database: Database, namespace: str, last: tuple[int, int], limit: int, sample: int | None = None
) -> Sequence[Row[int, int, bytes]]:
    """Return a namespace's next chunks after that of the memory and ordinal `last`, in their order.

    With a `sample` only those of so many memories, drawn by chance.
    """
    query = (
        select(_vector.memory_id, _vector.ordinal, _vector.embedding)
        .join(tables.memory, tables.memory.c.id == _vector.memory_id)
        .join(tables.namespace, tables.namespace.c.id == tables.memory.c.namespace_id)
        .where(tables.namespace.c.name == namespace, shown())
        .where((_vector.memory_id > last[0]) | ((_vector.memory_id == last[0]) & (_vector.ordinal > last[1])))
        .order_by(_vector.memory_id, _vector.ordinal)
        .limit(limit)
    )
    if sample is not None:
        mine = select(tables.memory.c.id).join(tables.namespace).where(tables.namespace.c.name == namespace)
        query = query.where(_vector.memory_id.in_(mine.order_by(func.random()).limit(sample)))
    with database.reading() as connection:
        return connection.execute(query).all()


def _is_whole(row: Any, model: Mapping[str, str], many: int) -> bool:
    """Say whether one of a memory's `many` vectors is as it was written, as far as a digest beside it tells."""
    digests = ChunkDigests(row.content_hash, model, many)
    return row.digest is None or bool(row.digest == digests.of(row.ordinal, row.start, row.stop, row.embedding))


def _differing_memories(index: VectorIndex, namespace: str, chunks: Sequence[Row[int, int, bytes]]) -> set[int]:
    """Return the memories of those chunks whose vector the index does not hold as SQL does."""
    held = index.vectors(namespace, [chunk_id(one.memory_id, one.ordinal) for one in chunks])
    return {
        one.memory_id
        for one in chunks
        if not _is_same_vector(held.get(chunk_id(one.memory_id, one.ordinal)), one.embedding)
    }


def _is_same_vector(held: Vector | None, stored: bytes) -> bool:
    size = held is not None and held.size * FLOAT == len(stored)
    return size and np.allclose(held, as_vector(stored), atol=_ROUNDED)  # type: ignore[arg-type]
