"""Locks on PostgreSQL: writers of one namespace follow each other, those of different ones do not wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text

from entries import make_entry
from recollect.store import journal
from recollect.store.sql.database import Database
from recollect.store.sql.migrations import migrate
from recollect.store.sql.records import Records

HERE, THERE = "project:crew/engine", "user:ada"
LONG = 60  # seconds that nothing here takes, unless it waits for ever


@pytest.fixture(params=["postgresql", "pgbouncer"])
def database(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[Database]:
    """Return an empty PostgreSQL database, reached directly and through a pooler."""
    pooled = request.param == "pgbouncer"
    opened = Database(request.getfixturevalue("pgbouncer").address(postgres_url) if pooled else postgres_url)
    migrate(opened)
    yield opened
    opened.close()


@pytest.fixture
def records(database: Database, clock: Any) -> Records:
    """Return the records of that database."""
    return Records(database, clock, lambda: None)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Return a second thread."""
    with ThreadPoolExecutor(1) as one:
        yield one


def write(records: Records, namespace: str, content: str) -> int:
    """Insert one memory in a transaction of its own."""
    with records.writing(namespace, "bob") as transaction:
        return transaction.memories.insert(make_entry(content))


def chain(database: Database, namespace: str) -> list[str]:
    """Return who wrote the lines of a namespace, in their order, once the whole journal is seen to be sound."""
    with database.reading() as connection:
        assert journal.walk(connection).broken == {}
        query = text("SELECT actor FROM journal WHERE namespace = :name ORDER BY id")
        return list(connection.execute(query, {"name": namespace}).scalars())


def until_one_waits(database: Database) -> None:
    """Return as soon as one transaction waits for an advisory lock."""
    waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        with database.engine.connect() as connection:
            if connection.execute(waiting).scalar_one():
                return
        threading.Event().wait(0.01)
    pytest.fail("nobody waits")


def test_two_namespaces_do_not_wait(database: Database, records: Records, pool: ThreadPoolExecutor) -> None:
    """A whole write to one namespace ends while a transaction on another is open, and both chains are sound."""
    with records.writing(HERE, "ada") as transaction:
        transaction.memories.insert(make_entry("first half"))
        assert pool.submit(write, records, THERE, "elsewhere").result(LONG) > 0
        transaction.memories.insert(make_entry("second half"))
    assert (chain(database, HERE), chain(database, THERE)) == (["ada", "ada"], ["bob"])


def test_one_namespace_is_written_in_turn(database: Database, records: Records, pool: ThreadPoolExecutor) -> None:
    """A second writer of the same namespace waits until the first has ended, and its lines follow."""
    with records.writing(HERE, "ada") as transaction:
        transaction.memories.insert(make_entry("one"))
        second = pool.submit(write, records, HERE, "two")
        until_one_waits(database)
        assert not second.done()
        transaction.memories.insert(make_entry("three"))
    assert second.result(LONG) > 0
    assert chain(database, HERE) == ["ada", "ada", "bob"]


def test_counting_waits_for_no_writer(database: Database, records: Records, pool: ThreadPoolExecutor) -> None:
    """Uses are counted while the namespace is being written; what is being deleted at that moment is left out."""
    kept, gone, changed = (write(records, HERE, content) for content in ("kept", "gone", "changed"))
    with records.writing(HERE, "ada") as transaction:
        old = transaction.lookup.by_id(changed)
        assert old is not None
        transaction.memories.update(old, make_entry("changed again"), "update")
        transaction.memories.delete(gone)
        pool.submit(records.usage.add, [gone, changed, kept], records._clock(), accessed=True).result(LONG)
    with database.reading() as connection:
        counted = connection.execute(text("SELECT memory_id, accessed_count FROM usage ORDER BY memory_id")).all()
    assert [tuple(row) for row in counted] == [(kept, 1), (changed, 1)]
    assert len(chain(database, HERE)) == 6  # three new ones, the text that is kept, its change and the deletion


def test_the_whole_store_is_locked_against_every_writer(
    database: Database, records: Records, pool: ThreadPoolExecutor
) -> None:
    """Whoever compares or exchanges the parts of the store excludes the writers of all namespaces."""
    with database.exclusive():
        second = pool.submit(write, records, THERE, "later")
        until_one_waits(database)
        assert not second.done()
    assert second.result(LONG) > 0
