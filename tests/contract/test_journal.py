"""The journal: one line for each mutation, append-only by the database's own hand, chained so that tampering shows."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from entries import make_entry
from recollect.errors import StoreUnusable
from recollect.store import journal
from recollect.store.sql import tables
from recollect.store.sql.database import Database
from recollect.store.sql.records import Records

HERE = "project:crew/engine"
DROP = {
    True: ("DROP TRIGGER journal_no_update", "DROP TRIGGER journal_no_delete"),
    False: ("DROP TRIGGER journal_no_change ON journal", "DROP TRIGGER journal_no_truncate ON journal"),
}
TAMPERING = {
    "actor": "UPDATE journal SET actor = 'eve' WHERE id = 4",
    "namespace": "UPDATE journal SET namespace = 'user:eve' WHERE id = 4",
    "action": "UPDATE journal SET action = 'delete' WHERE id = 4",
    "memory": "UPDATE journal SET memory_id = 99 WHERE id = 4",
    "no memory": "UPDATE journal SET memory_id = NULL WHERE id = 4",
    "time": "UPDATE journal SET at = (SELECT at FROM journal WHERE id = 9) WHERE id = 4",
    "changes": "UPDATE journal SET changes = '{\"fields\": []}' WHERE id = 4",
    "hash": "UPDATE journal SET hash = (SELECT hash FROM journal WHERE id = 5) WHERE id = 4",
    "previous": "UPDATE journal SET previous = hash WHERE id = 4",
}
REMOVALS = {
    "first line": ("DELETE FROM journal WHERE id = 1", 2),
    "middle line": ("DELETE FROM journal WHERE id = 5", 6),
    "two lines": ("DELETE FROM journal WHERE id IN (3, 4)", 5),
    "renumbered": ("UPDATE journal SET id = 1000 WHERE id = 2", 3),
}


def broken(store: Any) -> dict[str, int]:
    """Walk the chains; return the first line of each that was changed."""
    with store.database.reading() as connection:
        return journal.walk(connection).broken


def fill(store: Any) -> None:
    """Write ten lines, a day apart."""
    for number in range(9):
        store.add(f"Number {number}", tags=("t",))
        store.clock.pass_days(1)
    store.records.refuse(HERE, "ada", "content", ["an AWS key", "a token"])


def test_each_action_leaves_a_line(store: Any) -> None:
    """Insert, update, refresh and delete are told of a memory in order, with who, when and which fields."""
    started = store.clock()
    memory_id = store.add("First", key="k", tags=("t",))
    for actor, content, action in (("bob", "Second", "update"), ("cy", "Second", "refresh")):
        store.clock.pass_days(1)
        with store.records.writing(HERE, actor) as transaction:
            transaction.memories.update(transaction.lookup.by_key("k"), make_entry(content, importance=0.9), action)
    with store.records.writing(HERE, "dee") as transaction:
        transaction.memories.delete(memory_id)
    lines = store.records.journal.history(memory_id, [HERE])
    assert [(line.actor, line.action) for line in lines] == [
        ("ada", "insert"),
        ("bob", "update"),
        ("cy", "refresh"),
        ("dee", "delete"),
    ]
    changed = {"fields": ["content", "importance"], "importance": [0.5, 0.9]}
    kept = lines[1].changes["kept_as"]
    assert [line.changes for line in lines] == [{"fields": ["key", "tags"]}, changed | {"kept_as": kept}, {}, {}]
    assert [(line.at - started).days for line in lines] == [0, 1, 2, 2]
    assert {(line.namespace, line.memory_id) for line in lines} == {(HERE, memory_id)}
    assert broken(store) == {}


def test_history_stays_in_its_namespaces(store: Any) -> None:
    """The history of a memory is empty for whoever may not see its namespace."""
    memory_id = store.add("Ours")
    assert store.records.journal.history(memory_id, ["project:crew/hull", "user:ada"]) == []
    assert store.records.journal.history(memory_id, []) == []


def test_a_refusal_names_field_and_kinds(store: Any) -> None:
    """A refused write leaves one line that belongs to no memory, and no row elsewhere."""
    before = store.dump()
    store.records.refuse(HERE, "ada", "tags", ["a token"])
    after = store.dump()
    changed = {name for name in after if after[name] != before[name]} - {"sqlite_sequence"}
    assert changed == {"journal"}
    (row,) = store.rows("SELECT action, memory_id, actor, namespace FROM journal")
    assert tuple(row) == ("refuse", None, "ada", HERE)
    with store.database.reading() as connection:
        assert connection.execute(tables.journal.select()).one().changes == {"field": "tags", "kinds": ["a token"]}


def test_the_journal_holds_no_text(store: Any) -> None:
    """Neither content nor key nor any label of a memory stands in the journal."""
    rare = {name: f"quokka{name}" for name in ("key", "category", "speaker", "title", "subtitle", "session_id")}
    memory_id = store.add("quokkacontent", tags=("quokkatag",), files_read=("quokkafile",), **rare)
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.update(
            transaction.lookup.by_key("quokkakey"), make_entry("quokkanew", tags=("quokkatwo",)), "update"
        )
        transaction.memories.delete(memory_id)
    lines = store.rows("SELECT * FROM journal")
    assert len(lines) == 5  # of the memory, and of the hidden one that kept its earlier text
    assert "quokka" not in repr(lines)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE journal SET actor = 'eve'",
        "UPDATE journal SET actor = actor WHERE id = 1",
        "DELETE FROM journal",
        "DELETE FROM journal WHERE id = 1",
        "TRUNCATE journal",
        "INSERT INTO journal SELECT * FROM journal ON CONFLICT (id) DO UPDATE SET actor = 'eve'",
    ],
)
def test_the_database_refuses_changes(store: Any, statement: str) -> None:
    """UPDATE, DELETE, TRUNCATE and an upsert on the journal fail in the database itself and change nothing."""
    fill(store)
    before = store.rows("SELECT * FROM journal ORDER BY id")
    with pytest.raises((DatabaseError, StoreUnusable)):
        store.by_hand(statement)
    assert store.rows("SELECT * FROM journal ORDER BY id") == before
    assert broken(store) == {}


def test_a_line_cannot_be_replaced(store: Any) -> None:
    """A conflict clause that would delete a line silently is refused as well."""
    fill(store)
    columns = "at, actor, namespace, action, memory_id, changes, previous, hash"
    forged = columns.replace("actor", "'eve'", 1)
    replace = "INSERT OR REPLACE INTO" if store.sqlite else "INSERT INTO"
    with pytest.raises((DatabaseError, StoreUnusable)):
        store.by_hand(f"{replace} journal (id, {columns}) SELECT id, {forged} FROM journal WHERE id = 3")
    assert broken(store) == {}
    assert store.rows("SELECT count(*) FROM journal WHERE actor = 'eve'") == [(0,)]


@pytest.mark.parametrize("statement", TAMPERING.values(), ids=TAMPERING.keys())
def test_a_changed_line_is_found(store: Any, statement: str) -> None:
    """Whoever drops the triggers and changes any part of a line is found out at that line."""
    fill(store)
    assert broken(store) == {}
    store.by_hand(*DROP[store.sqlite], statement)
    assert broken(store) == ({"user:eve": 4, HERE: 5} if "user:eve" in statement else {HERE: 4})


@pytest.mark.parametrize(("statement", "line"), REMOVALS.values(), ids=REMOVALS.keys())
def test_a_missing_line_is_found(store: Any, statement: str, line: int) -> None:
    """Whoever drops the triggers and removes or moves lines is found out at the next one."""
    fill(store)
    store.by_hand(*DROP[store.sqlite], statement)
    assert broken(store) == {HERE: line}


def test_each_namespace_has_its_own_chain(store: Any) -> None:
    """A line follows the one before in its namespace, whatever was written elsewhere meanwhile; so does one of none."""
    names = [HERE, "user:ada", HERE, "", "user:ada", "", HERE]
    for name in names:
        store.records.refuse(name, "ada", "content", ["a token"])
    lines = store.rows("SELECT namespace, previous, hash FROM journal ORDER BY id")
    for name in set(names):
        chain = [row for row in lines if row.namespace == name]
        assert [row.previous for row in chain] == [journal.FIRST, *(row.hash for row in chain[:-1])]
    assert broken(store) == {}


def test_each_broken_chain_is_named(store: Any) -> None:
    """Lines that were changed are told with their namespaces; chains that nobody touched stay whole."""
    for name in [HERE, "user:ada", "team:crew"] * 3:
        store.records.refuse(name, "ada", "content", ["a token"])
    changes = ["UPDATE journal SET actor = 'eve' WHERE id = 4", "DELETE FROM journal WHERE id = 5"]
    store.by_hand(*DROP[store.sqlite], *changes)
    assert broken(store) == {HERE: 4, "user:ada": 8}


def test_any_names_go_through_the_chain(store: Any) -> None:
    """Actors and namespaces of any letters keep the chain whole, also where the database reorders JSON."""
    names = ["ünïcode 数据 🚢", 'quo"te\\', "line\nbreak", "\u2028", "e\u0301", "%s {x}"]
    for name in names:
        store.records.refuse(f"user:{name}", name, f"zz {name}", [name, "aa", name])
    assert broken(store) == {}
    assert [row[0] for row in store.rows("SELECT actor FROM journal ORDER BY id")] == names


def test_concurrent_writers_keep_the_chain_whole(store: Any) -> None:
    """Four threads, each with connections of its own, write to the same namespaces and words; nothing is lost."""
    failures: list[Exception] = []

    def write(number: int) -> None:
        database = Database(store.database.url.render_as_string(hide_password=False))
        records = Records(database, store.clock, lambda: None)
        chance = random.Random(number)
        mine: list[int] = []
        try:
            for turn in range(20):
                namespace = chance.choice([HERE, "team:crew", f"user:{turn}"])
                with records.writing(namespace, f"thread {number}") as transaction:
                    mine.append(transaction.memories.insert(make_entry(f"rope {turn % 5} mast {number}")))
                    if turn % 4 == 3:
                        transaction.memories.delete(mine[-1])
                records.usage.add(mine, store.clock(), recalled=1)
        except DatabaseError as error:
            failures.append(error)
        finally:
            database.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert broken(store) == {}
    with store.database.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM journal")).scalar() == 4 * (20 + 5)
        assert connection.execute(text("SELECT count(*) FROM memory")).scalar() == 4 * 15
        uses = connection.execute(text("SELECT sum(uses) FROM word WHERE text = 'rope'")).scalar()
        assert uses == 4 * 15
