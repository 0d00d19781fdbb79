"""Nearest memories: Chroma for the many, an exact scan of SQL's vectors wherever Chroma cannot serve.

That is: while Chroma is opening or broken, for what the outbox has not brought over yet, and for filters
that leave few memories.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Connection, Select, select

from recollect.domain import View
from recollect.store import rows, stamps
from recollect.store.closeness import closeness
from recollect.store.database import Database
from recollect.store.outbox import Outbox, as_vector
from recollect.store.vectors import ChromaIndex, IndexBroken

if TYPE_CHECKING:
    from recollect.ports import Closeness, Matrix, Vector, Weights

log = logging.getLogger(__name__)

_SCANNED = 2_000
_PAGE = 2_000
_CHUNKS_PER_MEMORY = 3
_PATIENT = (4, 16)


class SqlChromaVectors:
    """The `Vectors` port over SQL's vectors and a Chroma index of them.

    `model` is what the store must be stamped with: once it has moved to another model, nothing is near and text alone
    answers, because the two models' vectors cannot be compared. Without `model` it is not looked at.
    """

    def __init__(
        self,
        database: Database,
        index: ChromaIndex,
        stopping: threading.Event,
        model: Mapping[str, str] | None = None,
    ) -> None:
        self._database = database
        self._index = index
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
            numbers = rows.namespace_ids(connection, view.namespaces)
            passing = rows.passing(view, numbers.values())
            few = _few(connection, passing) if view.filtered else None
            if few is not None:
                return _scan(connection, vector, map(rows.vector.c.memory_id.in_, rows.in_batches(few)), limit)
            seen = rows.visible(view, numbers.values())
            near = self._indexed(connection, vector, numbers, seen, limit)
            if near is not None and len(near) < limit and (view.filtered or _few(connection, passing) is None):
                near = self._indexed(connection, vector, numbers, seen, limit, _PATIENT)
            if near is None or len(near) < limit:
                return _scan(connection, vector, [rows.vector.c.memory_id.in_(passing)], limit)
            return near

    def cosines(self, vector: Vector, ids: Sequence[int]) -> dict[int, float]:
        """Return the exact cosine of each memory's best chunk; a memory without vectors is absent."""
        with self._database.reading() as connection:
            conditions = map(rows.vector.c.memory_id.in_, rows.in_batches(ids))
            return _scan(connection, vector, conditions, len(ids)) if self._serves(connection) else {}

    def closeness(self, vector: Vector, tokens: Matrix, weights: Weights, ids: Sequence[int]) -> dict[int, Closeness]:
        """Return how near each memory of `ids` is to a query; one without vectors is absent.

        `vector` is float32[d] and `tokens` float32[q, d], all unit; `weights` has one number per token, 1 in sum.
        """
        with self._database.reading() as connection:
            return closeness(connection, vector, tokens, weights, ids) if self._serves(connection) else {}

    def best_spans(self, vector: Vector, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return where the best chunk of each memory lies in its content; a memory without vectors is absent."""
        spans: dict[int, tuple[int, int]] = {}
        best: dict[int, float] = {}
        columns = rows.vector.c
        with self._database.reading() as connection:
            for batch in rows.in_batches(ids if self._serves(connection) else ()):
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

    def deliver(self, memory_id: int) -> None:
        """Bring the index up to date for one memory at once; when the index fails, the queue still knows of it."""
        if not self._still_serves():
            return
        try:
            self._index.open()
            self._outbox.deliver(memory_id)
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

    def mend(self) -> None:
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
                known, serves = stamps.read(connection), self._serves(connection)
            self._moved = not serves
            if serves and (generation := stamps.generation_of(known)) != self._index.generation:
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
        queued = rows.outbox.c.embedded.is_(True) & rows.outbox.c.namespace_id.in_(numbers.values())
        pending = select(rows.outbox.c.memory_id).where(queued)  # the index knows what only waits for the model
        waiting = select(rows.memory.c.id).where(seen, rows.memory.c.id.in_(pending))
        fresh = _scan(connection, vector, [rows.vector.c.memory_id.in_(waiting)], limit)
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
        return self._model is None or stamps.model_of(stamps.read(connection)) in ({}, self._model)

    def _still_serves(self) -> bool:
        with self._database.reading() as connection:
            return self._serves(connection)

    def _agrees(self, connection: Connection) -> bool:
        """Say whether the vectors that this connection sees are those of our generation."""
        return self._model is None or stamps.generation_of(stamps.read(connection)) == self._index.generation

    def _building(self) -> str:
        with self._database.reading() as connection:
            return stamps.read(connection).get(stamps.BESIDE + stamps.GENERATION, "")

    def _everything(self) -> set[str]:
        with self._database.reading() as connection:
            return set(connection.execute(select(rows.namespace.c.name)).scalars())


def _few(connection: Connection, passing: Select[int]) -> list[int] | None:
    """Return what passes where that is so little that looking at all of it is quick."""
    ids = list(connection.execute(passing.limit(_SCANNED + 1)).scalars())
    return ids if len(ids) <= _SCANNED else None


def _scan(
    connection: Connection, vector: Vector, conditions: Iterable[ColumnElement[bool]], limit: int
) -> dict[int, float]:
    """Compare `vector` with each stored one that meets one of `conditions`, a page at a time."""
    best: dict[int, float] = {}
    for condition in conditions:
        query = select(rows.vector.c.memory_id, rows.vector.c.embedding).where(condition)
        for page in connection.execute(query.execution_options(yield_per=_PAGE)).partitions():
            stored = as_vector(b"".join(blob for _, blob in page)).reshape(len(page), -1)
            for (memory_id, _), cosine in zip(page, (stored @ vector).tolist(), strict=True):
                best[memory_id] = max(cosine, best.get(memory_id, -2.0))
    return _top(best, limit)


def _top(cosines: Mapping[int, float], limit: int) -> dict[int, float]:
    return dict(sorted(cosines.items(), key=lambda pair: (-pair[1], pair[0]))[:limit])


def _allowed(connection: Connection, seen: ColumnElement[bool], ids: Iterable[int]) -> set[int]:
    allowed: set[int] = set()
    for batch in rows.in_batches(ids):
        query = select(rows.memory.c.id).where(seen & rows.memory.c.id.in_(batch))
        allowed |= set(connection.execute(query).scalars())
    return allowed
