"""A deployment comes back from a dump of its database alone: another one, or the same as it was before."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chroma_process import ChromaProcess
from places import DOCS
from postgres import Postgres
from postgres_cluster import Cluster
from recollect import App, Settings
from recollect.store.sql.database import open_server
from recollect.store.sql.migrations import HEAD, migrate, revision
from run_operations import add, do, ill
from stores import open_app

pytestmark = pytest.mark.slow

TOLD = (
    "The quokka of the harbour deploys the billing service on Fridays.",
    "Releases are cut from the main branch after the nightly tests.",
    "The staging database is reset every night at three.",
)
ASKED = ("who ships invoices before the weekend?", "quokka", "relases main branch", "when is test data wiped?")
Opening = Callable[[Settings], App]


@pytest.fixture
def opening(clock: Any) -> Iterator[Opening]:
    """Return a function that opens one more replica, whose index is as the database says."""
    opened: list[App] = []

    def one_more(settings: Settings) -> App:
        opened.append(open_app(settings, clock=clock))
        opened[-1].vectors.sync()
        return opened[-1]

    yield one_more
    for one in opened:
        one.close()


def dump(url: str, file: Path) -> None:
    """Dump a database as docs/deploy.md says."""
    subprocess.run(["pg_dump", "--format=custom", "--no-owner", f"--file={file}", f"--dbname={url}"], check=True)


def restore(file: Path, url: str) -> None:
    """Restore a dump into an empty database as docs/deploy.md says."""
    command = ["pg_restore", "--exit-on-error", "--single-transaction", "--no-owner", f"--dbname={url}", str(file)]
    subprocess.run(command, check=True)
    subprocess.run(["psql", "--quiet", "--command=ANALYZE", f"--dbname={url}"], check=True)


def answers(app: App) -> list[list[tuple[int, float]]]:
    """Return what recall finds for each question, with its score."""
    return [[(hit.memory.id, hit.score) for hit in do(app, "recall", query=one).hits] for one in ASKED]


def test_a_dump_and_an_empty_chroma_are_the_deployment(
    deployed: Settings, opening: Opening, postgres: Postgres, tmp_path: Path
) -> None:
    """A dump restored elsewhere, beside a new Chroma, answers each question as before, and its journal is whole."""
    first = opening(deployed)
    for one in TOLD:
        add(first, one)
    dump(deployed.database_url, tmp_path / "dump")
    chroma, url = ChromaProcess(tmp_path / "chroma"), postgres.create()
    chroma.start()
    try:
        restore(tmp_path / "dump", url)
        second = opening(deployed.model_copy(update={"database_url": url, "chroma_url": chroma.url}))
        assert answers(second) == answers(first)
        assert [ill(first), ill(second)] == [[], []]
        assert second.vectors.state == "ready"
        second.close()
    finally:
        chroma.kill()
        postgres.drop(url)


def test_a_chroma_that_is_ahead_of_the_database_is_brought_back(
    deployed: Settings, opening: Opening, postgres: Postgres, tmp_path: Path
) -> None:
    """After a return to an earlier instant the vectors of what was written since are gone, though ids come again."""
    first = opening(deployed)
    for one in TOLD:
        add(first, one)
    dump(deployed.database_url, tmp_path / "dump")
    lost = add(first, "The lighthouse keeper signs every invoice with green ink.")
    first.vectors.sync()
    first.close()
    url = postgres.create()
    try:
        restore(tmp_path / "dump", url)
        again = opening(deployed.model_copy(update={"database_url": url}))
        assert ill(again) == []
        assert add(again, "Parcels leave the warehouse by bicycle.") == lost
        again.vectors.sync()
        assert ill(again) == []
        assert lost not in {hit.memory.id for hit in do(again, "recall", query="lighthouse keeper's green ink").hits}
        again.close()
    finally:
        postgres.drop(url)


def test_the_recipe_for_servers_of_your_own_works(tmp_path: Path) -> None:
    """The blocks of the page run as they stand, with a role that owns its database and may do nothing else."""
    page = (DOCS / "deploy" / "upkeep.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(export RECOLLECT_DATABASE_URL=.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    cluster = Cluster()
    cluster.start()
    try:
        here = os.environ | {"PGHOST": "127.0.0.1", "PGPORT": str(cluster.port)}
        made = ["createuser --username=postgres recollect", "createdb --username=postgres --owner=recollect recollect"]
        for command in made:
            subprocess.run(command.split(), env=here, check=True)
        url = f"postgresql://recollect@127.0.0.1:{cluster.port}/recollect"
        _migrated(url)
        for block in blocks:
            lines = [line for line in block.splitlines() if not line.startswith("recollect ")]
            script = "\n".join(["set -eu", *lines]).replace("127.0.0.1:5432", f"127.0.0.1:{cluster.port}")
            subprocess.run(["bash", "-c", script], cwd=tmp_path, env=here, check=True, capture_output=True)
        _migrated(url)
        analyzed = "SELECT count(*) FROM pg_stat_user_tables WHERE last_analyze IS NOT NULL"
        counted = ["psql", "--tuples-only", f"--command={analyzed}", f"--dbname={url}"]
        assert int(subprocess.run(counted, capture_output=True, text=True, check=True).stdout) > 10
    finally:
        cluster.close()


def _migrated(url: str) -> None:
    """Make the tables where there are none."""
    database = open_server(url)
    migrate(database)
    assert revision(database) == HEAD
    database.close()
