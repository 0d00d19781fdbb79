"""Every parameter of a tool that asks, one at a time: each narrows, bounds, orders or opens what it says it does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from recollect.domain.enums import ObservationType, Source
from recollect.errors import NotFound
from seed_doors import Door, ids

MINE = {
    "type": "bugfix",
    "category": "left",
    "tags": ["port"],
    "project": "hull",
    "session_id": "s1",
    "scope": "team",
    "fact_type": "decision",
    "concepts": ["gotcha"],
    "observed_at": "2026-02-10",
}
THEIRS = {
    "type": "change",
    "category": "right",
    "tags": ["starboard"],
    "project": "mast",
    "session_id": "s2",
    "scope": "personal",
    "fact_type": "context",
    "concepts": ["pattern"],
    "observed_at": "2026-01-10",
}
NARROWING: dict[str, tuple[str, ...]] = {
    "search_memories": (
        *("type", "fact_type", "concepts", "category", "tags", "project", "session_id", "scope", "since", "until"),
    ),
    "list_memories": ("type", "fact_type", "concepts", "category", "tags", "project", "session_id", "scope"),
    "get_timeline": ("type", "project", "session_id", "since", "until"),
    "memory_recall": ("fact_type", "category", "tags", "scope", "since", "until"),
    "find_similar": ("fact_type", "category", "scope"),
    "format_for_prompt": ("fact_type", "category", "scope"),
    "stats": ("scope",),
}
ASKED: dict[str, dict[str, Any]] = {
    "search_memories": {"query": "the anchor", "min_score": 0.0},
    "memory_recall": {"query": "the anchor"},
    "find_similar": {"content": "the anchor", "threshold": -1.0},
}
FACT = {"subject": "release", "predicate": "day", "object": "Friday"}


def seen(door: Door, tool: str, **arguments: Any) -> set[str]:
    """Return the ids that a tool shows, or for `stats` as many."""
    body = door.read(tool, **ASKED.get(tool, {}), **arguments)
    if tool == "stats":
        return {str(number) for number in range(body["memories"])}
    return set(body["ids"] if tool == "format_for_prompt" else ids(body))


@pytest.mark.parametrize(("tool", "name"), [(tool, name) for tool, names in NARROWING.items() for name in names])
def test_a_parameter_narrows(door: Door, tool: str, name: str) -> None:
    """What does not meet the parameter is left out; without it everything is shown."""
    mine, theirs = door.store("The anchor is heavy", **MINE), door.store("An anchor lies on deck", **THEIRS)
    wanted = {"since": "2026-02-01", "until": "2026-01-31"}.get(name, MINE.get(name))
    expected = {theirs} if name == "until" else {mine}
    assert len(seen(door, tool)) == 2
    found = seen(door, tool, **{name: wanted})
    assert len(found) == 1
    assert tool == "stats" or found == expected


@pytest.mark.parametrize("tool", ["search_memories", "list_memories", "search_by_file", "search_by_concept"])
def test_a_limit_bounds(door: Door, tool: str) -> None:
    """No more than `limit` are shown; without it ten hits, or twenty of a list."""
    ways = {"search_by_file": {"file": "a.py"}, "search_by_concept": {"concept": "pattern"}} | ASKED
    for number in range(22):
        door.store(f"The anchor number {number}", fact_type="event", files_read=["a.py"], concepts=["pattern"])
    default = 10 if tool == "search_memories" else 20
    assert len(ids(door.read(tool, **ways.get(tool, {})))) == default
    assert len(ids(door.read(tool, **ways.get(tool, {}), limit=3))) == 3
    assert len(ids(door.read(tool, **ways.get(tool, {}), limit=50))) == 22


@pytest.mark.parametrize("tool", ["get_timeline", "query_facts", "find_similar"])
def test_a_limit_bounds_here_too(door: Door, tool: str) -> None:
    """No more than `limit` are shown."""
    for number in range(4):
        door.store(f"The anchor number {number}", fact_type="event")
        door.reply("store_fact", subject="anchor", predicate=f"chain {number}", object="iron")
    assert len(ids(door.read(tool, **ASKED.get(tool, {})))) == 4
    assert len(ids(door.read(tool, **ASKED.get(tool, {}), limit=3))) == 3


@pytest.mark.parametrize(
    "tool", ["list_memories", "search_by_file", "search_by_concept", "get_timeline", "query_facts"]
)
def test_an_offset_skips(door: Door, tool: str) -> None:
    """A page begins behind what the one before has shown, and each tells how many there are."""
    ways = {"search_by_file": {"file": "a.py"}, "search_by_concept": {"concept": "pattern"}}.get(tool, {})
    for number in range(5):
        door.store(f"The anchor number {number}", fact_type="event", files_read=["a.py"], concepts=["pattern"])
        door.reply("store_fact", subject="anchor", predicate=f"chain {number}", object="iron")
    pages = [door.read(tool, **ways, limit=2, offset=at) for at in (0, 2, 4)]
    shown = [one for page in pages for one in ids(page)]
    assert (len(shown), len(set(shown))) == (5, 5)
    assert {page["total"] for page in pages} == {5}


@pytest.mark.parametrize("order", ["newest", "oldest", "updated", "used", "important"])
def test_an_order_sorts(door: Door, order: str) -> None:
    """A list comes newest, oldest, last updated, most used or most important first; last updated by default."""
    made = []
    for text, importance in (("The crane lifts", 0.9), ("The ferry leaves", 0.1), ("The pier is long", 0.5)):
        made.append(door.store(text, importance=importance))
        door.time.pass_days(1)
    crane, ferry, pier = made
    door.reply("update_memory", id=ferry, category="town")
    for memory_id in (crane, pier, pier):
        door.memory(memory_id)
    expected = {
        "newest": [pier, ferry, crane],
        "oldest": [crane, ferry, pier],
        "updated": [ferry, pier, crane],
        "used": [pier, crane, ferry],
        "important": [crane, pier, ferry],
    }
    assert ids(door.read("list_memories", order=order)) == expected[order]
    assert ids(door.read("list_memories")) == expected["updated"]
    if order in ("newest", "oldest"):
        assert ids(door.read("get_timeline", order=order)) == expected[order]
        assert ids(door.read("get_timeline")) == expected["oldest"]


def test_details_are_bounded_by_the_limit(door: Door) -> None:
    """`limit` is the most details of `memory_recall`; every match keeps its line."""
    for number in range(5):
        door.store(f"The anchor number {number}", fact_type="event")
    answer = door.read("memory_recall", query="the anchor", limit=2)
    assert (len(answer["index"]), len(answer["details"]), answer["omitted"]) == (5, 2, 3)


def test_search_takes_a_budget(door: Door) -> None:
    """With `max_tokens` a search answers with index and details, ranked as ever."""
    memory_id = door.store("The anchor is heavy")
    answer = door.read("search_memories", query="the anchor", max_tokens=300)
    assert (ids(answer), answer["details"][0]["id"]) == ([memory_id], memory_id)


def test_a_fact_keeps_what_is_said_of_it(door: Door) -> None:
    """Confidence, level, scope, memory and times come back; the defaults are half, public, the project, none, now."""
    source = door.store("We release on Fridays", scope="team")
    said = {"confidence": 0.9, "sensitivity": "private", "scope": "team", "memory_id": source}
    days = {"valid_from": -30, "valid_to": 300}
    times = {name: (door.time.now + timedelta(days=many)).isoformat() for name, many in days.items()}
    door.reply("store_fact", **FACT, **said, **times)
    [fact] = door.read("query_facts", allow_private=True)["facts"]
    assert {name: fact[name] for name in said | times} == said | times
    door.reply("store_fact", subject="ferry", predicate="leaves at", object="nine")
    [plain] = door.read("query_facts", subject="ferry")["facts"]
    assert (plain["confidence"], plain["sensitivity"], plain["scope"]) == (0.5, "public", "project")
    assert plain["valid_from"] == door.time.now.isoformat(timespec="seconds")
    assert not {"valid_to", "memory_id"} & set(plain)


def test_a_fact_is_asked_for_by_memory_and_time(door: Door) -> None:
    """Its memory, a time at which it held, and `history` choose; only what `replaces` others ends them."""
    source = door.store("We release on Mondays now")
    door.reply("store_fact", **FACT, valid_from="2026-01-01")
    door.reply("store_fact", **FACT | {"object": "Monday"}, memory_id=source, valid_from="2026-02-01", replaces=True)

    def held(**asked: Any) -> set[str]:
        return {fact["object"] for fact in door.read("query_facts", **asked)["facts"]}

    assert held() == {"Monday"}
    assert held(memory_id=source) == {"Monday"}
    assert held(as_of="2026-01-15") == {"Friday"}
    assert held(history=True) == {"Friday", "Monday"}
    door.reply("store_fact", **FACT | {"object": "Tuesday"})
    assert held() == {"Monday", "Tuesday"}


def test_a_fact_is_forgotten(door: Door) -> None:
    """`forget_fact` deletes one fact for good, and says so in the words that memories are forgotten with."""
    number = door.read("store_fact", **FACT)["id"]
    assert door.reply("forget_fact", id=number) == f"Fact {number} deleted."
    assert door.read("query_facts", history=True)["facts"] == []
    assert door.reply("forget_fact", id=number) == f"Fact {number} not found."


@pytest.mark.parametrize("scope", ["personal", "project", "team"])
def test_upkeep_keeps_to_its_scope(door: Door, scope: str) -> None:
    """`purge_expired` and `summarize_old` work in the scope they are given."""
    others = {"personal", "project", "team"} - {scope}
    gone = {one: door.store(f"The {one} fair", scope=one, ttl_days=1) for one in (scope, *others)}
    for number in range(3):
        for one in (scope, *others):
            door.store(f"The {one} lamp number {number}", scope=one, category="lamps", fact_type="event")
    door.time.pass_days(3)
    assert door.read("purge_expired", scope=scope)["ids"] == [gone[scope]]
    assert door.read("summarize_old", scope=scope, category="chairs", older_than_days=1)["condensed"] == 0
    done = door.read("summarize_old", scope=scope, category="lamps", older_than_days=1)
    assert done["condensed"] == 3
    assert door.memory(done["ids"][0])["scope"] == scope


def test_similar_by_text_or_by_id(door: Door) -> None:
    """A text or a memory is compared, above a cosine of 0.7 unless another threshold is given."""
    first = door.store("The upload limit is 5 MB", fact_type="event")
    second = door.store("The upload limit is 6 MB", fact_type="event")
    far = door.store("A heron stands on the pier", fact_type="event")
    assert ids(door.read("find_similar", content="The upload limit is 6 MB")) == [second, first]
    assert ids(door.read("find_similar", id=first)) == [second]
    everything = door.read("find_similar", id=first, threshold=-1.0)["memories"]
    assert [one["id"] for one in everything] == [second, far]
    assert everything[0]["cosine"] >= 0.7 > everything[1]["cosine"]


def test_a_prompt_is_chosen_and_bounded(door: Door) -> None:
    """A query chooses what is shown; `max_entries` (20) and `max_tokens` (1,000) bound it."""
    memory_id = door.store("The mascot is a quokka", fact_type="event")
    for number in range(24):
        door.store(f"The anchor number {number}", fact_type="event")
    assert door.read("format_for_prompt", query="which animal is the mascot?", max_entries=1)["ids"] == [memory_id]
    assert len(door.read("format_for_prompt")["ids"]) == 20
    assert len(door.read("format_for_prompt", max_entries=3)["ids"]) == 3
    counter = door.app.embedder.counter()
    assert counter is not None
    small = door.read("format_for_prompt", max_tokens=120)
    assert 0 < len(small["ids"]) < 20
    assert counter(small["text"]) <= 120


def test_what_a_caller_sees_is_theirs(door: Door) -> None:
    """A personal memory is of the user, a project's of the project, a team's of the team; others see none of it."""
    for scope in ("personal", "project", "team"):
        memory_id = door.store(f"The {scope} anchor is heavy", scope=scope)
        space = door.perform("get_memory", id=memory_id).namespace
        assert space == door.caller.namespace(scope)
        stranger = Door(door.app, door.time, door.caller.model_copy(update={"user": "x", "team": "y"}), door.home)
        assert stranger.found("anchor") == []
        with pytest.raises(NotFound):
            stranger.perform("get_memory", id=memory_id)


@pytest.mark.parametrize("source", Source)
def test_a_memory_knows_how_it_came(door: Door, source: str) -> None:
    """Whoever performs `remember` may say how a memory came in; a tool may not, and is the default."""
    memory_id = str(door.perform("remember", content="The pier is long", source=source).id)
    assert door.memory(memory_id)["source"] == source
    assert door.refused("store_memory", content="x", source=source).startswith("Unknown parameter: `source`. Allowed: ")


@pytest.mark.parametrize("kind", tuple(ObservationType)[6:])
def test_types_of_the_lifecycle_are_read(door: Door, kind: str) -> None:
    """What the lifecycle writes is marked by a type that searches and lists filter by, like any other."""
    memory_id = str(door.perform("remember", content="The pier was built", type=kind).id)
    door.store("The pier is long")
    assert ids(door.read("list_memories", type=kind)) == [memory_id]
    assert ids(door.read("search_memories", query="pier", type=kind)) == [memory_id]
