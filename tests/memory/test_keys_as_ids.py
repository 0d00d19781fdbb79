"""A key stands wherever the id of a memory is asked for; what reads as a number is an id."""

from __future__ import annotations

from typing import Any

import pytest

from callers import ADA
from recollect import App
from recollect.domain.results import WriteStatus
from recollect.errors import InvalidInput, NotFound
from run_operations import OTHER, add, call_tool, do, listed, shown

TEXT = "We deploy on Fridays."


@pytest.fixture
def one(app: App) -> int:
    """Return the id of a memory with a key."""
    return add(app, TEXT, key="deploy day")


@pytest.mark.parametrize(
    ("verb", "fields"),
    [
        ("get_memory", {}),
        ("history", {}),
        ("update_memory", {"content": "We deploy on Mondays."}),
        ("remember", {"content": "We deploy on Mondays."}),
        ("memory_store", {"content": "We deploy on Mondays."}),
        ("pin", {}),
        ("unpin", {}),
        ("bury", {}),
        ("unbury", {}),
        ("promote", {}),
        ("find_similar", {"threshold": -1.0}),
        ("memory_forget", {}),
        ("forget", {}),
    ],
)
def test_a_key_names_its_memory(app: App, one: int, verb: str, fields: dict[str, Any]) -> None:
    """Each verb that takes the id of a memory does with its key what it does with the id."""
    answer = do(app, verb, id="deploy day", **fields)
    if verb == "find_similar":
        assert answer == []
    elif verb == "history":
        assert [line.memory_id for line in answer] == [one]
    else:
        assert verb == "promote" or int(answer.id) == one
    assert verb not in ("forget", "memory_forget", "promote") or one not in listed(app)


def test_what_is_hidden_is_brought_back_by_its_key(app: App, one: int) -> None:
    """A key finds a hidden memory where none in sight has it."""
    do(app, "memory_forget", id="deploy day")
    assert do(app, "restore", id="deploy day").status is WriteStatus.RESTORED
    assert listed(app) == [one]


def test_a_number_is_an_id(app: App, one: int) -> None:
    """Where a key reads as a number, the memory with that id is meant, also if there is none."""
    other = add(app, "The mast is oak.", key=str(one))
    absent = add(app, "The sail is red.", key="4711")
    assert shown(app, one).content == TEXT
    assert do(app, "get_memory", id=str(one)).id == one
    with pytest.raises(NotFound):
        do(app, "get_memory", id="4711")
    assert {other, absent} <= set(listed(app))


def test_a_key_replaces_its_memory(app: App, one: int) -> None:
    """`supersedes` takes a key as well."""
    new = add(app, "We deploy on Mondays, by a train.", supersedes="deploy day")
    assert shown(app, one).superseded_by == new


def test_a_key_of_two_scopes_asks_which(app: App, one: int) -> None:
    """Where memories of several scopes have a key, the error names their ids, and nothing is changed."""
    team = add(app, "The team deploys on Mondays.", key="deploy day", scope="team")
    with pytest.raises(InvalidInput, match=f"{team} .team. and {one} .project.|{one} .project. and {team} .team."):
        do(app, "forget", id="deploy day")
    assert do(app, "forget", id="deploy day", scope="team").id == str(team)
    assert listed(app) == [one]


def test_nobody_finds_by_a_key_what_they_may_not_see(app: App, one: int) -> None:
    """For whoever may not see a memory its key is as unknown as any other."""
    private = add(app, "Ada moves in May.", key="move", sensitivity="private")
    for caller, key in ((OTHER, "deploy day"), (ADA, "move"), (ADA, "no such key")):
        with pytest.raises(NotFound, match=f"Memory {key} not found."):
            do(app, "get_memory", caller, id=key)
    assert do(app, "get_memory", id="move", allow_private=True).id == private


def test_an_agent_forgets_by_key(app: App, one: int) -> None:
    """The tool of the default set takes a key for an id too."""
    call_tool(app, "memory", {"action": "forget", "id": "deploy day"})
    assert listed(app) == []
