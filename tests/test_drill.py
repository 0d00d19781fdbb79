"""The drill of a backup: a sound one passes and leaves nothing behind; each kind of damage fails it with its reason."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import sqlite3
import subprocess
import threading
import uuid
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from postgres import Postgres
from recollect import Settings, backup
from recollect import drill as module
from recollect.domain.enums import Scope
from recollect.drill import Drill, drill
from recollect.errors import InvalidInput, StoreUnusable
from recollect.store.vectors.chroma import ChromaServer
from run_operations import OTHER, add, do
from stores import open_app

pytestmark = pytest.mark.slow

NOTES = (
    "The quokka of the harbour deploys the billing service on Fridays.",
    "Releases are cut from the main branch after the nightly tests.",
    "The staging database is reset every night at three.",
)

ALTERED = {
    "a memory": ("UPDATE memory SET content = 'Releases are never cut.' WHERE id = 2", "journal", "memory 2"),
    "a lost memory": (
        "DELETE FROM vector WHERE memory_id = 2; DELETE FROM memory WHERE id = 2",
        "journal",
        "memory 2",
    ),
    "a vector": (
        "UPDATE vector SET embedding = (SELECT embedding FROM vector WHERE memory_id = 1) WHERE memory_id = 2",
        "embeddings",
        "memory 2",
    ),
    "the journal": (
        "ALTER TABLE journal DISABLE TRIGGER USER; UPDATE journal SET actor = 'eve' WHERE id = 2",
        "journal",
        "line 2",
    ),
    "the end of the journal": (
        "ALTER TABLE journal DISABLE TRIGGER USER; UPDATE journal SET hash = repeat('1', 64) "
        "WHERE id = (SELECT max(id) FROM journal)",
        "history",
        "is not the beginning",
    ),
    "no store": ("DROP TABLE alembic_version", "restore", "is no store of Recollect"),
    "a newer store": ("UPDATE alembic_version SET version_num = '9999'", "restore", "schema 9999"),
}


def fill(settings: Settings) -> Settings:
    """Store some memories in several namespaces, one of them private."""
    with open_app(settings) as app:
        for note in NOTES:
            add(app, note)
        add(app, "Ada keeps her notes in a red book.", scope=Scope.PERSONAL, sensitivity="private", allow_private=True)
        add(app, "The heron has the keys of the release cupboard.", OTHER, scope=Scope.TEAM)
        app.vectors.sync()
    return settings


@pytest.fixture
def filled(settings: Settings) -> Settings:
    """Return the settings of a local store with memories."""
    return fill(settings)


@pytest.fixture
def served(deployed: Settings) -> Settings:
    """Return the settings of a store with memories on PostgreSQL and a Chroma server."""
    return fill(deployed)


def failing(done: Drill) -> dict[str, str]:
    """Return what is not well, by the name of its check."""
    return {check.name: check.seen for check in done.checks if not check.well}


# A local store


def test_a_sound_backup_passes_and_leaves_nothing(filled: Settings) -> None:
    """The drill makes a backup, restores it, finds every row and every answer again, and removes what it made."""
    before = {path.name: path.read_bytes() for path in filled.folder.iterdir() if path.is_file()}
    done = drill(filled)
    assert failing(done) == {}
    assert done.well
    assert {check.name for check in done.checks} >= {
        "history",
        "rows",
        "recall",
        "journal",
        "embeddings",
        "vector index",
    }
    assert done.counts == {"memories": 5, "vectors": 5, "journal": 5}
    assert (done.recalls.asked, done.recalls.agreed, done.behind) == (5, 5, 0)
    assert done.sizes.keys() == {"backup", "restored"}
    assert done.seconds.keys() == {"backup", "restore", "compare", "recall", "doctor"}
    after = {path.name: path.read_bytes() for path in filled.folder.iterdir() if path.is_file()}
    assert after == before
    assert not list(filled.folder.glob(".recollect-*"))


def test_an_older_backup_passes_and_the_lines_since_are_counted(filled: Settings, tmp_path: Path) -> None:
    """A backup that was made before further writes is a beginning of the store, and the drill tells how far behind."""
    backup(tmp_path / "saved.zip", filled)
    with open_app(filled) as app:
        for number in range(3):
            add(app, f"Written since the backup, number {number}: the quokka moved to pier {number}.")
    done = drill(filled, tmp_path / "saved.zip")
    assert failing(done) == {}
    assert (done.behind, done.counts["memories"]) == (3, 5)
    assert done.recalls.agreed + done.recalls.passed_over == done.recalls.asked == 5


def test_the_store_is_drilled_while_its_owner_writes(filled: Settings) -> None:
    """An open store that is written during the drill passes: both copies are of one instant."""
    stop = threading.Event()
    with open_app(filled) as app:

        def write() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                add(app, f"Note {number} of the busy writer about harbour {number}.")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            done = drill(filled)
        finally:
            stop.set()
            writer.join()
    assert failing(done) == {}
    assert done.recalls.agreed == done.recalls.asked


def edited(saved: Path, sql: str) -> None:
    """Change the database in a backup by SQL, and its manifest so that it agrees."""
    with zipfile.ZipFile(saved) as packed:
        manifest = json.loads(packed.read("manifest.json"))
        database = packed.read("memory.db")
    file = saved.with_name("edited.db")
    file.write_bytes(database)
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(sql)
        connection.execute("PRAGMA journal_mode=DELETE")
    database = file.read_bytes()
    manifest |= {"sha256": hashlib.sha256(database).hexdigest(), "size": len(database)}
    with zipfile.ZipFile(saved, "w") as packed:
        packed.writestr("manifest.json", json.dumps(manifest))
        packed.writestr("memory.db", database)


def flip(saved: Path) -> None:
    """Change one byte in the middle."""
    data = bytearray(saved.read_bytes())
    data[len(data) // 2] ^= 0xFF
    saved.write_bytes(data)


DAMAGE: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "cut": (lambda saved: saved.write_bytes(saved.read_bytes()[:-500]), "restore", "cannot be read"),
    "flipped": (flip, "restore", "cannot be read|not the one that was saved"),
    "empty": (lambda saved: saved.write_bytes(b""), "restore", "cannot be read"),
    "edited": (
        lambda saved: edited(saved, "UPDATE memory SET trust = 1.0 WHERE id = 2"),
        "restore",
        "memory 2 was changed",
    ),
    "other vectors": (
        lambda saved: edited(
            saved,
            "UPDATE vector SET embedding = (SELECT embedding FROM vector WHERE memory_id = 1) WHERE memory_id = 2",
        ),
        "embeddings",
        "vectors of memory 2",
    ),
    "fewer words": (lambda saved: edited(saved, "DELETE FROM word"), "vocabulary", "do not agree"),
}


@pytest.mark.full_cases("empty", "fewer words")
@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_backup_fails_with_its_reason(filled: Settings, tmp_path: Path, kind: str) -> None:
    """The check that fails names what is wrong with the file, also where the manifest agrees with the damage."""
    damage, name, reason = DAMAGE[kind]
    saved = tmp_path / "saved.zip"
    backup(saved, filled)
    damage(saved)
    done = drill(filled, saved)
    assert not done.well
    assert re.search(reason, failing(done)[name]), failing(done)
    assert not list(filled.folder.glob(".recollect-*"))


def test_a_backup_of_another_store_fails(filled: Settings, tmp_path: Path) -> None:
    """A whole backup of other memories, and that of an empty store, are not taken for one of this store."""
    other = filled.model_copy(update={"home": tmp_path / "other"})
    with open_app(other):
        backup(tmp_path / "empty.zip", other)
    fill(other)
    backup(tmp_path / "other.zip", other)
    assert "backup of another store" in failing(drill(filled, tmp_path / "other.zip"))["history"]
    assert "the backup is empty" in failing(drill(filled, tmp_path / "empty.zip"))["history"]


def test_answers_that_differ_are_named(filled: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the restored store answers otherwise, though nobody has written, the memories asked for are named."""
    real = module.recall_uncounted
    seen: list[int] = []

    def forgetful(app: Any, query: Any, caller: Any) -> Any:
        answer = real(app, query, caller)
        seen.append(len(seen))
        return replace(answer, hits=answer.hits[1:]) if len(seen) % 2 == 0 else answer

    monkeypatch.setattr(module, "recall_uncounted", forgetful)
    done = drill(filled, questions=3)
    assert "3 of 3 questions have other answers, drawn from memories " in failing(done)["recall"]


def test_a_damaged_store_is_found_by_its_drill(filled: Settings) -> None:
    """A store that cannot be backed up fails at that step, and says why."""
    with closing(sqlite3.connect(filled.database)) as connection, connection:
        connection.execute("UPDATE memory SET trust = 1.0 WHERE id = 2")
    assert "memory 2 was changed" in failing(drill(filled))["backup"]


def test_what_cannot_be_drilled_is_an_error(filled: Settings, tmp_path: Path) -> None:
    """A file that is absent, a contradiction and a store that is absent are errors before anything is made."""
    with pytest.raises(InvalidInput, match="There is no backup"):
        drill(filled, tmp_path / "nothing.zip")
    with pytest.raises(InvalidInput, match="--restored compares two PostgreSQL databases"):
        drill(filled, restored=True)
    with pytest.raises(InvalidInput, match="not both"):
        drill(filled, filled.database, restored=True)
    nowhere = filled.model_copy(update={"home": tmp_path / "nowhere"})
    with pytest.raises(StoreUnusable, match="There is no store at"):
        drill(nowhere)


# A store on servers


def databases(url: str) -> set[str]:
    """Return the names of the scratch databases on a server."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'recollect_drill_%'")
        return {row[0] for row in rows}


def collections(url: str) -> set[str]:
    """Return the names of the collections on a Chroma server."""
    server = ChromaServer(url, "m", "x")
    with closing(server):
        return {one.name for one in server.open().list_collections()}


def test_a_deployment_is_drilled(served: Settings) -> None:
    """The dump comes back into a database of its own with Chroma collections of its own, and both are removed."""
    before = collections(served.chroma_url)
    done = drill(served)
    assert failing(done) == {}
    assert {check.name for check in done.checks} >= {"history", "rows", "recall", "journal", "vector index"}
    assert (done.recalls.asked, done.recalls.agreed) == (5, 5)
    assert done.counts == {"memories": 5, "vectors": 5, "journal": 5}
    assert databases(served.database_url) == set()
    assert collections(served.chroma_url) == before != set()


def test_a_deployment_is_drilled_while_others_write(served: Settings) -> None:
    """Dump and digests are of one snapshot; questions about what was written since are not counted as differences."""
    stop = threading.Event()
    with open_app(served) as app:

        def write() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                add(app, f"Note {number} of the busy writer about harbour {number}.")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            done = drill(served)
        finally:
            stop.set()
            writer.join()
    assert failing(done) == {}
    assert done.behind > 0
    assert done.recalls.agreed + done.recalls.passed_over == done.recalls.asked


def test_without_chroma_the_drill_still_reports(served: Settings) -> None:
    """A Chroma server that is away fails its checks with its own advice, and the scratch database still goes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        away = served.model_copy(update={"chroma_url": f"http://127.0.0.1:{free.getsockname()[1]}"})
    done = drill(away)
    assert failing(done).keys() >= {"vector index", "clean-up"}
    assert all("Start Chroma" in check.advice for check in done.checks if check.name in ("vector index", "clean-up"))
    assert databases(served.database_url) == set()


@pytest.fixture
def dumped(served: Settings, tmp_path: Path) -> Path:
    """Return a dump of the deployment."""
    file = tmp_path / "saved.dump"
    command = ["pg_dump", "--format=custom", "--no-owner", f"--file={file}", f"--dbname={served.database_url}"]
    subprocess.run(command, check=True)
    return file


def test_an_older_dump_passes(served: Settings, dumped: Path) -> None:
    """A dump of earlier is compared as a beginning of the store."""
    with open_app(served) as app:
        add(app, "Written since the dump: the quokka moved to pier nine.")
    done = drill(served, dumped)
    assert failing(done) == {}
    assert done.behind == 1


@pytest.mark.parametrize("kind", ["cut", "no dump"])
def test_a_damaged_dump_fails_at_the_restore(served: Settings, dumped: Path, kind: str) -> None:
    """What `pg_restore` refuses is a check that is not well with its reason, and the scratch database goes."""
    dumped.write_bytes(dumped.read_bytes()[:-3000] if kind == "cut" else b"no dump at all")
    done = drill(served, dumped)
    assert "pg_restore: error: " in failing(done)["restore"]
    assert databases(served.database_url) == set()


@pytest.fixture
def restored(served: Settings, dumped: Path, postgres: Postgres) -> Iterator[Settings]:
    """Return settings that also name a database into which somebody has restored the dump."""
    url = postgres.create()
    subprocess.run(["pg_restore", "--exit-on-error", "--no-owner", f"--dbname={url}", str(dumped)], check=True)
    yield served.model_copy(update={"drill_database_url": url})
    postgres.drop(url)


def test_a_database_that_somebody_restored_is_compared(restored: Settings) -> None:
    """With `restored` nothing is dumped; that database is compared and stays, and its collections are removed."""
    before = collections(restored.chroma_url)
    done = drill(restored, restored=True)
    assert failing(done) == {}
    assert (done.recalls.agreed, done.counts["memories"]) == (5, 5)
    assert collections(restored.chroma_url) == before
    with psycopg.connect(restored.drill_database_url) as connection:
        assert connection.execute("SELECT count(*) FROM memory").fetchone() == (5,)


@pytest.mark.full_cases("a lost memory", "the journal", "a newer store")
@pytest.mark.parametrize("kind", ALTERED)
def test_a_restored_database_that_differs_fails(restored: Settings, kind: str) -> None:
    """Whatever a restore has lost or somebody has changed in the copy, a check says so."""
    sql, name, reason = ALTERED[kind]
    with psycopg.connect(restored.drill_database_url) as connection:
        connection.execute(sql)  # type: ignore[arg-type]
    done = drill(restored, restored=True)
    assert reason in failing(done)[name], failing(done)


def test_the_store_itself_is_never_taken_for_its_copy(served: Settings) -> None:
    """An address of the store as that of the copy is refused."""
    same = served.model_copy(update={"drill_database_url": served.database_url})
    with pytest.raises(InvalidInput, match="names the store itself"):
        drill(same, restored=True)


def test_a_role_that_may_make_no_database_is_told_what_to_do(
    deployed: Settings, postgres: Postgres, postgres_url: str
) -> None:
    """Without the right to make a database the error names both ways on."""
    role, name = f"drill_{uuid.uuid4().hex[:8]}", psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")  # type: ignore[arg-type]
        connection.execute(f"ALTER DATABASE {name} OWNER TO {role}")  # type: ignore[arg-type]
        try:
            poor = deployed.model_copy(update={"database_url": postgres_url.replace("//postgres@", f"//{role}@")})
            with open_app(poor) as app:
                do(app, "stats")
            with pytest.raises(StoreUnusable, match=r"CREATEDB.*--restored"):
                drill(poor)
        finally:
            connection.execute(f"REASSIGN OWNED BY {role} TO postgres")  # type: ignore[arg-type]
            connection.execute(f"DROP ROLE {role}")  # type: ignore[arg-type]


def test_without_the_programs_of_postgresql_the_error_names_them(
    served: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where `pg_dump` is not installed, the sentence says what to install, or how to do without."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(StoreUnusable, match=r"`pg_dump` is not installed here.*--restored"):
        drill(served)
