"""Drill a backup: restore it into a scratch store, prove that copy, and compare it with the store.

The store is only read. Whatever the drill makes is gone afterwards: its folder, its database, its Chroma collections.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, func, select, text
from sqlalchemy.exc import DatabaseError

from recollect.app import App
from recollect.domain.enums import Scope
from recollect.domain.requests import Caller, Query
from recollect.domain.results import Check
from recollect.errors import InvalidInput, StoreUnusable
from recollect.search.recall import recall_uncounted
from recollect.settings import Settings
from recollect.store import backup as store_backup
from recollect.store import comparison, postgres_dump
from recollect.store.comparison import Digests
from recollect.store.integrity import UNREADABLE
from recollect.store.kept_files import scratch
from recollect.store.sql import store_metadata, tables
from recollect.store.sql.database import Database, open_file, open_server
from recollect.store.sql.migrations import HEAD, migrate, revision
from recollect.store.sql.statements import count
from recollect.store.sql.visibility import alive
from recollect.store.vectors.index import IndexBroken
from recollect.wiring import discard_index, open_app

QUESTIONS: Final = 20
"""The number of recalls that are compared by default."""

_LIMIT: Final = 5  # hits that are compared
_OPENING_WORDS: Final = 12  # of a memory, which make the question for it
_COUNTED: Final = {"memories": tables.memory, "vectors": tables.vector, "journal": tables.journal}
_ADVICE: Final = "This backup cannot be relied on: make another, and drill that."
_SCOPES: Final = {"user": Scope.PERSONAL, "team": Scope.TEAM, "project": Scope.PROJECT}


@dataclass(frozen=True, slots=True)
class Recalls:
    """How many questions were put to both stores, and how many had the same answers in both.

    `passed_over` of them were not compared: their answers differ, and somebody wrote to that namespace since the
    backup.
    """

    asked: int = 0
    agreed: int = 0
    passed_over: int = 0


@dataclass(frozen=True, slots=True)
class Drill:
    """The outcome of a drill.

    `behind` is the number of journal lines that the store has and the backup lacks; `counts` are those of the restored
    store; `sizes` are in bytes and `seconds` by step.
    """

    backup: str
    checks: tuple[Check, ...]
    counts: dict[str, int]
    behind: int
    recalls: Recalls
    sizes: dict[str, int]
    seconds: dict[str, float]

    @property
    def well(self) -> bool:
        """Say whether every check is well."""
        return all(check.well for check in self.checks)


@dataclass(slots=True)
class _Report:
    """What a drill has found so far."""

    backup: str = ""
    checks: list[Check] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    behind: int = 0
    recalls: Recalls = field(default_factory=Recalls)
    sizes: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timing(self, step: str) -> Iterator[None]:
        """Add the seconds that the block takes to those of a step."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = round(self.seconds.get(step, 0.0) + time.perf_counter() - began, 3)

    def add(self, name: str, fault: str, seen: str) -> None:
        """Add a check: a problem where there is a `fault`, else what was seen."""
        self.checks.append(Check(name, not fault, fault or seen, _ADVICE if fault else ""))


@dataclass(frozen=True, slots=True)
class _Pair:
    """The store and its restored copy as settings that open them, and the digests of the saved tables, if known."""

    store: Settings
    copy: Settings
    saved: Digests | None


class _Stopped(Exception):
    """Ends a drill whose next step would have nothing to work on."""


def drill(settings: Settings, file: Path | None = None, *, restored: bool = False, questions: int = QUESTIONS) -> Drill:
    """Restore a backup beside the store and compare both; with neither `file` nor `restored` make the backup first.

    `restored` compares with the database that `drill_database_url` names, into which somebody has restored a backup.
    What is wrong with the backup is a check that is not well. Raises `InvalidInput` where the file does not exist,
    `StoreUnusable` where the store cannot be read or nothing can be restored here.
    """
    _check_request(settings, file, restored=restored)
    report = _Report(backup=str(file or ""))
    settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with scratch(settings.folder) as place, ExitStack() as undo:
        try:
            if restored:
                pair = _adopt_restored(settings, place, report)
            elif settings.database_url:
                pair = _restore_dump(settings, file, place, report, undo)
            else:
                pair = _restore_file(settings, file, place, report)
            _compare(pair, report, questions, undo)
        except _Stopped:
            pass
    return Drill(
        report.backup,
        tuple(report.checks),
        report.counts,
        report.behind,
        report.recalls,
        report.sizes,
        report.seconds,
    )


def _check_request(settings: Settings, file: Path | None, *, restored: bool) -> None:
    """Raise `InvalidInput` for a file that does not exist, and for options that contradict each other or the store."""
    if file is not None and restored:
        raise InvalidInput("file", "Name a backup file or use --restored, not both.")
    if file is not None and not file.is_file():
        raise InvalidInput("file", f"There is no backup {file}.")
    if not (settings.database_url or settings.database.is_file()):
        raise StoreUnusable(f"There is no store at {settings.database}.")
    if restored and not (settings.database_url and settings.drill_database_url):
        raise InvalidInput(
            "restored",
            "--restored compares two PostgreSQL databases: set RECOLLECT_DATABASE_URL to the store's, and "
            "RECOLLECT_DRILL_DATABASE_URL to that with the restored backup.",
        )
    if restored and settings.drill_database_url == settings.database_url:
        raise InvalidInput("drill_database_url", "RECOLLECT_DRILL_DATABASE_URL names the store itself.")


def _restore_file(settings: Settings, file: Path | None, place: Path, report: _Report) -> _Pair:
    """Restore a backup of a local store, or a new backup, beside a copy of the store as of this instant."""
    store, copy = (_quiet(settings, place / name) for name in ("store", "restored"))
    fresh = file is None
    with report.timing("backup"):
        store.database.parent.mkdir(mode=0o700)
        store_backup.copy_database(settings.database, store.database)
        if file is None:
            file, report.backup = place / "drill.backup", "made for this drill"
            with _stopping(report, "backup"):
                store_backup.backup(store.database, file)
    with report.timing("restore"), _stopping(report, "restore"):
        store_backup.restore(copy.database, file)
    report.sizes |= {"backup": file.stat().st_size, "restored": copy.database.stat().st_size}
    with closing(open_file(store.database)) as database:
        migrate(database)
        with database.reading() as connection:
            return _Pair(store, copy, comparison.digest_tables(connection) if fresh else None)


def _restore_dump(settings: Settings, file: Path | None, place: Path, report: _Report, undo: ExitStack) -> _Pair:
    """Restore a dump of a store on PostgreSQL, or a new dump, into a database of its own."""
    saved: Digests | None = None
    with closing(open_server(settings.database_url)) as store:
        _check_schema(store)
        if file is None:
            file, report.backup = place / "drill.dump", "made for this drill"
            with report.timing("backup"), store.reading() as connection:
                snapshot = str(connection.execute(text("SELECT pg_export_snapshot()")).scalar_one())
                postgres_dump.dump(settings.database_url, file, snapshot)
                saved = comparison.digest_tables(connection)
    url = undo.enter_context(postgres_dump.scratch_database(settings.database_url))
    with report.timing("restore"), _stopping(report, "restore"):
        postgres_dump.restore(url, file)
    report.sizes["backup"] = file.stat().st_size
    return _own_copy(settings, url, place, saved, report)


def _adopt_restored(settings: Settings, place: Path, report: _Report) -> _Pair:
    """Take the database into which somebody has restored a backup."""
    report.backup = "restored before this drill"
    with closing(open_server(settings.database_url)) as store:
        _check_schema(store)
    return _own_copy(settings, settings.drill_database_url, place, None, report)


def _own_copy(settings: Settings, url: str, place: Path, saved: Digests | None, report: _Report) -> _Pair:
    """Give the restored database a name of its own, so that its Chroma collections are none of the store's."""
    with closing(open_server(url)) as copy:
        with _stopping(report, "restore"):
            if revision(copy) is None:
                raise StoreUnusable("The restored database is no store of Recollect.")
            migrate(copy)
            with copy.exclusive() as connection:
                store_metadata.write(connection, {store_metadata.OWN_ID: secrets.token_hex(4)})
        report.sizes["restored"] = postgres_dump.size_of(copy)
    return _Pair(_quiet(settings, place / "store"), _quiet(settings, place / "restored", database_url=url), saved)


def _check_schema(store: Database) -> None:
    """Raise `StoreUnusable` for a store that opening would bring to newer tables: a drill changes nothing."""
    if (found := revision(store)) != HEAD:
        raise StoreUnusable(f"The store has schema {found or 'none'}, and a drill by this version needs schema {HEAD}.")


def _quiet(settings: Settings, home: Path, **changes: Any) -> Settings:
    """Return the settings of a store whose files lie in a scratch folder, and which tells nobody else of its work."""
    own = {"home": home, "memory_db": None, "journal_mirror": None, "chat_model": ""}
    return settings.model_copy(update=own | changes)


@contextmanager
def _stopping(report: _Report, name: str) -> Iterator[None]:
    """Let a fault of the backup that shows in this block end the drill as a check that is not well."""
    try:
        yield
    except (InvalidInput, StoreUnusable, DatabaseError) as error:
        report.add(name, str(getattr(error, "orig", error)).partition("\n")[0], "")
        raise _Stopped from None


def _compare(pair: _Pair, report: _Report, questions: int, undo: ExitStack) -> None:
    """Compare journal, rows and recalls of both stores, and let the doctor look at the copy."""
    with closing(_opened(pair.store)) as store, closing(_opened(pair.copy)) as copy:
        with report.timing("compare"), _stopping(report, "history"), copy.reading() as ours, store.reading() as theirs:
            report.counts = {name: count(ours, table) for name, table in _COUNTED.items()}
            _compare_rows(ours, theirs, pair.saved, report)
            drawn = _draw_questions(ours, questions)
        if pair.copy.database_url and pair.copy.chroma_url:
            undo.callback(_discard_index, pair.copy, report)
        with report.timing("doctor"), _stopping(report, "doctor"), open_app(pair.copy, background=False) as app:
            report.checks += [_for_backup(check) for check in app.checks(deep=True)]
        if not all(check.well for check in report.checks):
            return  # the answers of a damaged copy tell nothing more
        with report.timing("recall"), _stopping(report, "recall"), _both_apps(pair) as (first, second):
            report.recalls, wrong = _compare_recalls(first, second, drawn, lambda: _written_since(copy, store))
        _add_recalls(report, wrong)


def _for_backup(check: Check) -> Check:
    """Return a check of the doctor with advice about the backup, unless Chroma is away, which is no fault of it."""
    if check.well or check.seen.startswith(UNREADABLE):
        return check
    return replace(check, advice=_ADVICE)


def _discard_index(copy: Settings, report: _Report) -> None:
    """Remove the copy's collections from the Chroma server; a server that is away is a check that is not well."""
    try:
        discard_index(copy)
    except IndexBroken as error:
        seen = f"the collections of the scratch store could not be removed from Chroma: {error}"
        report.checks.append(Check("clean-up", False, seen, "Start Chroma, or correct RECOLLECT_CHROMA_URL."))


def _compare_rows(ours: Connection, theirs: Connection, saved: Digests | None, report: _Report) -> None:
    """Compare the journals, and where the tables are known as they were saved, every row."""
    history = comparison.compare_histories(ours, theirs)
    report.behind = history.behind
    foreign = ", ".join(history.foreign[:3])
    since = f"; {history.behind} lines were written since" if history.behind else ""
    report.add(
        "history",
        f"the journal of {foreign} is not the beginning of the store's: a backup of another store, or altered"
        if history.foreign
        else ""
        if report.counts["journal"] or not history.behind
        else "the backup is empty, and the store is not",
        f"its journal is the beginning of the store's{since}",
    )
    if saved is not None:
        differing = "; ".join(comparison.differing_tables(comparison.digest_tables(ours), saved)[:3])
        report.add("rows", differing, f"every row of {len(saved)} tables came back as it was")


def _opened(settings: Settings) -> Database:
    return open_server(settings.database_url) if settings.database_url else open_file(settings.database)


@contextmanager
def _both_apps(pair: _Pair) -> Iterator[tuple[App, App]]:
    """Open both stores with the same model and the same stopped clock, so that only what they hold can tell them apart.

    Neither has caught up with its vector index, so both scan the vectors of SQL: an approximate index
    could differ by itself, and the doctor has compared the copy's with SQL.
    """
    now = datetime.now(UTC)
    with (
        open_app(pair.store, background=False, clock=lambda: now) as first,
        open_app(pair.copy, background=False, clock=lambda: now, embedder=first.embedder) as second,
    ):
        yield first, second


def _draw_questions(copy: Connection, number: int) -> list[tuple[int, str, str, str]]:
    """Draw memories of the copy; return the id, the namespace, the author and the opening words of each."""
    columns = (tables.memory.c.id, tables.namespace.c.name, tables.memory.c.author, tables.memory.c.content)
    living = select(*columns).join(tables.namespace).where(alive(datetime.now(UTC)))
    rows = copy.execute(living.order_by(func.random()).limit(number))
    return [
        (number, name, author, " ".join(content.split()[:_OPENING_WORDS])[:200])
        for number, name, author, content in rows
    ]


def _compare_recalls(
    store: App,
    copy: App,
    drawn: Sequence[tuple[int, str, str, str]],
    written_since: Callable[[], set[str]],
) -> tuple[Recalls, list[int]]:
    """Put each question to both stores; return the figures, and the memories whose questions have other answers."""
    agreed, passed_over, wrong = 0, 0, list[int]()
    for number, namespace, author, words in drawn:
        kind, _, name = namespace.partition(":")
        team, _, project = name.partition("/")
        caller = Caller(
            user=name if kind == "user" else author or "drill",
            team=team if kind != "user" else "local",
            project=project or "drill",
        )
        query = Query(
            query=words, scope=_SCOPES[kind], limit=_LIMIT, min_score=0, allow_private=True, allow_secret=True
        )
        answers = [
            [(hit.memory.id, round(hit.score, 4)) for hit in recall_uncounted(app, query, caller).hits]
            for app in (store, copy)
        ]
        if answers[0] == answers[1]:
            agreed += 1
        elif namespace in written_since():
            passed_over += 1
        else:
            wrong.append(number)
    return Recalls(len(drawn), agreed, passed_over), wrong


def _written_since(copy: Database, store: Database) -> set[str]:
    """Return the namespaces to which somebody has written since the backup."""
    with copy.reading() as ours, store.reading() as theirs:
        known = comparison.last_lines(ours)
        return {name for name, last in comparison.last_lines(theirs).items() if known.get(name) != last}


def _add_recalls(report: _Report, wrong: Sequence[int]) -> None:
    recalls = report.recalls
    since = f"; {recalls.passed_over} were not compared, as somebody wrote meanwhile" if recalls.passed_over else ""
    seen = f"{recalls.agreed} of {recalls.asked} questions have the same answers{since}"
    named = ", ".join(map(str, wrong[:5]))
    fault = f"{len(wrong)} of {recalls.asked} questions have other answers, drawn from memories {named}"
    report.add("recall", fault if wrong else "", seen if recalls.asked else "the copy holds nothing to ask for")
