"""What is private or secret is its author's alone, whoever shares the namespace and whatever levels they let in."""

from __future__ import annotations

from typing import Any

import pytest

from callers import ADA
from recollect import App, Caller
from recollect.domain.enums import Sensitivity
from recollect.domain.results import WriteStatus
from recollect.doors.handlers import perform
from recollect.errors import NotFound

BOB = Caller(user="bob", team=ADA.team, project=ADA.project)
ALL = {"allow_private": True, "allow_secret": True}
SAID = "The door code of the boathouse is blue heron"

levels = pytest.mark.parametrize("level", [Sensitivity.PRIVATE, Sensitivity.SECRET])
scopes = pytest.mark.parametrize("scope", ["project", "team"])


def told(app: App, caller: Caller = ADA, **fields: Any) -> str:
    """Store the private text and return its id."""
    return str(perform(app, "remember", {"content": SAID} | fields, caller).id)


def ask(app: App, name: str, caller: Caller = BOB, **fields: Any) -> Any:
    """Ask with every level let in."""
    return perform(app, name, ALL | fields, caller)


@levels
@scopes
def test_no_read_shows_it_to_another(app: App, level: str, scope: str) -> None:
    """Recall, lists, facts, counts, history and export show it to its author and to nobody else."""
    one = told(app, scope=scope, sensitivity=level, key="code", tags=["boat"], speaker="Ada Lovelace")
    ask(app, "store_fact", ADA, subject="code", predicate="is", object="heron", memory_id=one, scope=scope)
    app.vectors.sync()
    for caller, seen in ((ADA, True), (BOB, False)):
        found = {
            "recall": bool(
                ask(app, "recall", caller, query="what is the door code of the boathouse", min_score=0).hits
            ),
            "list": bool(ask(app, "list_memories", caller).memories),
            "similar": bool(ask(app, "find_similar", caller, content=SAID, threshold=0.1)),
            "stats": bool(ask(app, "stats", caller).memories),
            "facts": bool(ask(app, "query_facts", caller).facts),
            "history": bool(ask(app, "history", caller, id=one)),
            "export": SAID in str(ask(app, "export_page", caller).lines),
        }
        assert found == dict.fromkeys(found, seen), caller.user
    with pytest.raises(NotFound):
        ask(app, "get_memory", id=one)


@levels
def test_no_write_reaches_or_learns_of_it(app: App, level: str) -> None:
    """Another's key, content and merge stand beside it, and no update, forget, restore or purge finds it."""
    one = told(app, sensitivity=level, key="code")
    for fields in ({"key": "code"}, {"key": "code", "sensitivity": level}, {"sensitivity": level, "key": "other"}):
        other = ask(app, "remember", content=SAID, **fields)
        assert (other.status, other.near) == (WriteStatus.STORED, ())
        assert other.id != one
        assert ask(app, "forget", id=other.id).status is WriteStatus.DELETED
    for name, more in (("update_memory", {"id": one}), ("remember", {"supersedes": one}), ("remember", {"id": one})):
        with pytest.raises(NotFound):
            ask(app, name, content="The code is mine", **more)
    for name in ("forget", "restore"):
        assert ask(app, name, id=one).status is WriteStatus.NOT_FOUND
    assert (ask(app, "rescan").scanned, ask(app, "rescan", ADA).scanned) == (0, 1)
    assert ask(app, "get_memory", ADA, id=one).content == SAID


def test_a_published_memory_is_shared_again(app: App) -> None:
    """Its author makes it public for all, and whoever makes a public one private keeps it for themselves."""
    one = told(app, sensitivity="private")
    ask(app, "update_memory", ADA, id=one, sensitivity="public")
    assert ask(app, "get_memory", id=one).content == SAID
    ask(app, "update_memory", BOB, id=one, sensitivity="private")
    assert ask(app, "get_memory", BOB, id=one).content == SAID
    with pytest.raises(NotFound):
        ask(app, "get_memory", ADA, id=one)
    assert [check.name for check in app.checks() if not check.well] == []


def test_words_of_the_private_weigh_nothing_for_others(app: App) -> None:
    """No spelling is corrected towards them, and no statistic of words counts them."""
    told(app, sensitivity="private", content="The zephyrine lantern is lit")
    perform(app, "remember", {"content": "The old lantern is lit"}, BOB)
    for caller, found in ((BOB, []), (ADA, ["The zephyrine lantern is lit"])):
        assert [hit.memory.content for hit in ask(app, "recall", caller, query="zephyrne").hits] == found
