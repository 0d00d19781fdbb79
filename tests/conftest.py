"""What every test may ask for: a real store in a folder of its own, a real PostgreSQL, a clock that obeys.

With `CI=true` a skipped test is a failed one. Temporary folders lie in memory where the machine has enough of it.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from types import ModuleType

import psycopg
import pytest

import tiny_model as tiny_model_files
from chroma_process import ChromaProcess
from clock import Clock
from pgbouncer import PgBouncer
from places import SCRIPTS, TESTS
from postgres import ADDRESS, Postgres
from postgres_cluster import with_pgvector
from recollect import App, Settings
from statement_cache import share
from stores import lay, make_migrated, open_app

PROCESSES = ("docs", "e2e", "scripts")
MEMORY = Path("/dev/shm")
ENOUGH = 2**30  # bytes: a whole run leaves less behind at any time


def pytest_configure() -> None:
    """Put temporary folders in memory; they go when their test has passed. Compile each statement once a process."""
    share()
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="one case of each test that starts no process and is not slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Let `--fast` not even read the folders whose tests start processes, nor slow files."""
    if not config.option.fast or not collection_path.is_relative_to(TESTS):
        return None
    slow = collection_path.suffix == ".py" and "pytestmark = pytest.mark.slow" in collection_path.read_text("utf-8")
    return True if slow or collection_path.name in PROCESSES else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the cases that are named as `full`, and deal files that wait for processes among those that compute."""
    named, there = set[tuple[str, str]](), set[tuple[str, str]]()
    for item in items:
        test, _, case = item.nodeid.removesuffix("]").partition("[")
        cases = [name for mark in item.iter_markers("full_cases") for name in mark.args]
        named |= {(test, name) for name in cases}
        there.add((test, case))
        if case in cases:
            item.add_marker(pytest.mark.full)
    if named - there and not any("::" in argument for argument in config.args):
        raise pytest.UsageError(f"full_cases names cases that do not exist: {sorted(named - there)}")
    if config.option.fast:
        items[:] = _fast(items)
    by_file: dict[Path, list[pytest.Item]] = {}
    for item in items:
        by_file.setdefault(item.path, []).append(item)
    waiting = [file for file in by_file if file.parent.name == "e2e"]
    computing = [file for file in reversed(by_file) if file.parent.name != "e2e"]
    order = [file for pair in zip_longest(waiting, computing) for file in pair if file is not None]
    items[:] = [item for file in order for item in by_file[file]]


def _fast(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return one case of each test."""
    chosen = dict[str, pytest.Item]()
    for item in items:
        if not any(item.iter_markers("full")):
            chosen.setdefault(item.nodeid.partition("[")[0], item)
    return [*chosen.values()]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Let no test be skipped where nobody would see it."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty database file at the newest revision, to be copied."""
    return make_migrated(tmp_path_factory.mktemp("migrated") / "memory.db")


@pytest.fixture
def unused_settings(tmp_path: Path) -> Settings:
    """Return settings of a store whose folder is not even there, which each process opens itself."""
    return Settings(home=tmp_path / "home", user="ada", team="crew", project="engine", daemon=False)


@pytest.fixture
def settings(unused_settings: Settings, migrated: Path) -> Settings:
    """Return settings of a store nobody has used, whose tables are made."""
    lay(migrated, unused_settings.folder)
    return unused_settings


@pytest.fixture
def environment(settings: Settings) -> dict[str, str]:
    """Return the environment of a process of ours that works on the same store."""
    ours = {f"RECOLLECT_{name.upper()}": str(value) for name, value in settings.model_dump(exclude_none=True).items()}
    return {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")} | ours


@pytest.fixture
def open_store(settings: Settings, clock: Clock) -> Iterator[Callable[..., App]]:
    """Return a function that opens stores, which are closed when the test ends; without `background` no thread runs."""
    opened: list[App] = []

    def opening(*, background: bool = False, **changes: object) -> App:
        app = open_app(settings.model_copy(update=changes), background=background, clock=clock)
        opened.append(app)
        return app

    yield opening
    for app in opened:
        app.close()


@pytest.fixture
def app(open_store: Callable[..., App]) -> App:
    """Return an open store with the real model, vectors and text index."""
    return open_store()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Return the real PostgreSQL, where every database that tests made is dropped at the end."""
    server = Postgres(ADDRESS)
    yield server
    server.close()


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """Return the address of a database of this test's own in which nothing stands."""
    url = postgres.create()
    yield url
    postgres.drop(url)


@pytest.fixture
def migrated_postgres_url(postgres: Postgres) -> Iterator[str]:
    """Return the address of a database at the newest revision, which nobody else uses meanwhile."""
    with postgres.migrated() as url:
        yield url


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Return a function that imports one of our scripts, which is forgotten when the test ends."""
    monkeypatch.syspath_prepend(SCRIPTS)
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "").is_relative_to(SCRIPTS):
            del sys.modules[name]


@pytest.fixture(scope="session")
def pgbouncer() -> Iterator[PgBouncer]:
    """Return a real PgBouncer in transaction mode before the real PostgreSQL."""
    pooler = PgBouncer(ADDRESS)
    yield pooler
    pooler.close()


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a model that sentence-transformers serves; it has no card."""
    return tiny_model_files.build(tmp_path_factory.mktemp("models") / "tiny-polyglot")


@pytest.fixture(scope="session")
def chroma_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaProcess]:
    """Return a real Chroma server that the tests of one process share; whoever kills it starts it again."""
    process = ChromaProcess(tmp_path_factory.mktemp("chroma"))
    process.start()
    yield process
    process.kill()


@pytest.fixture(scope="session")
def pgvector() -> Iterator[Postgres]:
    """Return a real PostgreSQL in whose databases the extension pgvector may be made."""
    cluster = with_pgvector()
    server = Postgres(cluster.url)
    yield server
    server.close()
    cluster.close()


@pytest.fixture
def migrated_pgvector_url(pgvector: Postgres) -> Iterator[str]:
    """Return the address of a database at the newest revision, in which no vectors are."""
    with pgvector.migrated() as url:
        yield url
        with psycopg.connect(url) as connection:
            connection.execute("DROP SCHEMA IF EXISTS public_vectors CASCADE")


@pytest.fixture
def deployed(unused_settings: Settings, migrated_postgres_url: str, chroma_process: ChromaProcess) -> Settings:
    """Return settings of a deployment: a real PostgreSQL and a real Chroma server."""
    changes = {"database_url": migrated_postgres_url, "chroma_url": chroma_process.url}
    return unused_settings.model_copy(update=changes)
