"""Other projects of one's own store: named where this one has nothing, looked at on request, never those of others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callers import ADA
from recollect import App, Caller
from recollect.domain.enums import Scope
from recollect.errors import InvalidInput, NotFound
from run_operations import add, call_tool, do

SHOP = Caller(user=ADA.user, team=ADA.team, project="shop")
BOB = Caller(user="bob", team=ADA.team, project="shop")
ZOE = Caller(user="zoe", team="else", project="quay")
NOTE = 'In your other projects: 2 in shop, nearest: "The release train leaves on Tuesday mornings".'
ASKED = {"query": "release train"}


@pytest.fixture
def two_projects(app: App) -> App:
    """Return a store with memories in the project `shop`, one of them Bob's private one, and in another team."""
    add(app, "The release train leaves on Tuesday mornings.", SHOP)
    add(app, "The release train has a conductor each week.", SHOP)
    add(app, "The release train of Bob is late.", BOB, sensitivity="private")
    add(app, "The release train of Zoe is red.", ZOE)
    return app


def test_other_projects_are_named_where_nothing_is_found(two_projects: App) -> None:
    """Recall, list and stats say how many are in which other project; the tool says so in its notes."""
    app = two_projects
    found = do(app, "recall", **ASKED)
    assert (found.hits, found.notes) == ((), (NOTE,))
    answer = call_tool(app, "memory", {"action": "recall"} | ASKED)
    assert answer.structured["notes"] == list(found.notes)
    assert NOTE in answer.texts
    assert do(app, "list_memories").notes == do(app, "stats").notes == ("In your other projects: 2 in shop.",)
    assert do(app, "list_memories", tags=["none"]).notes == ()
    with pytest.raises(NotFound, match=r"^Memory 1 not found; it is in your project shop\.$"):
        do(app, "get_memory", id="1")


def test_nothing_of_others_is_named(two_projects: App) -> None:
    """Another's private memory, another team, a scope that is not that of projects, and a shared store name none."""
    app = two_projects
    with pytest.raises(NotFound, match=r"^Memory 3 not found\.$"):
        do(app, "get_memory", id="3", allow_private=True)
    with pytest.raises(NotFound, match=r"^Memory 4 not found\.$"):
        do(app, "get_memory", id="4")
    assert do(app, "recall", scope="personal", **ASKED).notes == do(app, "list_memories", scope="team").notes == ()
    few = ADA.model_copy(update={"reads": (Scope.PERSONAL, Scope.PROJECT)})
    shared = replace(app, capabilities=replace(app.capabilities, shared=True))
    for where, caller in ((app, few), (shared, ADA)):
        assert do(where, "recall", caller, **ASKED).notes == do(where, "list_memories", caller).notes == ()
        assert do(where, "stats", caller).notes == ()
        with pytest.raises(NotFound, match=r"^Memory 1 not found\.$"):
            do(where, "get_memory", caller, id="1")


def test_everywhere_looks_into_all_of_them(two_projects: App) -> None:
    """With `everywhere` the memories of other projects are found and listed, each with the name of its project."""
    app = two_projects
    add(app, "The release train of the engine is green.")
    hits = do(app, "recall", everywhere=True, **ASKED).hits
    assert {(hit.memory.id, hit.memory.project) for hit in hits} == {(1, "shop"), (2, "shop"), (5, None)}
    page = do(app, "recall_compact", everywhere=True, **ASKED).public()["memories"]
    assert {one.get("project") for one in page} == {"shop", None}
    listed = do(app, "list_memories", everywhere=True)
    assert (listed.total, listed.notes, [one.project for one in listed.memories]) == (3, (), [None, "shop", "shop"])
    assert do(app, "list_memories", everywhere=True, scope="team").total == 0


@pytest.mark.parametrize("operation", ["recall", "list_memories"])
def test_a_shared_store_refuses_everywhere(app: App, operation: str) -> None:
    """Where several people share a store, each request names its project."""
    shared = replace(app, capabilities=replace(app.capabilities, shared=True))
    with pytest.raises(InvalidInput, match="Several people share this store, and each request names its project"):
        do(shared, operation, everywhere=True, **(ASKED if operation == "recall" else {}))
