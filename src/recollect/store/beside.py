"""The second set of vectors, built with another model while the first one serves, and the moment they change places.

It stands in the table `vector_beside` and, once that is whole, in collections of a generation of its own. Until
`switch` commits, nothing that recall reads is touched; whatever ends the process, the next build goes on from here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, insert, select

from recollect.ports import Chunk, Unembedded
from recollect.store import rows, stamps
from recollect.store.children import chunk_rows
from recollect.store.database import Database
from recollect.store.nearest import SqlChromaVectors
from recollect.store.outbox import as_vector
from recollect.store.vectors import ChromaIndex, IndexBroken, chunk_id

log = logging.getLogger(__name__)

_PAGE = 500
_STRAGGLERS = 8  # so many may be read while writers wait for the switch

_first = rows.beside.c.ordinal == 0
_current = rows.beside.c.content_hash == rows.memory.c.content_hash
_read = select(rows.beside.c.memory_id).where(rows.beside.c.memory_id == rows.memory.c.id, _first, _current).exists()


class _Indexed(NamedTuple):
    """What the new collections hold of one memory; an empty hash where it changed between two pages."""

    namespace_id: int
    content_hash: str
    chunks: int


class SqlBeside:
    """The `Beside` port."""

    def __init__(self, database: Database, index: ChromaIndex, vectors: SqlChromaVectors) -> None:
        self._database = database
        self._index = index
        self._vectors = vectors
        self._indexed: dict[int, _Indexed] = {}

    def serves(self, model: Mapping[str, str]) -> bool:
        """Say whether the store's vectors are those of the model with these stamps."""
        with self._database.reading() as connection:
            return stamps.model_of(stamps.read(connection)) == dict(model)

    def begin(self, model: Mapping[str, str]) -> None:
        """Build for the model with these stamps: what stands there of it is kept, of any other it is dropped."""
        with self._database.writing() as connection:
            known = stamps.read(connection)
            if stamps.model_of(known, stamps.BESIDE) != dict(model):
                connection.execute(delete(rows.beside))
            wanted = {**model, stamps.GENERATION: stamps.next_generation(known, model)}
            stamps.write(connection, {stamps.BESIDE + name: value for name, value in wanted.items()})

    def counts(self) -> tuple[int, int]:
        """Return how many memories have been read for the new model, and how many there are."""
        with self._database.reading() as connection:
            whole = select(func.count()).select_from(rows.memory).where(rows.shown())
            return connection.execute(whole.where(_read)).scalar_one(), connection.execute(whole).scalar_one()

    def missing(self, after: int, limit: int) -> list[Unembedded]:
        """Return memories with ids above `after` that have not been read as they are now, the lowest id first."""
        with self._database.reading() as connection:
            return _missing(connection, after, limit)

    def put(self, found: Sequence[tuple[Unembedded, tuple[Chunk, ...]]]) -> None:
        """Store what the new model made of some memories; one that changed meanwhile stays missing."""
        with self._database.writing() as connection:
            _put(connection, found)

    def index(self, tick: Callable[[], None]) -> None:
        """Build the collections of the new generation; `tick` is called often, and may raise to break off.

        Where that fails the switch queues everything, and the next owner builds them.
        """
        self._indexed = {}
        with self._database.reading() as connection:
            known = stamps.read(connection)
            spaces = connection.execute(select(rows.namespace.c.id, rows.namespace.c.name)).all()
        index = self._index.beside(known[stamps.BESIDE + stamps.GENERATION])
        try:
            for number, name in spaces:
                index.drop(name)
                last = (0, -1)
                while page := self._page(number, last):
                    ids = [chunk_id(memory_id, ordinal) for memory_id, ordinal, *_ in page]
                    index.put(name, ids, [as_vector(blob) for *_, blob in page])
                    self._note(number, page)
                    last = page[-1][:2]
                    tick()
        except IndexBroken as error:
            log.warning("the vector index of the new model is left to its first owner: %s", error)
            self._indexed = {}

    def switch(self, read: Callable[[str], tuple[Chunk, ...]]) -> bool:
        """Put the new vectors in the place of the old in one transaction; `read` reads the last few stragglers.

        Says false, and changes nothing, where too many are missing.
        """
        with self._vectors.exchanging(), self._database.writing() as connection:
            waiting = _missing(connection, 0, _STRAGGLERS + 1)
            if len(waiting) > _STRAGGLERS:
                return False
            _put(connection, [(one, read(one.content)) for one in waiting])
            _exchange(connection)
            _queue(connection, self._indexed)
            connection.execute(delete(rows.beside))
            known = stamps.read(connection)
            names = {name for name in known if name.startswith(stamps.BESIDE)}
            stamps.write(connection, {name.removeprefix(stamps.BESIDE): known[name] for name in names})
            stamps.erase(connection, names)
        self._indexed = {}
        return True

    def _page(self, namespace_id: int, last: tuple[int, int]) -> list[tuple[int, int, str, bytes]]:
        beside = rows.beside.c
        query = (
            select(beside.memory_id, beside.ordinal, beside.content_hash, beside.embedding)
            .join(rows.memory, rows.memory.c.id == beside.memory_id)
            .where(rows.memory.c.namespace_id == namespace_id, rows.shown())
            .where((beside.memory_id > last[0]) | ((beside.memory_id == last[0]) & (beside.ordinal > last[1])))
            .order_by(beside.memory_id, beside.ordinal)
            .limit(_PAGE)
        )
        with self._database.reading() as connection:
            return [tuple(row) for row in connection.execute(query)]

    def _note(self, namespace_id: int, page: Sequence[tuple[int, int, str, bytes]]) -> None:
        for memory_id, ordinal, content_hash, _ in page:
            before = self._indexed.get(memory_id)
            same = content_hash if before is None or before.content_hash == content_hash else ""
            self._indexed[memory_id] = _Indexed(namespace_id, same, ordinal + 1)


def _missing(connection: Connection, after: int, limit: int) -> list[Unembedded]:
    columns = (rows.memory.c.id, rows.memory.c.content, rows.memory.c.content_hash)
    waiting = select(*columns).where(rows.memory.c.id > after, rows.shown(), ~_read)
    return [Unembedded(*row) for row in connection.execute(waiting.order_by(rows.memory.c.id).limit(limit))]


def _put(connection: Connection, found: Sequence[tuple[Unembedded, tuple[Chunk, ...]]]) -> None:
    ids = [one.id for one, _ in found]
    columns = (rows.memory.c.id, rows.memory.c.content_hash)
    known = {row.id: row.content_hash for row in connection.execute(select(*columns).where(columns[0].in_(ids)))}
    connection.execute(delete(rows.beside).where(rows.beside.c.memory_id.in_(ids)))
    values = [
        row | {"content_hash": one.content_hash}
        for one, chunks in found
        if known.get(one.id) == one.content_hash
        for row in chunk_rows(one.id, chunks)
    ]
    for batch in rows.in_batches(values):
        connection.execute(insert(rows.beside), batch)


def _exchange(connection: Connection) -> None:
    connection.execute(delete(rows.vector))
    names = [column.name for column in rows.vector.c]
    shown = (rows.memory.c.id == rows.beside.c.memory_id) & rows.shown()
    ordered = (rows.beside.c.memory_id, rows.beside.c.ordinal)
    taken = select(*(rows.beside.c[name] for name in names)).join(rows.memory, shown).order_by(*ordered)
    connection.execute(insert(rows.vector).from_select(names, taken))


def _queue(connection: Connection, indexed: Mapping[int, _Indexed]) -> None:
    """Queue what the new collections lack or hold otherwise; what was queued for the old ones is void."""
    beside = rows.beside.c
    query = (
        select(beside.memory_id, rows.memory.c.namespace_id, beside.content_hash, func.count().label("chunks"))
        .join(rows.memory, (rows.memory.c.id == beside.memory_id) & rows.shown())
        .group_by(beside.memory_id, rows.memory.c.namespace_id, beside.content_hash)
    )
    stored = {row.memory_id: _Indexed(*row[1:]) for row in connection.execute(query)}
    connection.execute(delete(rows.outbox))
    values = [
        {"memory_id": one, "namespace_id": held.namespace_id, "chunks": held.chunks, "embedded": True}
        for one, held in ({**stored, **indexed}).items()
        if stored.get(one) != indexed.get(one)
    ]
    for batch in rows.in_batches(values):
        connection.execute(insert(rows.outbox), batch)
