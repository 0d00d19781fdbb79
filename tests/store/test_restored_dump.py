"""A deployment comes back from a dump of its database alone: another one, or the same as it was before."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chroma_process import ChromaProcess
from postgres import Postgres
from recollect import App, Settings
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
