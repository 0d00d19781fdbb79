"""The composition root: the only room that names concrete adapters."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial

from recollect.capabilities import Capabilities
from recollect.engines.embedding import open_embedder
from recollect.engines.fusion import LearnedFusion
from recollect.engines.rerank import CrossEncoderRerank, open_rerank
from recollect.engines.warmup import BackgroundWarmup
from recollect.errors import ModelMismatch
from recollect.operations.embed import embed_pending, stamps_of
from recollect.ports import App, Embedder
from recollect.settings import Settings
from recollect.store.courier import Courier
from recollect.store.database import Database, open_file
from recollect.store.health import examine
from recollect.store.migrations import migrate
from recollect.store.nearest import SqlChromaVectors
from recollect.store.owner import own
from recollect.store.records import SqlRecords
from recollect.store.text import SqliteText
from recollect.store.vectors import ChromaIndex


def _now() -> datetime:
    return datetime.now(UTC)


def open_app(
    settings: Settings | None = None,
    *,
    wait: bool = True,
    background: bool = True,
    other_model: bool = False,
    role: str = "",
    clock: Callable[[], datetime] = _now,
) -> App:
    """Own the local store in the data folder and return everything operations need.

    With `wait` the models are loaded when this returns; without it, text search answers until the embedding model is.
    Without `background` no thread is started: the next owner does what is left. `other_model` opens a store of another
    model; `role` is its name for others. Raises `StoreOwned`, `StoreUnusable`, `ModelMismatch` or `ModelUnusable`.
    """
    settings = settings or Settings()
    with ExitStack() as undo:
        database = _open_database(settings, role, undo)
        embedder, rerank = _models(settings)
        records = SqlRecords(database, clock, lambda: courier.tell())
        if not other_model:
            _check_model(records, embedder)
        text = SqliteText(database)
        index = ChromaIndex(settings.folder / "chroma", generation(embedder))
        stopping = threading.Event()
        vectors = SqlChromaVectors(database, index, stopping)
        catch_up = partial(_catch_up, records, embedder, stopping)
        courier = Courier([catch_up, vectors.sync])
        warmup = BackgroundWarmup(embedder, catch_up)
        undo.callback(vectors.close)
        if wait:
            embedder.warm()
        if background:
            _begin(courier, warmup, rerank, stopping, undo, wait=wait)
            courier.later(text.scrub)
        return App(
            caller=settings.caller,
            on_secret=settings.on_secret,
            records=records,
            text=text,
            vectors=vectors,
            embedder=embedder,
            fusion=LearnedFusion(),
            warmup=warmup,
            capabilities=Capabilities(rerank=rerank),
            clock=clock,
            later=courier.later if background else _at_once,
            checks=partial(examine, database, vectors, index),
            close=undo.pop_all().close,
        )


def _open_database(settings: Settings, role: str, undo: ExitStack) -> Database:
    """Own the store, then open its database and bring it to the tables of this version."""
    undo.callback(own(settings.folder, role).release)
    database = open_file(settings.folder / "memory.db")
    undo.callback(database.close)
    migrate(database)
    return database


def _models(settings: Settings) -> tuple[Embedder, CrossEncoderRerank | None]:
    """Return the embedding model and, where one is configured, the reranker; nothing is loaded yet."""
    embedder = open_embedder(settings.model, settings.models_dir, settings.caches)
    return embedder, open_rerank(settings.rerank, settings.rerank_top, settings.models_dir)


def _begin(
    courier: Courier,
    warmup: BackgroundWarmup,
    rerank: CrossEncoderRerank | None,
    stopping: threading.Event,
    undo: ExitStack,
    *,
    wait: bool,
) -> None:
    """Start the threads, and see to it that closing ends them before anything they use.

    With `wait` the reranker is loaded, or cannot be, when this returns; without it the embedding model comes first.
    """
    undo.callback(courier.stop)
    undo.callback(warmup.stop)
    undo.callback(stopping.set)
    courier.start()
    warmup.start()
    if rerank is not None:
        undo.callback(rerank.stop)
        rerank.start(None if wait else warmup)
        rerank.wait(threading.TIMEOUT_MAX if wait else 0.0)


def _at_once(errand: Callable[[], None]) -> None:
    errand()


def _catch_up(records: SqlRecords, embedder: Embedder, stopping: threading.Event) -> None:
    """Embed what was written while the model was loading."""
    if embedder.ready:
        embed_pending(records, embedder, lambda _: not stopping.is_set())


def generation(embedder: Embedder) -> str:
    """Return the name under which the index keeps this model's vectors."""
    stamps = stamps_of(embedder)
    return f"m{stamps['revision'][:12]}"


def _check_model(records: SqlRecords, embedder: Embedder) -> None:
    """Stamp a new store with its embedding model; refuse a store that another model built."""
    wanted = stamps_of(embedder)
    found = {name: records.stamp(name) for name in wanted}
    if not any(found.values()):
        records.set_stamps(wanted)
    elif found != wanted:
        raise ModelMismatch(
            f"This store was built with the embedding model {found['model']} ({found['dimensions']} dimensions), "
            f"but {wanted['model']} ({wanted['dimensions']} dimensions) is configured. Set RECOLLECT_MODEL back, "
            "or run `recollect reindex` to embed everything with the configured model."
        )
