"""What waits for a decision is one list on both databases: what came first, what is late, and what is in quarantine."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from clock import Clock

NAMESPACE = "project:crew/engine"


def review(store: Any, content: str, said: str) -> int:
    """Store a memory of which something is said of a decision, and return its id."""
    one: int = store.add(content)
    with store.records.writing(NAMESPACE, "ada") as transaction:
        transaction.reviews.decide(transaction.lookup.by_id(one), said)
    return one


def test_what_waits_is_listed_by_how_long(store: Any, clock: Clock) -> None:
    """The longest waiting first, page by page, with how many there are, since when, and how many are late."""
    start = clock()
    ids = []
    for number in range(3):
        ids.append(review(store, f"Claim {number}.", "the source is not approved"))
        clock.pass_days(1)
    review(store, "Approved.", "approved")
    kept = store.add("Kept apart.")
    with store.records.writing(NAMESPACE, "ada") as transaction:
        transaction.memories.quarantine(kept)
    late = start + timedelta(days=1, hours=1)
    first = store.records.reviews.waiting(store.view(), 2, 0, late)
    assert (list(first.page), first.total, first.since, first.late) == (ids[:2], 4, start, 2)
    second = store.records.reviews.waiting(store.view(), 2, 2, late)
    assert list(second.page) == [ids[2], kept]
    assert second.page[kept] == clock()
    assert list(store.records.reviews.in_quarantine([*ids, kept], store.view())) == [kept]
    assert store.records.reviews.in_quarantine([kept], store.view(sensitivities=("private:ada",))) == {}
