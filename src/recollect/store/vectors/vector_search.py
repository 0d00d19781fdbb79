"""Nearest memories: Chroma for the many, an exact scan of SQL's vectors wherever Chroma cannot serve.

That is: while Chroma is opening or broken, for what the outbox has not written to it yet, and for filters
that leave few memories.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Connection, Select, select

from recollect.domain.search import View
from recollect.store.sql import store_metadata, tables
from recollect.store.sql.database import Database
from recollect.store.sql.statements import in_batches, select_in
from recollect.store.sql.visibility import namespace_ids, passing, visible
from recollect.store.vectors.chroma import ChromaIndex, IndexBroken
from recollect.store.vectors.late_interaction import late_interaction
from recollect.store.vectors.outbox import Outbox, as_vector

if TYPE_CHECKING:
    from recollect.ports import LateInteraction, Matrix, Vector, Weights
    from recollect.store.vectors.late_interaction import Similarity

log = logging.getLogger(__name__)

_SCANNED = 2_000
_PAGE = 2_000
_CHUNKS_PER_MEMORY = 3
_PATIENT = (4, 16)


class SqlChromaVectors:
    """The `Vectors` port over SQL's vectors and a Chroma index of them.

    `model` is what the store must be stamped with: once it has moved to another model, nothing is near and text alone
    answers, because the two models' vectors cannot be compared. Without `model` it is not looked at.
    `similarity` compares a query's tokens with stored ones.
    """

    def __init__(
        self,
        database: Database,
        index: ChromaIndex,
        stopping: threading.Event,
        similarity: Similarity,
        model: Mapping[str, str] | None = None,
    ) -> None:
        self._database = database
        self._index = index
        self._similarity = similarity
        self._model = model
        self._moved = False
        self._outbox = Outbox(database, index, stopping)
        self._broken: set[str] = set()
        self._checked = False
        self._syncing = threading.Lock()

    def nearest(self, vector: Vector, view: View, limit: int) -> dict[int, float]:
        """Return the `limit` memories nearest to `vector` that `view` may see, with cosine (-1–1), nearest first.

        They are fewer only where the view may see fewer that have vectors.
        """
        with self._database.reading() as connection:
            if not self._serves(connection):
                return {}
            numbers = namespace_ids(connection, view.namespaces)
            candidates = passing(connection, view)
            few = _few(connection, candidates) if view.filtered else None
            if few is not None:
                return _scan(connection, vector, map(tables.vector.c.memory_id.in_, in_batches(few)), limit)
            seen = visible(connection, view)
            near = self._indexed(connection, vector, numbers, seen, limit)
            if near is not None and len(near) < limit and (view.filtered or _few(connection, candidates) is None):
                near = self._indexed(connection, vector, numbers, seen, limit, _PATIENT)
            if near is None or len(near) < limit:
                return _scan(connection, vector, [tables.vector.c.memory_id.in_(candidates)], limit)
            return near

    def cosines(self, vector: Vector, ids: Sequence[int]) -> dict[int, float]:
        """Return the exact cosine of each memory's best chunk; a memory without vectors is absent."""
        with self._database.reading() as connection:
            conditions = map(tables.vector.c.memory_id.in_, in_batches(ids))
            return _scan(connection, vector, conditions, len(ids)) if self._serves(connection) else {}

    def late_interaction(
        self, vector: Vector, tokens: Matrix, weights: Weights, ids: Sequence[int]
    ) -> dict[int, LateInteraction]:
        """Return how near each memory of `ids` is to a query; one without vectors is absent.

        `vector` is float32[d] and `tokens` float32[q, d], all unit; `weights` has one number per token, 1 in sum.
        """
        with self._database.reading() as connection:
            if not self._serves(connection):
                return {}
            return late_interaction(connection, self._similarity, vector, tokens, weights, ids)

    def best_spans(self, vector: Vector, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return where the best chunk of each memory lies in its content; a memory without vectors is absent."""
        spans: dict[int, tuple[int, int]] = {}
        best: dict[int, float] = {}
        columns = tables.vector.c
        with self._database.reading() as connection:
            for batch in in_batches(ids if self._serves(connection) else ()):
                query = select(columns.memory_id, columns.start, columns.stop, columns.embedding)
                mine = query.where(columns.memory_id.in_(batch)).order_by(columns.ordinal)
                for row in connection.execute(mine):
                    cosine = float(as_vector(row.embedding) @ vector)
                    if cosine > best.get(row.memory_id, -2.0):
                        best[row.memory_id], spans[row.memory_id] = cosine, (row.start, row.stop)
        return spans

    def sync(self) -> None:
        """Bring the index to what SQL says; one that fails is deleted and built again, and SQL serves meanwhile."""
        with self._syncing:
            if not self._still_serves():
                return
            try:
                try:
                    self._catch_up()
                except IndexBroken as error:
                    log.warning("the vector index failed and is built again: %s", error)
                    self._broken |= self._everything()
                    self._index.discard()
                    self._catch_up()
            except IndexBroken as error:
                log.warning("the vector index cannot be built again, SQL answers: %s", error)
                self._broken |= self._everything()

    def sync_memory(self, memory_id: int) -> None:
        """Bring the index up to date for one memory at once; when the index fails, the queue still knows of it."""
        if not self._still_serves():
            return
        try:
            self._index.open()
            self._outbox.sync_memory(memory_id)
        except IndexBroken as error:
            log.warning("the vector index failed and is built again: %s", error)
            self._broken |= self._everything()

    @property
    def state(self) -> str:
        """Say in a word how the index is: `opening`, `rebuilding`, `ready`, or `moved` to another model."""
        if self._moved:
            return "moved"
        opening = not (self._index.ready and self._checked)
        return "opening" if opening else "rebuilding" if self._broken else "ready"

    def repair(self) -> None:
        """Bring the index to what SQL says, and build anew each namespace that holds other ids than SQL."""
        self.sync()
        with self._syncing:
            try:
                wrong = set(self._outbox.differing()) if self._still_serves() else set()
            except IndexBroken as error:
                log.warning("the vector index cannot be read and is built again: %s", error)
                wrong = self._everything()
            self._broken |= wrong
        if wrong:
            self.sync()

    @contextmanager
    def exchanging(self) -> Iterator[None]:
        """Keep the index as it is while SQL's vectors are exchanged, then serve the generation that SQL names."""
        with self._syncing, self._outbox.halted():
            yield
            with self._database.reading() as connection:
                known, serves = store_metadata.read(connection), self._serves(connection)
            self._moved = not serves
            if serves and (generation := store_metadata.generation_of(known)) != self._index.generation:
                self._index.adopt(generation)
                self._broken.clear()
                self._checked = False

    def close(self) -> None:
        """Let go of the index."""
        with self._syncing:
            self._index.close()

    def _catch_up(self) -> None:
        self._index.open()
        if not self._checked:
            self._index.prune(self._building())
            self._outbox.drain()
            self._broken |= set(self._outbox.doubtful())
            self._checked = True
        for namespace in sorted(self._broken):
            self._outbox.rebuild(namespace)
            self._broken.discard(namespace)
        self._outbox.drain()
        self._index.proven()

    def _indexed(
        self,
        connection: Connection,
        vector: Vector,
        numbers: Mapping[str, int],
        seen: ColumnElement[bool],
        limit: int,
        growth: Sequence[int] = (1,),
    ) -> dict[int, float] | None:
        """Ask the index for ever more, until `limit` of what it finds may be seen; None when it cannot serve."""
        if self.state == "opening" or self._broken & set(numbers) or not self._agrees(connection):
            return None
        queued = tables.outbox.c.embedded.is_(True) & tables.outbox.c.namespace_id.in_(numbers.values())
        pending = select(tables.outbox.c.memory_id).where(queued)  # the index knows what only waits for the model
        waiting = select(tables.memory.c.id).where(seen, tables.memory.c.id.in_(pending))
        fresh = _scan(connection, vector, [tables.vector.c.memory_id.in_(waiting)], limit)
        near: dict[int, float] = {}
        for times in growth:
            found = self._ask(numbers, vector, limit * _CHUNKS_PER_MEMORY * times)
            if found is None:
                return None
            allowed = _allowed(connection, seen, found)
            near = {one: cosine for one, cosine in found.items() if one in allowed} | fresh
            if len(near) >= limit:
                break
        return _top(near, limit)

    def _ask(self, namespaces: Iterable[str], vector: Vector, limit: int) -> dict[int, float] | None:
        found: dict[int, float] = {}
        for namespace in namespaces:
            try:
                found |= self._index.query(namespace, vector, limit)
            except IndexBroken as error:
                log.warning("the vector index failed, SQL answers: %s", error)
                self._broken.add(namespace)
                return None
        return found

    def _serves(self, connection: Connection) -> bool:
        """Say whether the vectors that this connection sees are of our model."""
        return self._model is None or store_metadata.model_of(store_metadata.read(connection)) in ({}, self._model)

    def _still_serves(self) -> bool:
        with self._database.reading() as connection:
            return self._serves(connection)

    def _agrees(self, connection: Connection) -> bool:
        """Say whether the vectors that this connection sees are those of our generation."""
        return (
            self._model is None
            or store_metadata.generation_of(store_metadata.read(connection)) == self._index.generation
        )

    def _building(self) -> str:
        with self._database.reading() as connection:
            return store_metadata.read(connection).get(store_metadata.SHADOW + store_metadata.GENERATION, "")

    def _everything(self) -> set[str]:
        with self._database.reading() as connection:
            return set(connection.execute(select(tables.namespace.c.name)).scalars())


def _few(connection: Connection, candidates: Select[int]) -> list[int] | None:
    """Return the candidates where that is so little that looking at all of it is quick."""
    ids = list(connection.execute(candidates.limit(_SCANNED + 1)).scalars())
    return ids if len(ids) <= _SCANNED else None


def _scan(
    connection: Connection, vector: Vector, conditions: Iterable[ColumnElement[bool]], limit: int
) -> dict[int, float]:
    """Compare `vector` with each stored one that meets one of `conditions`, a page at a time."""
    best: dict[int, float] = {}
    for condition in conditions:
        query = select(tables.vector.c.memory_id, tables.vector.c.embedding).where(condition)
        for page in connection.execute(query.execution_options(yield_per=_PAGE)).partitions():
            stored = as_vector(b"".join(blob for _, blob in page)).reshape(len(page), -1)
            for (memory_id, _), cosine in zip(page, (stored @ vector).tolist(), strict=True):
                best[memory_id] = max(cosine, best.get(memory_id, -2.0))
    return _top(best, limit)


def _top(cosines: Mapping[int, float], limit: int) -> dict[int, float]:
    return dict(sorted(cosines.items(), key=lambda pair: (-pair[1], pair[0]))[:limit])


def _allowed(connection: Connection, seen: ColumnElement[bool], ids: Iterable[int]) -> set[int]:
    query = select(tables.memory.c.id).where(seen)
    return {row.id for row in select_in(connection, query, tables.memory.c.id, ids)}
