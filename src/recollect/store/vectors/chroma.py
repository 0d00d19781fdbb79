"""Chroma as the vector index: one collection per namespace, cosine, our own vectors and nothing else, never a text.

It lies in a folder that one process uses, or on a server among the collections of others.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import logging
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
from typing_extensions import override

from recollect.engines.http_client import client_for
from recollect.spans import spanned
from recollect.store.files import remove
from recollect.store.vectors.index import IndexAway, IndexBroken

if TYPE_CHECKING:
    from uuid import UUID

    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

    from recollect.engines.embedder import Vector

T = TypeVar("T")

log = logging.getLogger(__name__)

_GRAPH = {"space": "cosine", "ef_construction": 100, "ef_search": 100, "max_neighbors": 16}
_OPTIONS: Any = {"configuration": {"hnsw": _GRAPH}, "embedding_function": None}
_BATCH = 5_000
_HANDLES = 1_000  # collections whose handles a process keeps: some 30 KB each
_AWAY = (429, 502, 503, 504)
_PATIENCE = 20.0  # seconds for one answer of a server
_PORTS = {"http": 8000, "https": 443}
_MAKING = threading.Lock()  # held while a client of a server is made

_M_MMAP_THRESHOLD = -3  # of glibc's mallopt
_LARGE = 64 * 1024


class ChromaCollections(ABC):
    """The collections of one store, wherever Chroma runs: a `VectorIndex`.

    Ids are `MEMORY.CHUNK`. `store` tells its collections from those of others in the same place.
    """

    def __init__(self, generation: str, store: str = "") -> None:
        self.generation = generation
        self._label = f"{store}-" if store else ""
        self._digits = 40 - len(store)
        self._client: ClientAPI | None = None
        self._opening = threading.Lock()
        self._gate = threading.Condition()
        self._calls, self._compacting = 0, False
        self._keeping = threading.Lock()
        self._collections: dict[str, Collection] = {}

    @abstractmethod
    def _connect(self) -> ClientAPI:
        """Return a client; raise `IndexBroken` when that cannot be."""

    @abstractmethod
    def _release(self, client: Any) -> None:
        """Let go of a client."""

    @property
    def ready(self) -> bool:
        """Say whether the index is open, so that using it costs no import."""
        return self._client is not None

    def open(self) -> ClientAPI:
        """Open the index, unless it is; raise `IndexBroken` when that cannot be."""
        with self._opening:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def close(self) -> None:
        """Let go of the index."""
        with self._opening:
            client, self._client = self._client, None
            self._collections.clear()
        if client is not None:
            guarded(lambda: self._release(client))

    @spanned("chroma query")
    def query(self, namespace: str, vector: Vector, limit: int) -> dict[int, float]:
        """Return the memories of the `limit` nearest chunks, each with its best cosine; the nearest comes first."""
        asked: Any = [vector]
        found = self._guarded(namespace, lambda one: one.query(asked, n_results=limit, include=["distances"]))
        names, distances = found["ids"][0], (found["distances"] or [[]])[0]
        ids = np.array(names, dtype=np.str_).astype(np.float64).astype(np.int64).tolist()  # of `memory.chunk`
        best = dict(zip(reversed(ids), reversed(distances), strict=True))  # of several chunks the first counts
        return {one: 1.0 - best[one] for one in dict.fromkeys(ids)}

    @spanned("chroma put")
    def put(self, namespace: str, ids: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Insert or replace vectors."""
        for start in range(0, len(ids), _BATCH):
            stop = start + _BATCH
            names, some = list(ids[start:stop]), list(vectors[start:stop])
            self._guarded(namespace, lambda one: one.upsert(names, some))  # noqa: B023 - called at once

    @spanned("chroma take")
    def take(self, namespace: str, ids: Sequence[str]) -> None:
        """Remove vectors; ids that are absent are no error."""
        for start in range(0, len(ids), _BATCH):
            names = list(ids[start : start + _BATCH])
            self._guarded(namespace, lambda one: one.delete(names))  # noqa: B023 - called at once

    @spanned("chroma ids")
    def ids(self, namespace: str) -> set[str]:
        """Return every id in the namespace's collection."""
        return set(self._guarded(namespace, lambda one: one.get(include=[]))["ids"])

    @spanned("chroma vectors")
    def vectors(self, namespace: str, ids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of these ids, float32[d]; one that the collection lacks is absent."""
        found: dict[str, Vector] = {}
        for start in range(0, len(ids), _BATCH):
            asked = list(ids[start : start + _BATCH])
            some = self._guarded(namespace, lambda one: one.get(asked, include=["embeddings"]))  # noqa: B023 - called at once
            held: Any = some["embeddings"]
            found |= dict(zip(some["ids"], held, strict=True))
        return found

    @spanned("chroma count")
    def count(self, namespace: str) -> int:
        """Return how many vectors the namespace's collection holds."""
        return int(self._guarded(namespace, lambda one: one.count()))

    @spanned("chroma drop")
    def drop(self, namespace: str) -> None:
        """Delete the namespace's collection."""
        self._collections.pop(namespace, None)
        client, name = self.open(), self._collection_name(namespace)
        try:
            guarded(lambda: client.delete_collection(name))
        except IndexBroken as error:
            if type(error.__cause__).__name__ != "NotFoundError":  # of chromadb, which is not imported here
                raise

    def adopt(self, generation: str) -> None:
        """Serve the collections of another generation from now on."""
        self.generation = generation
        self._collections.clear()

    def prune(self) -> None:
        """Delete the collections of this store's other generations."""
        self._delete_generations(lambda generation: generation != self.generation)

    def _delete_generations(self, unwanted: Callable[[str], bool]) -> None:
        """Delete this store's collections of the generations that are `unwanted`."""
        client = self.open()
        self._collections.clear()
        for name in [one.name for one in guarded(client.list_collections)]:
            generation, _, rest = name.partition("-")
            if rest.startswith(self._label) and unwanted(generation):
                guarded(lambda: client.delete_collection(name))  # noqa: B023 - called at once

    @contextmanager
    def _use_collection(self, namespace: str) -> Iterator[Collection]:
        """Give the namespace's collection to one call, which `compact` waits for."""
        with self._gate:
            self._gate.wait_for(lambda: not self._compacting)
            self._calls += 1
        try:
            yield self._get_collection(namespace)
        finally:
            with self._gate:
                self._calls -= 1
                self._gate.notify_all()

    def _guarded(self, namespace: str, call: Callable[[Any], T]) -> T:
        """Call with the namespace's collection; whatever goes wrong is `IndexBroken`."""
        with self._use_collection(namespace) as collection:
            return guarded(lambda: call(collection))

    def _collection_name(self, namespace: str) -> str:
        digest = hashlib.sha256(namespace.encode()).hexdigest()[: self._digits]
        return f"{self.generation}-{self._label}{digest}"

    def _get_collection(self, namespace: str) -> Collection:
        """Return the namespace's collection, made where it is missing; the last used handles are kept."""
        with self._keeping:
            known = self._collections.pop(namespace, None)
        if known is None:
            client, name = self.open(), self._collection_name(namespace)
            known = guarded(lambda: client.get_or_create_collection(name, **_OPTIONS))
        with self._keeping:
            self._collections[namespace] = known  # the one that was used last is the last
            if len(self._collections) > _HANDLES:
                self._collections.pop(next(iter(self._collections), namespace), None)
        return known


class ChromaIndex(ChromaCollections):
    """The collections of one Chroma folder, which one process may use."""

    proven_by_use = False

    def __init__(self, folder: Path, generation: str) -> None:
        super().__init__(generation)
        self._folder = folder
        self._unproven = folder.with_name(f"{folder.name}.unproven")
        self._sizes = folder.with_name(f"{folder.name}.sizes")
        self._looked_at: dict[Path, int] = {}
        self._written: set[UUID] = set()

    def put(self, namespace: str, ids: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Insert or replace vectors."""
        asked = self._collections.get(namespace)
        super().put(namespace, ids, vectors)
        if asked is not None and asked.id not in self._written:  # the first write makes the files of a graph
            self._written.add(asked.id)
            self._blank()

    @override
    def _guarded(self, namespace: str, call: Callable[[Any], T]) -> T:
        first = namespace not in self._collections
        found = super()._guarded(namespace, call)
        if first:  # Chroma has loaded its graph, and written the files of one that was never saved
            self._blank()
        return found

    def _blank(self) -> None:
        with self._hold_calls():
            self._looked_at = guarded(lambda: _blank(self._folder, self._looked_at))

    def _connect(self) -> ClientAPI:
        """Open the folder; a folder that cannot be opened any more, or killed its last owner, is begun anew.

        A damaged graph can end the process where an error was due. So a mark lies beside the folder until it is
        `proven`; whoever finds the mark of a dead owner does not try the same folder again.
        """
        if self._unproven.exists():
            log.warning("the last owner died before the vector index was proven: it is built again")
            guarded(lambda: remove(self._folder))
        elif cut := guarded(lambda: _cut_files(self._folder, self._sizes)):
            log.warning("%s has lost a part, so the vector index is built again", cut[0])
            guarded(lambda: remove(self._folder))
        guarded(self._unproven.touch)
        try:
            return guarded(lambda: _folder_client(self._folder))
        except IndexBroken as error:
            log.warning("the vector index cannot be opened and is built again: %s", error)
            guarded(lambda: remove(self._folder))
            return guarded(lambda: _folder_client(self._folder))

    def _release(self, client: Any) -> None:
        client.close()
        guarded(lambda: self._sizes.write_text(json.dumps(_graph_sizes(self._folder)), encoding="utf-8"))
        self.proven()

    def proven(self) -> None:
        """Note that the whole index was asked and did no harm."""
        guarded(lambda: self._unproven.unlink(missing_ok=True))

    def discard(self) -> None:
        """Delete the folder, so that the next `open` begins anew."""
        try:
            self.close()
        except IndexBroken as error:
            log.warning("the vector index cannot even be closed: %s", error)
        with self._opening:
            guarded(lambda: remove(self._folder))

    def compact(self) -> None:
        """Take what was deleted out of Chroma's files: its queue, free pages, and the graphs of dropped collections.

        Chroma itself leaves all of that. Calls of other threads wait meanwhile, which is some milliseconds.
        """
        with self._hold_calls():
            self.close()
            guarded(lambda: _compact(self._folder))
        self.open()

    @contextmanager
    def _hold_calls(self) -> Iterator[None]:
        """Let calls that run come to their end, and hold new ones back meanwhile."""
        with self._gate:
            self._gate.wait_for(lambda: not self._compacting)
            self._compacting = True
            self._gate.wait_for(lambda: not self._calls)
        try:
            yield
        finally:
            with self._gate:
                self._compacting = False
                self._gate.notify_all()


class ChromaServer(ChromaCollections):
    """The collections of a deployment on a Chroma server that several replicas ask; `store` names it among others.

    A server that does not answer is away, not broken: nothing is dropped, and when it is back the index is looked at
    as after an opening. What deleted vectors leave in the server's files is its own to compact.
    """

    proven_by_use = True

    def __init__(self, url: str, generation: str, store: str) -> None:
        super().__init__(generation, store)
        self._url = url

    def _connect(self) -> ClientAPI:
        return guarded(lambda: _server_client(self._url))

    def _release(self, client: Any) -> None:
        """Let go of a client, and of the connections that chromadb leaves open."""
        client.close()
        for one in (client, client._admin_client):
            one._server._session.close()

    def proven(self) -> None:
        """Do nothing: a damaged graph ends the server, not this process."""

    def discard(self) -> None:
        """Delete the collections of this generation, so that they are built again."""
        self._delete_generations(lambda generation: generation == self.generation)

    def compact(self) -> None:
        """Do nothing: the server's files are its own."""

    def _guarded(self, namespace: str, call: Callable[[Any], T]) -> T:
        """Call once more with a collection looked up anew: another replica may have built it again."""
        try:
            return super()._guarded(namespace, call)
        except IndexAway:
            self.close()
            raise
        except IndexBroken:
            self._collections.pop(namespace, None)
            return super()._guarded(namespace, call)


def _our_settings() -> Any:
    """Return Chroma's settings without the environment and the `.env` file of whoever started us."""
    return _settings_class()(anonymized_telemetry=False)


@cache
def _settings_class() -> type[Any]:
    """Return the class of those settings; making it takes as long as opening an index."""
    from chromadb.config import Settings

    class OurSettings(Settings):
        """Settings that only come from here."""

        @classmethod
        def settings_customise_sources(cls, *_: Any, init_settings: Any, **__: Any) -> tuple[Any, ...]:  # type: ignore[override]
            """Take what is given here and nothing else."""
            return (init_settings,)

    return OurSettings


def _server_client(url: str) -> ClientAPI:
    """Return a client of the Chroma server at an address; raise what chromadb raises where it does not answer."""
    import chromadb

    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 8000)
    with _asking_by(url):
        client = chromadb.HttpClient(host, port, ssl=parts.scheme == "https", settings=_our_settings())
    client.heartbeat()
    return client


@contextmanager
def _asking_by(url: str) -> Iterator[None]:
    """Let chromadb make its clients of HTTP as we make ours, with a limit of time, until the block ends.

    By itself it waits for ever for a server that takes connections and answers none, and nothing public changes that.
    """
    import httpx
    from chromadb.api import fastapi

    class Library:
        """What chromadb knows as httpx meanwhile."""

        def __getattr__(self, name: str) -> Any:
            return getattr(httpx, name)

        def Client(self, **options: Any) -> httpx.Client:  # noqa: N802 - the library's name
            return client_for(url, httpx.Client, **options | {"timeout": _PATIENCE})

    replaced: Any = fastapi
    with _MAKING:
        replaced.httpx = Library()
        try:
            yield
        finally:
            replaced.httpx = httpx


def _folder_client(folder: Path) -> ClientAPI:
    """Return a client of the Chroma folder, which is made where it is missing."""
    import chromadb
    from chromadb.api.shared_system_client import SharedSystemClient

    _zero_large_blocks()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return chromadb.PersistentClient(str(folder), settings=_our_settings())
    except BaseException:  # whatever it was, chromadb would hand out the half-started system for this folder again
        SharedSystemClient._identifier_to_system.pop(str(folder), None)
        raise


@cache
def _zero_large_blocks() -> None:
    """Let this process take each large block of memory fresh from the system, which zeroes it; where glibc is used.

    A graph's file holds its whole block of memory, the part without vectors too. In a block that was used before, that
    would be pieces of texts.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)


def _compact(folder: Path) -> None:
    """Rewrite the database of a closed folder without its free pages, and remove graphs that it does not name."""
    with closing(sqlite3.connect(folder / "chroma.sqlite3", isolation_level=None)) as database:
        named = {row[0] for row in database.execute("SELECT id FROM segments")}
        database.execute("VACUUM")
    for path in folder.iterdir():
        if path.is_dir() and path.name not in named:
            remove(path)
    _blank(folder)


def _blank(folder: Path, looked_at: Mapping[Path, int] = MappingProxyType({})) -> dict[Path, int]:
    """Write zeros over the files of graphs that were never saved: they hold what lay in memory when they were made.

    Chroma reads them only after a save, which writes them whole. Returned is when the files of each graph were written
    last; what was `looked_at` then is not read again.
    """
    written: dict[Path, int] = {}
    for vectors in folder.glob("*/data_level0.bin"):
        graph = vectors.parent
        if vectors.stat().st_mtime_ns != looked_at.get(graph) and not (graph / "index_metadata.pickle").exists():
            for file in filter(Path.is_file, (vectors, graph / "length.bin")):
                held = file.read_bytes()
                if held.count(0) < len(held):
                    file.write_bytes(bytes(len(held)))
        written[graph] = vectors.stat().st_mtime_ns
    return written


def _graph_sizes(folder: Path) -> dict[str, int]:
    """Return the bytes of each file of a graph by its path in the folder."""
    return {str(one.relative_to(folder)): one.stat().st_size for one in folder.glob("*/*") if one.is_file()}


def _cut_files(folder: Path, sizes: Path) -> list[str]:
    """Return the files of graphs that are shorter than they were when Chroma closed them.

    Chroma reads such a file without looking at its length, and beyond its end: that ends the process, or never ends.
    What was deleted with its whole graph is not missed.
    """
    try:
        known: dict[str, int] = json.loads(sizes.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    now = _graph_sizes(folder)
    graphs = {Path(one).parts[0] for one in now}
    return [one for one, size in known.items() if Path(one).parts[0] in graphs and now.get(one, 0) < size]


def guarded(call: Callable[[], T]) -> T:
    """Return what a call of Chroma returns; raise `IndexBroken` for whatever it raises, `IndexAway` for no answer."""
    try:
        return call()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the index is derived: a Rust panic too must only cost a rebuild
        kind = IndexAway if _is_away(error) else IndexBroken
        raise kind(f"{type(error).__name__}: {error}") from error


def _is_away(error: BaseException | None) -> bool:
    """Say whether an error tells of a server that cannot be reached, or is about to stop or to start.

    When chromadb makes a client it raises `ValueError` for everything; what happened is its context.
    """
    if error is None:
        return False
    status = getattr(getattr(error, "response", None), "status_code", None)
    unheard = status in _AWAY if status is not None else type(error).__module__.startswith("httpx")
    return unheard or isinstance(error, ConnectionError) or _is_away(error.__context__)
