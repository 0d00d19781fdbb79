"""Shadow vectors: another model's are built aside and change places with the old ones in one transaction."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from entries import direction, make_entry
from recollect.engines.chunks import Chunk
from recollect.engines.late_interaction import similarity
from recollect.store.entries import UnembeddedMemory
from recollect.store.vectors.chroma import ChromaIndex
from recollect.store.vectors.exact import vectors_of
from recollect.store.vectors.shadow_index import ShadowIndex
from recollect.store.vectors.vector_search import VectorSearch

HERE = "project:crew/engine"
OLD = {"model": "old", "revision": "1", "dimensions": "16"}
NEW = {"model": "new", "revision": "2", "dimensions": "16"}


@pytest.fixture
def vectors(store: Any, tmp_path: Path) -> Iterator[VectorSearch]:
    """Return the vectors of a store that the old model built."""
    store.records.stamps.set(OLD)
    made = VectorSearch(store.database, ChromaIndex(tmp_path / "chroma", "m1"), threading.Event(), similarity, OLD)
    yield made
    made.close()


@pytest.fixture
def shadow(store: Any, vectors: VectorSearch) -> ShadowIndex:
    """Return what builds another model's vectors."""
    return ShadowIndex(store.database, vectors)


def read(content: str) -> tuple[Chunk, ...]:
    """Return what the new model makes of a content: a chunk for each word."""
    return tuple(Chunk(0, len(word), direction(f"new {word}"), b"t") for word in content.split())


def fill(shadow: ShadowIndex) -> None:
    """Read whatever is missing."""
    shadow.put([(one, read(one.content)) for one in shadow.missing(0, 99)])


def held(store: Any, *ids: int) -> dict[int, list[list[float]]]:
    """Return the vectors in use."""
    with store.database.reading() as connection:
        return {one: [vector.tolist() for vector in some] for one, some in vectors_of(connection, ids).items()}


def made(content: str) -> list[list[float]]:
    """Return the new model's vectors of a content."""
    return [chunk.vector.tolist() for chunk in read(content)]


def test_only_what_was_not_read_is_missing(store: Any, shadow: ShadowIndex) -> None:
    """A memory is missing until it was read as it is now; ids rise, and a limit is kept."""
    ids = [store.add(f"memory {number}", key=f"k{number}") for number in range(4)]
    shadow.begin(NEW)
    assert shadow.counts() == (0, 4)
    assert [one.id for one in shadow.missing(0, 3)] == ids[:3]
    assert [one.id for one in shadow.missing(ids[1], 9)] == ids[2:]
    fill(shadow)
    assert (shadow.missing(0, 9), shadow.counts()) == ([], (4, 4))
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.update(transaction.lookup.by_key("k2"), make_entry("another text"), "update")
        transaction.memories.delete(ids[0])
    assert [one.id for one in shadow.missing(0, 9)] == [ids[2]]
    assert shadow.counts() == (2, 3)
    assert {row[0] for row in store.rows("SELECT memory_id FROM vector_shadow")} == set(ids[1:])


def test_what_changed_while_it_was_read_stays_missing(store: Any, shadow: ShadowIndex) -> None:
    """Vectors of a content that is not there any more are not kept."""
    one = store.add("as it was", key="k")
    shadow.begin(NEW)
    shadow.put(
        [(UnembeddedMemory(one, "older still", "0" * 64), read("older still")), (UnembeddedMemory(99, "gone", "1"), ())]
    )
    assert store.rows("SELECT * FROM vector_shadow") == []
    assert [found.id for found in shadow.missing(0, 9)] == [one]


def test_the_same_target_goes_on_and_another_begins_anew(store: Any, shadow: ShadowIndex) -> None:
    """Beginning again for the same model keeps what was read; for another one it is dropped."""
    store.add("one two")
    shadow.begin(NEW)
    fill(shadow)
    shadow.begin(NEW)
    assert shadow.counts() == (1, 1)
    shadow.begin(NEW | {"revision": "3"})
    assert shadow.counts() == (0, 1)
    assert store.records.stamps.get("shadow.revision") == "3"


def test_the_switch_exchanges_everything_at_once(store: Any, shadow: ShadowIndex, vectors: VectorSearch) -> None:
    """After the switch vectors, stamps and queue are the new model's, stragglers included; nothing stands beside."""
    one, two, three = (store.add(content, key=content[0]) for content in ("a b c", "d e", "f"))
    before = held(store, one, two, three)
    shadow.begin(NEW)
    fill(shadow)
    late = store.add("g h i j")
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.update(transaction.lookup.by_key("d"), make_entry("dd"), "update")
        transaction.memories.delete(three)
    assert held(store, one) == {one: before[one]}
    assert shadow.switch(read)
    assert held(store, one, two, three, late) == {one: made("a b c"), two: made("dd"), late: made("g h i j")}
    assert {name: store.records.stamps.get(name) for name in NEW} == NEW
    assert store.rows("SELECT * FROM vector_shadow") == []
    assert store.rows("SELECT * FROM store_metadata WHERE name LIKE 'shadow.%'") == []
    assert store.rows("SELECT * FROM outbox") == []
    assert shadow.serves(NEW)
    assert not shadow.serves(OLD)
    assert vectors.state == "moved"
    assert vectors.nearest(direction("new a"), store.view(), 5) == {}


def test_too_many_stragglers_change_nothing(store: Any, shadow: ShadowIndex) -> None:
    """Where much is missing the switch leaves everything as it is, and says so."""
    ids = [store.add(f"memory {number}") for number in range(20)]
    before = held(store, *ids)
    shadow.begin(NEW)
    assert not shadow.switch(read)
    assert held(store, *ids) == before
    assert {name: store.records.stamps.get(name) for name in OLD} == OLD
    assert shadow.counts() == (0, 20)


def test_hidden_memories_do_not_move(store: Any, shadow: ShadowIndex) -> None:
    """What was softly deleted is not read, and what was read of it before does not come into use."""
    kept, hidden = store.add("to keep"), store.add("to hide")
    shadow.begin(NEW)
    fill(shadow)
    with store.records.writing(HERE, "ada") as transaction:
        assert transaction.memories.hide(hidden)
    assert shadow.counts() == (1, 1)
    assert shadow.switch(read)
    assert held(store, kept, hidden) == {kept: made("to keep")}
    assert {row[0] for row in store.rows("SELECT memory_id FROM outbox")} == set()


def test_the_index_is_built_for_the_new_model(
    store: Any, shadow: ShadowIndex, vectors: VectorSearch, tmp_path: Path
) -> None:
    """The new model's owner fills its collections from what the switch brought, and the old ones go."""
    ids = [store.add(f"word{number} and more") for number in range(5)]
    shadow.begin(NEW)
    vectors.sync()
    fill(shadow)
    assert shadow.switch(read)
    vectors.close()
    index = ChromaIndex(tmp_path / "chroma", "m2")
    opened = VectorSearch(store.database, index, threading.Event(), similarity, NEW)
    assert next(iter(opened.nearest(direction("new word3"), store.view(), 3))) == ids[3]
    opened.sync()
    assert (opened.state, index.count(HERE)) == ("ready", 15)
    assert next(iter(index.query(HERE, direction("new word3"), 3))) == ids[3]
    assert {one.name.rpartition("-")[0] for one in index.open().list_collections()} == {"m2"}
    opened.close()


def test_an_open_store_serves_the_vectors_of_the_switch(store: Any, shadow: ShadowIndex, vectors: VectorSearch) -> None:
    """Where the model is the same, the exact scan answers from the switch on, and the next sync builds the index."""
    one = store.add("a memory")
    vectors.sync()
    vectors._broken.add(HERE)
    shadow.begin(OLD)
    fill(shadow)
    assert shadow.switch(read)
    assert (vectors._broken, vectors.state) == (set(), "opening")
    assert list(vectors.nearest(direction("new a"), store.view(), 5)) == [one]
    vectors.sync()
    assert (vectors.state, vectors._index.count(HERE)) == ("ready", 2)


def test_a_moved_process_stores_none_of_its_vectors(store: Any, shadow: ShadowIndex) -> None:
    """What a process of the old model writes after the switch waits for the new one; it embeds nothing itself."""
    records = type(store.records)(store.database, store.clock, lambda: None, OLD)
    shadow.begin(NEW)
    (waiting,) = [store.add("waiting", chunks=None)]
    (seen,) = records.embeddings.unembedded(9)
    assert shadow.switch(read)
    with records.writing(HERE, "ada") as transaction:
        late = transaction.memories.insert(make_entry("late", chunks=3))
    records.embeddings.store(seen, (Chunk(0, 7, direction("old")),))
    assert records.embeddings.unembedded(9) == []
    assert held(store, waiting, late) == {waiting: made("waiting")}
    assert [one.id for one in store.records.embeddings.unembedded(9)] == [late]
