"""Threads: many writers and readers share one store, and none fails, waits for ever or loses anything."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import text

from callers import ADA
from entries import direction, make_entry
from recollect import App, Draft, Forget, Query, Settings, forget, recall, remember
from recollect.domain.results import WriteStatus
from recollect.search.visibility import view_of
from recollect.store.sql.database import open_file, open_read_only
from recollect.store.vectors import vector_search

pytestmark = pytest.mark.slow

THREADS, WRITES = 8, 50
HERE = "project:crew/engine"


def together(count: int, work: Callable[[int], None]) -> list[BaseException]:
    """Run `work` in so many threads at once; return whatever any of them raised."""
    gate = threading.Barrier(count)

    def run(number: int) -> None:
        gate.wait()
        work(number)

    with ThreadPoolExecutor(count) as pool:
        waiting = [pool.submit(run, number) for number in range(count)]
    return [error for one in waiting if (error := one.exception()) is not None]


def test_eight_writers_lose_nothing(app: App, settings: Settings) -> None:
    """Eight threads with fifty writes each, updates by key and reads among them, all succeed and all remain."""
    stored: list[set[str]] = [set() for _ in range(THREADS)]

    def write(number: int) -> None:
        chance = random.Random(number)
        for turn in range(WRITES):
            if turn % 10 == 9:
                key = f"shared {chance.randrange(5)}"
                remember(app, Draft(content=f"{key} told by {number} at turn {turn}", key=key), ADA)
            else:
                content = f"Thread {number} noted item {turn} of {chance.choice(['rope', 'mast', 'sail'])}"
                outcome = remember(app, Draft(content=content), ADA)
                assert outcome.status is WriteStatus.STORED
                stored[number].add(content)
            if turn % 25 == 0:
                assert recall(app, Query(query=f"item {turn} of thread {number}", min_score=0.0), ADA).hits

    assert together(THREADS, write) == []
    app.vectors.sync()
    assert [check for check in app.checks() if not check.well] == []
    database = open_file(settings.folder / "memory.db")
    with closing(database), database.reading() as connection:
        now, before = "merged_into IS NULL", "merged_into IS NOT NULL"
        held = set(connection.execute(text(f"SELECT content FROM memory WHERE key IS NULL AND {now}")).scalars())
        assert held == set().union(*stored)
        assert len(held) == THREADS * WRITES * 9 // 10
        assert connection.execute(text("SELECT count(*) FROM memory WHERE key IS NOT NULL")).scalar() == 5
        kept = connection.execute(text(f"SELECT count(DISTINCT content) FROM memory WHERE {before}")).scalar()
        assert kept == THREADS * WRITES // 10 - 5  # every text of the shared keys but the last
        assert connection.execute(text("SELECT count(*) FROM journal")).scalar() == THREADS * WRITES + kept


def test_the_same_key_from_everywhere_is_one_memory(app: App) -> None:
    """Threads that write the same new key at the same moment make one memory, with the rest as its updates."""
    outcomes: list[WriteStatus] = []

    def write(number: int) -> None:
        for turn in range(20):
            outcomes.append(remember(app, Draft(content=f"Version {number}.{turn}", key=f"k{turn}"), ADA).status)

    assert together(THREADS, write) == []
    assert outcomes.count(WriteStatus.STORED) == 20
    assert outcomes.count(WriteStatus.UPDATED) == 20 * (THREADS - 1)
    assert [check for check in app.checks() if not check.well] == []


@pytest.mark.full
def test_forgetting_while_vectors_are_synced_leaves_nothing(app: App) -> None:
    """Memories that are forgotten while their vectors are still on the way are nowhere afterwards."""

    def come_and_go(number: int) -> None:
        for turn in range(40):
            outcome = remember(app, Draft(content=f"Fleeting thought {number}.{turn}"), ADA)
            assert forget(app, Forget(id=outcome.id), ADA).status is WriteStatus.DELETED

    assert together(4, come_and_go) == []
    app.vectors.sync()
    assert recall(app, Query(query="fleeting thought", min_score=0.0), ADA).hits == ()
    assert [check for check in app.checks() if not check.well] == []
    assert app.text.size(view_of(app, Query(query="thought"), ADA)) == 0


@pytest.mark.full
def test_vectors_never_outlive_their_memory(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deliveries, drains and rebuilds at the same time end with exactly SQL's vectors in the index."""
    monkeypatch.setattr(vector_search, "_SCANNED", 0)
    ids = [parts.add(f"fact {number}") for number in range(400)]
    parts.vectors.sync()

    def work(number: int) -> None:
        if number == 0:
            for turn in range(6):
                parts.vectors._broken.add(HERE)
                parts.vectors.sync()
                parts.add(f"later {turn}")
        elif number == 1:
            for turn in range(40):
                assert parts.vectors.nearest(direction(f"fact {turn}/0"), parts.view(), 5) is not None
        else:
            for memory_id in ids[number - 2 :: 2]:
                with parts.records.writing(HERE, "ada") as transaction:
                    transaction.memories.delete(memory_id)
                parts.vectors.sync_memory(memory_id)

    assert together(4, work) == []
    parts.vectors.sync()
    assert parts.in_chroma().keys() == parts.in_sql().keys()
    assert len(parts.in_sql()) == 6
    assert parts.checks() == {}


@pytest.mark.parametrize("way", ["drain", "rebuild"])
def test_a_memory_forgotten_in_mid_copy_stays_forgotten(parts: Any, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """A memory that is deleted just when its vectors were read for the index is not in the index afterwards."""
    memory_id = parts.add("fact", chunks=3)
    parts.vectors.sync()
    if way == "drain":
        parts.by_hand(f"INSERT INTO outbox (memory_id, namespace_id, chunks, embedded) VALUES ({memory_id}, 1, 3, 1)")
    else:
        parts.vectors._broken.add(HERE)
    put = parts.index.put

    def forget_meanwhile() -> None:
        parts.delete(memory_id)
        parts.vectors.sync_memory(memory_id)

    forgetting = threading.Thread(target=forget_meanwhile)

    def slow(*arguments: Any) -> None:
        forgetting.start()
        forgetting.join(0.5)  # it ends in this time unless something makes it wait for us, as it should
        put(*arguments)

    monkeypatch.setattr(parts.index, "put", slow)
    parts.vectors.sync()
    forgetting.join()
    monkeypatch.undo()
    assert parts.in_chroma() == parts.in_sql() == {}
    assert parts.rows("SELECT * FROM outbox") == []


@pytest.mark.full
def test_the_doctor_does_not_cry_wolf(parts: Any) -> None:
    """Looking at a store while others write to it never reports damage, at most work that waits."""
    seen: set[str] = set()
    done = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            for _ in range(8):
                seen.update(parts.checks())
            done.set()
        else:
            turn = 0
            while not done.is_set():
                turn += 1
                with parts.records.writing(HERE, "ada") as transaction:
                    memory_id = transaction.memories.insert(make_entry(f"busy {number} {turn}"))
                if turn % 3 == 0:
                    parts.delete(memory_id)
                    parts.vectors.sync_memory(memory_id)

    assert together(3, work) == []
    assert seen <= {"outbox"}
    parts.vectors.sync()
    assert parts.checks() == {}


def test_a_store_that_is_only_read_follows_its_writer(parts: Any) -> None:
    """Whoever may not write the folder sees what its owner writes, also where the log was empty at the opening."""
    parts.add("fact 1")
    parts.database.checkpoint()
    reader = open_read_only(parts.folder / "memory.db")
    counts = []
    for number in range(2):
        with reader.reading() as connection:
            counts.append(connection.exec_driver_sql("SELECT count(*) FROM memory").scalar())
        parts.add(f"late fact {number}")
    reader.close()
    assert counts == [1, 2]
