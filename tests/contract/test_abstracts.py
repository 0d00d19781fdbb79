"""Abstracts: one line of each memory that a view may see, and nothing of any other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from callers import EVERY_LEVEL
from recollect.domain.enums import Sensitivity


def test_abstracts_are_of_what_a_view_sees(store: Any) -> None:
    """The abstracts of a view are those of the memories it would load: never of others, deleted or expired ones."""
    ids = [store.add(f"A {level} one", sensitivity=level) for level in Sensitivity]
    ids += [store.add("Elsewhere", "user:eve"), store.add("Brief", expires_at=store.clock() + timedelta(days=1))]
    ids.append(gone := store.add("Gone"))
    store.by_hand("UPDATE memory SET deleted_at = created_at WHERE id = :id", id=gone)
    views = [store.view(), store.view(sensitivities=EVERY_LEVEL), store.view("user:eve"), store.view("user:x")]
    for days in (0, 2):
        store.clock.pass_days(days)
        for view in (*views, store.view()):
            loaded = store.records.load(ids, view)
            assert store.records.abstracts(ids, view) == {one.id: one.abstract for one in loaded.values()}
    assert set(store.records.abstracts(ids, views[0])) == {ids[0], ids[4]}
    assert store.records.abstracts([], views[0]) == {}


def test_abstracts_of_very_many(store: Any) -> None:
    """More ids than one statement takes are read all the same."""
    memory_id = store.add("The only one", abstract="A line")
    assert store.records.abstracts(range(3000), store.view()) == {memory_id: "A line"}
