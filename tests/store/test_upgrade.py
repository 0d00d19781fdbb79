"""Upgrades: a store that an older Recollect filled keeps every row, and gains what the newest one asks for."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from sqlalchemy import text

from recollect.domain import Sensitivity, View
from recollect.late import pack
from recollect.ports import Chunk, Term
from recollect.store import journal
from recollect.store.database import Database, open_file
from recollect.store.migrations import HEAD, configuration, migrate, revision
from recollect.store.nearest import SqlChromaVectors
from recollect.store.outbox import as_vector
from recollect.store.records import SqlRecords
from recollect.store.text import SqliteText
from recollect.store.vectors import ChromaIndex

ROWS: dict[str, list[dict[str, Any]]] = json.loads(Path(__file__).with_name("v0001.json").read_text(encoding="utf-8"))
"""Every row of a store that Recollect 0.1 wrote at revision 0001: inserts, updates, a delete, a refusal, uses."""


def fill(database: Database) -> None:
    """Bring a database to revision 0001 and put the rows of that time into it."""
    command.upgrade(configuration(database), "0001")
    tables = sa.MetaData()
    with database.writing() as connection:
        tables.reflect(connection, only=list(ROWS))
        for table in tables.sorted_tables:
            connection.execute(sa.insert(table), [typed(table, row) for row in ROWS[table.name]])
            if not database.sqlite and "id" in table.c:
                last = max(row["id"] for row in ROWS[table.name])
                connection.execute(sa.select(sa.func.setval(f"{table.name}_id_seq", last)))


def typed(table: sa.Table, row: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a row as the database's driver wants them."""
    return {name: value if value is None else _typed(table.c[name].type, value) for name, value in row.items()}


def _typed(kind: sa.types.TypeEngine[Any], value: Any) -> Any:
    match kind:
        case sa.DateTime():
            return datetime.fromisoformat(f"{value}+00:00")
        case sa.LargeBinary():
            return bytes.fromhex(value)
        case sa.JSON():
            return json.loads(value)
        case sa.Boolean():
            return bool(value)
    return value


def everything(database: Database) -> dict[str, list[str]]:
    """Read the columns that revision 0001 knew of every row of that time."""
    with database.reading() as connection:
        return {
            name: sorted(repr(row) for row in connection.execute(text(_known(name, found))))
            for name, found in ROWS.items()
        }


def _known(name: str, found: list[dict[str, Any]]) -> str:
    later = f" WHERE id <= {max(row['id'] for row in found)}" if "id" in found[0] else ""
    return f'SELECT {",".join(found[0])} FROM "{name}"{later}'


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """Return a database of each kind that holds what Recollect 0.1 stored."""
    sqlite = request.param == "sqlite"
    database = open_file(tmp_path / "memory.db") if sqlite else Database(request.getfixturevalue("postgres_url"))
    fill(database)
    yield database
    database.close()


def view_of(*namespaces: str) -> View:
    """Return a view of everything in `namespaces` at the time the old store was written."""
    return View(namespaces, datetime.fromisoformat("2026-03-01T13:00:00+00:00"), tuple(Sensitivity))


def test_nothing_is_lost(old: Database) -> None:
    """Every row of every table is the same after the upgrade, and the journal's chain is whole."""
    before = everything(old)
    assert {name: len(found) for name, found in before.items()} == {name: len(rows) for name, rows in ROWS.items()}
    migrate(old)
    assert revision(old) == HEAD
    assert everything(old) == before
    with old.reading() as connection:
        assert journal.first_broken(connection) is None


def test_the_namespaces_know_how_many_memories_they_hold(old: Database) -> None:
    """The counts are those of the rows, expired and deleted ones included."""
    migrate(old)
    with old.reading() as connection:
        counts = connection.execute(text("SELECT name, memories FROM namespace")).all()
    assert dict(map(tuple, counts)) == {"project:crew/engine": 4, "user:ada": 2, "team:crew": 3}
    assert SqliteText(old).size(view_of("project:crew/engine", "team:crew")) == 7


def test_the_speakers_are_found_by_their_names(old: Database) -> None:
    """Whoever spoke is found by any word of the name, folded, in their own namespaces; who is gone is not."""
    migrate(old)
    records = SqlRecords(old, datetime.now, lambda: None)
    crew = view_of("project:crew/engine")
    assert records.speakers(crew, ["zoe"]) == records.speakers(crew, ["ada"]) == ["Zoë Ada"]
    assert records.speakers(crew, ["brooks", "王伟", "tide"]) == ["Mel Brooks", "王伟"]
    assert records.speakers(view_of("team:crew"), ["new", "old", "gone", "ada"]) == ["New Name"]


def test_old_sessions_have_neighbours(old: Database) -> None:
    """The neighbours of memories that were stored before the upgrade are found."""
    migrate(old)
    records = SqlRecords(old, datetime.now, lambda: None)
    assert records.neighbours([1, 2], view_of("project:crew/engine")) == {1: (2, 3), 2: (3, 1)}


def test_the_text_index_still_answers(tmp_path: Path) -> None:
    """What was stored before the upgrade is found by its words after it, and changes still reach the index."""
    database = open_file(tmp_path / "memory.db")
    fill(database)
    migrate(database)
    index, view = SqliteText(database), view_of("project:crew/engine")
    assert set(index.search([Term("tide")], view, 10)) == {1}
    with SqlRecords(database, datetime.now, lambda: None).writing("project:crew/engine", "ada") as transaction:
        assert transaction.delete(1)
    assert index.search([Term("tide")], view, 10) == {}
    assert index.size(view) == 3
    database.close()


def test_every_memory_waits_to_be_read_anew(old: Database) -> None:
    """Each memory is queued for the embedding model once more, with as many vectors as the index may hold of it."""
    migrate(old)
    with old.reading() as connection:
        queued = connection.execute(text("SELECT memory_id, chunks, embedded FROM outbox WHERE id > 12")).all()
    held = Counter(row["memory_id"] for row in ROWS["vector"])
    assert sorted(map(tuple, queued)) == [(row["id"], held[row["id"]], False) for row in ROWS["memory"]]
    waiting = SqlRecords(old, datetime.now, lambda: None).unembedded(99)
    assert [one.id for one in waiting] == [row["id"] for row in ROWS["memory"]]


def test_the_old_vectors_answer_until_new_ones_come(old: Database, tmp_path: Path) -> None:
    """What was stored before the upgrade is found by its old vector, from SQL and from the index, until it is read."""
    migrate(old)
    records = SqlRecords(old, datetime.now, lambda: None)
    vectors = SqlChromaVectors(old, ChromaIndex(tmp_path / "chroma", "test"), threading.Event())
    asked = as_vector(bytes.fromhex(next(row["embedding"] for row in ROWS["vector"] if row["memory_id"] == 1)))
    crew = view_of("project:crew/engine")
    for prepare in (lambda: None, vectors.sync):
        prepare()
        found = vectors.nearest(asked, crew, 4)
        assert next(iter(found.items())) == (1, pytest.approx(1, abs=1e-4))
        assert vectors.closeness(asked, asked[None], [1.0], [1])[1].late is None
    assert vectors.state == "ready"
    first = records.unembedded(99)[0]
    records.attach(first, (Chunk(0, 22, -asked, pack(asked[None])),))
    late = vectors.closeness(-asked, asked[None], [1.0], [1])[1].late
    assert late is not None
    assert late > 0.5
    assert vectors.nearest(-asked, crew, 1) == {1: pytest.approx(1, abs=1e-4)}
    vectors.sync()
    assert vectors.nearest(-asked, crew, 1) == {1: pytest.approx(1, abs=1e-4)}
    assert 1 not in {one.id for one in records.unembedded(99)}
    vectors.close()


def test_a_killed_upgrade_leaves_the_old_store(old: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade that fails half-way leaves the old revision with all its rows, and the next opening completes it."""
    before = everything(old)
    monkeypatch.setattr("alembic.op.drop_index", _fail)
    with pytest.raises(RuntimeError, match="no more"):
        migrate(old)
    monkeypatch.undo()
    assert revision(old) == "0001"
    assert everything(old) == before
    migrate(old)
    assert revision(old) == HEAD
    assert everything(old) == before


def _fail(*_: object, **__: object) -> None:
    raise RuntimeError("no more")


def test_old_answers_are_given_again(old: Database) -> None:
    """The outcome of a request that was answered before the upgrade has no notes, and is found."""
    migrate(old)
    with old.reading() as connection:
        found = connection.execute(text("SELECT request_id, notes FROM answered")).all()
    assert sorted(map(tuple, found)) == sorted((row["request_id"], "[]") for row in ROWS["answered"])
