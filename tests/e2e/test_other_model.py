"""A store knows its model: another one is an error that names the way out, and the way out works."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from callers import ADA
from daemon_place import Place, kill, until
from recollect import Draft, Settings, remember
from recollect.errors import ModelMismatch, ModelUnusable, RecollectError
from second_model import NAME, second_model
from stores import lay, open_app

MISMATCH = 7
MODEL = "notes-MiniLM-L6-v2"


@pytest.mark.full
def test_a_daemon_serves_no_client_of_another_model(place: Place, tiny_model: Path) -> None:
    """A client that is set to another model is told so by the daemon, and nothing is mixed."""
    place.remember("the build server is called Otto")
    other = place.changed(model=str(tiny_model))
    said = other.cli("recall", "build server", code=MISMATCH)
    assert "recollect reindex" in said
    assert "notes-MiniLM-L6-v2" in said
    assert "Otto" in place.cli("recall", "build server")


@pytest.mark.full
def test_reindex_moves_a_store_to_another_model(make_place: Callable[..., Place], tiny_model: Path) -> None:
    """Another model cannot open the store until reindex has embedded everything with it; then the first one cannot."""
    place = make_place(daemon=False)
    place.cli("remember", "the build server is called Otto")
    other = place.changed(model=str(tiny_model))
    assert "recollect reindex" in other.cli("recall", "build server", code=MISMATCH)
    assert other.json("reindex") == {"memories": 1}
    assert "Otto" in other.cli("recall", "what is the machine that compiles named?", "--min-score", "0")
    assert other.json("doctor")
    assert "recollect reindex" in place.cli("recall", "build server", code=MISMATCH)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Path:
    """Return the data folder of a store with some memories, to be copied."""
    home = tmp_path_factory.mktemp("filled") / "home"
    lay(migrated, home)
    with open_app(Settings(home=home, daemon=False)) as app:
        for number in range(80):
            content = f"Page {number} of the log: the build server number {number} is called Otto {number}"
            remember(app, Draft(content=content), ADA)
        app.vectors.sync()
    return home


def test_a_daemon_serves_a_store_of_an_older_version(
    make_place: Callable[..., Place], filled: Path, tmp_path: Path
) -> None:
    """A daemon that finds vectors of an older version of its model answers at once, and embeds everything anew."""
    home = tmp_path / "older"
    shutil.copytree(filled, home)
    with closing(sqlite3.connect(home / "memory.db")) as database, database:
        database.execute("UPDATE store_metadata SET value = 'older' WHERE name = 'revision'")
        database.execute("UPDATE vector SET embedding = zeroblob(length(embedding))")
    place = make_place(home)
    assert any("Otto 33" in content for content in place.recall("who is Otto 33?"))
    assert "has a newer version" in place.logs()
    until(place.well)
    assert place.rows("SELECT count(*) FROM vector WHERE embedding != zeroblob(length(embedding))") == [(80,)]
    place.kill()
    assert any("Otto 33" in content for content in place.recall("who is Otto 33?"))
    until(place.well)


@pytest.fixture
def prompted(make_place: Callable[..., Place], filled: Path, tmp_path: Path) -> Place:
    """Return a place with some memories where the second model is configured; a daemon of the first serves there."""
    home = tmp_path / "filled"
    shutil.copytree(filled, home)
    first = make_place(home)
    first.pid()
    return first.changed(model=NAME, models_dir=second_model(tmp_path / "models"))


class Asking(threading.Thread):
    """Asks a daemon without end, until it is told that the store has another model."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.link = place.link()
        self.answers: list[list[str]] = []
        self.end: RecollectError | None = None

    def run(self) -> None:
        """Ask."""
        try:
            while True:
                found = self.link.operation("recall", {"query": "build server number 7", "min_score": 0.0})
                self.answers.append([hit["memory"]["content"] for hit in found["hits"]])
        except RecollectError as error:
            self.end = error


@pytest.mark.full
def test_a_daemon_answers_while_its_store_moves(prompted: Place) -> None:
    """Clients of the old model are answered until the store has moved, then told so; the new model serves at once."""
    place = prompted.changed(model=MODEL, models_dir=None)
    before, asking = place.pid(), Asking(place)
    asking.start()
    assert prompted.json("reindex") == {"memories": 80}
    asking.join()
    assert isinstance(asking.end, ModelMismatch)
    assert len(asking.answers) > 10
    assert all(any("number 7 " in content for content in answer) for answer in asking.answers)
    assert any("Otto 33" in content for content in prompted.recall("who is Otto 33?"))
    assert prompted.pid() != before
    until(prompted.well)
    assert "recollect reindex" in place.cli("recall", "build server", code=MISMATCH)


@pytest.mark.full
def test_a_daemon_that_dies_while_it_moves(prompted: Place) -> None:
    """When the daemon is killed in the midst of it, the command that waits for it finishes the work itself."""
    moving = prompted.begin("reindex", "--json")
    until(lambda: prompted.rows("SELECT * FROM vector_shadow LIMIT 1"))
    prompted.kill()
    said, complaint = moving.communicate()
    assert moving.returncode == 0, complaint
    assert json.loads(said) == {"memories": 80}
    until(prompted.well)


@pytest.mark.full
def test_a_command_that_dies_stops_nothing(prompted: Place) -> None:
    """When the command is killed the daemon goes on, and the command typed again waits for the end of it."""
    moving = prompted.begin("reindex")
    until(lambda: prompted.rows("SELECT * FROM vector_shadow LIMIT 1"))
    kill(moving.pid)
    moving.communicate()
    assert prompted.json("reindex") == {"memories": 80}
    until(prompted.well)


@pytest.mark.full
def test_a_daemon_refuses_what_it_cannot_load(place: Place) -> None:
    """A model that is not there is said by the daemon, which goes on as it was."""
    place.remember("the build server is called Otto")
    pid = place.pid()
    assert "no-such-model" in place.cli("reindex", "--model", "./no-such-model", code=ModelUnusable.exit_code)
    assert "Otto" in place.cli("recall", "build server")
    assert place.pid() == pid


@pytest.mark.full
def test_reindex_with_the_same_model_keeps_the_daemon(place: Place) -> None:
    """Everything can be embedded anew in the daemon that serves it, which stays."""
    for number in range(20):
        place.remember(f"the build server number {number} is called Otto {number}")
    pid = place.pid()
    assert place.json("reindex", "--all") == {"memories": 20}
    assert place.json("reindex") == {"memories": 20}
    assert place.pid() == pid
    assert any("Otto 7" in content for content in place.recall("who is Otto 7?"))
    until(place.well)


@pytest.mark.full
def test_a_backup_is_made_beside_the_daemon_and_restored_in_its_place(place: Place, tmp_path: Path) -> None:
    """The daemon goes on while a backup is made; it ends for a restore, and the next one serves what was saved."""
    place.remember("the build server is called Otto")
    pid, file = place.pid(), str(tmp_path / "saved.zip")
    place.cli("backup", "create", file)
    assert place.pid() == pid
    place.remember("the build server is called Emil now")
    place.cli("restore", file, code=2)
    assert place.pid() == pid
    assert place.json("restore", file, "--force")["counts"]["memories"] == 1
    assert not any("Emil" in content for content in place.recall("build server"))
    assert place.pid() != pid
    until(place.well)
