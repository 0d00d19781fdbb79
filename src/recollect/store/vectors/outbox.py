"""The outbox: brings the vector index to what SQL says, however often and wherever it is interrupted.

Inserts and deletes are treated alike: for each queued memory the index is made to hold exactly the
vectors that SQL holds, so doing it twice, late or out of order ends the same.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Row, Table, delete, func, select

from recollect.store.sql import store_metadata, tables
from recollect.store.sql.database import Database
from recollect.store.sql.dialect import INDEX, any_of
from recollect.store.sql.mapping import IDS
from recollect.store.sql.statements import select_in
from recollect.store.sql.visibility import shown
from recollect.store.text.fts5_schema import DELETED_TEXT
from recollect.store.vectors.chroma import ChromaCollections, chunk_id

if TYPE_CHECKING:
    from recollect.ports.models import Vector

log = logging.getLogger(__name__)

_BATCH = 200
_EMBEDDED = tables.outbox.c.embedded.is_(True)
_PAGE = 2_000
_PROBED = 10
_STALE = "stale_vectors."
_FLOAT = 4  # bytes
_ROUNDED = 1e-4  # what the index may round of a number
_SAME = 0.99  # cosine of a vector with itself, less what the index may round

_vector = tables.vector.c
_VECTORS = (
    select(_vector.memory_id, _vector.embedding)
    .join(tables.memory, tables.memory.c.id == _vector.memory_id)
    .where(shown(), any_of(_vector.memory_id, IDS))
    .order_by(_vector.ordinal)
)


class Outbox:
    """Drains the queue into the index, and builds namespaces of the index again when they are in doubt."""

    def __init__(self, database: Database, index: ChromaCollections, stopping: threading.Event) -> None:
        self._database = database
        self._index = index
        self._stopping = stopping
        self._applying = threading.Lock()  # nothing is deleted between reading from SQL and putting into the index

    def drain(self) -> bool:
        """Apply what is queued and embedded; only one batch when the store is being closed.

        Namespaces that another replica is at are left to it. Say whether there were none.
        """
        name, theirs = tables.namespace.c.name, set[str]()
        while batch := self._next(_EMBEDDED, name.not_in(theirs)):
            named = {namespace for _, _, namespace, _ in batch}
            with self._applying, self._database.claiming(INDEX, named) as ours:
                theirs |= named - ours
                self._settle(self._next(_EMBEDDED, name.in_(ours)) if ours else [])  # others may have done the first
            if self._stopping.is_set():
                break
        return not theirs

    def sync_memory(self, memory_id: int) -> None:
        """Bring the index up to date for one memory, past the rest of the queue."""
        self._sync(self._next(tables.outbox.c.memory_id == memory_id))

    def rebuild(self, namespace: str) -> None:
        """Drop the namespace's collection and fill it from SQL."""
        with self._alone([namespace]):
            self._index.drop(namespace)
        held = 0
        alone = partial(self._alone, [namespace])
        for page in put_pages(self._database, self._index, tables.vector, namespace, _PAGE, alone):
            held += len(page)
            if self._stopping.is_set():
                break  # the next owner finds the count wrong and builds it again
        log.info("the vector index of one namespace was built again: %d vectors", held)

    def doubtful(self) -> list[str]:
        """Return the namespaces whose collection holds another number of vectors than SQL, or finds none of them."""
        counted = select(tables.namespace.c.name, func.count(tables.vector.c.memory_id)).select_from(tables.namespace)
        inside = (tables.memory.c.namespace_id == tables.namespace.c.id) & shown()
        held = counted.outerjoin(tables.memory, inside)
        query = held.outerjoin(tables.vector, tables.vector.c.memory_id == tables.memory.c.id)
        with self._database.reading() as connection:
            expected = connection.execute(query.group_by(tables.namespace.c.name)).all()
        return [name for name, held in expected if self._index.count(name) != held or not self._finds(name)]

    def doubts(self, namespace: str) -> bool:
        """Say so of one namespace, whatever is queued of it: that may be in its collection or not."""
        least, most, oldest = self._expected(namespace)
        return not least <= self._index.count(namespace) <= most or not all(map(partial(self._held, namespace), oldest))

    def _expected(self, namespace: str) -> tuple[int, int, list[bytes]]:
        """Return how many vectors a collection should hold, at least and at most, and the oldest one, unless queued."""
        memory, vector, queue = tables.memory.c, tables.vector.c, tables.outbox.c
        number = select(tables.namespace.c.id).where(tables.namespace.c.name == namespace).scalar_subquery()
        queued = select(queue.memory_id).where(queue.namespace_id == number)
        here = (memory.namespace_id == number) & shown()
        mine = select(func.count()).join_from(tables.vector, tables.memory).where(here)
        oldest = select(vector.embedding).join_from(tables.vector, tables.memory)
        oldest = oldest.where(here, vector.memory_id.not_in(queued))
        with self._database.reading() as connection:
            held = connection.execute(mine).scalar_one()
            new = connection.execute(mine.where(vector.memory_id.in_(queued))).scalar_one()
            old = select(func.coalesce(func.sum(queue.chunks), 0)).where(queue.namespace_id == number)
            beyond = connection.execute(old).scalar_one()
            first = connection.execute(oldest.order_by(vector.memory_id, vector.ordinal).limit(1)).scalars().all()
        return held - new, held + beyond, list(first)

    def differing(self) -> list[str]:
        """Return the namespaces whose collection holds other ids or other vectors than SQL; each one is looked at."""
        with self._database.reading() as connection:
            expected = expected_ids(connection)
        return [name for name, ids in expected.items() if self._index.ids(name) != ids or self._moved(name)]

    def _moved(self, namespace: str) -> bool:
        last = (0, -1)
        while page := chunks_after(self._database, tables.vector, namespace, last, _PAGE):
            if different(self._index, namespace, page):
                return True
            last = (page[-1].memory_id, page[-1].ordinal)
        return False

    def halted(self) -> AbstractContextManager[bool]:
        """Let nothing be written to the index until the block ends."""
        return self._applying

    def _finds(self, namespace: str) -> bool:
        """Ask the graph for the oldest vector: its files can be lost while the count, kept elsewhere, stays right."""
        oldest = chunks_after(self._database, tables.vector, namespace, (0, -1), 1)
        return all(self._held(namespace, one.embedding) for one in oldest)

    def _held(self, namespace: str, vector: bytes) -> bool:
        near = self._index.query(namespace, as_vector(vector), _PROBED)
        return max(near.values(), default=0.0) > _SAME

    def _sync(self, batch: list[tuple[int, int, str, int]]) -> None:
        with self._alone({namespace for _, _, namespace, _ in batch}):
            self._settle(batch)

    def _settle(self, batch: list[tuple[int, int, str, int]]) -> None:
        """Apply a batch while nobody else writes to its namespaces of the index, and take it out of the queue."""
        if not batch:
            return
        self._apply(batch)
        column = tables.outbox.c.id
        done = select(column).where(column.in_([one for one, *_ in batch]))
        with self._database.writing() as connection:  # what a writer changes at this moment is written again
            _mark_stale(connection, batch)
            connection.execute(delete(tables.outbox).where(column.in_(done.with_for_update(skip_locked=True))))

    @contextmanager
    def _alone(self, namespaces: Iterable[str]) -> Iterator[None]:
        """Let no other thread and no other replica write to these namespaces of the index until the block ends.

        Else what one has read from SQL could reach the index after what another has put or taken since.
        """
        with self._applying, self._database.indexing(namespaces):
            yield

    def _next(self, *wanted: ColumnElement[bool]) -> list[tuple[int, int, str, int]]:
        columns = (tables.outbox.c.id, tables.outbox.c.memory_id, tables.namespace.c.name, tables.outbox.c.chunks)
        query = select(*columns).join(tables.namespace, tables.namespace.c.id == tables.outbox.c.namespace_id)
        in_order = (tables.outbox.c.memory_id, tables.outbox.c.id)  # as the indexes have it, so that nothing is sorted
        query = query.where(*wanted).order_by(*in_order).limit(_BATCH)
        with self._database.reading() as connection:
            return [tuple(row) for row in connection.execute(query)]

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


def stale(known: Mapping[str, str]) -> dict[str, str]:
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


def put_pages(
    database: Database,
    index: ChromaCollections,
    table: Table,
    namespace: str,
    limit: int,
    alone: Callable[[], AbstractContextManager[Any]],
) -> Iterator[Sequence[Row[Any]]]:
    """Copy a namespace's chunks in `table` into the index; yield each page, read and put `alone`."""
    last = (0, -1)
    while True:
        with alone():
            page = chunks_after(database, table, namespace, last, limit)
            if not page:
                return
            ids = [chunk_id(one.memory_id, one.ordinal) for one in page]
            index.put(namespace, ids, [as_vector(one.embedding) for one in page])
        yield page
        last = (page[-1].memory_id, page[-1].ordinal)


def chunks_after(
    database: Database,
    table: Table,
    namespace: str,
    last: tuple[int, int],
    limit: int,
    ids: Sequence[int] | None = None,
) -> Sequence[Row[Any]]:
    """Return a namespace's next chunks in `table` after that of the memory and ordinal `last`, in their order.

    With `ids` only those of these memories.
    """
    chunk = table.c
    query = (
        select(*(one for one in chunk if one is not chunk.tokens))
        .join(tables.memory, tables.memory.c.id == chunk.memory_id)
        .join(tables.namespace, tables.namespace.c.id == tables.memory.c.namespace_id)
        .where(tables.namespace.c.name == namespace, shown())
        .where((chunk.memory_id > last[0]) | ((chunk.memory_id == last[0]) & (chunk.ordinal > last[1])))
        .order_by(chunk.memory_id, chunk.ordinal)
        .limit(limit)
    )
    if ids is not None:
        query = query.where(chunk.memory_id.in_(ids))
    with database.reading() as connection:
        return connection.execute(query).all()


def different(index: ChromaCollections, namespace: str, chunks: Sequence[Row[Any]]) -> list[int]:
    """Return the memories of those chunks whose vector the index does not hold as SQL does."""
    held = index.vectors(namespace, [chunk_id(one.memory_id, one.ordinal) for one in chunks])
    found = []
    for one in chunks:
        known = held.get(chunk_id(one.memory_id, one.ordinal))
        if (
            known is None
            or known.size * _FLOAT != len(one.embedding)
            or not np.allclose(known, as_vector(one.embedding), atol=_ROUNDED)
        ):
            found.append(one.memory_id)
    return found


def expected_ids(connection: Connection) -> dict[str, set[str]]:
    """Return the ids that the index should hold, by namespace; one without vectors has an empty set."""
    names = connection.execute(select(tables.namespace.c.id, tables.namespace.c.name)).all()
    columns = (tables.memory.c.namespace_id, tables.vector.c.memory_id, tables.vector.c.ordinal)
    found: dict[int, set[str]] = defaultdict(set)
    query = select(*columns).join(tables.memory, tables.memory.c.id == tables.vector.c.memory_id).where(shown())
    for number, memory_id, ordinal in connection.execute(query):
        found[number].add(chunk_id(memory_id, ordinal))
    return {name: found[number] for number, name in names}


def vectors_of(connection: Connection, ids: Iterable[int]) -> dict[int, list[Vector]]:
    """Return the vectors of each memory that the index holds, in the order of its chunks."""
    found: dict[int, list[Vector]] = defaultdict(list)
    for row in connection.execute(_VECTORS, {"ids": ids}):
        if len(row.embedding) % _FLOAT == 0:  # else it is damaged
            found[row.memory_id].append(as_vector(row.embedding))
    return found


def as_vector(blob: bytes) -> Vector:
    """Read a vector from its float32 bytes."""
    return np.frombuffer(blob, dtype=np.float32)
