"""Nearest memories: Chroma for the many, an exact scan of SQL's vectors wherever Chroma cannot serve.

That is: while Chroma is opening or broken, for what the outbox has not brought over yet, and for filters
that leave few memories.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import ColumnElement, Connection, select

from recollect.domain import View
from recollect.store import rows
from recollect.store.database import Database
from recollect.store.outbox import Outbox, as_vector, vectors_of
from recollect.store.vectors import ChromaIndex, IndexBroken

if TYPE_CHECKING:
    from recollect.ports import Vector

log = logging.getLogger(__name__)

_SCANNED = 4_000
_CHUNKS_PER_MEMORY = 3


class SqlChromaVectors:
    """The `Vectors` port over SQL's vectors and a Chroma index of them."""

    def __init__(self, database: Database, index: ChromaIndex, stopping: threading.Event) -> None:
        self._database = database
        self._index = index
        self._outbox = Outbox(database, index, stopping)
        self._broken: set[str] = set()
        self._checked = False
        self._syncing = threading.Lock()

    def nearest(self, vector: Vector, view: View, limit: int) -> dict[int, float]:
        """Return about `limit` memories nearest to `vector` that `view` may see, with cosine (-1–1)."""
        with self._database.reading() as connection:
            numbers = rows.namespace_ids(connection, view.namespaces)
            seen = rows.visible(view, numbers.values())
            if view.filtered and len(some := _stored(connection, seen, _SCANNED + 1)) <= _SCANNED:
                return _best(vector, some, limit)
            usable = self.state != "opening" and not self._broken & set(numbers)
            found = self._ask(list(numbers), vector, limit * _CHUNKS_PER_MEMORY) if usable else None
            if found is None:
                return _best(vector, _stored(connection, seen, None), limit)
            pending = select(rows.outbox.c.memory_id).where(rows.outbox.c.namespace_id.in_(numbers.values()))
            fresh = _stored(connection, seen & rows.memory.c.id.in_(pending), None)
            allowed = _allowed(connection, seen, found)
        found = {one: cosine for one, cosine in found.items() if one in allowed} | _best(vector, fresh, limit)
        if view.filtered and len(found) < limit:
            with self._database.reading() as connection:
                return _best(vector, _stored(connection, seen, None), limit)
        return dict(sorted(found.items(), key=lambda pair: -pair[1])[:limit])

    def cosines(self, vector: Vector, ids: Sequence[int]) -> dict[int, float]:
        """Return the exact cosine of each memory's best chunk; a memory without vectors is absent."""
        with self._database.reading() as connection:
            stored = vectors_of(connection, ids)
        return {one: float(np.max(np.stack(held) @ vector)) for one, held in stored.items()}

    def sync(self) -> None:
        """Bring the index to what SQL says; one that fails is deleted and built again, and SQL serves meanwhile."""
        with self._syncing:
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
        try:
            self._index.open()
            self._outbox.deliver(memory_id)
        except IndexBroken as error:
            log.warning("the vector index failed and is built again: %s", error)
            self._broken |= self._everything()

    @property
    def state(self) -> str:
        """Say in a word how the index is: `opening`, `rebuilding` or `ready`."""
        opening = not (self._index.ready and self._checked)
        return "opening" if opening else "rebuilding" if self._broken else "ready"

    def close(self) -> None:
        """Let go of the index."""
        with self._syncing:
            self._index.close()

    def _catch_up(self) -> None:
        self._index.open()
        if not self._checked:
            self._index.prune()
            self._outbox.drain()
            self._broken |= set(self._outbox.doubtful())
            self._checked = True
        for namespace in sorted(self._broken):
            self._outbox.rebuild(namespace)
            self._broken.discard(namespace)
        self._outbox.drain()
        self._index.proven()

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

    def _everything(self) -> set[str]:
        with self._database.reading() as connection:
            return set(connection.execute(select(rows.namespace.c.name)).scalars())


def _stored(connection: Connection, condition: ColumnElement[bool], limit: int | None) -> list[tuple[int, Vector]]:
    query = (
        select(rows.vector.c.memory_id, rows.vector.c.embedding)
        .join(rows.memory, rows.memory.c.id == rows.vector.c.memory_id)
        .where(condition)
        .limit(limit)
    )
    return [(memory_id, as_vector(blob)) for memory_id, blob in connection.execute(query)]


def _best(vector: Vector, stored: list[tuple[int, Vector]], limit: int) -> dict[int, float]:
    if not stored:
        return {}
    cosines = np.stack([one for _, one in stored]) @ vector
    best: dict[int, float] = {}
    for position in np.argsort(-cosines):
        best.setdefault(stored[position][0], float(cosines[position]))
        if len(best) == limit:
            break
    return best


def _allowed(connection: Connection, seen: ColumnElement[bool], ids: Iterable[int]) -> set[int]:
    allowed: set[int] = set()
    for batch in rows.in_batches(ids):
        query = select(rows.memory.c.id).where(seen & rows.memory.c.id.in_(batch))
        allowed |= set(connection.execute(query).scalars())
    return allowed
