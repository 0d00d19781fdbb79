"""Aliases: other names and scales for the same verbs give the same memories."""

from __future__ import annotations

import pytest

from recollect import App
from recollect.domain.results import WriteStatus
from recollect.errors import InvalidInput, NotFound
from run_operations import OTHER, actions, add, do, shown


def test_store_creates_and_updates(app: App) -> None:
    """Without an id a memory is made, with one that memory is changed, and only in what is given."""
    made = do(app, "memory_store", content="Ada likes tea.", type="self", importance=8, summary="Tea", tags=["taste"])
    memory = shown(app, int(made.id))
    assert made.status is WriteStatus.STORED
    assert (memory.fact_type, memory.importance, memory.abstract, memory.tags) == ("self", 0.8, "Tea", ("taste",))
    changed = do(app, "memory_store", id=made.id, importance=2)
    again = shown(app, int(made.id))
    assert (changed.status, changed.id) == (WriteStatus.UPDATED, made.id)
    assert (again.importance, again.content, again.abstract, again.tags) == (0.2, "Ada likes tea.", "Tea", ("taste",))
    assert actions(app, int(made.id)) == ["insert", "update"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"content": "x", "importance": 11}, "Must be 0–10"),
        ({"content": "x", "importance": True}, "importance"),
        ({"content": "x", "type": "decision"}, "Must be `fact`, `entity`, `relationship`, or `self`"),
        ({"importance": 3}, "Missing content"),
        ({"content": "x", "colour": "red"}, "Unknown parameter"),
    ],
)
def test_store_says_what_is_wrong(app: App, fields: dict[str, object], message: str) -> None:
    """Bad input names the field and what is allowed, on this scale."""
    with pytest.raises(InvalidInput, match=message):
        do(app, "memory_store", **fields)


def test_store_updates_nothing_of_others(app: App) -> None:
    """An id of another tenant is not found."""
    foreign = add(app, "Bob likes rum.", OTHER)
    with pytest.raises(NotFound):
        do(app, "memory_store", id=str(foreign), content="Bob likes milk.")


@pytest.mark.parametrize("importance", [0, 10])
def test_both_ends_of_the_scale_are_taken(app: App, importance: int) -> None:
    """Zero is zero and ten is one."""
    assert shown(app, int(do(app, "memory_store", content="x", importance=importance).id)).importance == importance / 10


def test_recall_answers_twice(app: App) -> None:
    """The answer has a line for every match, and details that fit; habit ranks them."""
    for name in ("Tuesday", "Friday"):
        add(app, f"The deploy runs on {name} at noon.")
    recalled = do(app, "memory_recall", query="when does the deploy run")
    assert recalled.index is not None
    assert len(recalled.index.lines) == 2
    assert "frequency" in recalled.hits[0].parts


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("profile", "profile"),
        ("preferences", "preference"),
        ("Entities", "entity"),
        ("events", "event"),
        ("cases", "case"),
        ("patterns", "pattern"),
    ],
)
def test_remember_takes_six_categories(app: App, said: str, kind: str) -> None:
    """Each of the six, in the plural too, with its three layers."""
    fields = {"content": "All of it.", "abstract": "A line", "overview": "A paragraph", "category": said}
    memory = shown(app, int(do(app, "memory_remember", **fields).id))
    assert (memory.fact_type, memory.content, memory.abstract, memory.overview) == (
        kind,
        "All of it.",
        "A line",
        "A paragraph",
    )


@pytest.mark.parametrize("category", ["general", "fact", "decision", "", None])
def test_remember_takes_no_other(app: App, category: str | None) -> None:
    """Any other category is refused, with the six that are allowed."""
    with pytest.raises(InvalidInput, match="category"):
        do(app, "memory_remember", content="x", category=category)
