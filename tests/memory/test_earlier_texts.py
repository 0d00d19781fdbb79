"""Whatever changes the text of a memory keeps the text before it: history tells of it, and `restore` brings it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callers import ADA
from recollect import App, Settings
from recollect.domain.origin import SaidBy
from recollect.domain.results import WriteStatus
from recollect.errors import Forbidden
from run_operations import add, call_tool, do, ill, listed, recalled, rows, shown

BEFORE = "We deploy on Fridays."
AFTER = "We deploy on Mondays."

DOORS: dict[str, Callable[[App, int], Any]] = {
    "update_memory": lambda app, one: do(app, "update_memory", id=str(one), content=AFTER),
    "update of several fields": lambda app, one: do(
        app, "update_memory", id=str(one), content=AFTER, tags=["day"], importance=0.9, abstract="Mondays"
    ),
    "remember with an id": lambda app, one: do(app, "remember", id=str(one), content=AFTER),
    "remember with the key": lambda app, one: do(app, "remember", key="deploy", content=AFTER),
    "the key and what it supersedes": lambda app, one: do(
        app, "remember", key="deploy", supersedes=str(one), content=AFTER
    ),
    "memory_store of the toolset dual": lambda app, one: call_tool(
        app, "memory_store", {"id": str(one), "content": AFTER}
    ),
    "update_memory as a tool": lambda app, one: call_tool(app, "update_memory", {"id": str(one), "content": AFTER}),
    "a file of one's own": lambda app, one: _imported(app),
}


def _imported(app: App) -> Any:
    fields = {"key": "deploy", "content": AFTER, "author": "ada", "said_by": "person"}
    item = {"kind": "memory", "where": "notes.jsonl:1", "fields": fields}
    return do(app, "import_batch", items=[item], own=True, last=True)


@pytest.fixture
def one(app: App) -> int:
    """Return the id of a memory that is about to be changed."""
    return add(app, BEFORE, key="deploy", tags=("release",), abstract="Fridays")


@pytest.mark.parametrize("door", DOORS)
def test_the_earlier_text_is_kept_and_restored(app: App, one: int, door: str) -> None:
    """By every door history tells both texts, `restore` of the same id brings the first back, and again the second."""
    DOORS[door](app, one)
    assert shown(app, one).content == AFTER
    assert do(app, "history", id=str(one))[-1].changes["content"] == [BEFORE, AFTER]
    back = do(app, "restore", id=str(one))
    memory = shown(app, one)
    assert (back.status, back.notes[0]) == (WriteStatus.RESTORED, "It says again what it said before its last change.")
    assert (memory.content, memory.tags, memory.importance) == (BEFORE, ("release",), 0.5)
    assert memory.abstract == "Fridays"
    assert (recalled(app, "deploy Fridays"), listed(app)) == ({one}, [one])
    do(app, "restore", id=str(one))
    assert (shown(app, one).content, len(shown(app, one).merged_from)) == (AFTER, 1)
    assert ill(app) == []


def test_what_changed_later_stays(app: App, one: int) -> None:
    """Labels that were given after the text changed are no part of that change."""
    do(app, "update_memory", id=str(one), content=AFTER)
    do(app, "update_memory", id=str(one), category="calendar", importance=0.7)
    do(app, "restore", id=str(one))
    memory = shown(app, one)
    assert (memory.content, memory.category, memory.importance) == (BEFORE, "calendar", 0.7)


def test_labels_alone_keep_no_text(app: App, one: int, settings: Settings) -> None:
    """Where the text stays there is nothing to keep, and the journal tells numbers and kinds before and after."""
    do(app, "update_memory", id=str(one), importance=0.9, fact_type="decision", tags=["day"])
    assert rows(settings, "SELECT count(*) FROM memory") == [(1,)]
    told = do(app, "history", id=str(one))[-1].changes
    assert told["fields"] == ["fact_type", "importance", "tags"]
    assert (told["importance"], told["fact_type"]) == ([0.5, 0.9], ["general", "decision"])
    assert do(app, "restore", id=str(one)).status is WriteStatus.UNCHANGED


def test_each_text_of_several_is_in_the_history(app: App, one: int) -> None:
    """Of several changes each line tells the text before it and the one after it."""
    for text in ("Second.", "Third.", "Fourth."):
        do(app, "update_memory", id=str(one), content=text)
    told = [line.changes.get("content") for line in do(app, "history", id=str(one))]
    assert told == [None, [BEFORE, "Second."], ["Second.", "Third."], ["Third.", "Fourth."]]


def test_forgetting_leaves_no_earlier_text(app: App, one: int, settings: Settings) -> None:
    """With a memory its earlier texts go, and one of them alone can be forgotten, which the history shows no more."""
    do(app, "update_memory", id=str(one), content=AFTER)
    (kept,) = shown(app, one).merged_from
    do(app, "forget", id=str(kept))
    assert "content" not in do(app, "history", id=str(one))[-1].changes
    assert do(app, "restore", id=str(one)).status is WriteStatus.UNCHANGED
    do(app, "update_memory", id=str(one), content="Third.")
    do(app, "forget", id=str(one))
    assert rows(settings, "SELECT count(*) FROM memory") == [(0,)]
    assert BEFORE not in repr(rows(settings, "SELECT * FROM journal"))


def test_an_earlier_text_is_as_private_as_the_memory_becomes(app: App, one: int) -> None:
    """Where a change makes a memory private, nobody who sees public memories sees what it said before."""
    do(app, "update_memory", id=str(one), content=AFTER, sensitivity="private")
    assert do(app, "history", id=str(one)) == [] or "content" not in repr(do(app, "history", id=str(one)))
    told = do(app, "history", id=str(one), allow_private=True)[-1].changes
    assert told["content"] == [BEFORE, AFTER]


def test_an_approval_in_other_words_can_be_undone(app: App) -> None:
    """What waited and was approved in other words says again what its source said, and is again of that source."""
    page = ADA.saying(SaidBy.WEB, "https://docs.example.com/deploys")
    one = add(app, BEFORE, page)
    do(app, "decide", id=str(one), decision="approve", content=AFTER)
    assert shown(app, one).origin == "a person"
    do(app, "restore", id=str(one))
    memory = shown(app, one)
    assert (memory.content, "docs.example.com" in memory.origin) == (BEFORE, True)


def test_an_agent_takes_back_no_words_of_a_person(app: App, one: int) -> None:
    """What a person wrote over a memory is undone by a person only."""
    do(app, "update_memory", id=str(one), content=AFTER)
    with pytest.raises(Forbidden, match="which this does not replace"):
        do(app, "restore", ADA.saying(SaidBy.WEB, "https://example.org"), id=str(one))


def test_a_part_that_is_forgotten_is_in_no_earlier_text(app: App, settings: Settings) -> None:
    """An edited memory that had been merged of two keeps no earlier text that quotes a part which was forgotten."""
    whole = add(app, "The user prefers dark mode.", fact_type="profile")
    merged = do(app, "remember", content="The user writes Zig at night.", fact_type="profile")
    assert merged.id == str(whole)
    part = next(each for each in shown(app, whole).merged_from if "Zig" in shown(app, each).content)
    do(app, "update_memory", id=str(whole), content="The user prefers light mode.")
    do(app, "forget", id=str(part))
    assert [row for row in rows(settings, "SELECT content FROM memory") if "Zig" in row[0]] == []
    assert ill(app) == []
