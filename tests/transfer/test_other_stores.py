"""Stores of other programs that are SQLite files: claude-mem's, and any with a table `memories`."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recollect.domain.transfer import FactRecord, ImportFormat, ImportItem, MemoryRecord
from recollect.errors import InvalidInput
from recollect.transfer.formats import read_file, recognise_file
from recollect.transfer.import_paths import find_files

CLAUDE_MEM = """
CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, text TEXT, type TEXT,
  title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT, files_modified TEXT,
  discovery_tokens INTEGER, created_at TEXT, created_at_epoch INTEGER);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, request TEXT,
  investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT,
  created_at TEXT, created_at_epoch INTEGER);
"""
ROWS = """
CREATE TABLE memories (id TEXT PRIMARY KEY, content TEXT NOT NULL, category TEXT, importance REAL, trust REAL,
  sensitivity TEXT, tags TEXT, created_at TEXT, updated_at TEXT, title TEXT, type TEXT, concepts TEXT,
  files_read TEXT, accessed_count INTEGER);
CREATE TABLE memory_journal (seq INTEGER PRIMARY KEY);
CREATE TABLE facts (id TEXT, subject TEXT, predicate TEXT, object TEXT, confidence REAL, created_at TEXT);
INSERT INTO memories VALUES ('a1', 'We use Redis.', 'storage', 0.8, 0.9, 'private', 'cache,db',
  '2026-04-01T10:00:00+00:00', '2026-04-02T10:00:00+00:00', 'Redis', 'decision', '["gotcha"]', '["a.py"]', 3);
INSERT INTO facts VALUES ('f1', 'api', 'uses', 'Redis', 0.9, '2026-04-01T10:00:00+00:00');
"""
SMALL = {
    "two columns": "CREATE TABLE memories (id INTEGER PRIMARY KEY, content TEXT); "
    "INSERT INTO memories VALUES (1, 'It rained.');",
    "no id": "CREATE TABLE memories (content TEXT); INSERT INTO memories VALUES ('It rained.');",
    "ten is most": "CREATE TABLE memories (id INT, content TEXT, type TEXT, importance INT, is_deleted INT); "
    "INSERT INTO memories VALUES (1, 'It rained.', 'fact', 8, 0), (2, 'Gone.', 'fact', 5, 1);",
    "without rowid": "CREATE TABLE memories (id TEXT PRIMARY KEY, content TEXT) WITHOUT ROWID; "
    "INSERT INTO memories VALUES ('x', 'It rained.');",
}


def made(path: Path, schema: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(schema)
    return path


def read(path: Path) -> list[Any]:
    """Return what a file holds, read as what it is recognised as."""
    return [thing for thing, _ in read_file(path, path.name, recognise_file(path, None).format)]


@pytest.fixture
def claude_mem(tmp_path: Path) -> Path:
    """Return a store of claude-mem with two observations and a summary."""
    path = made(tmp_path / "claude-mem.db", CLAUDE_MEM)
    listed = json.dumps
    concepts, files = listed(["gotcha", "builds"]), (listed(["a.py"]), listed(["b.py"]))
    told = ("Fixed *it*", "how", listed(["a fact"]), "It was Java 8.")
    rows = [
        (1, "s", "engine", None, "bugfix", *told, concepts, *files, 70, "2026", 1767225600000),
        (2, "s", "engine", "old text", "odd", None, None, None, None, "{", None, None, 0, "2026-01-01", None),
    ]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executemany(f"INSERT INTO observations VALUES ({','.join('?' * 15)})", rows)
        connection.execute(
            "INSERT INTO session_summaries VALUES (1, 's', 'engine', 'Fix it', NULL, 'Java', 'done', 'ship', NULL, ?, "
            "NULL, '2026-01-01T00:00:00Z', 1767225600000)",
            [listed(["b.py"])],
        )
    return path


def test_the_store_of_claude_mem_arrives(claude_mem: Path) -> None:
    """Observations keep type, headings, facts, concepts, files, session and day; a summary keeps its parts."""
    assert recognise_file(claude_mem, None).format is ImportFormat.CLAUDE_MEM
    first, second, summary = (MemoryRecord(**one.fields) for one in read(claude_mem))
    assert (first.content, first.type, first.title, first.subtitle) == (
        "It was Java 8.\n- a fact",
        "bugfix",
        "Fixed *it*",
        "how",
    )
    assert (first.concepts, first.tags, first.key) == (
        ("gotcha",),
        ("claude-mem", "builds"),
        "claude-mem:s/observation-1",
    )
    assert (first.files_read, first.files_modified) == (("a.py",), ("b.py",))
    assert (first.session_id, first.project, first.discovery_tokens) == ("s", "engine", 70)
    assert str(first.observed_at) == "2026-01-01 00:00:00+00:00"
    assert (second.content, second.type, second.tags) == ("old text", None, ("claude-mem", "odd"))
    assert summary.content == "Request: Fix it\nLearned: Java\nCompleted: done\nNext steps: ship"
    assert (summary.type, summary.files_modified) == ("session_summary", ("b.py",))


def test_a_damaged_store_is_refused_and_another_database_is_none(tmp_path: Path, claude_mem: Path) -> None:
    """A database of somebody else is of no known format; one with bad pages ends in a sentence, not in a traceback."""
    other = made(tmp_path / "other.db", "CREATE TABLE t (a); CREATE VIEW observations AS SELECT 1;")
    with pytest.raises(InvalidInput, match="unrecognised format"):
        recognise_file(other, None)
    with closing(sqlite3.connect(claude_mem)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(claude_mem.read_bytes())
    data[4096:8192] = b"\xff" * 4096
    claude_mem.write_bytes(data)
    with pytest.raises(InvalidInput, match="SQLite cannot read it"):
        list(read_file(claude_mem, "x", ImportFormat.CLAUDE_MEM))


def test_nothing_is_written_beside_another_programs_store(claude_mem: Path) -> None:
    """Reading a store leaves its bytes as they were."""
    before = claude_mem.read_bytes()
    found = find_files([claude_mem.parent]).files
    assert [one.format for one in found] == [ImportFormat.CLAUDE_MEM]
    assert all(isinstance(one, ImportItem) for one in read(claude_mem))
    assert claude_mem.read_bytes() == before


def test_a_table_of_memories_arrives_with_its_facts(tmp_path: Path) -> None:
    """A database with a table `memories` is read by the names of its columns, and so is its table `facts`."""
    path = made(tmp_path / "memory.db", ROWS)
    assert recognise_file(path, None).format is ImportFormat.MEMORIES_DB
    memory, fact = read(path)
    record, told = MemoryRecord(**memory.fields), FactRecord(**fact.fields)
    assert (record.content, record.key, record.category) == ("We use Redis.", "memories:a1", "storage")
    assert (record.importance, record.sensitivity, record.tags) == (0.8, "private", ("cache", "db"))
    assert (record.type, record.concepts, record.files_read) == ("decision", ("gotcha",), ("a.py",))
    assert (record.title, record.accessed_count, str(record.created_at)[:10]) == ("Redis", 3, "2026-04-01")
    assert (told.subject, told.predicate, told.object, told.confidence) == ("api", "uses", "Redis", 0.9)


@pytest.mark.parametrize("schema", SMALL.values(), ids=SMALL)
def test_a_minimal_table_of_memories_arrives(tmp_path: Path, schema: str) -> None:
    """Only the column `content` must be there; deleted rows stay behind, and ten is as important as one."""
    (one,) = read(made(tmp_path / "memory.db", schema))
    record = MemoryRecord(**one.fields)
    assert record.content == "It rained."
    assert record.importance == (0.8 if "importance" in schema else 0.5)


def test_a_table_of_memories_without_texts_is_refused(tmp_path: Path) -> None:
    """A table of that name in the database of another program is refused with the column that it lacks."""
    path = made(tmp_path / "photos.db", "CREATE TABLE memories (photo BLOB)")
    with pytest.raises(InvalidInput, match=r"photos\.db cannot be imported.*no column `content`"):
        read(path)
