"""The composition root: the only room that names concrete adapters."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from contextvars import Context
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from recollect.app import App, Capabilities, RetentionRules
from recollect.domain.enums import IndexKind
from recollect.domain.limits import Defaults
from recollect.domain.results import Check
from recollect.engines.background import BackgroundExecutor
from recollect.engines.chat import open_chat
from recollect.engines.chunks import chunks_of
from recollect.engines.cross_encoder import CrossEncoderRerank, open_rerank
from recollect.engines.describe import ChatDescribe
from recollect.engines.embedder import Embedder
from recollect.engines.embedding import find_model, open_embedder, open_service
from recollect.engines.fusion import FUSION, LearnedFusion
from recollect.engines.late_interaction import similarity
from recollect.engines.reconcile import ChatReconcile
from recollect.errors import InvalidInput, ModelMismatch, ModelUnusable
from recollect.memory.embed import embed_pending, stamps_of
from recollect.memory.outlive import RetentionRound
from recollect.settings import Settings
from recollect.store import backup as store_backup
from recollect.store import kept_files, relocation
from recollect.store.backup import Manifest, Restored
from recollect.store.erasure import StorePlaces
from recollect.store.files import check_owner, folder_of, read_only, secure_folder
from recollect.store.integrity import examine
from recollect.store.journal_file import TIPS, JournalMirror, JournalTips
from recollect.store.ownership import foreign_path, owner_name, remedy
from recollect.store.relocation import Relocated
from recollect.store.sql import store_metadata
from recollect.store.sql.accounts import Accounts
from recollect.store.sql.database import Database, open_file, open_read_only, open_server
from recollect.store.sql.export_reader import ExportReader
from recollect.store.sql.limits import Quotas, UsageLimits
from recollect.store.sql.migrations import migrate
from recollect.store.sql.records import Records
from recollect.store.sql.sessions import Sessions
from recollect.store.sql.token_ledger import SqlTokenLedger
from recollect.store.store_lock import own
from recollect.store.text.fts5 import SqliteText
from recollect.store.text.postgres import PostgresText
from recollect.store.usage_counts import UsageCounts
from recollect.store.vectors.chroma import ChromaIndex, ChromaServer
from recollect.store.vectors.index import VectorIndex
from recollect.store.vectors.pgvector import PgvectorIndex
from recollect.store.vectors.renewal import renew
from recollect.store.vectors.shadow_index import ShadowIndex
from recollect.store.vectors.vector_search import VectorSearch
from recollect.store_owner import DAEMON

log = logging.getLogger(__name__)

_ASK_AGAIN = 5.0  # seconds from one attempt to reach an embedding server to the next
_OWN_FIRST = "A file of another user is in the way: see `files` below."
_LOOK = 30.0  # seconds until a replica looks for what others, which may have died, have left to do
_COUNT = 1.0  # seconds from the first use of a memory to the write that counts it
_RETRIED = timedelta(days=7)  # nobody asks again for the answer to an older request


def _utc_now() -> datetime:
    return datetime.now(UTC)


def open_app(
    settings: Settings | None = None,
    *,
    wait: bool = True,
    background: bool = True,
    other_model: bool = False,
    role: str = "",
    clock: Callable[[], datetime] = _utc_now,
    embedder: Embedder | None = None,
) -> App:
    """Own the local store in the data folder and return everything operations need.

    With `wait` the models are loaded when this returns; without it, text search answers until the embedding model is.
    Without `background` no thread is started: the next owner does what is left. `other_model` opens a store of another
    model; `role` is its name for others. A given `embedder`, which stores may share, is used, not the configured model.
    A store that cannot be written is only read, without its vector index. Raises `StoreOwned`, `StoreUnusable`,
    `ModelMismatch` or `ModelUnusable`.
    """
    settings = settings or Settings()
    with ExitStack() as undo:
        embedder = embedder or _open_embedder(settings, settings.model, settings.models_dir, undo)
        rerank = open_rerank(settings.rerank, settings.models_dir)
        model = stamps_of(embedder)
        store = _open_store(settings, role, model, clock, lambda: executor.request(), undo, keep=other_model)
        if not other_model:
            _check_model(store.records, model)
        catch_up = partial(_catch_up, store.records, embedder, store.stopping, again=bool(settings.embedding_url))
        background = background and not store.read_only
        executor = BackgroundExecutor([catch_up, lambda: behind["usage"].write(), *store.rounds])
        behind = _background_parts(executor, store, background=background)
        if wait:
            embedder.warm()
        if background:
            _start_background(executor, store, clock, undo)
            _load_models(executor, embedder, rerank, lambda: _ignore(catch_up()), wait=wait)
        return App(
            on_secret=settings.on_secret,
            retention_rules=RetentionRules(settings.retention, settings.max_memories, settings.inbox_days),
            lifecycle=settings.lifecycle,
            **store.adapters,
            embedder=embedder,
            open_model=lambda name, where: _open_embedder(settings, name, where or settings.models_dir),
            fusion=_open_fusion(settings),
            capabilities=_open_capabilities(settings, store, rerank),
            clock=clock,
            **behind,
            checks=partial(store.checks, embedder),
            **_files_of(settings, store),
            close=undo.pop_all().close,
        )


def _open_embedder(settings: Settings, model: str, models_dir: Path | None, undo: ExitStack | None = None) -> Embedder:
    """Return what embeds with a model: the server that the settings name, else this process."""
    if not settings.embedding_url:
        return open_embedder(model, models_dir)
    service = open_service(model, models_dir, settings.embedding_url, settings.embedding_key)
    if undo is not None:
        undo.callback(service.close)
    return service


def _background_parts(executor: BackgroundExecutor, store: _Store, *, background: bool) -> dict[str, Any]:
    """Return the parts that run work after an answer: in threads, at once, or never in a store opened read-only."""
    if background:
        usage = UsageCounts(store.records.usage, partial(executor.submit_after, _COUNT))
        return {"usage": usage, "run_later": executor.submit, "ask_later": executor.ask}
    at_once: Callable[[Callable[[], None]], None] = _ignore if store.read_only else lambda task: task()
    usage = UsageCounts(store.records.usage, at_once)
    return {"usage": usage, "run_later": at_once, "ask_later": lambda task: at_once(lambda: Context().run(task))}


def _files_of(settings: Settings, store: _Store) -> dict[str, Any]:
    """Return what names the files that still hold what was forgotten, and what looks for an erased person."""
    places = StorePlaces(
        database=store.database,
        index=store.index,
        file=store.file if store.database.file else None,
        folder=settings.folder,
        mirror=settings.journal_mirror,
        backups=settings.backup_folder,
        backup_days=settings.backup_days,
    )
    return {"places": places, "remaining": partial(kept_files.remaining, settings.database)}


def _open_fusion(settings: Settings) -> LearnedFusion:
    """Return the fusion with the coefficients beside the model's card, else those of the default model."""
    found = find_model(settings.model, settings.models_dir)
    return LearnedFusion(found.file(FUSION) if found else None)


def _open_capabilities(settings: Settings, store: _Store, rerank: CrossEncoderRerank | None) -> Capabilities:
    """Return the configured capabilities; a store opened read-only asks no language model."""
    ledger = SqlTokenLedger(store.database, store.clock, settings.chat_tokens_day // 5, settings.chat_tokens_day)
    name, url, key = "" if store.read_only else settings.chat_model, settings.chat_url, settings.chat_key
    chat = open_chat(name, url, key, ledger, seconds=settings.chat_seconds)
    shared = bool(settings.database_url)
    if chat is None:
        return Capabilities(rerank=rerank, shared=shared)
    reconcile, describe = ChatReconcile(chat), ChatDescribe(chat)
    return Capabilities(rerank=rerank, chat=chat, reconcile=reconcile, describe=describe, shared=shared)


@dataclass(frozen=True, slots=True)
class _Store:
    """The open adapters of one store."""

    database: Database
    records: Records
    text: SqliteText | PostgresText
    index: VectorIndex
    vectors: VectorSearch
    stopping: threading.Event
    journal_files: tuple[JournalTips | JournalMirror, ...]
    file: Path
    clock: Callable[[], datetime]
    limits: Defaults
    token_days_max: float
    read_only: bool

    @property
    def adapters(self) -> dict[str, Any]:
        """Return what keeps the store's promises, by the names that `App` has for it."""
        return {
            "sessions": Sessions(self.database),
            "accounts": Accounts(self.database, self.clock, Quotas(self.limits)),
            "limits": UsageLimits(self.database, self.clock, self.limits),
            "token_days_max": self.token_days_max,
            "records": self.records,
            "export_reader": ExportReader(self.database),
            "text": self.text,
            "vectors": self.vectors,
            "shadow_index": ShadowIndex(self.database, self.vectors),
        }

    @property
    def rounds(self) -> list[Callable[[], float | None]]:
        """Return what follows the database in the background."""
        files = (one.sync for one in self.journal_files)
        tidying = [lambda: kept_files.remove_old(self.file, self.clock())] if self.database.file else []
        retention = RetentionRound(self.records, self.database.claiming)
        return [self._sync_vectors, *files, *tidying, lambda: retention.run(self.clock())]

    def _sync_vectors(self) -> float:
        self.vectors.sync()
        return self.vectors.resting or (0.0 if self.database.file else _LOOK)

    def checks(self, embedder: Embedder, deep: bool = False) -> Iterator[Check]:
        """Let the doctor look at one part after another, and compare vectors where the model is ready."""
        embed = partial(chunks_of, embedder) if embedder.ready else None
        kept = foreign_path(folder_of(self.file)) if self.database.file else None
        for check in examine(self.database, self.vectors, self.index, deep=deep, embed=embed):
            yield check if check.well or kept is None else replace(check, advice=_OWN_FIRST)
        if kept is not None:
            seen = f"{kept} belongs to {owner_name(kept)}, and you may not use it as it is"
            yield Check("files", False, seen, f"Run `{remedy(kept)}`, and then `recollect doctor` again.")
        for one in self.journal_files:
            yield one.check()
        if self.database.file:
            yield kept_files.check_kept(self.file, self.clock())


def _open_store(
    settings: Settings,
    role: str,
    model: Mapping[str, str],
    clock: Callable[[], datetime],
    notify: Callable[[], None],
    undo: ExitStack,
    *,
    keep: bool,
) -> _Store:
    """Own the store, bring its database to the tables of this version, and open what works on it.

    What is on servers has no owner: many processes may use it at once. Unless `keep`, vectors of an older version of
    the model are dropped.
    """
    folder = settings.folder
    database, fixed = _open_database(settings, role, undo)
    undo.callback(database.close)
    migrate(database)
    if not (keep or fixed or settings.database_url) and renew(database, model):
        log.warning("%s has a newer version: every memory is embedded anew, words answer meanwhile", model["model"])
    stopping = threading.Event()
    index = _open_index(settings, database, _generation_of(database, model))
    vectors = VectorSearch(database, index, stopping, similarity, model)
    undo.callback(vectors.close)
    tips = [] if settings.database_url else [JournalTips(database, folder / TIPS)]
    mirrors = [JournalMirror(database, settings.journal_mirror)] if settings.journal_mirror else []
    files: tuple[JournalTips | JournalMirror, ...] = (*tips, *mirrors)
    for one in () if fixed else files:
        undo.callback(one.close)
    limits = settings.default_limits
    records = Records(database, clock, notify, model, Quotas(limits))
    text = PostgresText(database) if settings.database_url else SqliteText(database)
    parts = (database, records, text, index, vectors, stopping, files, settings.database, clock)
    return _Store(*parts, limits, settings.token_days_max, fixed)


def _open_database(settings: Settings, role: str, undo: ExitStack) -> tuple[Database, bool]:
    """Open the database, and say whether it can only be read. A store on this machine has one owner."""
    folder, file = settings.folder, settings.database
    if settings.database_url:
        if not settings.shares_vectors or role == DAEMON:
            undo.callback(own(folder, role).release)
        return open_server(settings.database_url, settings.concurrent_requests), False
    secure_folder(folder)
    check_owner(file)
    if file.is_file() and read_only(file.parent):
        return open_read_only(file), True
    undo.callback(own(folder, role).release)
    return open_file(file, settings.concurrent_requests), False


def _open_index(settings: Settings, database: Database, generation: str) -> VectorIndex:
    """Open the vector index: Chroma in the data folder or on the server in the settings, or pgvector."""
    if settings.vector_index is IndexKind.PGVECTOR:
        return PgvectorIndex(database, generation)
    if not settings.chroma_url:
        return ChromaIndex(settings.folder / "chroma", generation)
    with database.reading() as connection:
        store = store_metadata.read(connection).get(store_metadata.OWN_ID, "")
    if not store:
        with database.exclusive() as connection:
            store = store_metadata.own_id(connection)
    return ChromaServer(settings.chroma_url, generation, store)


def backup(file: Path, settings: Settings | None = None, *, force: bool = False) -> Manifest:
    """Copy the store of `settings` into one file, as of one instant, while others write; see `store.backup`."""
    return store_backup.backup(_local_database(settings), file, force=force)


def verify_backup(file: Path) -> Manifest:
    """Read a backup and return what it holds, without touching any store; see `store.backup`."""
    return store_backup.verify(file)


def restore(
    file: Path,
    settings: Settings | None = None,
    *,
    force: bool = False,
    free: Callable[[], object] = lambda: None,
) -> Restored:
    """Put a backup in the place of the store of `settings` once it has proven whole; see `store.backup`."""
    return store_backup.restore(_local_database(settings), file, force=force, free=free)


def discard_index(settings: Settings) -> None:
    """Delete the Chroma collections of a store on servers that nobody uses any more."""
    with closing(open_server(settings.database_url)) as database, database.reading() as connection:
        generation = store_metadata.generation_of(store_metadata.read(connection))
        index = _open_index(settings, database, generation)
    index.discard()
    index.close()


def relocate(
    settings: Settings,
    *,
    to_server: bool,
    free: Callable[[], object] = lambda: None,
    report: Callable[[int, int], None] = lambda _done, _total: None,
) -> Relocated:
    """Move the store of the data folder to the PostgreSQL of `settings`, or back; see `store.relocation`.

    `free` is called before, to end a daemon that has the store open. Raises `InvalidInput` without a database.
    """
    if not settings.database_url:
        raise InvalidInput("database_url", "Missing database_url: Name the PostgreSQL in RECOLLECT_DATABASE_URL.")
    file = settings.database
    if to_server and not file.exists():
        raise InvalidInput("home", f"There is no store at {file}.")
    free()
    with ExitStack() as undo:
        secure_folder(settings.folder)
        undo.callback(own(settings.folder).release)
        server, local = open_server(settings.database_url), open_file(file)
        for one in (server, local):
            undo.callback(one.close)
            migrate(one)
        if not to_server:
            JournalTips(local, settings.folder / TIPS)  # begins the file, as the folder is new
        return relocation.relocate(*((local, server) if to_server else (server, local)), report)


def _local_database(settings: Settings | None) -> Path:
    """Return the database file of a local store; raise `InvalidInput` for a store in PostgreSQL."""
    settings = settings or Settings()
    if settings.database_url:
        raise InvalidInput(
            "database_url", "This store is in PostgreSQL: use `pg_dump` and `pg_restore` on it. Chroma is built again."
        )
    return settings.database


def _start_background(
    executor: BackgroundExecutor, store: _Store, clock: Callable[[], datetime], undo: ExitStack
) -> None:
    """Start the background work, which closing ends before anything it uses; tidying is its first work."""
    undo.callback(executor.stop)
    undo.callback(store.stopping.set)
    executor.start()
    executor.submit(store.text.purge_deleted)
    executor.submit(lambda: store.records.outcomes.drop(clock() - _RETRIED))


def _load_models(
    executor: BackgroundExecutor,
    embedder: Embedder,
    rerank: CrossEncoderRerank | None,
    catch_up: Callable[[], None],
    *,
    wait: bool,
) -> None:
    """Load the models; writes that wait for the embedding model are embedded before anything else uses it."""
    if rerank is not None and wait:
        executor.load(rerank)
    executor.load(embedder, catch_up)
    if rerank is not None and not wait:
        executor.load(rerank)
    if rerank is not None:
        rerank.wait(threading.TIMEOUT_MAX if wait else 0.0)


def _ignore(_: object) -> None:
    """Return nothing."""


def _catch_up(records: Records, embedder: Embedder, stopping: threading.Event, *, again: bool) -> float | None:
    """Embed what was written while the model was not ready; with `again` say when a model that is away is asked next.

    What another replica embeds is looked for again, as it may die. A server that was away is looked for first: whoever
    recalls meanwhile does not wait for it.
    """
    done = True
    try:
        if again and embedder.failure:
            embedder.warm()
        if embedder.ready:
            done = embed_pending(records, embedder, stopping=stopping.is_set)
    except (ModelUnusable, ModelMismatch):
        if not again:
            raise
    return _ASK_AGAIN if not done or (again and not embedder.ready) else None


def _generation_of(database: Database, model: Mapping[str, str]) -> str:
    """Return the name under which the index stores this model's vectors in this store."""
    with database.reading() as connection:
        known = store_metadata.read(connection)
    return (
        store_metadata.generation_of(known)
        if store_metadata.model_of(known) == model
        else store_metadata.first_generation(model)
    )


def _check_model(records: Records, wanted: Mapping[str, str]) -> None:
    """Stamp a new store with its embedding model; refuse a store that another model built."""
    found = {name: records.stamps.get(name) for name in wanted}
    if not any(found.values()):
        records.stamps.set(wanted)
    elif found != wanted:
        raise ModelMismatch(
            f"This store was built with the embedding model {_label_of(found)}, but {_label_of(wanted)} is configured. "
            "Set RECOLLECT_MODEL back, or run `recollect reindex` to embed everything with the configured model."
        )


def _label_of(stamps: Mapping[str, str | None]) -> str:
    """Return model, dimensions and version in a form that tells two models apart in a message."""
    return f"{stamps['model']} ({stamps['dimensions']} dimensions, version {(stamps['revision'] or '')[:12]})"
