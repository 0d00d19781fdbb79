"""Nearest memories: the vector index for the many, an exact scan of SQL's vectors wherever that cannot serve.

That is: while the index is opening or broken, for what the outbox has not written to it yet, and for filters
that leave few memories.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy import Connection, func, select

from recollect.domain.search import View
from recollect.errors import StoreUnusable
from recollect.store.sql import store_metadata, tables
from recollect.store.sql.database import Database
from recollect.store.sql.expressions import any_of
from recollect.store.sql.mapping import IDS
from recollect.store.sql.query_facts import queued
from recollect.store.sql.visibility import namespace_ids, passing, run_visible, size, values_of
from recollect.store.vectors.exact import CHUNKS, OF_IDS, SqlVectors, nearest_first, scan
from recollect.store.vectors.index import SCANNED_AWAY, IndexAway, IndexBroken, VectorIndex
from recollect.store.vectors.outbox import Outbox, stale_namespaces

if TYPE_CHECKING:
    from recollect.engines.embedder import Vector
    from recollect.store.vectors.exact import Similarity

    Seen: TypeAlias = Callable[[Mapping[int, float]], Collection[int]]
    """From memories with their cosines to those that a view may see."""

log = logging.getLogger(__name__)

_SCANNED = 2_000
_SCANNED_CHUNKS = 600
_CHUNKS_PER_MEMORY = 3
_PATIENT = (4, 16)
_PROMPTLY = 2_000  # vectors of a namespace that is built anew at once: about two seconds
_AGAIN = 5.0  # seconds until what another replica was at is looked for
_REST = 10.0  # times as long as a purge took

_CHUNKS_OF = select(func.count()).select_from(tables.vector).where(any_of(tables.vector.c.memory_id, IDS))
_BY_ID = select(tables.memory.c.id).where(any_of(tables.memory.c.id, IDS))


@dataclass(eq=False)
class VectorSearch(SqlVectors):
    """Nearest memories over SQL's vectors and an index of them.

    `model` is what the store must be stamped with: once it has moved to another model, nothing is near and text alone
    answers, because the two models' vectors cannot be compared. Without `model` it is not looked at.
    `similarity` compares a query's tokens with stored ones.
    """

    _database: Database
    _index: VectorIndex
    _stopping: InitVar[threading.Event]
    _similarity: Similarity
    _model: Mapping[str, str] | None = None
    _moved: bool = field(default=False, init=False)
    _broken: set[str] = field(default_factory=set, init=False)
    _checked: bool = field(default=False, init=False)
    _trusted: set[str] = field(default_factory=set, init=False)
    _away: bool = field(default=False, init=False)
    _rests_until: float = field(default=0.0, init=False)
    _rest: float = field(default=0.0, init=False)
    _shared: bool = field(default=False, init=False)
    _syncing: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self, stopping: threading.Event) -> None:
        self._outbox = Outbox(self._database, self._index, stopping)

    def nearest(self, vector: Vector, view: View, limit: int, seen: Seen | None = None) -> dict[int, float]:
        """Return the `limit` memories nearest to `vector` that `view` may see, with cosine (-1–1), nearest first.

        `seen` says of memories with their cosines, nearest first, which the view may see, of so many that they suffice.
        """
        with self._tolerate_damage(), self._database.reading() as connection:
            if not self._is_our_model():
                return {}
            small = view.filtered or size(connection, view) <= _SCANNED
            few = _few_visible_ids(connection, view) if small else None
            if few is not None and (view.filtered or len(few) <= limit or not _have_many_chunks(connection, few)):
                return scan(connection, vector, limit, OF_IDS, {"ids": few})
            patient = lambda: small or _few_visible_ids(connection, view) is None  # noqa: E731
            seen = seen or (lambda found: set(run_visible(connection, _BY_ID, view, ids=found).scalars()))
            near = self._nearest_in_index(connection, vector, view, limit, patient, seen)
            if near is None and self._away and size(connection, view) > SCANNED_AWAY:
                return {}
            if near is None or len(near) < limit:
                chunks = CHUNKS.where(tables.vector.c.memory_id.in_(passing(view)))
                return scan(connection, vector, limit, chunks, values_of(connection, view))
            return near
        return {}

    def sync(self, *, everything: bool = False) -> None:
        """Bring the index to what SQL says; one that fails is deleted and built again, and SQL serves meanwhile.

        With `everything` each namespace is looked at, also where there may be thousands.
        """
        with self._syncing, self._distrust_on_failure("cannot be built again, SQL answers"):
            if not self._is_our_model():
                return
            with self._distrust_on_failure("failed and is built again"):
                self._catch_up(everything)
                return
            if not self._away:
                self._index.discard()
                self._catch_up()

    def sync_memory(self, memory_id: int) -> None:
        """Bring the index up to date for one memory at once; when the index fails, the queue still knows of it.

        One that is away is not waited for again.
        """
        if self._away:
            return
        with suppress(StoreUnusable), self._distrust_on_failure("failed and is built again"):
            if self._is_our_model():
                self._index.open()
                self._outbox.sync_memory(memory_id)

    @contextmanager
    def _distrust_on_failure(self, outcome: str) -> Iterator[None]:
        """Let SQL answer for every namespace once the index has failed in this block.

        An index that is only away is looked at again as after an opening.
        """
        try:
            self._away = False
            yield
        except IndexAway as error:
            self._note_away(error)
        except IndexBroken as error:
            log.warning("the vector index %s: %s", outcome, error)
            self._broken |= set(self._all_namespaces())

    def _note_away(self, error: IndexAway) -> None:
        log.warning("the vector index does not answer: %s", error)
        self._away, self._checked = True, False
        self._trusted.clear()

    @property
    def state(self) -> str:
        """Say how the index is: `opening`, `rebuilding`, `ready`, `unreadable`, `away`, or `moved` to another model."""
        if self._moved or self._unreadable:
            return "moved" if self._moved else "unreadable"
        if self._away:
            return "away"
        opening = not (self._index.ready and self._checked)
        return "opening" if opening else "rebuilding" if self._broken else "ready"

    @property
    def resting(self) -> float:
        """Return the seconds until something can be done that had to wait; 0 where nothing waits.

        That is to purge forgotten vectors, or to see whether another replica has done what it was at.
        """
        return min(filter(None, (self._rest, _AGAIN if self._shared else 0.0)), default=0.0)

    def waiting(self) -> int:
        """Return how many memories the index does not have as they are."""
        with self._database.reading() as connection:
            return connection.execute(select(func.count()).select_from(tables.outbox)).scalar_one()

    def repair(self) -> None:
        """Bring the index to what SQL says, and build anew each namespace that holds other ids than SQL."""
        self._unreadable = False
        self.sync()
        with self._syncing, self._distrust_on_failure("cannot be read and is built again"):
            if self._is_our_model():
                self._broken |= {one for one in self._all_namespaces() if self._differs(one)}
                self._purge_forgotten(everything=True)
        if self._broken:
            self.sync()

    def purge(self) -> None:
        """Build anew at once, whatever their size, the namespaces in which vectors were forgotten."""
        with self._syncing, self._distrust_on_failure("cannot be purged"):
            if self._is_our_model():
                self._purge_forgotten(everything=True)

    @contextmanager
    def exchanging(self) -> Iterator[None]:
        """Keep the index as it is while SQL's vectors are exchanged, then serve the generation that SQL names."""
        with self._syncing, self._outbox.halted():
            yield
            with self._database.reading() as connection:
                known, serves = store_metadata.read(connection), self._is_our_model()
            self._moved = not serves
            if serves and (generation := store_metadata.generation_of(known)) != self._index.generation:
                self._index.adopt(generation)
                self._broken.clear()
                self._trusted.clear()
                self._checked = False

    def close(self) -> None:
        """Let go of the index."""
        with self._syncing:
            self._index.close()

    def differing(self, sample: int | None) -> set[int]:
        """Return the memories whose vectors the index does not hold as SQL does: of all, or of some of each namespace.

        Raises `IndexBroken`.
        """
        return {one for name in self._all_namespaces() for one in self._outbox.differing(name, sample)}

    def _differs(self, namespace: str) -> bool:
        return not self._outbox.agrees(namespace) or bool(self._outbox.differing(namespace))

    def _all_namespaces(self) -> list[str]:
        with self._database.reading() as connection:
            return list(connection.execute(select(tables.namespace.c.name)).scalars())

    def _catch_up(self, everything: bool = False) -> None:
        """Apply the queue, and build again the namespaces in doubt; after an opening look at each of them first."""
        self._index.open()
        opening = not self._checked
        if opening:
            self._index.prune()
            self._outbox.drain()
        if everything or (opening and not self._index.proven_by_use):
            self._broken |= {one for one in self._all_namespaces() if not self._outbox.agrees(one)}
        self._checked = True
        for namespace in sorted(self._broken):
            self._outbox.rebuild(namespace)
            self._broken.discard(namespace)
        self._shared = not self._outbox.drain()
        self._purge_forgotten(everything=opening)
        self._index.proven()

    def _purge_forgotten(self, *, everything: bool) -> None:
        """Build anew each namespace in which vectors were forgotten, so that none of their bytes is left in a file.

        Large ones wait until the store is opened next, or `everything` is asked for; the others take turns with rests.
        """
        self._rest = 0.0
        with self._database.reading() as connection:
            known = store_metadata.read(connection)
            marks = stale_namespaces(known)
            if not marks:
                return
        began = time.monotonic()
        if not everything:
            marks = {mark: name for mark, name in marks.items() if self._index.count(name) <= _PROMPTLY}
            self._rest = max(0.0, self._rests_until - began) if marks else 0.0
            if not marks or self._rest > 0:
                return
        for name in marks.values():
            self._broken.add(name)
            self._outbox.rebuild(name)
            self._broken.discard(name)
        self._index.compact()
        with self._database.writing() as connection:
            store_metadata.erase_unchanged(connection, {mark: known[mark] for mark in marks})
        self._rests_until = time.monotonic() + _REST * (time.monotonic() - began)

    def _nearest_in_index(
        self, connection: Connection, vector: Vector, view: View, limit: int, patient: Callable[[], bool], seen: Seen
    ) -> dict[int, float] | None:
        """Ask the index, and where `patient` for ever more, until `limit` of what it finds may be seen.

        None when it cannot serve. What so few may see that no question would find enough of it is not asked for again.
        """
        numbers = namespace_ids(connection, view.namespaces)
        known = store_metadata.read(connection)
        if self.state in ("opening", "away") or self._broken & set(numbers):
            return None
        if self._model is not None and store_metadata.generation_of(known) != self._index.generation:
            return None
        pending = queued(connection, view)  # the index knows what only waits for the model
        waiting = list(run_visible(connection, _BY_ID, view, ids=pending).scalars()) if pending else []
        fresh = scan(connection, vector, limit, OF_IDS, {"ids": waiting}) if waiting else {}
        near: dict[int, float] = {}
        for times in (1, *_PATIENT):
            if times > 1 and not (len(near) * _PATIENT[-1] >= limit and patient()):
                break
            found = self._query_index(numbers, vector, limit * _CHUNKS_PER_MEMORY * times)
            if found is None:
                return None
            found = nearest_first(found, len(found))
            allowed = seen(found)
            near = {one: cosine for one, cosine in found.items() if one in allowed} | fresh
            if len(near) >= limit:
                break
        return nearest_first(near, limit)

    def _query_index(self, namespaces: Iterable[str], vector: Vector, limit: int) -> dict[int, float] | None:
        """Return, by memory id, the best cosine of the chunks nearest in the index; None where the index fails."""
        found: dict[int, float] = {}
        for namespace in namespaces:
            try:
                if self._index.proven_by_use and not self._is_trusted(namespace):
                    return None
                found |= self._index.query(namespace, vector, limit)
            except IndexAway as error:
                self._note_away(error)
                return None
            except IndexBroken as error:
                log.warning("the vector index failed, SQL answers: %s", error)
                self._broken.add(namespace)
                return None
        return found

    def _is_trusted(self, namespace: str) -> bool:
        """Look at a namespace's collection when it is first asked; one in doubt is built again, and SQL answers."""
        if namespace not in self._trusted and not self._outbox.agrees(namespace):
            log.warning("the vector index of one namespace does not agree with SQL and is built again")
            self._broken.add(namespace)
            return False
        self._trusted.add(namespace)
        return True


def _have_many_chunks(connection: Connection, ids: Sequence[int]) -> bool:
    """Say whether these memories have so many chunks that asking the index is quicker than looking at all."""
    return bool(connection.execute(_CHUNKS_OF, {"ids": ids}).scalar_one() > _SCANNED_CHUNKS)


def _few_visible_ids(connection: Connection, view: View) -> list[int] | None:
    """Return the ids that the view may see, if so few that a full scan is quick; else None."""
    ids = list(connection.execute(passing(view).limit(_SCANNED + 1), values_of(connection, view)).scalars())
    return ids if len(ids) <= _SCANNED else None
