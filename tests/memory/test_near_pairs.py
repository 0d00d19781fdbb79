"""Near duplicates: which pairs are named, and what becomes of a pair that a person decides about."""

from __future__ import annotations

from typing import Any

import pytest

from recollect import App
from recollect.domain.origin import SaidBy
from recollect.domain.page import NearPair
from recollect.domain.requests import Caller
from recollect.doors.web.verbs import perform
from recollect.errors import Forbidden, InvalidInput, NotFound

ADA = Caller(user="ada", team="crew", project="engine")
BOB = Caller(user="bob", team="crew", project="engine", writes=())
OLD = "Calls to the image service have a timeout of five seconds."
NEW = "Calls to the image service have a timeout of eight seconds since May."


def stored(app: App, content: str, caller: Caller = ADA, **fields: Any) -> str:
    """Store a memory and return its id."""
    return str(perform(app, "remember", {"content": content} | fields, caller).id)


def pairs(app: App, caller: Caller = ADA, **fields: Any) -> list[NearPair]:
    """Return the pairs that a person is shown."""
    return list(perform(app, "near_pairs", fields, caller).pairs)


def ids(app: App, caller: Caller = ADA) -> list[tuple[str, str]]:
    """Return the ids of those pairs, the older first."""
    return [(str(one.older.id), str(one.newer.id)) for one in pairs(app, caller)]


@pytest.fixture
def pair(app: App) -> tuple[str, str]:
    """Return the ids of two memories that say nearly the same, and store others beside them."""
    old = stored(app, OLD, tags=["api"])
    for text in ("Ada prefers tabs in Makefiles.", "Gulls nest on the roof.", "The keel is iron."):
        stored(app, text)
    return old, stored(app, NEW)


def test_a_pair_is_what_remember_would_name(app: App, pair: tuple[str, str]) -> None:
    """The nearest pair comes with both texts, its cosine, and what both say together."""
    [found] = pairs(app)
    assert (str(found.older.id), str(found.newer.id)) == pair
    assert app.embedder.card.near <= found.cosine <= 1
    assert (found.older.content, found.newer.content) == (OLD, NEW)
    assert OLD in found.merged
    assert NEW in found.merged
    near = perform(app, "remember", {"content": NEW + " Tejas said so."}, ADA).near
    assert {one.id for one in near} == set(pair)


@pytest.mark.parametrize(
    "fields",
    [
        {"scope": "personal"},
        {"source": "hook"},
        {"position": 3},
        {"sensitivity": "private"},
        {"type": "session_summary"},
        {"fact_type": "event"},
        {"fact_type": "case"},
        {"project": "engine", "ttl_days": 0.000_001},
    ],
    ids=[
        "another scope",
        "a draft",
        "a turn of a talk",
        "another level",
        "a summary",
        "an event",
        "a case",
        "one that expired",
    ],
)
def test_what_cannot_take_a_place_is_in_no_pair(app: App, clock: Any, fields: dict[str, Any]) -> None:
    """Only memories of one namespace that live, that nobody has to decide about, and that tell of no session."""
    stored(app, OLD)
    stored(app, NEW, **fields)
    clock.pass_days(1)
    assert ids(app) == []


def test_both_of_a_pair_are_of_one_level(app: App) -> None:
    """What is private gives its place to nothing that others see, nor takes one; two private memories are a pair."""
    stored(app, OLD)
    first = stored(app, NEW, sensitivity="private")
    assert pairs(app, allow_private=True) == []
    second = stored(app, NEW.replace("May", "May 2026"), sensitivity="private")
    [found] = pairs(app, allow_private=True)
    assert {str(found.older.id), str(found.newer.id)} == {first, second}


def test_what_waits_is_in_no_pair(app: App) -> None:
    """A memory from outside that nobody has approved is decided about in the inbox first."""
    stored(app, OLD)
    stored(app, NEW, ADA.saying(SaidBy.WEB, "https://example.com"))
    assert ids(app) == []


def test_who_may_not_write_has_no_pairs(app: App, pair: tuple[str, str]) -> None:
    """A reader is shown no pair, and may decide about none."""
    assert ids(app, BOB) == []
    old, new = pair
    for name, fields in (("replace_memory", {"id": old, "by": new}), ("tell_apart", {"id": old, "other": new})):
        with pytest.raises(Forbidden):
            perform(app, name, fields, BOB)


def test_a_memory_is_in_one_pair(app: App, pair: tuple[str, str]) -> None:
    """Of three that say the same the two nearest come, and after a decision the one that stays with the third."""
    old, new = pair
    third = stored(app, NEW.replace("May", "May 2026"))
    assert len(ids(app)) == 1
    [(goes, stays)] = ids(app)
    perform(app, "replace_memory", {"id": goes, "by": stays}, ADA)
    [rest] = ids(app)
    assert set(rest) == {old, new, third} - {goes}


def test_the_replaced_one_is_hidden_until_it_is_restored(app: App, pair: tuple[str, str]) -> None:
    """Searches find the one that stays alone; `restore` brings the other back, and the pair with it."""
    old, new = pair
    outcome = perform(app, "replace_memory", {"id": old, "by": new}, ADA)
    assert outcome.id == new
    assert str(perform(app, "get_memory", {"id": old}, ADA).superseded_by) == new
    found = [str(one.memory.id) for one in perform(app, "recall", {"query": "timeout image service"}, ADA).hits]
    assert (new in found, old in found) == (True, False)
    perform(app, "restore", {"id": old}, ADA)
    assert ids(app) == [pair]


def test_a_pair_that_is_told_apart_is_not_named_again(app: App, pair: tuple[str, str]) -> None:
    """Whichever is named first; taken back it is named again, and another near memory makes a pair with either."""
    old, new = pair
    for one, other in ((old, new), (new, old)):
        perform(app, "tell_apart", {"id": one, "other": other}, ADA)
        assert ids(app) == []
        perform(app, "tell_apart", {"id": one, "other": other, "undo": True}, ADA)
        assert ids(app) == [pair]
    perform(app, "tell_apart", {"id": new, "other": old}, ADA)
    third = stored(app, NEW.replace("May", "May 2026"))
    assert third in ids(app)[0]


@pytest.mark.parametrize("name", ["replace_memory", "tell_apart"])
def test_only_two_memories_of_one_scope_are_decided_about(app: App, pair: tuple[str, str], name: str) -> None:
    """A memory with itself, of another scope, that is away or that nobody has is an error, and nothing is written."""
    old, new = pair
    other = "by" if name == "replace_memory" else "other"
    personal, away = stored(app, "The mast is pine.", scope="personal"), stored(app, "The rope is hemp.")
    perform(app, "memory_forget", {"id": away}, ADA)
    wrong: list[tuple[dict[str, str], type[Exception]]] = [
        ({"id": old, other: old}, InvalidInput),
        ({"id": old, other: personal}, InvalidInput),
        ({"id": away, other: new}, NotFound),
        ({"id": old, other: "999"}, NotFound),
        ({"id": "x", other: new}, NotFound),
    ]
    for fields, error in wrong:
        with pytest.raises(error):
            perform(app, name, fields, ADA)
    elsewhere = ADA.model_copy(update={"project": "mast"})
    with pytest.raises(NotFound):
        perform(app, name, {"id": old, other: new}, elsewhere)
    assert ids(app) == [pair]
