"""What is forgotten for good leaves no byte in the data folder: neither its text nor its vector."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recollect
from callers import ADA
from entries import direction, make_entry
from recollect import App, Draft, Forget, StoreFact
from run_operations import rows

pytestmark = pytest.mark.slow

NAMESPACE = "project:crew/engine"
RARE = ("zyqqukkvu", "vuxlisbxo", "jeqfrizay", "wozhxrbrq")
TEXT = f"Our {RARE[0]} mascot {RARE[1]} is fed on {RARE[2]} beside the {RARE[3]} gate"


def files(folder: Path) -> dict[str, bytes]:
    """Return every file of a data folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def text_in(folder: Path, words: tuple[str, ...]) -> list[str]:
    """Name the files in which a word stands, its head or its tail, in UTF-8 or UTF-16."""
    parts = [part for word in words for part in (word, word[:6], word[3:])]
    wanted = [part.encode(code) for part in parts for code in ("utf-8", "utf-16-le")]
    return [name for name, data in files(folder).items() if any(one in data.lower() for one in wanted)]


def vector_in(folder: Path, vector: Any) -> list[str]:
    """Name the files that hold a vector: its bytes, any 16 numbers of it, or the same numbers but for rounding."""
    found = []
    for name, data in files(folder).items():
        same = any(vector[at : at + 16].tobytes() in data for at in range(0, len(vector) - 15, 16))
        if same or any(near(data, offset, vector) for offset in range(4)):
            found.append(name)
    return found


def near(data: bytes, offset: int, vector: Any) -> bool:
    """Say whether the numbers of the vector stand in these bytes from some place on."""
    with np.errstate(invalid="ignore"):
        numbers = np.frombuffer(data[offset : offset + (len(data) - offset) // 4 * 4], dtype="<f4")
        starts = np.flatnonzero(np.abs(numbers[: max(0, len(numbers) - len(vector) + 1)] - vector[0]) < 1e-5)
        return any(np.allclose(numbers[at : at + len(vector)], vector, atol=1e-5) for at in starts)


def test_a_forgotten_memory_leaves_no_byte(app: App, settings: Any) -> None:
    """After `forget` and one round of maintenance no file holds a word of the text, of its fact, or the vector."""
    for number in range(60):
        recollect.remember(app, Draft(content=f"Note {number} of the crew says that door {number * 7} is open"), ADA)
    kept = recollect.remember(app, Draft(content="The office is in Oslo", title="Where we are"), ADA)
    stored = recollect.remember(app, Draft(content=TEXT, tags=("zyqtawxq",), key="zyqkxyvq", speaker="Zyqpexvonq"), ADA)
    fact = StoreFact(subject="zyqsubxvct", predicate="likes", object="zyqobxvctq", memory_id=stored.id)
    recollect.store_fact(app, fact, ADA)
    app.vectors.sync()
    words = (*RARE, "zyqtawxq", "zyqkxyvq", "zyqpexvonq", "zyqsubxvct", "zyqobxvctq")
    vector = app.embedder.read([TEXT], "document")[0].vector
    assert text_in(settings.folder, words)
    assert {name.rpartition("/")[2] for name in vector_in(settings.folder, vector)} >= {"chroma.sqlite3"}
    recollect.forget(app, Forget(id=stored.id), ADA)
    app.vectors.sync()
    assert text_in(settings.folder, words) == []
    assert vector_in(settings.folder, vector) == []
    assert recollect.recall(app, recollect.Query(query="Where is the office?"), ADA).hits[0].memory.id == int(kept.id)
    assert [check for check in app.checks() if not check.well] == []


def test_two_forgotten_at_once_leave_no_byte(open_store: Any, settings: Any) -> None:
    """What is forgotten while the upkeep rests after an earlier purge is purged without another write."""
    app = open_store(background=True)
    for number in range(4):
        recollect.remember(app, Draft(content=f"Door {number} of the crew is open"), ADA)
    app.vectors.sync()
    for one in ("1", "2"):
        recollect.forget(app, Forget(id=one), ADA)
        app.vectors.sync()
    end, marks = time.monotonic() + 30, [()]
    while marks and time.monotonic() < end:
        time.sleep(0.05)
        marks = rows(settings, "SELECT * FROM store_metadata WHERE name LIKE 'stale%'")
    assert marks == []
    assert vector_in(settings.folder, app.embedder.read(["Door 1 of the crew is open"], "document")[0].vector) == []


def test_a_forgotten_fact_leaves_no_byte(app: App, settings: Any) -> None:
    """A fact of its own that was forgotten stands in no file."""
    stored = recollect.store_fact(app, StoreFact(subject="zyqsubxvct", predicate="likes", object="zyqobxvctq"), ADA)
    recollect.forget_fact(app, Forget(id=stored.id), ADA)
    assert text_in(settings.folder, ("zyqsubxvct", "zyqobxvctq")) == []


@pytest.mark.full_cases("in the queue")
@pytest.mark.parametrize("many", [30, 1_200], ids=["in the queue", "in the graph"])
def test_a_forgotten_vector_leaves_no_byte(parts: Any, many: int) -> None:
    """Whether Chroma had it in its queue only or in a graph on disk: the vector is gone, the others are found."""
    with parts.records.writing(NAMESPACE, "ada") as transaction:
        ids = [transaction.memories.insert(make_entry(f"fact {number}")) for number in range(many)]
    parts.vectors.sync()
    vector = direction("fact 7/0")
    assert vector_in(parts.folder, vector)
    parts.delete(ids[7])
    parts.vectors.sync()
    parts.text.purge_deleted()
    assert vector_in(parts.folder, vector) == []
    assert parts.checks() == {}
    assert list(parts.index.query(NAMESPACE, direction("fact 9/0"), 1)) == [ids[9]]
    assert parts.vectors.state == "ready"


def test_a_purge_that_was_put_off_happens_at_the_next_opening(open_parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace too large to be built anew at once is so when the store is opened next."""
    monkeypatch.setattr("recollect.store.vectors.vector_search._PROMPTLY", 3)
    parts = open_parts()
    ids = [parts.add(f"fact {number}") for number in range(8)]
    parts.vectors.sync()
    vector = direction("fact 2/0")
    parts.delete(ids[2])
    parts.vectors.sync()
    parts.text.purge_deleted()
    assert "chroma.sqlite3" in [name.rpartition("/")[2] for name in vector_in(parts.folder, vector)]
    parts.close()
    again = open_parts()
    again.vectors.sync()
    assert vector_in(again.folder, vector) == []
    assert again.checks() == {}


def test_an_update_leaves_the_index_alone(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is only changed or hidden does not cost building a namespace anew."""
    memory_id = parts.add("fact 0", key="k")
    parts.add("fact 1")
    parts.vectors.sync()
    built: list[str] = []
    monkeypatch.setattr(parts.vectors._outbox, "rebuild", built.append)
    parts.change("k", "fact 2")
    parts.vectors.sync()
    with parts.records.writing(NAMESPACE, "ada") as transaction:
        transaction.memories.hide(memory_id)
    parts.vectors.sync()
    assert built == []


def test_a_reader_only_puts_the_purge_off(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While somebody reads an older state the log keeps the text, and the next purge takes it out."""
    monkeypatch.setattr("recollect.store.sql.sqlite._PATIENCE", 20)
    memory_id = parts.add(TEXT)
    with closing(sqlite3.connect(parts.folder / "memory.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memory").fetchone()
        parts.delete(memory_id)
        parts.text.purge_deleted()
        assert text_in(parts.folder, RARE) != []
    parts.text.purge_deleted()
    assert text_in(parts.folder, RARE) == []
    assert parts.rows("SELECT * FROM store_metadata") == []
