"""Backup and restore: one file as of one instant while others write; a file that is not whole changes nothing."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from entries import direction
from places import TESTS
from recollect.errors import InvalidInput, StoreOwned, StoreUnusable
from recollect.store import kept_files
from recollect.store.backup import MANIFEST, Manifest, backup, restore
from recollect.store.store_lock import held, own

pytestmark = pytest.mark.slow

HERE = "project:crew/engine"
MODEL = {"model": "acme/hash", "revision": "1", "dimensions": "16"}
WRITER = """
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from entries import make_entry
from recollect.store.sql.database import open_file
from recollect.store.sql.records import Records

with closing(open_file(Path(sys.argv[1]))) as database:
    records = Records(database, lambda: datetime.now(UTC), lambda: None)
    for number in range(1_000_000):
        with records.writing("project:crew/engine", "ada") as transaction:
            left = transaction.memories.insert(make_entry(f"left half of pair {number}", chunks=2))
            right = transaction.memories.insert(make_entry(f"right half of pair {number}", chunks=2))
        print(left, right, flush=True)
"""


@pytest.fixture
def filled(parts: Any) -> Any:
    """Return an open store with some memories, a deleted one among them."""
    parts.records.stamps.set(MODEL)
    ids = [parts.add(f"fact {number}", key=f"k{number}", chunks=2) for number in range(30)]
    parts.delete(ids[4])
    parts.vectors.sync()
    return parts


@pytest.fixture
def saved(filled: Any, tmp_path: Path) -> Path:
    """Return a backup of it; the store itself is closed."""
    backup(filled.folder / "memory.db", tmp_path / "saved.zip")
    filled.close()
    return tmp_path / "saved.zip"


def dump(folder: Path) -> dict[str, list[Any]]:
    """Return every row of every ordinary table."""
    with closing(sqlite3.connect(folder / "memory.db")) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: database.execute(f'SELECT * FROM "{name}" ORDER BY 1').fetchall() for name in names}


def content(folder: Path) -> dict[str, bytes]:
    """Return every file of a store by its name, SQLite's shared memory and the lock aside."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".db-shm", ".lock")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def repacked(file: Path, target: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Write the backup again with other members."""
    with zipfile.ZipFile(file) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    change(members)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return target


def edited(change: str, *, honest: bool = True) -> Callable[[dict[str, bytes]], None]:
    """Return what changes the database in a backup by SQL, and its SHA-256 in the manifest too when `honest`."""

    def edit(members: dict[str, bytes]) -> None:
        with closing(sqlite3.connect(":memory:")) as database:
            rollback = bytearray(members["memory.db"])
            rollback[18:20] = b"\1\1"  # a database in memory knows no write-ahead log
            database.deserialize(bytes(rollback))
            database.executescript(change)
            members["memory.db"] = database.serialize()
        if honest:
            manifest = json.loads(members[MANIFEST])
            manifest["sha256"] = hashlib.sha256(members["memory.db"]).hexdigest()
            manifest["size"] = len(members["memory.db"])
            members[MANIFEST] = json.dumps(manifest).encode()

    return edit


def manifested(**changes: Any) -> Callable[[dict[str, bytes]], None]:
    """Return what changes the manifest."""

    def edit(members: dict[str, bytes]) -> None:
        members[MANIFEST] = json.dumps(json.loads(members[MANIFEST]) | changes).encode()

    return edit


def test_a_backup_says_what_it_holds(filled: Any, tmp_path: Path) -> None:
    """The manifest has the schema, the model, the counts and the hash of the database; others may not read the file."""
    file = tmp_path / "deeper" / "saved.zip"
    file.parent.mkdir()
    manifest = backup(filled.folder / "memory.db", file)
    assert manifest.model == MODEL
    assert manifest.counts == {"memories": 29, "vectors": 58, "journal": 31}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with zipfile.ZipFile(file) as packed:
        assert set(packed.namelist()) == {"memory.db", MANIFEST}
        assert Manifest(**json.loads(packed.read(MANIFEST))) == manifest
        assert hashlib.sha256(packed.read("memory.db")).hexdigest() == manifest.sha256
    assert [path.name for path in file.parent.iterdir()] == ["saved.zip"]


def test_a_file_is_not_overwritten_unasked(filled: Any, tmp_path: Path) -> None:
    """What stands there already stays, unless it is to be overwritten."""
    file = tmp_path / "saved.zip"
    file.write_text("something dear", encoding="utf-8")
    with pytest.raises(InvalidInput, match="--force"):
        backup(filled.folder / "memory.db", file)
    assert file.read_text(encoding="utf-8") == "something dear"
    assert backup(filled.folder / "memory.db", file, force=True).counts["memories"] == 29
    assert zipfile.is_zipfile(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
def test_a_backup_never_takes_the_place_of_the_store(filled: Any, end: str) -> None:
    """Whoever names one of the store's own files gets an error, even with force, and the store is as it was."""
    file = filled.folder / f"memory.db{end}"
    before = filled.rows("SELECT id, content FROM memory")
    with pytest.raises(InvalidInput, match="is the store itself"):
        backup(filled.folder / "memory.db", file, force=True)
    assert filled.rows("SELECT id, content FROM memory") == before
    assert filled.checks() == {}


def test_what_cannot_be_saved_is_said(filled: Any, tmp_path: Path) -> None:
    """Where there is no store, or none can be written, a sentence says so and no file is left."""
    with pytest.raises(StoreUnusable, match="no store at"):
        backup(tmp_path / "nowhere" / "memory.db", tmp_path / "saved.zip")
    with pytest.raises(StoreUnusable, match="cannot be written"):
        backup(filled.folder / "memory.db", Path("/proc/saved.zip"))
    assert not (tmp_path / "nowhere").exists()
    assert list(tmp_path.glob("*.zip")) == []


@pytest.fixture
def writer(filled: Any) -> Iterator[subprocess.Popen[str]]:
    """Return another process that stores pairs, two memories in one transaction, without end."""
    command = [sys.executable, "-c", WRITER, str(filled.folder / "memory.db")]
    environment = os.environ | {"PYTHONPATH": str(TESTS / "support")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
        process.kill()


def test_a_backup_is_consistent_while_others_write(filled: Any, writer: Any, tmp_path: Path) -> None:
    """Copies made while another process writes are each of one instant: whole pairs, whole chain, all that was said."""
    before = 30
    for number in range(5):
        file, folder = tmp_path / f"{number}.zip", tmp_path / f"home{number}"
        acknowledged = int(writer.stdout.readline().split()[1])
        manifest = backup(filled.folder / "memory.db", file)
        restore(folder / "memory.db", file)
        with closing(sqlite3.connect(folder / "memory.db")) as database:
            contents = [row[0] for row in database.execute("SELECT content FROM memory WHERE content LIKE '%half%'")]
            (last,) = database.execute("SELECT max(id) FROM memory").fetchone()
            assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        halves = {
            side: {one.removeprefix(side) for one in contents if one.startswith(side)} for side in ("left", "right")
        }
        assert halves["left"] == halves["right"]
        assert last >= acknowledged
        assert last > before
        before = last
        assert manifest.counts["vectors"] == 2 * manifest.counts["memories"]
    assert writer.poll() is None


def test_a_restored_store_is_the_saved_one(filled: Any, saved: Path, tmp_path: Path, open_parts: Any) -> None:
    """Every row comes back; the vector index is built again from them, and the doctor finds nothing wrong."""
    before = dump(filled.folder)
    shutil.rmtree(filled.folder)
    restored = restore(filled.folder / "memory.db", saved)
    assert restored.kept is None
    assert dump(filled.folder) == before
    assert stat.S_IMODE((filled.folder / "memory.db").stat().st_mode) == 0o600
    assert {path.name for path in filled.folder.iterdir()} <= {"memory.db", "owner.lock", "journal.tips"}
    assert not held(filled.folder)
    again = open_parts()
    again.vectors.sync()
    assert again.checks() == {}
    assert list(again.index.query(HERE, direction("fact 7/1"), 1)) == [8]


def test_a_store_in_use_is_not_replaced_unasked(filled: Any, saved: Path, open_parts: Any) -> None:
    """A store that holds something stays; with force it is kept aside whole, under a name that is told."""
    parts = open_parts()
    parts.add("written since")
    parts.vectors.sync()
    parts.close()
    before = content(parts.folder)
    with pytest.raises(InvalidInput, match="not empty"):
        restore(parts.folder / "memory.db", saved)
    assert content(parts.folder) == before
    restored = restore(parts.folder / "memory.db", saved, force=True)
    assert restored.kept is not None
    assert restored.kept.read_bytes() == before["memory.db"]
    second = restore(parts.folder / "memory.db", saved, force=True)
    assert second.kept not in (None, restored.kept)
    again = open_parts()
    again.vectors.sync()
    assert again.checks() == {}
    assert again.rows("SELECT count(*) FROM memory") == [(29,)]


def test_what_a_kill_left_in_the_log_is_kept_too(filled: Any, saved: Path, tmp_path: Path) -> None:
    """A database whose owner was killed is kept aside with what stood only in its write-ahead log."""
    folder = tmp_path / "killed"
    folder.mkdir()
    with closing(sqlite3.connect(filled.folder / "memory.db")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("UPDATE memory SET title = 'only in the log'")
        database.commit()
        for name in ("memory.db", "memory.db-wal"):
            shutil.copy2(filled.folder / name, folder / name)
    kept = restore(folder / "memory.db", saved, force=True).kept
    assert kept is not None
    with closing(sqlite3.connect(kept)) as database:
        assert database.execute("SELECT DISTINCT title FROM memory").fetchall() == [("only in the log",)]
    with closing(sqlite3.connect(folder / "memory.db")) as database:
        assert ("only in the log",) not in database.execute("SELECT DISTINCT title FROM memory").fetchall()


def test_a_damaged_database_is_replaced(filled: Any, saved: Path, open_parts: Any) -> None:
    """A store that can no longer be read counts as one that holds something, and gives way when told to."""
    noise = random.Random(3).randbytes(100_000)
    (filled.folder / "memory.db").write_bytes(noise)
    with pytest.raises(InvalidInput, match="not empty"):
        restore(filled.folder / "memory.db", saved)
    kept = restore(filled.folder / "memory.db", saved, force=True).kept
    assert kept is not None
    assert kept.read_bytes() == noise
    again = open_parts()
    again.vectors.sync()
    assert again.checks() == {}


def test_an_empty_store_gives_way(saved: Path, tmp_path: Path, open_parts: Any) -> None:
    """A store in which nothing was ever written is replaced without being asked, and nothing is kept of it."""
    shutil.rmtree(tmp_path / "home")
    open_parts().close()
    assert restore(tmp_path / "home" / "memory.db", saved).kept is None
    assert open_parts().rows("SELECT count(*) FROM memory") == [(29,)]


def test_an_owner_is_asked_to_go_or_named(saved: Path, tmp_path: Path) -> None:
    """Whoever has the store open is ended by `free`, once the backup has proven whole, or named in the error."""
    folder, asked = tmp_path / "owned", []
    owner = own(folder, "somebody")
    with pytest.raises(StoreOwned, match="somebody"):
        restore(folder / "memory.db", saved)
    bad = tmp_path / "bad.zip"
    bad.write_bytes(saved.read_bytes()[:-400])
    with pytest.raises(InvalidInput, match="damaged"):
        restore(folder / "memory.db", bad, free=lambda: asked.append("too early"))

    def free() -> None:
        asked.append("go")
        owner.release()

    assert restore(folder / "memory.db", saved, free=free).manifest.counts["memories"] == 29
    assert asked == ["go"]


BROKEN: dict[str, tuple[Callable[[dict[str, bytes]], None], str]] = {
    "no manifest": (lambda members: members.pop(MANIFEST), "cannot be read"),
    "no database": (lambda members: members.pop("memory.db"), "cannot be read"),
    "empty database": (lambda members: members.update({"memory.db": b""}), "not the one that was saved"),
    "manifest of nobody": (lambda members: members.update({MANIFEST: b"[1, 2]"}), "manifest is not one of ours"),
    "manifest of noise": (lambda members: members.update({MANIFEST: b"\xff\0"}), "manifest is not one of ours"),
    "manifest without end": (lambda members: members.update({MANIFEST: b" " * 99_999}), "manifest is not one of ours"),
    "another database": (edited("UPDATE memory SET title = 'x'", honest=False), "not the one that was saved"),
    "longer database": (lambda members: members.update({"memory.db": members["memory.db"] + b"x"}), "not the one"),
    "a forged journal": (
        edited(
            "CREATE TEMP TABLE kept AS SELECT sql FROM sqlite_master WHERE name = 'journal_no_update';"
            "DROP TRIGGER journal_no_update; UPDATE journal SET actor = 'eve' WHERE id = 3;"
            "PRAGMA writable_schema=ON; INSERT INTO sqlite_master "
            "SELECT 'trigger', 'journal_no_update', 'journal', 0, sql FROM kept"
        ),
        "changed or missing before: line 3",
    ),
    "a dropped trigger": (edited("DROP TRIGGER journal_no_update"), "trigger journal_no_update is missing"),
    "a planted trigger": (
        edited("CREATE TRIGGER evil AFTER INSERT ON memory BEGIN UPDATE memory SET sensitivity = 'public'; END"),
        "trigger evil is not ours",
    ),
    "a planted view": (edited("CREATE VIEW evil AS SELECT 1"), "view evil is not ours"),
    "an edited memory": (edited("UPDATE memory SET trust = 1.0 WHERE id = 3"), "memory 3 was changed"),
    "a bomb": (edited("CREATE TABLE x (y); INSERT INTO x VALUES (zeroblob(150000000))"), "would unpack to"),
    "fewer memories": (edited("DELETE FROM vector WHERE memory_id = 3"), "counts"),
    "another model": (edited("UPDATE store_metadata SET value = 'acme/other' WHERE name = 'model'"), "model"),
    "no database at all": (
        lambda members: members.update(
            {
                "memory.db": b"noise" * 999,
                MANIFEST: json.dumps(
                    json.loads(members[MANIFEST])
                    | {"sha256": hashlib.sha256(b"noise" * 999).hexdigest(), "size": 5 * 999}
                ).encode(),
            }
        ),
        "file is not a database",
    ),
    "a newer format": (manifested(format=2), "newer Recollect"),
    "another schema": (manifested(schema="9999"), "has schema 9999"),
}


@pytest.mark.full_cases("another schema")
@pytest.mark.parametrize("damage", BROKEN)
def test_a_backup_that_is_not_whole_changes_nothing(saved: Path, tmp_path: Path, damage: str) -> None:
    """Whatever is wrong with a backup, the sentence says it and the store is as it was, to the byte."""
    change, said = BROKEN[damage]
    file = repacked(saved, tmp_path / "broken.zip", change)
    before = content(tmp_path / "home")
    with pytest.raises(InvalidInput, match=said):
        restore(tmp_path / "home" / "memory.db", file, force=True)
    assert content(tmp_path / "home") == before


def test_no_cut_and_no_flipped_bit_gets_through(saved: Path, tmp_path: Path) -> None:
    """A file cut anywhere or with noise anywhere is refused, or restores exactly what was saved."""
    chance, whole = random.Random(11), saved.read_bytes()
    file, folder = tmp_path / "damaged.zip", tmp_path / "fresh"
    expected, refused = dump(tmp_path / "home"), 0
    for number in range(60):
        place = chance.randrange(len(whole))
        noise = bytearray(whole)
        noise[place] ^= 1 << chance.randrange(8)
        file.write_bytes(whole[:place] if number % 2 else bytes(noise))
        try:
            restore(folder / "memory.db", file)
        except (InvalidInput, StoreUnusable):
            refused += 1
            assert not (folder / "memory.db").exists()
        else:
            assert dump(folder) == expected
            shutil.rmtree(folder)
    assert refused >= 50


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    """A backup that is not there is a sentence that names it, and makes no store."""
    with pytest.raises(InvalidInput, match="no backup"):
        restore(tmp_path / "home" / "memory.db", tmp_path / "nothing.zip")
    assert not (tmp_path / "home").exists()


def harm_page(file: Path, table: str) -> None:
    """Overwrite the last page of a table or index with noise."""
    with closing(sqlite3.connect(file)) as database:
        (page,) = database.execute("SELECT max(pageno) FROM dbstat WHERE name = ?", (table,)).fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with file.open("r+b") as stream:
        stream.seek((page - 1) * size)
        stream.write(random.Random(3).randbytes(size))


@pytest.mark.parametrize("harm", ["a page", "an edited memory", "a memory that is no text", "a planted trigger"])
def test_a_damaged_store_never_replaces_a_good_backup(saved: Path, tmp_path: Path, harm: str) -> None:
    """A store that is damaged or was edited is not backed up: the error says what to do, and the old backup stays."""
    file, before = tmp_path / "home" / "memory.db", saved.read_bytes()
    if harm == "a page":
        harm_page(file, "ix_memory_namespace_id_content_hash")
    else:
        with closing(sqlite3.connect(file)) as database, database:
            sql = "UPDATE memory SET trust = 1.0 WHERE id = 3"
            if harm == "a memory that is no text":
                sql = "UPDATE memory SET content = x'ff00' WHERE id = 3"
            database.execute(
                f"CREATE TRIGGER x AFTER INSERT ON word BEGIN {sql}; END" if harm == "a planted trigger" else sql
            )
    with pytest.raises(StoreUnusable, match=r"is damaged .* `recollect reindex` .* `recollect export FILE`") as failed:
        backup(tmp_path / "home" / "memory.db", saved, force=True)
    assert failed.value.exit_code == StoreUnusable.exit_code
    assert saved.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"home", "saved.zip"}


def test_a_backup_makes_no_folders(filled: Any, tmp_path: Path) -> None:
    """Into a folder that is not there nothing is written, and it is not made."""
    with pytest.raises(InvalidInput, match="no folder"):
        backup(filled.folder / "memory.db", tmp_path / "no" / "such" / "folder.zip")
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("fails", ["replace", "flush"])
def test_the_old_store_is_put_back_when_anything_fails(
    filled: Any, saved: Path, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in the last steps of a restore leaves the store as it was, with its vector index and journal ends."""
    (filled.folder / "journal.tips").write_text("{}", encoding="utf-8")
    before = content(filled.folder)
    real = Path.replace

    def refuse(path: Path, *target: Path) -> Path:
        if fails == "flush" or path.parent.name.startswith(".recollect-"):
            raise OSError(28, "No space left on device")
        return real(path, *target)

    if fails == "replace":
        monkeypatch.setattr(Path, "replace", refuse)
    else:
        flushed: list[Path] = []
        monkeypatch.setattr(
            kept_files, "flush_to_disk", lambda path: refuse(path) if path == filled.folder else flushed.append(path)
        )
    with pytest.raises(StoreUnusable, match="No space left"):
        restore(filled.folder / "memory.db", saved, force=True)
    assert content(filled.folder) == before
