"""The second set of vectors, built with another model while the first one serves, and the moment they change places.

It stands in the table `vector_shadow`. Until `switch` commits, nothing that recall reads is touched; whatever ends the
process, the next build goes on from here. The vector index, which is derived, is built again after the switch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import Connection, delete, insert, select

from recollect.engines.chunks import Chunk
from recollect.store.entries import UnembeddedMemory
from recollect.store.sql import store_metadata, tables
from recollect.store.sql.child_tables import chunk_rows
from recollect.store.sql.database import Database
from recollect.store.sql.statements import count, insert_all
from recollect.store.sql.visibility import shown
from recollect.store.vectors.vector_search import VectorSearch

_STRAGGLERS = 8  # so many may be read while writers wait for the switch

_first = tables.vector_shadow.c.ordinal == 0
_current = tables.vector_shadow.c.content_hash == tables.memory.c.content_hash
_read = (
    select(tables.vector_shadow.c.memory_id)
    .where(tables.vector_shadow.c.memory_id == tables.memory.c.id, _first, _current)
    .exists()
)


class ShadowIndex:
    """Builds the second set of vectors, and lets it take the place of the first."""

    def __init__(self, database: Database, vectors: VectorSearch) -> None:
        self._database = database
        self._vectors = vectors

    def serves(self, model: Mapping[str, str]) -> bool:
        """Say whether the store's vectors are those of the model with these stamps."""
        with self._database.reading() as connection:
            return store_metadata.model_of(store_metadata.read(connection)) == dict(model)

    def begin(self, model: Mapping[str, str]) -> None:
        """Build for the model with these stamps: what stands there of it is kept, of any other it is dropped."""
        with self._database.exclusive() as connection:
            known = store_metadata.read(connection)
            if store_metadata.model_of(known, store_metadata.SHADOW) != dict(model):
                connection.execute(delete(tables.vector_shadow))
            wanted = {**model, store_metadata.GENERATION: store_metadata.next_generation(known, model)}
            store_metadata.write(connection, {store_metadata.SHADOW + name: value for name, value in wanted.items()})

    def counts(self) -> tuple[int, int]:
        """Return how many memories have been read for the new model, and how many there are."""
        with self._database.reading() as connection:
            return count(connection, tables.memory, shown(), _read), count(connection, tables.memory, shown())

    def missing(self, after: int, limit: int) -> list[UnembeddedMemory]:
        """Return memories with ids above `after` that have not been read as they are now, the lowest id first."""
        with self._database.reading() as connection:
            return _memories_to_read(connection, after, limit)

    def put(self, found: Sequence[tuple[UnembeddedMemory, tuple[Chunk, ...]]]) -> None:
        """Store what the new model made of some memories; one that changed meanwhile stays missing."""
        with self._database.writing() as connection:
            _store_chunks(connection, found)

    def switch(self, read: Callable[[str], tuple[Chunk, ...]]) -> bool:
        """Put the new vectors in the place of the old in one transaction, unless too many are missing."""
        with self._vectors.exchanging(), self._database.exclusive() as connection:
            waiting = _memories_to_read(connection, 0, _STRAGGLERS + 1)
            if len(waiting) > _STRAGGLERS:
                return False
            _store_chunks(connection, [(one, read(one.content)) for one in waiting])
            _exchange_vectors(connection)
            connection.execute(delete(tables.outbox))  # the new index is built from the new vectors
            connection.execute(delete(tables.vector_shadow))
            known = store_metadata.read(connection)
            names = {name for name in known if name.startswith(store_metadata.SHADOW)}
            store_metadata.write(connection, {name.removeprefix(store_metadata.SHADOW): known[name] for name in names})
            store_metadata.erase(connection, names)
        return True


def _memories_to_read(connection: Connection, after: int, limit: int) -> list[UnembeddedMemory]:
    columns = (tables.memory.c.id, tables.memory.c.content, tables.memory.c.content_hash)
    waiting = select(*columns).where(tables.memory.c.id > after, shown(), ~_read)
    return [UnembeddedMemory(*row) for row in connection.execute(waiting.order_by(tables.memory.c.id).limit(limit))]


def _store_chunks(connection: Connection, found: Sequence[tuple[UnembeddedMemory, tuple[Chunk, ...]]]) -> None:
    """Store the chunks that the new model read in memories; leave out memories that changed since."""
    ids = [one.id for one, _ in found]
    columns = (tables.memory.c.id, tables.memory.c.content_hash)
    held = select(*columns).where(columns[0].in_(ids)).with_for_update(read=True, key_share=True, skip_locked=True)
    known = {row.id: row.content_hash for row in connection.execute(held)}
    connection.execute(delete(tables.vector_shadow).where(tables.vector_shadow.c.memory_id.in_(ids)))
    model = store_metadata.model_of(store_metadata.read(connection), store_metadata.SHADOW)
    values = [
        row | {"content_hash": one.content_hash}
        for one, chunks in found
        if known.get(one.id) == one.content_hash
        for row in chunk_rows(one.id, chunks, one.content_hash, model)
    ]
    insert_all(connection, tables.vector_shadow, values)


def _exchange_vectors(connection: Connection) -> None:
    """Replace all vectors of the store by those of the shadow index."""
    connection.execute(delete(tables.vector))
    names = [column.name for column in tables.vector.c]
    seen = (tables.memory.c.id == tables.vector_shadow.c.memory_id) & shown()
    ordered = (tables.vector_shadow.c.memory_id, tables.vector_shadow.c.ordinal)
    taken = select(*(tables.vector_shadow.c[name] for name in names)).join(tables.memory, seen).order_by(*ordered)
    connection.execute(insert(tables.vector).from_select(names, taken))
