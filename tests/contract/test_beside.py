"""Vectors beside: another model's are built aside and change places with the old ones in one transaction."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from entries import direction, make_entry
from recollect.ports import Chunk, Unembedded
from recollect.store.beside import SqlBeside
from recollect.store.nearest import SqlChromaVectors
from recollect.store.outbox import vectors_of
from recollect.store.vectors import ChromaIndex

HERE = "project:crew/engine"
OLD = {"model": "old", "revision": "1", "dimensions": "16"}
NEW = {"model": "new", "revision": "2", "dimensions": "16"}


@pytest.fixture
def vectors(store: Any, tmp_path: Path) -> Iterator[SqlChromaVectors]:
    """Return the vectors of a store that the old model built."""
    store.records.set_stamps(OLD)
    made = SqlChromaVectors(store.database, ChromaIndex(tmp_path / "chroma", "m1"), threading.Event(), OLD)
    yield made
    made.close()


@pytest.fixture
def beside(store: Any, vectors: SqlChromaVectors) -> SqlBeside:
    """Return what builds beside them."""
    return SqlBeside(store.database, vectors._index, vectors)


def read(content: str) -> tuple[Chunk, ...]:
    """Return what the new model makes of a content: a chunk for each word."""
    return tuple(Chunk(0, len(word), direction(f"new {word}"), b"t") for word in content.split())


def fill(beside: SqlBeside) -> None:
    """Read whatever is missing."""
    beside.put([(one, read(one.content)) for one in beside.missing(0, 99)])


def held(store: Any, *ids: int) -> dict[int, list[list[float]]]:
    """Return the vectors in use."""
    with store.database.reading() as connection:
        return {one: [vector.tolist() for vector in some] for one, some in vectors_of(connection, ids).items()}


def made(content: str) -> list[list[float]]:
    """Return the new model's vectors of a content."""
    return [chunk.vector.tolist() for chunk in read(content)]


def test_only_what_was_not_read_is_missing(store: Any, beside: SqlBeside) -> None:
    """A memory is missing until it was read as it is now; ids rise, and a limit is kept."""
    ids = [store.add(f"memory {number}", key=f"k{number}") for number in range(4)]
    beside.begin(NEW)
    assert beside.counts() == (0, 4)
    assert [one.id for one in beside.missing(0, 3)] == ids[:3]
    assert [one.id for one in beside.missing(ids[1], 9)] == ids[2:]
    fill(beside)
    assert (beside.missing(0, 9), beside.counts()) == ([], (4, 4))
    with store.records.writing(HERE, "ada") as transaction:
        transaction.update(transaction.by_key("k2"), make_entry("another text"), "update")
        transaction.delete(ids[0])
    assert [one.id for one in beside.missing(0, 9)] == [ids[2]]
    assert beside.counts() == (2, 3)
    assert {row[0] for row in store.rows("SELECT memory_id FROM vector_beside")} == set(ids[1:])


def test_what_changed_while_it_was_read_stays_missing(store: Any, beside: SqlBeside) -> None:
    """Vectors of a content that is not there any more are not kept."""
    one = store.add("as it was", key="k")
    beside.begin(NEW)
    beside.put([(Unembedded(one, "older still", "0" * 64), read("older still")), (Unembedded(99, "gone", "1"), ())])
    assert store.rows("SELECT * FROM vector_beside") == []
    assert [found.id for found in beside.missing(0, 9)] == [one]


def test_the_same_target_goes_on_and_another_begins_anew(store: Any, beside: SqlBeside) -> None:
    """Beginning again for the same model keeps what was read; for another one it is dropped."""
    store.add("one two")
    beside.begin(NEW)
    fill(beside)
    beside.begin(NEW)
    assert beside.counts() == (1, 1)
    beside.begin(NEW | {"revision": "3"})
    assert beside.counts() == (0, 1)
    assert store.records.stamp("beside.revision") == "3"


def test_the_switch_exchanges_everything_at_once(store: Any, beside: SqlBeside, vectors: SqlChromaVectors) -> None:
    """After the switch vectors, stamps and queue are the new model's, stragglers included; nothing stands beside."""
    one, two, three = (store.add(content, key=content[0]) for content in ("a b c", "d e", "f"))
    before = held(store, one, two, three)
    beside.begin(NEW)
    fill(beside)
    beside.index(lambda: None)
    late = store.add("g h i j")
    with store.records.writing(HERE, "ada") as transaction:
        transaction.update(transaction.by_key("d"), make_entry("dd"), "update")
        transaction.delete(three)
    assert held(store, one) == {one: before[one]}
    assert beside.switch(read)
    assert held(store, one, two, three, late) == {one: made("a b c"), two: made("dd"), late: made("g h i j")}
    assert {name: store.records.stamp(name) for name in NEW} == NEW
    assert store.rows("SELECT * FROM vector_beside") == []
    assert store.rows("SELECT * FROM stamp WHERE name LIKE 'beside.%'") == []
    queued = {tuple(row) for row in store.rows("SELECT memory_id, chunks FROM outbox WHERE embedded")}
    assert queued == {(two, 2), (three, 1), (late, 4)}
    assert beside.serves(NEW)
    assert not beside.serves(OLD)
    assert vectors.state == "moved"
    assert vectors.nearest(direction("new a"), store.view(), 5) == {}


def test_too_many_stragglers_change_nothing(store: Any, beside: SqlBeside) -> None:
    """Where much is missing the switch leaves everything as it is, and says so."""
    ids = [store.add(f"memory {number}") for number in range(20)]
    before = held(store, *ids)
    beside.begin(NEW)
    assert not beside.switch(read)
    assert held(store, *ids) == before
    assert {name: store.records.stamp(name) for name in OLD} == OLD
    assert beside.counts() == (0, 20)


def test_hidden_memories_do_not_move(store: Any, beside: SqlBeside) -> None:
    """What was softly deleted is not read, and what was read of it before does not come into use."""
    kept, hidden = store.add("to keep"), store.add("to hide")
    beside.begin(NEW)
    fill(beside)
    with store.records.writing(HERE, "ada") as transaction:
        assert transaction.hide(hidden)
    assert beside.counts() == (1, 1)
    beside.index(lambda: None)
    assert beside.switch(read)
    assert held(store, kept, hidden) == {kept: made("to keep")}
    assert {row[0] for row in store.rows("SELECT memory_id FROM outbox")} == set()


def test_a_new_model_finds_its_index_ready(
    store: Any, beside: SqlBeside, vectors: SqlChromaVectors, tmp_path: Path
) -> None:
    """The collections that the new model's owner opens hold what the switch brought, and the old ones go."""
    ids = [store.add(f"word{number} and more") for number in range(5)]
    beside.begin(NEW)
    vectors.sync()
    fill(beside)
    beside.index(lambda: None)
    assert beside.switch(read)
    assert store.rows("SELECT * FROM outbox") == []
    vectors.close()
    index = ChromaIndex(tmp_path / "chroma", "m2")
    assert index.count(HERE) == 15
    opened = SqlChromaVectors(store.database, index, threading.Event(), NEW)
    opened.sync()
    assert next(iter(opened.nearest(direction("new word3"), store.view(), 3))) == ids[3]
    assert {one.name.rpartition("-")[0] for one in index.open().list_collections()} == {"m2"}
    opened.close()


def test_a_generation_that_is_being_built_is_not_pruned(store: Any, beside: SqlBeside, tmp_path: Path) -> None:
    """An owner that opens the index leaves the collections under construction alone while their stamp stands."""
    store.add("one two three")
    beside.begin(NEW)
    fill(beside)
    beside.index(lambda: None)
    beside._index.close()
    index = ChromaIndex(tmp_path / "chroma", "m1")
    opened = SqlChromaVectors(store.database, index, threading.Event(), OLD)
    opened.sync()
    assert {one.name.rpartition("-")[0] for one in index.open().list_collections()} == {"m1", "m2"}
    opened.close()


def test_a_moved_process_stores_none_of_its_vectors(store: Any, beside: SqlBeside) -> None:
    """What a process of the old model writes after the switch waits for the new one; it embeds nothing itself."""
    records = type(store.records)(store.database, store.clock, lambda: None, OLD)
    beside.begin(NEW)
    (waiting,) = [store.add("waiting", chunks=None)]
    (seen,) = records.unembedded(9)
    assert beside.switch(read)
    with records.writing(HERE, "ada") as transaction:
        late = transaction.insert(make_entry("late", chunks=3))
    records.attach(seen, (Chunk(0, 7, direction("old")),))
    assert records.unembedded(9) == []
    assert held(store, waiting, late) == {waiting: made("waiting")}
    assert [one.id for one in store.records.unembedded(9)] == [late]
