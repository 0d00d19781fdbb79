"""Records: what is written is what is read, in one namespace, in one transaction, on every database."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from callers import own
from entries import DIMENSIONS, direction, make_entry
from recollect.domain.enums import Concept, FactType, ObservationType, Scope, Sensitivity, Source
from recollect.engines.chunks import Chunk
from recollect.errors import NotFound
from recollect.store.entries import UnembeddedMemory
from recollect.store.sql import tables
from recollect.store.vectors.exact import vectors_of

pytestmark = pytest.mark.slow

HERE = "project:crew/engine"
THERE = "project:crew/hull"
INDEXES = ("memory_text", "memory_trigram", "word_trigram")
TEXTS = {
    "emoji": "Ship it 🚢🏴‍☠️👩🏽‍🚀 today",
    "cjk": "数据库的密钥每周轮换。データベース、데이터베이스",
    "right to left": "שלום עולם and مرحبا بالعالم",
    "combining": "cafe\u0301 A\u030a e\u0323\u0302 \u200d zero\u200bwidth",
    "quotes": """It's "quoted" `code` \\ back\\slash %s :name ? $1 %(x)s {y} ''""",
    "sql": "'); DROP TABLE memory; -- ",
    "controls": "tab\tbell\x07 crlf\r\nlone cr\rescape\x1b[31m unit\x1f",
    "spaces": "  leading and trailing  \n\n",
    "astral": "\U0001f9ff\U00020000\U0010fffd",
    "bom": "\ufeffbom and \ufffe noncharacter",
    "long": "word " * 39_999,
}


def chunks_of(store: Any, memory_id: int) -> list[list[float]]:
    """Return the vectors that SQL holds of a memory."""
    with store.database.reading() as connection:
        return [vector.tolist() for vector in vectors_of(connection, [memory_id]).get(memory_id, [])]


def test_insert_keeps_every_field(store: Any) -> None:
    """A memory is read back with each field that was written, and with counts of zero."""
    fields = {
        "key": "k1",
        "fact_type": FactType.DECISION,
        "type": ObservationType.BUGFIX,
        "concepts": (Concept.GOTCHA, Concept.HOW_IT_WORKS),
        "category": "ops",
        "tags": ("zeta", "alpha"),
        "importance": 0.1,
        "confidence": 0.2,
        "trust": 0.3,
        "sensitivity": Sensitivity.PRIVATE,
        "title": "A title",
        "subtitle": "A subtitle",
        "abstract": "An abstract",
        "overview": "An overview",
        "files_read": ("b.py", "a.py"),
        "files_modified": ("c.py",),
        "session_id": "s1",
        "project": "engine",
        "discovery_tokens": 17,
        "observed_at": datetime(2020, 2, 29, 23, 59, 59, 999_999, UTC),
        "speaker": "user",
        "position": 3,
        "source": Source.IMPORT,
    }
    expires_at = store.clock() + timedelta(days=1)
    memory = store.one(store.add("All of it", expires_at=expires_at, **fields))
    assert {name: getattr(memory, name) for name in fields} == fields
    assert (memory.content, memory.namespace, memory.scope) == ("All of it", HERE, Scope.PROJECT)
    assert (memory.created_at, memory.updated_at, memory.expires_at) == (store.clock(), store.clock(), expires_at)
    assert (memory.author, memory.accessed_count, memory.recalled_count) == ("ada", 0, 0)
    assert (memory.last_accessed_at, memory.deleted_at) == (None, None)


@pytest.mark.parametrize("content", TEXTS.values(), ids=TEXTS.keys())
def test_any_text_survives(store: Any, content: str) -> None:
    """What SQL can hold comes back letter by letter, in content, key, title and labels; names have one line."""
    short = content[:400].strip()
    memory = store.one(store.add(content, key=short, title=short, tags=(short, "other")))
    assert memory.content == content
    line = " ".join(re.split(r"\s*[\r\n]\s*", short))
    assert (memory.key, memory.title, memory.tags) == (line, line, (line, "other"))
    with store.records.writing(HERE, "ada") as transaction:
        assert transaction.lookup.by_key(line) == memory
        assert transaction.lookup.by_hash(memory.content_hash) == memory


def test_labels_keep_their_order_until_they_are_given(store: Any) -> None:
    """Labels stay as they were in an update that does not name them, and are replaced by one that does."""
    tags = tuple(f"t{number}" for number in random.Random(7).sample(range(99), 40))
    memory_id = store.add("Labelled", tags=tags, files_read=("z", "a"), concepts=(Concept.PATTERN,))
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.update(store.one(memory_id), make_entry("Labelled anew", files_read=("a", "y")), "update")
    memory = store.one(memory_id)
    assert (memory.tags, memory.files_read, memory.concepts) == (tags, ("a", "y"), (Concept.PATTERN,))
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.update(memory, make_entry("Labelled anew", tags=()), "update")
    assert (store.one(memory_id).tags, store.one(memory_id).files_read) == ((), ("a", "y"))


def test_update_writes_what_was_given(store: Any) -> None:
    """An update leaves the fields that nobody set, keeps the date of creation and replaces the vectors."""
    memory_id = store.add("First", key="k", category="ops", importance=0.9, chunks=4)
    before = store.one(memory_id)
    store.clock.pass_days(1)
    with store.records.writing(HERE, "bob") as transaction:
        entry = make_entry("Second", at=store.clock(), importance=0.2, chunks=2, author="bob")
        transaction.memories.update(transaction.lookup.by_key("k"), entry, "update")
    after = store.one(memory_id)
    assert (after.content, after.importance, after.category, after.key) == ("Second", 0.2, "ops", "k")
    assert (after.created_at, after.updated_at) == (before.created_at, store.clock())
    assert (after.author, before.author) == ("bob", "ada")
    assert chunks_of(store, memory_id) == [direction(f"Second/{number}").tolist() for number in range(2)]


def test_refresh_leaves_the_vectors_alone(store: Any) -> None:
    """The same content again changes neither vectors nor outbox, only the row and the journal."""
    memory_id = store.add("Same", chunks=2)
    waiting, told = store.rows("SELECT * FROM outbox"), store.told
    with store.records.writing(HERE, "ada") as transaction:
        old = transaction.lookup.by_hash(store.one(memory_id).content_hash)
        transaction.memories.update(old, replace(make_entry("Same", chunks=None), confidence=0.75), "refresh")
    assert store.one(memory_id).confidence == 0.75
    assert len(chunks_of(store, memory_id)) == 2
    assert (store.rows("SELECT * FROM outbox"), store.told) == (waiting, told)
    assert [line.action for line in store.records.journal.history(memory_id, [HERE])] == ["insert", "refresh"]


def test_update_brings_a_deleted_memory_back(store: Any) -> None:
    """Writing to a memory that was marked deleted makes it visible again."""
    memory_id = store.add("Gone", key="k")
    store.by_hand("UPDATE memory SET deleted_at = created_at")
    assert store.sees(store.view()) == set()
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.update(transaction.lookup.by_key("k"), make_entry("Back"), "update")
    assert store.sees(store.view()) == {memory_id}


def test_delete_leaves_no_row(store: Any) -> None:
    """Deleting empties every table of the memory but journal and outbox, and an id is never used again."""
    memory_id = store.add("Rare quokka", key="k", tags=("t",), chunks=3)
    store.records.usage.add([memory_id], store.clock(), accessed=1)
    with store.records.writing(HERE, "ada") as transaction:
        assert transaction.memories.delete(memory_id)
    for table in ("memory", "label", "usage", "vector", "memory_words", "word"):
        assert store.rows(f"SELECT * FROM {table}") == []
    assert store.rows("SELECT memory_id, chunks FROM outbox ORDER BY id DESC LIMIT 1") == [(memory_id, 3)]
    canonical = [rows for name, rows in store.dump().items() if not name.startswith(INDEXES)]
    assert "quokka" not in str(canonical).lower()
    assert store.add("Next") > memory_id


def test_delete_stays_in_its_namespace(store: Any) -> None:
    """A memory of another namespace is not there to be deleted, and looking for it writes nothing."""
    memory_id = store.add("Ours")
    before = store.dump()
    for namespace in (THERE, "user:ada", "project:crew/engin_", ""):
        with store.records.writing(namespace, "eve") as transaction:
            assert not transaction.memories.delete(memory_id)
            assert not transaction.memories.delete(memory_id + 1)
    assert store.dump() == before


def test_update_stays_in_its_namespace(store: Any) -> None:
    """A memory of another namespace cannot be updated, and the attempt leaves no trace."""
    memory = store.one(store.add("Ours", tags=("t",)))
    before = store.dump()
    with pytest.raises(NotFound), store.records.writing(THERE, "eve") as transaction:
        transaction.memories.update(memory, make_entry("Theirs", tags=("x",)), "update")
    assert store.dump() == before


def test_a_key_is_unique_in_its_namespace_only(store: Any) -> None:
    """The same key may stand in two namespaces, and never twice in one."""
    here, there = store.add("Here", key="k"), store.add("There", THERE, key="k")
    with pytest.raises(IntegrityError):
        store.add("Again", key="k")
    store.add("No key"), store.add("No key either")
    for namespace, expected in ((HERE, here), (THERE, there)):
        with store.records.writing(namespace, "ada") as transaction:
            assert transaction.lookup.by_key("k").id == expected
    with store.records.writing("team:crew", "ada") as transaction:
        assert transaction.lookup.by_key("k") is None


def test_by_hash_finds_the_oldest_of_its_own(store: Any) -> None:
    """The same content is found in the same namespace only, the oldest first, deleted ones never."""
    content_hash = make_entry("Twice").content_hash
    store.add("Twice", THERE)
    first, second = store.add("Twice"), store.add("Twice")
    with store.records.writing(HERE, "ada") as transaction:
        assert transaction.lookup.by_hash(content_hash).id == first
    store.by_hand("UPDATE memory SET deleted_at = created_at WHERE id = :id", id=first)
    with store.records.writing(HERE, "ada") as transaction:
        assert transaction.lookup.by_hash(content_hash).id == second
        assert transaction.lookup.by_hash("0" * 64) is None


def test_a_failed_block_leaves_no_trace(store: Any) -> None:
    """An error inside the block undoes all of it, in every table, and nobody is told of work."""
    memory_id = store.add("Stays", key="k", tags=("t",))
    before, told = store.dump(), store.told

    def fail(namespace: str, error: type[BaseException]) -> None:
        with store.records.writing(namespace, "ada") as transaction:
            transaction.memories.insert(make_entry("Never", tags=("x",), key="new"))
            if transaction.memories.delete(memory_id):
                transaction.memories.insert(make_entry("Never either", key="new"))
            raise error

    with pytest.raises(ZeroDivisionError):
        fail("team:new", ZeroDivisionError)
    with pytest.raises(IntegrityError):
        fail(HERE, ZeroDivisionError)
    with pytest.raises(KeyboardInterrupt):
        fail("team:new", KeyboardInterrupt)
    assert store.dump() == before
    assert store.told == told


def test_work_is_told_after_the_commit(store: Any) -> None:
    """Whoever carries vectors is called once a transaction, and only when it left something to carry."""
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.insert(make_entry("One"))
        transaction.memories.insert(make_entry("Two"))
        assert store.told == 0
    assert store.told == 1
    with store.records.writing(HERE, "ada") as transaction:
        transaction.lookup.by_key("nothing")
    assert store.told == 1


def test_touch_counts_uses(store: Any) -> None:
    """Reads by id and recalls are counted apart; unknown ids and empty lists do nothing."""
    one, two = store.add("One"), store.add("Two")
    store.records.usage.add([], store.clock(), accessed=1)
    store.records.usage.add([one, 999], store.clock(), accessed=1)
    store.clock.pass_days(0.5)
    store.records.usage.add([one, two], store.clock(), recalled=1)
    store.records.usage.add([one], store.clock(), accessed=1)
    first, second = store.one(one), store.one(two)
    assert (first.accessed_count, first.recalled_count) == (2, 1)
    assert (second.accessed_count, second.recalled_count) == (0, 1)
    assert first.last_accessed_at == store.clock()
    assert store.rows("SELECT count(*) FROM usage") == [(2,)]


def test_locate_finds_memories_in_any_state(store: Any) -> None:
    """An id is located in the given namespaces and levels only, even when it is expired or deleted."""
    memory_id = store.add("Hidden", expires_at=store.clock(), sensitivity="secret")
    store.by_hand("UPDATE memory SET deleted_at = created_at")
    levels = own(Sensitivity.PUBLIC, Sensitivity.SECRET)
    assert store.records.namespaces.of_memory(memory_id, [THERE, HERE], levels) == HERE
    assert store.records.namespaces.of_memory(memory_id, [THERE], levels) is None
    assert store.records.namespaces.of_memory(memory_id, [], levels) is None
    assert store.records.namespaces.of_memory(memory_id + 1, [HERE], levels) is None
    assert store.records.namespaces.of_memory(memory_id, [HERE], own(Sensitivity.PUBLIC, Sensitivity.PRIVATE)) is None


@pytest.mark.full
def test_load_takes_many_ids(store: Any) -> None:
    """More ids than one statement holds are read in one call, without what does not exist."""
    with store.records.writing(HERE, "ada") as transaction:
        ids = [transaction.memories.insert(make_entry(f"Number {number}", tags=("a", "b"))) for number in range(520)]
    found = store.records.load([*ids, 10**6, ids[0]], store.view())
    assert sorted(found) == ids
    assert all(memory.tags == ("a", "b") for memory in found.values())
    assert store.records.count(store.view()) == 520


def test_unembedded_memories_get_their_vectors(store: Any) -> None:
    """What the model has not seen is listed oldest first, and no longer once its vectors are attached."""
    ids = [store.add(f"Waiting {number}", chunks=None) for number in range(3)]
    store.add("Embedded")
    waiting = store.records.embeddings.unembedded(2)
    assert [one.id for one in waiting] == ids[:2]
    told = store.told
    for one in store.records.embeddings.unembedded(9):
        store.records.embeddings.store(one, (Chunk(0, 3, direction("a")), Chunk(3, 9, direction("b"))))
    assert store.told == told + 3, "the vector index is not told of new vectors"
    assert store.records.embeddings.unembedded(9) == []
    assert chunks_of(store, ids[2]) == [direction("a").tolist(), direction("b").tolist()]
    assert store.rows("SELECT count(*) FROM outbox WHERE embedded") == [(4,)]


def test_vectors_of_an_older_content_are_refused(store: Any) -> None:
    """Vectors made from content that changed meanwhile are not attached, and the memory waits on."""
    memory_id = store.add("Old", key="k", chunks=None)
    (old,) = store.records.embeddings.unembedded(1)
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.update(transaction.lookup.by_key("k"), make_entry("New", chunks=None), "update")
    store.records.embeddings.store(old, (Chunk(0, 3, direction("old")),))
    assert chunks_of(store, memory_id) == []
    (new,) = store.records.embeddings.unembedded(9)
    assert new == UnembeddedMemory(memory_id, "New", store.one(memory_id).content_hash)


def test_a_forgotten_memory_waits_for_no_model(store: Any) -> None:
    """Deleting a memory that the model never saw leaves nothing in the queue that only the model could free."""
    memory_id = store.add("Brief", chunks=None)
    (seen,) = store.records.embeddings.unembedded(1)
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.delete(memory_id)
    store.records.embeddings.store(seen, (Chunk(0, 5, direction("x")),))
    assert store.records.embeddings.unembedded(9) == []
    assert store.rows("SELECT * FROM outbox WHERE NOT embedded") == []
    assert store.rows("SELECT * FROM vector") == []


def test_what_lacks_vectors_is_queued(store: Any) -> None:
    """A memory without vectors, or with some of another size, waits for the model once; a sound one does not."""
    none, short, sound = (store.add(name, chunks=2) for name in ("None", "Short", "Sound"))
    unread = store.add("EmbeddingNeeded", chunks=None)
    store.by_hand(f"DELETE FROM vector WHERE memory_id = {none}")
    with store.database.writing() as connection:
        connection.execute(update(tables.vector).where(tables.vector.c.memory_id == short).values(embedding=b"1234"))
    for _ in range(2):
        assert store.records.embeddings.queue_missing(DIMENSIONS) == (3, 4)
        assert [one.id for one in store.records.embeddings.unembedded(9)] == [none, short, unread]
    queued = store.rows("SELECT memory_id, chunks FROM outbox WHERE NOT embedded ORDER BY memory_id")
    assert [tuple(row) for row in queued] == [(none, 0), (short, 2), (unread, 0)]
    assert sound not in {row[0] for row in queued}


def test_stamps_are_overwritten(store: Any) -> None:
    """A stamp is unknown until set, then says the latest value."""
    assert store.records.stamps.get("model") is None
    store.records.stamps.set({"model": "a", "dimensions": "1"})
    store.records.stamps.set({"model": "b"})
    assert (store.records.stamps.get("model"), store.records.stamps.get("dimensions")) == ("b", "1")


def test_a_read_sees_one_state(store: Any) -> None:
    """What is written while a read transaction is open is not in it, and is in the next one."""
    first = store.add("before")
    with store.database.reading():
        assert store.rows("SELECT count(*) FROM memory")[0][0] == 1
        writer = Thread(target=store.add, args=("meanwhile",))
        writer.start()
        writer.join()
        assert store.rows("SELECT id FROM memory") == [(first,)]
    assert store.rows("SELECT count(*) FROM memory")[0][0] == 2
