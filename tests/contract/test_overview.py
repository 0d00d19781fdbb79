"""What the page shows of many memories, in SQL: pages without an offset, counts, the journal, on every database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from entries import make_entry
from recollect.domain.enums import FactType, Order, Sensitivity, Standing
from recollect.errors import InvalidInput

HERE, THERE = "project:crew/engine", "team:crew"
SORTED: dict[Order, Callable[[Any], tuple[Any, int]]] = {
    Order.NEWEST: lambda one: (one.created_at, one.id),
    Order.OLDEST: lambda one: (-one.created_at.timestamp(), -one.id),
    Order.UPDATED: lambda one: (one.updated_at, one.id),
    Order.IMPORTANT: lambda one: (one.importance, one.id),
    Order.USED: lambda one: (one.accessed_count + one.recalled_count, one.id),
}


def filled(store: Any) -> list[int]:
    """Store memories in two namespaces; several share a time, an importance and a number of uses."""
    ids = []
    for place in range(30):
        namespace = THERE if place % 4 == 0 else HERE
        more: dict[str, Any] = {"tags": ["odd" if place % 2 else "even"], "fact_type": list(FactType)[place % 3]}
        ids.append(store.add(f"memory {place}", namespace, importance=(place % 5) / 4, **more))
        if place % 3 == 0:
            store.clock.pass_days(1)
    for one in ids[::4]:
        store.records.usage.add([one], store.clock(), accessed=1)
    return ids


def known(store: Any) -> dict[int, Any]:
    """Return every memory by its id."""
    return dict(store.records.load(range(1, 100), store.view(HERE, THERE)))


def walked(store: Any, view: Any, order: Order, limit: int = 7) -> list[int]:
    """Follow the pages to the last one."""
    found: list[int] = []
    after = None
    while True:
        ids, after = store.records.overview.page_after(view, order, after, limit)
        found += ids
        if after is None:
            return found


def test_pages_follow_each_other(store: Any) -> None:
    """They are the whole, sorted over all namespaces, each memory once, whatever is stored between two pages."""
    ids = filled(store)
    view = store.view(HERE, THERE)
    assert set(SORTED) == set(Order)
    memories = known(store)
    for order, value in SORTED.items():
        found = walked(store, view, order)
        assert sorted(found) == ids, order
        assert found == walked(store, view, order, 100), order
        assert found == sorted(found, key=lambda one, value=value: value(memories[one]), reverse=True), order


def test_a_page_is_where_it_was(store: Any) -> None:
    """What is stored after the first page moves nothing on the second."""
    ids = filled(store)
    view = store.view(HERE, THERE)
    first, after = store.records.overview.page_after(view, Order.NEWEST, None, 10)
    store.add("another one")
    second, _ = store.records.overview.page_after(view, Order.NEWEST, after, 10)
    assert [*first, *second] == ids[::-1][:20]


@pytest.mark.parametrize("after", ["x", "~", "1~x", "2026-03-01~", "2026-03-01T00:00:00+00:00~9~x"])
def test_a_place_that_no_page_named_is_refused(store: Any, after: str) -> None:
    """The error is of the field, and nothing of what it said reaches the database."""
    filled(store)
    with pytest.raises(InvalidInput, match=r"^Invalid after"):
        store.records.overview.page_after(store.view(HERE), Order.NEWEST, after, 10)


def test_counts_are_those_of_the_memories(store: Any) -> None:
    """Each field is counted over what the view sees, by filters too, and anew when something was written."""
    ids = filled(store)
    for view in (store.view(HERE, THERE), store.view(HERE), store.view(HERE, THERE, tags=("odd",))):
        seen = [known(store)[one] for one in walked(store, view, Order.NEWEST)]
        total, counts = store.records.overview.facets(view, 1000)
        assert total == len(seen) > 0
        assert counts["fact_type"] == Counter(str(one.fact_type) for one in seen)
        assert counts["scope"] == Counter(str(one.scope) for one in seen)
        assert counts["tags"] == Counter(tag for one in seen for tag in one.tags)
        assert counts["month"] == Counter(f"{one.created_at:%Y-%m}" for one in seen)
    view = store.view(HERE, THERE)
    assert sum(store.records.overview.facets(view, 5)[1]["fact_type"].values()) <= 30
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.hide(ids[1])
    assert store.records.overview.facets(view, 1000)[0] == 29
    assert store.records.overview.states(view)["hidden"] == 1
    hidden = view.model_copy(update={"hidden": True})
    assert store.records.overview.page_after(hidden, Order.NEWEST, None, 5) == ([ids[1]], None)
    assert (
        store.records.overview.page_after(hidden.model_copy(update={"namespaces": (THERE,)}), Order.NEWEST, None, 5)[0]
        == []
    )


def test_what_is_private_is_counted_for_nobody_else(store: Any) -> None:
    """Neither a page nor a count tells of a level that the view does not let in."""
    filled(store)
    store.add("mine alone", sensitivity=Sensitivity.PRIVATE, tags=["hush"])
    total, counts = store.records.overview.facets(store.view(HERE), 1000)
    assert "hush" not in counts["tags"]
    assert total == len(walked(store, store.view(HERE), Order.NEWEST)) == 22


def test_a_standing_is_kept(store: Any) -> None:
    """It survives a change of the text, is in the journal, and no check takes it for damage."""
    one = store.add("the mast is pine")
    with store.records.writing(HERE, "ada") as transaction:
        transaction.decisions.set_standing(transaction.lookup.by_id(one), Standing.PINNED)
        transaction.memories.update(
            transaction.lookup.by_id(one), make_entry("the mast is oak", at=store.clock()), "update"
        )
    assert store.one(one).standing is Standing.PINNED
    assert store.records.overview.pinned(store.view(HERE), 5) == [one]
    assert store.records.overview.pinned(store.view(THERE), 5) == []
    assert store.records.journal.history(one, [HERE])[1].changes == {"fields": ["standing"], "standing": "pinned"}
    with store.records.writing(HERE, "ada") as transaction:
        transaction.decisions.set_standing(transaction.lookup.by_id(one), None)
    assert store.one(one).standing is None
    assert store.records.overview.pinned(store.view(HERE), 5) == []


def test_the_journal_is_read_backwards(store: Any) -> None:
    """Its pages are the lines of the namespaces and levels asked for, the newest first, by actor and action too."""
    ids = filled(store)
    with store.records.writing(HERE, "bob") as transaction:
        transaction.memories.hide(ids[1])
    public = (str(Sensitivity.PUBLIC),)
    newest = store.records.overview.journal_before([HERE, THERE], public, None, 10)
    assert [one.id for one in newest] == sorted((one.id for one in newest), reverse=True)
    assert (newest[0].action, newest[0].memory_id, newest[0].actor) == ("delete", ids[1], "bob")
    assert store.records.overview.newest_line([HERE, THERE]) == newest[0].id
    older = store.records.overview.journal_before([HERE, THERE], public, newest[-1].id, 100)
    assert len(newest) + len(older) == 31
    assert {one.namespace for one in store.records.overview.journal_before([THERE], public, None, 100)} == {THERE}
    assert len(store.records.overview.journal_before([HERE], public, None, 100, actor="bob", action="delete")) == 1
    assert store.records.overview.journal_before([HERE], (), None, 100) == []


def test_sizes_are_told(store: Any) -> None:
    """What is stored has a size, by file or by table, and more of it is larger."""
    before = sum(store.records.overview.sizes().values())
    assert before > 0
    for place in range(40):
        store.add(f"memory {place} " + "of many words " * 200)
    assert sum(store.records.overview.sizes().values()) > before


def test_two_memories_are_told_apart(store: Any) -> None:
    """The pair is kept once, whichever of both was named first, until that is taken back; the journal tells both."""
    one, two, three = (store.add(f"Buoy {number} is green.") for number in range(3))
    for undo, pairs in ((False, {(one, two)}), (False, {(one, two)}), (True, set())):
        with store.records.writing(HERE, "ada") as transaction:
            transaction.decisions.tell_apart(store.one(two), one, undo=undo)
        assert store.records.overview.told_apart([one, two, three]) == pairs
    with store.records.writing(HERE, "ada") as transaction:
        transaction.decisions.tell_apart(store.one(one), three, undo=False)
    assert store.records.overview.told_apart([one, two]) == {(one, three)}
    lines = store.records.journal.history(two, [HERE])
    assert [each.changes["apart"] for each in lines if "apart" in each.changes] == [str(one), str(one), ""]
