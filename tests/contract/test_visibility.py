"""Views: what a read may see is decided in SQL, by scope, sensitivity, time and deletion."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import Any

import pytest

from callers import EVERY_LEVEL, own
from entries import make_entry
from recollect.domain.enums import Sensitivity
from recollect.errors import NotFound

HERE = "project:crew/engine"
NAMESPACES = ("user:ada", HERE, "team:crew", "user:eve", "project:crew/engine2", "project:other/engine", "team:other")
HOSTILE = ("user:%", "user:_da", "user:a' OR '1'='1", 'user:"x"', "user:ADA", "user:ada ", "team:数据", "user:ns1")


def test_a_view_shows_its_namespaces_only(store: Any) -> None:
    """Each namespace sees its own memories; wildcards, quotes and letter case open no other."""
    ids = {name: store.add(f"In {name}", name) for name in (*NAMESPACES, *HOSTILE)}
    for name, memory_id in ids.items():
        assert store.sees(store.view(name)) == {memory_id}
        assert store.one(memory_id, name).namespace == name
    assert store.sees(store.view(*NAMESPACES[:3])) == {ids[name] for name in NAMESPACES[:3]}
    assert store.sees(store.view("user:nobody")) == set()
    assert store.records.count(store.view(*NAMESPACES[:3])) == 3


def test_a_view_shows_named_sensitivities_only(store: Any) -> None:
    """Private and secret memories are seen by views that name these levels, and by no others."""
    ids = {level: store.add(f"A {level} one", sensitivity=level) for level in Sensitivity}
    for level in Sensitivity:
        assert store.sees(store.view(sensitivities=own(level))) == {ids[level]}
    assert store.sees(store.view()) == {ids[Sensitivity.PUBLIC]}
    assert store.sees(store.view(sensitivities=())) == set()


@pytest.mark.parametrize("level", ["", "PUBLIC", "public ", "top-secret", "%", "公開"])
def test_an_unknown_sensitivity_is_denied(store: Any, level: str) -> None:
    """A level nobody knows hides its memory from every read and stops none of the others."""
    odd, plain = store.add("Odd", key="odd"), store.add("Plain")
    store.by_hand("UPDATE memory SET sensitivity = :level WHERE id = :id", level=level, id=odd)
    everything = store.view(sensitivities=EVERY_LEVEL)
    assert store.sees(everything) == {plain}
    assert store.records.count(everything) == 1
    assert store.records.namespaces.of_memory(odd, [HERE], EVERY_LEVEL) is None


def test_an_unknown_sensitivity_is_denied_to_writers(store: Any) -> None:
    """A memory of unknown level is found by no key, content or id, and can be neither changed, hidden nor deleted."""
    odd = store.add("Odd", key="odd")
    old = store.one(odd)
    store.by_hand("UPDATE memory SET sensitivity = 'top-secret'")
    before = store.rows("SELECT * FROM memory")
    with store.records.writing(HERE, "ada", tuple(Sensitivity)) as transaction:
        lookup, content_hash = transaction.lookup, old.content_hash
        assert (lookup.by_key("odd"), lookup.by_id(odd), lookup.by_hash(content_hash)) == (None,) * 3
        assert (lookup.by_keys_or_hashes(["odd"], [content_hash]), lookup.page(0, 9)) == ([], [])
        assert (transaction.memories.hide(odd), transaction.memories.delete(odd)) == (False, False)
        transaction.memories.supersede(odd, by=7)
        transaction.memories.quarantine(odd)
        with pytest.raises(NotFound):
            transaction.memories.update(old, make_entry("Odder"), "update")
    assert store.rows("SELECT * FROM memory") == before


def test_a_text_that_is_away_leaves_no_copy(store: Any) -> None:
    """Written over, a memory in quarantine or withdrawn keeps no copy of its text, and one that was kept stays away."""
    ids = [store.add(f"Pier {number}") for number in range(2)]
    with store.records.writing(HERE, "ada", tuple(Sensitivity)) as transaction:
        for memory_id, away in zip(
            ids, (transaction.memories.quarantine, transaction.withdrawals.withdraw), strict=True
        ):
            kept = transaction.memories.archive(transaction.lookup.by_id(memory_id))
            transaction.memories.quarantine(kept)
            away(memory_id)
            old, quay = transaction.lookup.by_id(memory_id), make_entry(f"Quay {memory_id}")
            assert transaction.memories.update(old, quay, "update") is None
            stricter = make_entry(f"Dock {memory_id}", sensitivity=Sensitivity.SECRET)
            transaction.memories.update(transaction.lookup.by_id(memory_id), stricter, "update", keep=False)
            assert [one.id for one in transaction.lookup.archived(memory_id)] == [kept]
    levels = [one for (one,) in store.rows("SELECT sensitivity FROM memory WHERE merged_into IS NOT NULL")]
    assert levels == ["quarantined:secret@ada"] * 2


def test_a_copy_has_the_level_of_the_row(store: Any) -> None:
    """A text is kept at the level that its memory has or is about to have, whatever a writer has read before."""
    memory_id = store.add("The pier has an owner")
    old = store.one(memory_id)
    with store.records.writing(HERE, "ada", tuple(Sensitivity)) as transaction:
        private = make_entry("The pier has two owners", sensitivity=Sensitivity.PRIVATE)
        transaction.memories.update(transaction.lookup.by_id(memory_id), private, "update")
    with store.records.writing(HERE, "ada", tuple(Sensitivity)) as transaction:
        transaction.memories.archive(old)
    levels = [one for (one,) in store.rows("SELECT sensitivity FROM memory WHERE merged_into IS NOT NULL")]
    assert levels == ["private@ada"] * 2


@pytest.mark.parametrize("level", Sensitivity)
def test_a_writer_finds_what_its_levels_let_in(store: Any, level: Sensitivity) -> None:
    """By key, content, id, page and time a writer finds what it may see, in any state, and nothing else."""
    at = store.clock() - timedelta(days=1)
    ids = {one: store.add("Said", key="k", expires_at=at, sensitivity=one) for one in Sensitivity}
    with store.records.writing(HERE, "ada", (level,)) as transaction:
        mine = transaction.lookup.by_id(ids[level])
        assert [transaction.lookup.by_id(one) for one in ids.values()] == [
            mine if one is level else None for one in ids
        ]
        assert (transaction.lookup.by_key("k"), transaction.lookup.by_hash(mine.content_hash)) == (mine, mine)
        lookup = transaction.lookup
        assert lookup.by_keys_or_hashes(["k"], [mine.content_hash]) == lookup.page(0, 9) == [mine]
        assert transaction.retention.expired() == [mine.id]
    store.add("Said later", sensitivity=level)
    with store.records.writing(HERE, "ada", (level,)) as transaction:
        assert transaction.retention.surplus(1, 0) == [mine.id]


def test_a_memory_expires_at_its_instant(store: Any) -> None:
    """A memory is visible until the microsecond before its expiry, and from then on never again."""
    expires_at = store.clock() + timedelta(days=1)
    memory_id = store.add("Brief", expires_at=expires_at.astimezone(timezone(timedelta(hours=5, minutes=30))))
    for offset, seen in ((-1, {memory_id}), (0, set()), (1, set())):
        store.clock.now = expires_at + timedelta(microseconds=offset)
        assert store.sees(store.view()) == seen
        assert store.records.count(store.view()) == len(seen)
        store.clock.now = store.clock.now.astimezone(timezone(timedelta(hours=-11)))
        assert store.sees(store.view()) == seen


def test_a_deleted_memory_is_unseen(store: Any) -> None:
    """A memory marked deleted is not shown, even to a view of the time before."""
    store.add("Gone")
    store.by_hand("UPDATE memory SET deleted_at = created_at")
    assert store.sees(store.view()) == set()
    store.clock.pass_days(-10)
    assert store.sees(store.view()) == set()
