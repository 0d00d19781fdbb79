"""Other projects: named where nothing is found in this one, looked at on request, never those of others."""

from __future__ import annotations

import pytest

from callers import ADA
from recollect import App, Caller
from recollect.domain.enums import Role, Scope
from recollect.domain.requests import Elsewhere
from recollect.errors import NotFound
from run_operations import add, call_tool, do

SHOP = Caller(user=ADA.user, team=ADA.team, project="shop")
BOB = Caller(user="bob", team=ADA.team, project="shop")
ZOE = Caller(user="zoe", team="else", project="quay")
NEAREST = "The release train leaves on Tuesday mornings"
NOTE = f'Not in project engine, but in your other projects: 2 in shop, nearest: "{NEAREST}".'
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
    assert (
        do(app, "list_memories").notes
        == do(app, "stats").notes
        == ("Not in project engine, but in your other projects: 2 in shop.",)
    )
    assert do(app, "list_memories", tags=["none"]).notes == ()
    with pytest.raises(NotFound, match=r"^Memory 1 not found; it is in your project shop\.$"):
        do(app, "get_memory", id="1")


def test_of_many_projects_the_largest_are_searched(two_projects: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more projects than are searched unasked those with the most memories are."""
    monkeypatch.setattr("recollect.search.other_projects._MOST_PROJECTS", 1)
    add(two_projects, "The release train of the attic is small.", Caller(user="ada", team=ADA.team, project="attic"))
    assert do(two_projects, "recall", **ASKED).notes == (NOTE,)


def test_nothing_of_others_is_named(two_projects: App) -> None:
    """Another's private memory, another team, and a scope that is not that of projects name none."""
    app = two_projects
    with pytest.raises(NotFound, match=r"^Memory 3 not found\.$"):
        do(app, "get_memory", id="3", allow_private=True)
    with pytest.raises(NotFound, match=r"^Memory 4 not found\.$"):
        do(app, "get_memory", id="4")
    assert do(app, "recall", scope="personal", **ASKED).notes == do(app, "list_memories", scope="team").notes == ()


@pytest.mark.parametrize(
    "elsewhere", [Elsewhere(role=None), Elsewhere(named={"shop": None}), Elsewhere(role=None, named={"quay": "reader"})]
)
def test_a_project_without_a_right_is_not_there(two_projects: App, elsewhere: Elsewhere) -> None:
    """Whoever may not read a project hears neither its name, nor a count, nor a text of it, whatever is asked."""
    app = two_projects
    caller = ADA.model_copy(update={"elsewhere": elsewhere})
    assert do(app, "recall", caller, **ASKED).notes == do(app, "list_memories", caller).notes == ()
    assert do(app, "stats", caller).notes == do(app, "recall", caller, everywhere=True, **ASKED).notes == ()
    assert do(app, "recall", caller, everywhere=True, **ASKED).hits == ()
    assert do(app, "list_memories", caller, everywhere=True).total == 0
    with pytest.raises(NotFound, match=r"^Memory 1 not found\.$"):
        do(app, "get_memory", caller, id="1")


def test_who_may_read_one_project_hears_of_that_one(two_projects: App) -> None:
    """A role in one project alone lets that one be named and looked into, also without a right in this project."""
    app = two_projects
    add(app, "The release train of the yard is long.", Caller(user="ada", team=ADA.team, project="yard"))
    few = ADA.model_copy(
        update={"reads": (Scope.PERSONAL,), "elsewhere": Elsewhere(role=None, named={"shop": Role.READER})}
    )
    (note,) = do(app, "recall", few, **ASKED).notes
    assert note == NOTE.replace("Not in project engine, but in", "But in")
    assert {hit.memory.id for hit in do(app, "recall", few, everywhere=True, **ASKED).hits} == {1, 2}


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
