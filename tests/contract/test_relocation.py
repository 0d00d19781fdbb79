"""A store moves from one database to the other and back: every row as it was, and interruptions cost nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from callers import ADA
from entries import make_entry
from recollect.domain.accounts import Token
from recollect.domain.enums import Role, Sensitivity
from recollect.domain.lifecycle import Decision, Observation
from recollect.domain.origin import Origin
from recollect.domain.requests import StoreFact
from recollect.errors import InvalidInput, StoreUnusable
from recollect.gate import clear
from recollect.store.entries import FactEntry
from recollect.store.relocation import relocate
from recollect.store.sql.accounts import Accounts
from recollect.store.sql.database import Database, open_file
from recollect.store.sql.records import Records
from recollect.store.sql.sessions import Sessions
from recollect.store.sql.tables import memory
from recollect.store.text.fts5 import SqliteText
from recollect.store.text.index import Term
from recollect.store.text.postgres import PostgresText
from stores import lay

NAMESPACE = "project:crew/engine"
HASH = "ab" * 32


@pytest.fixture
def other(store: Any, tmp_path: Path, migrated: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    """Return an empty database of the other kind."""
    if store.sqlite:
        opened = Database(request.getfixturevalue("migrated_postgres_url"))
    else:
        lay(migrated, tmp_path / "other")
        opened = open_file(tmp_path / "other" / "memory.db")
    yield opened
    opened.close()


@pytest.fixture
def filled(store: Any) -> Any:
    """Return a store with something in every corner: levels, quarantine, facts, journal, sessions, gaps in the ids."""
    for number in range(30):
        store.add(f"The {number}th möwe of the harbour", tags=("ship", f"n{number}"), speaker="Grace", chunks=2)
    store.add("hidden lantern", sensitivity=Sensitivity.SECRET)
    gone = store.add("gone before the move")
    store.delete(gone)
    store.by_hand("UPDATE memory SET sensitivity = 'quarantined:public' WHERE id = 3")
    with store.records.writing(NAMESPACE, "ada") as transaction:
        asked = StoreFact(subject="mast", predicate="is", object="oak")
        entry = FactEntry(
            cleared=clear(asked),
            memory_id=None,
            sensitivity=Sensitivity.PUBLIC,
            valid_from=store.clock(),
            at=store.clock(),
            author="ada",
            stamp=Origin(),
        )
        transaction.facts.insert(entry)
    sessions = Sessions(store.database)
    one = sessions.begin(ADA, "s1", "claude-code", store.clock())
    sessions.save(one, [Observation(at=store.clock(), event="tool:post", decision=Decision.DROPPED, draft={"a": [1]})])
    with Accounts(store.database, store.clock).changing("root") as accounts:
        accounts.add_user("ada", admin=True)
        accounts.add_team("crew")
        accounts.set_role("crew", "ada", Role.READER)
        accounts.put_project("crew", "engine", private=True)
        accounts.set_project_role("crew", "engine", "ada", Role.WRITER)
        accounts.add_token(Token("abcd1234", "ada", "laptop", store.clock()), HASH)
    return store


def same(one: Any, other: Database) -> bool:
    """Compare the journals, whose lines chain all that was written, and find a word in both."""
    query = text("SELECT id, action, memory_id, state, previous, hash FROM journal ORDER BY id")
    with one.database.reading() as ours, other.reading() as theirs:
        lines = [list(map(tuple, connection.execute(query))) for connection in (ours, theirs)]
    texts = [one.text, SqliteText(other) if other.file else PostgresText(other)]
    known = [Accounts(each, one.clock).access(HASH) for each in (one.database, other)]
    assert known[0] == known[1] is not None
    found = [each.search([Term("mowe"), Term("harbour")], one.view(), 9) for each in texts]
    return lines[0] == lines[1] and found[0] == pytest.approx(found[1]) and bool(found[0])


def test_there_and_back(filled: Any, other: Database, tmp_path: Path, migrated: Path) -> None:
    """The other database holds every row as it was, finds the same, gives new ids, and gives all back."""
    reported: list[tuple[int, int]] = []
    moved = relocate(filled.database, other, lambda done, total: reported.append((done, total)))
    assert moved.rows["memory"] == 31
    assert moved.rows["observation"] == 1
    assert reported[-1][0] == reported[-1][1] == sum(moved.rows.values())
    assert same(filled, other)
    with other.exclusive() as connection:
        assert not other.dialect.text_damage(connection)
        level = connection.execute(text("SELECT sensitivity FROM memory WHERE id = 3")).scalar()
        assert level == "quarantined:public"
        (fresh,) = other.dialect.claim_ids(connection, memory, [None])
    assert fresh > 32
    lay(migrated, tmp_path / "back")
    back = open_file(tmp_path / "back" / "memory.db")
    assert relocate(other, back).rows == moved.rows
    assert same(filled, back)
    back.close()


def test_an_interrupted_move_goes_on(filled: Any, other: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A move that ends at any step is finished by the next one, and nothing is there twice."""
    monkeypatch.setattr("recollect.store.relocation._BATCH", 7)
    for stop in (1, 4, 9, 15, 25):
        steps = iter(range(stop))
        with pytest.raises(StopIteration):
            relocate(filled.database, other, lambda done, total, steps=steps: next(steps))
    assert relocate(filled.database, other).rows["memory"] == 31
    assert same(filled, other)


def test_a_store_in_use_is_not_overwritten(filled: Any, other: Database, clock: Any) -> None:
    """A target that holds something else is refused, and stays as it is."""
    with other.writing("user:eve") as connection:
        connection.execute(text("INSERT INTO namespace (name) VALUES ('user:eve')"))
    with Records(other, clock, lambda: None).writing("user:eve", "eve") as transaction:
        transaction.memories.insert(make_entry("somebody else's"))
    with pytest.raises(InvalidInput, match="holds another store"):
        relocate(filled.database, other)
    with other.reading() as connection:
        assert connection.execute(text("SELECT content FROM memory")).scalars().all() == ["somebody else's"]


def test_a_target_with_sessions_alone_is_refused(filled: Any, other: Database, clock: Any) -> None:
    """Whatever stands in the target, if it is not a part of this store, it is somebody's."""
    Sessions(other).begin(ADA, "s9", "codex", clock())
    with pytest.raises(InvalidInput, match="holds another store"):
        relocate(filled.database, other)


def test_a_row_that_did_not_arrive_is_noticed(filled: Any, other: Database) -> None:
    """A target that was changed between two steps is found out, and the move does not count as done."""

    def meddle(done: int, total: int) -> None:
        with other.writing() as connection:
            connection.execute(text("UPDATE memory SET importance = 0.123 WHERE id = 5"))

    with pytest.raises(StoreUnusable, match="The table memory"):
        relocate(filled.database, other, meddle)
