"""Lists in SQL: every order, every filter, pages and counts, on every database."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from callers import EVERY_LEVEL
from entries import make_entry
from recollect.domain.enums import Concept, EntityType, FactType, ObservationType, Order, Sensitivity
from recollect.domain.results import Entity
from recollect.errors import InvalidInput

HERE = "project:crew/engine"
THERE = "team:crew"
FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "fact_type": ({"fact_type": FactType.DECISION}, {"fact_type": FactType.DECISION}),
    "category": ({"category": "ops"}, {"category": "ops"}),
    "type": ({"type": ObservationType.BUGFIX}, {"type": ObservationType.BUGFIX}),
    "tags": ({"tags": ("Straße", "b")}, {"tags": ("STRASSE".replace("SS", "ß"),)}),
    "concepts": ({"concepts": (Concept.GOTCHA, Concept.PATTERN)}, {"concepts": (Concept.PATTERN,)}),
    "entity": ({}, {"entity": "parse_CONFIG"}),
    "project": ({"project": "hull"}, {"project": "hull"}),
    "session_id": ({"session_id": "s1"}, {"session_id": "s1"}),
    "file": ({"files_read": ("src/a/b.py",)}, {"file": "a/b.py"}),
    "sensitivity": ({"sensitivity": Sensitivity.PRIVATE}, {"sensitivity": Sensitivity.PRIVATE}),
}


def filled(store: Any) -> list[int]:
    """Store memories that differ in everything a list sorts by, some of them used."""
    chance = random.Random(20260301)
    ids = []
    for place in range(30):
        ids.append(store.add(f"memory {place}", importance=chance.choice([0.1, 0.5, 0.9])))
        store.clock.pass_days(chance.choice([0.0, 1.0]))
    for one in chance.sample(ids, 12):
        store.records.usage.add([one], store.clock(), **{chance.choice(["accessed", "recalled"]): 1})
    for one in chance.sample(ids, 5):
        with store.records.writing(HERE, "ada") as transaction:
            transaction.memories.update(store.one(one), make_entry(f"changed {one}", at=store.clock()), "update")
        store.clock.pass_days(1)
    return ids


def worth(order: Order, memory: Any) -> Any:
    """Return by what a list in this order is sorted, all descending."""
    uses = memory.accessed_count + memory.recalled_count
    return {
        Order.NEWEST: (memory.created_at, memory.id),
        Order.OLDEST: (-memory.created_at.timestamp(), -memory.id),
        Order.UPDATED: (memory.updated_at, memory.id),
        Order.USED: (uses, memory.updated_at, memory.id),
        Order.IMPORTANT: (memory.importance, memory.updated_at, memory.id),
    }[order]


def test_pages_in_every_order(store: Any) -> None:
    """The pages of a list are the whole of it, sorted, each memory once, by number and behind each other."""
    ids = filled(store)
    for order in Order:
        expected = sorted((store.one(one) for one in ids), key=lambda one: worth(order, one), reverse=True)
        pages = [store.records.lists.ids(store.view(), order, 7, start) for start in range(0, 42, 7)]
        assert [one for page in pages for one in page] == [one.id for one in expected], order
        assert [one for page in paged(store, order) for one in page] == [one.id for one in expected], order
        assert store.records.lists.ids(store.view("project:crew/nobody"), order, 7, 0) == [], order


@pytest.mark.parametrize("name", FIELDS)
def test_every_filter_in_every_order(store: Any, name: str) -> None:
    """Each filter keeps exactly the memories that meet it, in any order, however many labels they carry."""
    fields, asked = FIELDS[name]
    entry = make_entry("the one", **fields)
    entry = entry.with_entities([Entity("parse_config", EntityType.IDENTIFIER)] if name == "entity" else [])
    with store.records.writing(HERE, "ada") as transaction:
        one = transaction.memories.insert(entry)
    store.add("another", tags=("other",), category="dev", files_read=("src/a/c.py",))
    with store.records.writing(THERE, "ada") as transaction:
        transaction.memories.insert(entry)
    view = store.view(sensitivities=EVERY_LEVEL, **asked)
    assert [store.records.lists.ids(view, order, 10, 0) for order in Order] == [[one] for _ in Order]
    assert store.records.count(view) == 1


def test_a_time_bounds_a_list(store: Any) -> None:
    """Both ends count, and the time when a thing happened wins over when it was stored."""
    store.clock.pass_days(10)
    now = store.clock()
    stored, happened = store.add("stored now"), store.add("long ago", observed_at=now - timedelta(days=9))
    assert store.records.lists.ids(store.view(since=now, until=now), Order.OLDEST, 9, 0) == [stored]
    assert store.records.lists.ids(store.view(until=now - timedelta(days=1)), Order.OLDEST, 9, 0) == [happened]


def test_stats_count_what_is_seen(store: Any) -> None:
    """What a view sees is counted by kind, what it does not see by its state."""
    store.add("a", category="ops", type=ObservationType.BUGFIX)
    store.add("b", category="ops", fact_type=FactType.CASE, namespace=THERE)
    hidden, old, whole = (store.add(name) for name in ("hidden", "old", "whole"))
    store.add("late", expires_at=store.clock())
    store.add("private", sensitivity=Sensitivity.PRIVATE)
    odd = store.add("odd")
    store.by_hand("UPDATE memory SET sensitivity = 'cosmic' WHERE id = :id", id=odd)
    store.add("foreign", namespace="user:bob")
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.hide(hidden)
        transaction.memories.supersede(old, by=whole)
        transaction.memories.archive(transaction.lookup.by_id(whole))
    stats = store.records.lists.stats(store.view(HERE, THERE))
    assert (stats.memories, stats.by_scope) == (3, {"personal": 0, "project": 2, "team": 1})
    assert (stats.by_fact_type, stats.by_type) == ({"general": 2, "case": 1}, {"bugfix": 1})
    assert stats.by_category == {"ops": 2}
    assert (stats.expired, stats.deleted, stats.superseded, stats.merged) == (1, 1, 1, 1)
    assert (stats.oldest_at, stats.newest_at) == (store.clock(), store.clock())
    assert store.records.lists.stats(store.view("user:nobody")).memories == 0


def paged(store: Any, order: Order, beside: Any = lambda _: None, limit: int = 7) -> list[list[int]]:
    """Return the pages of a list, between which something else may happen."""
    pages, after = [], None
    while True:
        page, after = store.records.lists.page(store.view(), order, limit, after)
        pages.append(page)
        if after is None:
            return pages
        store.clock.pass_days(0.001)
        beside(len(pages))


@pytest.mark.parametrize("order", Order)
def test_no_page_misses_a_memory_while_others_write(store: Any, order: Order) -> None:
    """What is changed, used, deleted or new between two pages neither hides another memory nor repeats it."""
    ids = filled(store)
    chance = random.Random(7)
    changed, gone = set[int](), set[int]()

    def beside(_: int) -> None:
        one, used, deleted = chance.sample(sorted(set(ids) - gone - changed), 3)
        with store.records.writing(HERE, "ada") as transaction:
            transaction.memories.update(store.one(one), make_entry(f"once more {one}", at=store.clock()), "update")
        store.records.usage.add([used], store.clock(), accessed=1)
        store.delete(deleted)
        changed.update((one, used) if order is Order.USED else (one,))
        gone.add(deleted)
        if len(gone) < 3:
            store.add(f"new {one}")

    pages = paged(store, order, beside, limit=6)
    shown = [one for page in pages for one in page]
    assert set(ids) - gone <= set(shown)
    assert {one for one in ids if shown.count(one) > 1} <= changed


def test_a_place_of_another_list_is_refused(store: Any) -> None:
    """A place that no page has named is a clear error, and so is that of another order."""
    filled(store)
    place = store.records.lists.page(store.view(), Order.NEWEST, 5)[1]
    for order, after in ((Order.NEWEST, "soon"), (Order.NEWEST, "1_2"), (Order.NEWEST, "9" * 40), (Order.USED, place)):
        with pytest.raises(InvalidInput, match="Invalid after: Must be where a page of the same order ended"):
            store.records.lists.page(store.view(), order, 5, after)
