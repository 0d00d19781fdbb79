"""The life of a row: hidden, archived, superseded, restored, expired, evicted, gone; the same on every database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from entries import make_entry
from recollect.domain.enums import Concept, Order, Sensitivity
from recollect.domain.results import Outcome
from recollect.domain.results import WriteStatus as Ended
from recollect.errors import NotFound
from recollect.store.vectors.exact import vectors_of

pytestmark = pytest.mark.pooled

HERE = "project:crew/engine"
THERE = "project:crew/hull"
INDEXES = ("memory_text", "memory_trigram", "word_trigram")


def within(store: Any, namespace: str = HERE) -> Any:
    """Open a write transaction."""
    return store.records.writing(namespace, "ada")


def words(store: Any) -> set[str]:
    """Return the vocabulary."""
    return {word for (word,) in store.rows("SELECT text FROM word")}


def lines(store: Any, memory_id: int) -> list[tuple[str, Any]]:
    """Return what the journal says of a memory."""
    return [(line.action, line.changes) for line in store.records.journal.history(memory_id, [HERE])]


def sound(store: Any) -> bool:
    """Say whether counts, vocabulary and text index agree with the memories."""
    kept = store.rows("SELECT sum(memories) FROM held")[0][0] or 0
    if store.sqlite:
        for name in INDEXES:
            store.by_hand(f"INSERT INTO {name}({name}, rank) VALUES ('integrity-check', 1)")
    held: dict[str, int] = {}
    for (said,) in store.rows("SELECT words FROM memory_words"):
        for word in said.split():
            held[word] = held.get(word, 0) + 1
    used = dict(store.rows("SELECT text, CAST(sum(uses) AS INTEGER) FROM word GROUP BY text"))
    return kept == store.rows("SELECT count(*) FROM memory")[0][0] and held == used


def indexed(store: Any, word: str) -> set[int]:
    """Return what the text index holds under a word, on databases that have one of their own."""
    if not store.sqlite:
        return set()
    return {one for (one,) in store.rows("SELECT rowid FROM memory_text WHERE memory_text MATCH :word", word=word)}


def test_hiding_takes_out_of_sight(store: Any) -> None:
    """A hidden memory keeps its row; sight, vocabulary and text index let go of it, and the vector index is told."""
    one, other = store.add("rare quokka", tags=("marsupial",)), store.add("plain heron")
    told = store.told
    with within(store) as transaction:
        assert transaction.memories.hide(one)
    assert store.sees(store.view()) == {other}
    assert not words(store) & {"rare", "quokka", "marsupial"}
    assert indexed(store, "quokka") == set()
    assert store.rows("SELECT deleted_at FROM memory WHERE id = :id", id=one)[0][0] is not None
    assert store.rows("SELECT chunks FROM outbox WHERE memory_id = :id ORDER BY id DESC LIMIT 1", id=one) == [(1,)]
    assert store.told == told + 1
    assert lines(store, one)[-1] == ("delete", {"soft": True})
    assert sound(store)


def test_only_what_is_in_sight_is_hidden(store: Any) -> None:
    """Hiding twice, hiding what is merged, foreign or unknown changes nothing and says so."""
    one, foreign = store.add("quokka"), store.add("heron", namespace=THERE)
    with within(store) as transaction:
        part = transaction.memories.archive(transaction.lookup.by_id(one))
        assert transaction.memories.hide(one)
        before = store.rows("SELECT count(*) FROM journal")
        assert not any(transaction.memories.hide(each) for each in (one, part, foreign, 999))
    assert store.rows("SELECT count(*) FROM journal")[0][0] == before[0][0] + 2  # the archive's line and the hidden's
    assert store.sees(store.view(HERE, THERE)) == {foreign}


def test_a_hidden_one_comes_back_whole(store: Any) -> None:
    """An update that revives brings back words, text and vectors; one that does not leaves them out of sight."""
    one = store.add("rare quokka", tags=("marsupial",), chunks=2)
    with within(store) as transaction:
        transaction.memories.hide(one)
        transaction.memories.update(transaction.lookup.by_id(one), make_entry("rare wombat"), "update", revive=False)
    assert (store.sees(store.view()), words(store), indexed(store, "wombat")) == (set(), set(), set())
    with within(store) as transaction:
        transaction.memories.update(transaction.lookup.by_id(one), make_entry("rare wombat", chunks=3), "restore")
    assert store.sees(store.view()) == {one}
    assert {"wombat", "rare"} <= words(store)
    assert indexed(store, "wombat") in ({one}, set())
    with store.database.reading() as connection:
        assert len(vectors_of(connection, [one])[one]) == 3
    assert sound(store)


def test_an_archive_is_a_copy_out_of_sight(store: Any) -> None:
    """Archived, a memory's present text is kept as a memory of its own with its labels, without its key, unseen."""
    fields = {"key": "k", "tags": ("b", "a"), "concepts": (Concept.GOTCHA,), "category": "ops", "importance": 0.9}
    one = store.add("rare quokka", **fields)
    with within(store) as transaction:
        old = transaction.lookup.by_id(one)
        part = transaction.memories.archive(old)
        (kept,) = transaction.lookup.archived(one)
    assert (kept.id, kept.content, kept.key, kept.merged_into) == (part, "rare quokka", None, one)
    for name in ("tags", "concepts", "category", "importance", "created_at", "content_hash"):
        assert getattr(kept, name) == getattr(old, name), name
    assert store.sees(store.view()) == {one}
    assert lines(store, part) == [("insert", {"merged_into": one})]
    assert store.rows("SELECT words FROM memory_words WHERE memory_id = :id", id=part) == [("",)]
    assert sound(store)


def test_what_is_inserted_as_merged_is_unseen(store: Any) -> None:
    """A memory that is written as part of another has neither key, vectors nor words, and is found by no hash."""
    one = store.add("rare quokka")
    with within(store) as transaction:
        part = transaction.memories.insert(make_entry("shy heron", key="k", chunks=2), merged_into=one)
    with within(store) as transaction:
        assert transaction.lookup.by_hash(transaction.lookup.by_id(part).content_hash) is None
        assert transaction.lookup.by_key("k") is None
    assert store.sees(store.view()) == {one}
    assert "heron" not in words(store)
    with store.database.reading() as connection:
        assert vectors_of(connection, [part]) == {}
    assert sound(store)


def test_deleting_takes_the_archived_along(store: Any) -> None:
    """With a memory go its parts, each with a line in the journal, and no row of any of them is left."""
    one = store.add("rare quokka", speaker="Grace")
    with within(store) as transaction:
        part = transaction.memories.archive(transaction.lookup.by_id(one))
        other = transaction.memories.insert(make_entry("shy heron", speaker="Linus"), merged_into=one)
    with within(store) as transaction:
        assert transaction.memories.delete(one, "evict")
    for table in ("memory", "label", "vector", "memory_words", "word", "speaker"):
        assert store.rows(f"SELECT * FROM {table}") == []
    assert [lines(store, each)[-1][0] for each in (one, part, other)] == ["evict"] * 3
    assert sound(store)


def test_what_was_merged_goes_whatever_its_level(store: Any) -> None:
    """Whoever may delete the whole takes its parts along, although the call does not let in the level of one."""
    whole = store.add("rare quokka")
    with store.records.writing(HERE, "ada", list(Sensitivity)) as transaction:
        part = transaction.memories.insert(make_entry("shy heron", sensitivity=Sensitivity.SECRET), merged_into=whole)
    with store.records.writing(HERE, "ada", [Sensitivity.PUBLIC]) as transaction:
        assert not transaction.memories.delete(part)
        assert transaction.memories.delete(whole)
    assert store.rows("SELECT id FROM memory") == []
    assert sound(store)


def test_superseding_leaves_recall_only(store: Any) -> None:
    """A superseded memory is seen by views that ask for such, by no other, and not where it lies elsewhere."""
    old, new, foreign = store.add("quokka"), store.add("wombat"), store.add("heron", namespace=THERE)
    with within(store) as transaction:
        transaction.memories.supersede(old, by=new)
        transaction.memories.supersede(foreign, by=new)
    assert store.sees(store.view(HERE, THERE)) == {new, foreign}
    assert store.sees(store.view(superseded=True)) == {old, new}
    assert lines(store, old)[-1] == ("update", {"superseded_by": new})
    with within(store) as transaction:
        transaction.memories.update(transaction.lookup.by_id(old), make_entry("quokka"), "restore")
    assert store.sees(store.view()) == {old, new}


def test_expired_are_those_of_the_namespace(store: Any) -> None:
    """What has passed its time, seen or not, is told in the order of its ids, from the very moment."""
    ends = store.clock() + timedelta(days=1)
    ids = [store.add(name, expires_at=ends) for name in ("quokka", "heron")]
    store.add("wombat", expires_at=ends + timedelta(microseconds=1))
    store.add("stork", namespace=THERE, expires_at=ends)
    with within(store) as transaction:
        assert transaction.retention.expired() == []
        transaction.memories.hide(ids[1])
    store.clock.now = ends
    with within(store) as transaction:
        assert transaction.retention.expired() == ids


def test_surplus_is_the_least_worth(store: Any) -> None:
    """Unseen ones come first, then the least accessed, the longest untouched, the slightest; never the spared one."""
    ids = [store.add(f"m{place}", importance=0.5) for place in range(3)]
    slight = store.add("slight", importance=0.1)
    store.clock.pass_days(1)
    newer, spared, hidden, brief = (
        store.add(name, **more)
        for name, more in (
            ("newer", {}),
            ("spared", {}),
            ("hidden", {}),
            ("brief", {"expires_at": store.clock() + timedelta(days=1)}),
        )
    )
    store.add("foreign", namespace=THERE)
    for times, one in ((9, hidden), (9, brief), (2, ids[0]), (1, ids[2])):
        for _ in range(times):
            store.records.usage.add([one], store.clock(), accessed=1)
    store.records.usage.add([ids[1]], store.clock(), recalled=1)
    with within(store) as transaction:
        transaction.memories.hide(hidden)
    store.clock.pass_days(1)
    order = [hidden, brief, slight, ids[1], newer, ids[2], ids[0]]
    with within(store) as transaction:
        assert transaction.retention.surplus(0, spared) == []
        for most in range(1, 9):
            assert transaction.retention.surplus(most, spared)[:2] == order[: max(8 - most, 0)][:2]
            assert set(transaction.retention.surplus(most, spared)) == set(order[: max(8 - most, 0)])


def test_importance_prolongs(store: Any) -> None:
    """What is important and ends because of that lives on from the use; each that gains a day has a line."""
    ends = store.clock() + timedelta(days=100)
    lasting = store.add("a", importance=0.8, expires_at=ends)
    slight = store.add("b", importance=0.3, expires_at=ends)
    termed = store.add("c", importance=0.8, ttl_days=100.0, expires_at=ends)
    kept = store.add("d", importance=0.8)
    late = store.add("e", importance=0.8, expires_at=store.clock() + timedelta(days=239.5))
    gone = store.add("f", importance=0.8, expires_at=store.clock())
    store.records.lists.extend_expiry([lasting, slight, termed, kept, late, gone, 999], store.clock(), "grace")
    found = dict(store.rows("SELECT id, expires_at FROM memory ORDER BY id"))
    assert store.one(lasting).expires_at == store.clock() + timedelta(days=240)
    assert store.one(slight).expires_at == store.one(termed).expires_at == ends
    assert (found[kept], store.one(late).expires_at) == (None, store.clock() + timedelta(days=239.5))
    assert lines(store, lasting)[-1] == ("refresh", {"fields": ["expires_at"]})
    assert store.rows("SELECT count(*) FROM journal WHERE action = 'refresh' AND actor = 'grace'") == [(1,)]


def test_an_answer_is_one_actors_own(store: Any) -> None:
    """The outcome of a request is found again by whoever made it, in its place and operation, until it is dropped."""
    with within(store) as transaction:
        transaction.outcomes.record("remember", "r1", Outcome(Ended.MERGED, "7", ("a note",)))
        transaction.outcomes.record("remember", "", Outcome(Ended.STORED, "8"))
    told = Outcome(Ended.MERGED, "7", ("a note",))
    with within(store) as transaction:
        assert transaction.outcomes.previous("remember", "r1") == told
        assert [transaction.outcomes.previous("remember", one) for one in ("", "r2")] == [None, None]
        assert transaction.outcomes.previous("restore", "r1") is None
    assert store.records.outcomes.previous([THERE, HERE], "ada", "remember", "r1") == told
    assert store.records.outcomes.previous([THERE], "ada", "remember", "r1") is None
    with store.records.writing(HERE, "bob") as transaction:
        assert transaction.outcomes.previous("remember", "r1") is None
    store.records.outcomes.drop(store.clock() + timedelta(seconds=1))
    with within(store) as transaction:
        assert transaction.outcomes.previous("remember", "r1") is None


def test_a_failure_leaves_no_trace(store: Any) -> None:
    """A transaction that hides, archives, supersedes and deletes, and then fails, has done nothing."""
    ids = [store.add(f"m{place}") for place in range(4)]
    before = store.dump()
    with pytest.raises(NotFound), within(store) as transaction:  # noqa: PT012 - all of it is one transaction
        transaction.memories.hide(ids[0])
        transaction.memories.archive(transaction.lookup.by_id(ids[1]))
        transaction.memories.supersede(ids[2], by=ids[1])
        transaction.memories.delete(ids[3])
        raise NotFound("no")
    assert store.dump() == before
    assert store.records.lists.ids(store.view(), Order.OLDEST, 10, 0) == ids
