"""Chroma: one collection per namespace, cosine, our own vectors and nothing else; no text ever goes in.

The index is derived. Whatever goes wrong in it becomes `IndexBroken`, and the answer to that is always the
same: drop it and build it again from SQL.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from recollect.store.files import remove

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

    from recollect.ports.models import Vector

T = TypeVar("T")

log = logging.getLogger(__name__)

_GRAPH = {"space": "cosine", "ef_construction": 100, "ef_search": 100, "max_neighbors": 16}
_OPTIONS: Any = {"configuration": {"hnsw": _GRAPH}, "embedding_function": None}
_BATCH = 5_000
_ID = re.compile(r"(\d+)\.\d+")


class IndexBroken(Exception):
    """The vector index failed; SQL still holds everything."""


class ChromaIndex:
    """The collections of one Chroma folder. Ids are `MEMORY.CHUNK`; `generation` changes with the model."""

    def __init__(self, folder: Path, generation: str) -> None:
        self._folder = folder
        self._unproven = folder.with_name(f"{folder.name}.unproven")
        self.generation = generation
        self._client: ClientAPI | None = None
        self._opening = threading.Lock()
        self._gate = threading.Condition()
        self._calls, self._compacting = 0, False
        self._collections: dict[str, Collection] = {}

    @property
    def ready(self) -> bool:
        """Say whether the index is open, so that using it costs no import."""
        return self._client is not None

    def open(self) -> ClientAPI:
        """Open the folder; a folder that cannot be opened any more, or killed its last owner, is begun anew.

        A damaged graph can end the process where an error was due. So a mark lies beside the folder until it is
        `proven`; whoever finds the mark of a dead owner does not try the same folder again.
        """
        with self._opening:
            if self._client is None:
                if self._unproven.exists():
                    log.warning("the last owner died before the vector index was proven: it is built again")
                    _guarded(lambda: remove(self._folder))
                _guarded(self._unproven.touch)
                try:
                    self._client = _guarded(lambda: _connect(self._folder))
                except IndexBroken as error:
                    log.warning("the vector index cannot be opened and is built again: %s", error)
                    _guarded(lambda: remove(self._folder))
                    self._client = _guarded(lambda: _connect(self._folder))
            return self._client

    def proven(self) -> None:
        """Note that the whole index was asked and did no harm."""
        _guarded(lambda: self._unproven.unlink(missing_ok=True))

    def discard(self) -> None:
        """Delete the folder, so that the next `open` begins anew."""
        try:
            self.close()
        except IndexBroken as error:
            log.warning("the vector index cannot even be closed: %s", error)
        with self._opening:
            _guarded(lambda: remove(self._folder))

    def close(self) -> None:
        """Let go of the folder."""
        with self._opening:
            client, self._client = self._client, None
            self._collections.clear()
        if client is not None:
            closable: Any = client  # the protocol that chromadb declares leaves `close` out
            _guarded(closable.close)
            self.proven()

    def compact(self) -> None:
        """Take what was deleted out of Chroma's files: its queue, free pages, and the graphs of dropped collections.

        Chroma itself leaves all of that. Calls of other threads wait meanwhile, which is some milliseconds.
        """
        with self._gate:
            self._compacting = True
            self._gate.wait_for(lambda: not self._calls)
        try:
            self.close()
            _guarded(lambda: _compact(self._folder))
        finally:
            with self._gate:
                self._compacting = False
                self._gate.notify_all()
        self.open()

    @contextmanager
    def _using(self, namespace: str) -> Iterator[Collection]:
        """Give the namespace's collection to one call, which `compact` waits for."""
        with self._gate:
            self._gate.wait_for(lambda: not self._compacting)
            self._calls += 1
        try:
            yield self._collection(namespace)
        finally:
            with self._gate:
                self._calls -= 1
                self._gate.notify_all()

    def query(self, namespace: str, vector: Vector, limit: int) -> dict[int, float]:
        """Return the memories of the `limit` nearest chunks, each with its best cosine."""
        asked: Any = [vector]
        with self._using(namespace) as collection:
            found = _guarded(lambda: collection.query(asked, n_results=limit, include=["distances"]))
        best: dict[int, float] = {}
        for name, distance in zip(found["ids"][0], (found["distances"] or [[]])[0], strict=True):
            memory_id = int(name.partition(".")[0])
            best[memory_id] = max(best.get(memory_id, -1.0), 1.0 - float(distance))
        return best

    def put(self, namespace: str, ids: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Insert or replace vectors."""
        for start in range(0, len(ids), _BATCH):
            stop = start + _BATCH
            some: Any = list(vectors[start:stop])
            with self._using(namespace) as collection:
                _guarded(lambda: collection.upsert(list(ids[start:stop]), some))  # noqa: B023 - called at once

    def take(self, namespace: str, ids: Sequence[str]) -> None:
        """Remove vectors; ids that are absent are no error."""
        for start in range(0, len(ids), _BATCH):
            with self._using(namespace) as collection:
                _guarded(lambda: collection.delete(list(ids[start : start + _BATCH])))  # noqa: B023 - called at once

    def ids(self, namespace: str) -> set[str]:
        """Return every id in the namespace's collection."""
        with self._using(namespace) as collection:
            return set(_guarded(lambda: collection.get(include=[]))["ids"])

    def vectors(self, namespace: str, ids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of these ids, float32[d]; one that the collection lacks is absent."""
        found: dict[str, Vector] = {}
        for start in range(0, len(ids), _BATCH):
            asked = list(ids[start : start + _BATCH])
            with self._using(namespace) as collection:
                some = _guarded(lambda: collection.get(asked, include=["embeddings"]))  # noqa: B023 - called at once
            held: Any = some["embeddings"]
            found |= dict(zip(some["ids"], held, strict=True))
        return found

    def count(self, namespace: str) -> int:
        """Return how many vectors the namespace's collection holds."""
        with self._using(namespace) as collection:
            return _guarded(collection.count)

    def drop(self, namespace: str) -> None:
        """Delete the namespace's collection."""
        self._collections.pop(namespace, None)
        client, name = self.open(), self._name(namespace)
        if any(one.name == name for one in _guarded(client.list_collections)):
            _guarded(lambda: client.delete_collection(name))

    def adopt(self, generation: str) -> None:
        """Serve the collections of another generation from now on."""
        self.generation = generation
        self._collections.clear()

    def shadow(self, generation: str) -> ChromaIndex:
        """Return the index of another generation in the same folder, through the same client."""
        other = ChromaIndex(self._folder, generation)
        other._client = self.open()
        return other

    def prune(self, building: str = "") -> None:
        """Delete the collections of generations that nothing asks for, but not of the one that is `building`."""
        client = self.open()
        kept = {self.generation, building}
        for one in _guarded(client.list_collections):
            if one.name.rpartition("-")[0] not in kept:
                _guarded(lambda: client.delete_collection(one.name))  # noqa: B023 - called at once

    def _name(self, namespace: str) -> str:
        return f"{self.generation}-{hashlib.sha256(namespace.encode()).hexdigest()[:40]}"

    def _collection(self, namespace: str) -> Collection:
        known = self._collections.get(namespace)
        if known is None:
            client, name = self.open(), self._name(namespace)
            known = _guarded(lambda: client.get_or_create_collection(name, **_OPTIONS))
            self._collections[namespace] = known
        return known


def chunk_id(memory_id: int, ordinal: int) -> str:
    """Return the id of one chunk in the index."""
    return f"{memory_id}.{ordinal}"


def _connect(folder: Path) -> ClientAPI:
    import chromadb
    from chromadb.api.shared_system_client import SharedSystemClient
    from chromadb.config import Settings

    class OurSettings(Settings):
        """Chroma's settings without the environment and the `.env` file of whoever started us."""

        @classmethod
        def settings_customise_sources(cls, *_: Any, init_settings: Any, **__: Any) -> tuple[Any, ...]:  # type: ignore[override]
            """Take what is given here and nothing else."""
            return (init_settings,)

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return chromadb.PersistentClient(str(folder), settings=OurSettings(anonymized_telemetry=False))
    except BaseException:  # whatever it was, chromadb would hand out the half-started system for this folder again
        SharedSystemClient._identifier_to_system.pop(str(folder), None)
        raise


def _compact(folder: Path) -> None:
    """Rewrite the database of a closed folder without its free pages, and remove graphs that it does not name.

    A graph that was never saved is a file of whatever lay in memory when it was made, and is blanked.
    """
    with closing(sqlite3.connect(folder / "chroma.sqlite3", isolation_level=None)) as database:
        named = {row[0] for row in database.execute("SELECT id FROM segments")}
        database.execute("VACUUM")
    for path in folder.iterdir():
        if path.is_dir() and path.name not in named:
            remove(path)
        elif (graph := path / "data_level0.bin").is_file() and not (path / "index_metadata.pickle").exists():
            graph.write_bytes(bytes(graph.stat().st_size))


def _guarded(call: Callable[[], T]) -> T:
    try:
        return call()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the index is derived: a Rust panic too must only cost a rebuild
        raise IndexBroken(f"{type(error).__name__}: {error}") from error
