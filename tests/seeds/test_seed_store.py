"""The memory store's specification (000), rule by rule: fields, kinds, levels, scores, the journal and time to live."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from recollect import Settings
from recollect.domain.enums import Concept, ObservationType
from recollect.domain.results import JournalEntry
from recollect.domain.verbs import VERBS
from recollect.search.scores import grade
from seed_doors import ALL_LEVELS, Door, Opening, ids

pytestmark = pytest.mark.slow

OBSERVED = tuple(ObservationType)[:6]
FIELDS: dict[str, Any] = {
    "content": "The scheduler retries three times before it gives up",
    "title": "Retries",
    "subtitle": "of the scheduler",
    "type": "discovery",
    "concepts": ["gotcha", "how-it-works"],
    "files_read": ["src/scheduler.py", "docs/retries.md"],
    "files_modified": ["src/backoff.py"],
    "session_id": "session-7",
    "project": "orchestra",
    "discovery_tokens": 1234,
    "category": "reliability",
    "importance": 0.9,
    "sensitivity": "secret",
    "tags": ["scheduler", "retry"],
    "trust": 0.7,
    "ttl_days": 30.0,
    "fact_type": "pattern",
    "observed_at": "2026-02-03T04:05:06+00:00",
    "key": "scheduler_retries",
    "scope": "team",
}
UPDATED: dict[str, Any] = {
    "content": "The scheduler retries five times before it gives up",
    "title": "Five retries",
    "subtitle": "of every scheduler",
    "type": "bugfix",
    "concepts": ["what-changed"],
    "files_read": ["src/clock.py"],
    "files_modified": ["src/timer.py", "src/clock.py"],
    "category": "timing",
    "importance": 0.2,
    "tags": ["timer"],
    "sensitivity": "private",
    "trust": 0.1,
    "ttl_days": 5.0,
}
DEFAULTS = {
    "importance": 0.5,
    "confidence": 0.5,
    "trust": 0.5,
    "sensitivity": "public",
    "scope": "project",
    "fact_type": "general",
    "accessed_count": 0,
    "source": "tool",
}
ABSENT = (
    *("subtitle", "type", "concepts", "files_read", "files_modified", "session_id", "project", "discovery_tokens"),
    *("category", "tags", "key", "expires_at", "ttl_days", "observed_at", "last_accessed_at", "speaker", "position"),
)
PARTS = {"match": 0.55, "recency": 0.20, "importance": 0.15, "trust": 0.10}
FLOOR = 0.04  # of the default model's card: at it the match gives 0.35
FACT = {"subject": "release", "predicate": "happens on", "object": "Friday"}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_comes_back(door: Door, name: str) -> None:
    """What is stored in a field is read back as it was said, with or without other fields."""
    alone = door.store(**{"content": "The pier is long", name: FIELDS[name]})
    assert door.memory(alone)[name] == FIELDS[name]
    together = door.store(**FIELDS)
    assert door.memory(together)[name] == FIELDS[name]


@pytest.mark.parametrize("name", UPDATED)
def test_a_field_is_updated_in_place(door: Door, name: str) -> None:
    """An update of one field changes that one, under the same id, and no other; it must let in the memory's level."""
    memory_id = door.store(**FIELDS)
    before = door.memory(memory_id)
    assert door.refused("update_memory", id=memory_id, **{name: UPDATED[name]}) == f"Memory {memory_id} not found."
    assert door.memory(memory_id)[name] == FIELDS[name]
    assert door.reply("update_memory", id=memory_id, **{name: UPDATED[name]}, **ALL_LEVELS) == (
        f"Memory updated successfully (ID: {memory_id})"
    )
    after = door.memory(memory_id)
    assert after[name] == UPDATED[name]
    counted = {"updated_at", "accessed_count", "last_accessed_at", "expires_at", "abstract", "overview", "entities"}
    counted |= {"merged_from"}  # the memory that keeps the earlier text
    assert {one for one in FIELDS if after[one] != before[one]} <= {name}
    assert set(before) - counted == set(after) - counted
    assert after["created_at"] == before["created_at"]


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_default_holds(door: Door, name: str) -> None:
    """What nobody said has its default."""
    assert door.memory(door.store("The pier is long"))[name] == DEFAULTS[name]


@pytest.mark.parametrize("name", ABSENT)
def test_metadata_are_optional(door: Door, name: str) -> None:
    """A call with nothing but a content works, and what it left out is absent."""
    assert name not in door.memory(door.store("The pier is long"))


def test_a_title_is_made_from_the_content(door: Door) -> None:
    """Without a title the first sentence is one, at most 80 characters of it."""
    body = door.memory(door.store("The pier is long. It was built of oak in 1911."))
    assert body["title"] == "The pier is long."
    assert len(door.memory(door.store("word " * 100))["title"]) <= 80


@pytest.mark.parametrize("kind", OBSERVED)
def test_an_observation_type_is_kept_and_filters(door: Door, kind: str) -> None:
    """Each type is stored, and searches, lists and the timeline find by it."""
    mine = door.store(f"The lighthouse: a {kind}", type=kind)
    other = next(one for one in OBSERVED if one != kind)
    door.store("The lighthouse was painted by Grace", type=other)
    assert door.memory(mine)["type"] == kind
    assert door.found("lighthouse", type=kind) == [mine]
    assert ids(door.read("list_memories", type=kind)) == [mine]
    assert ids(door.read("get_timeline", type=kind)) == [mine]


@pytest.mark.parametrize("concept", Concept)
def test_a_concept_finds_its_memories(door: Door, concept: str) -> None:
    """Each concept is stored, and `search_by_concept` finds by it alone."""
    other = next(one for one in Concept if one != concept)
    mine = door.store("The lighthouse blinks twice", concepts=[concept])
    door.store("The harbour has a crane", concepts=[other])
    both = door.store("The ferry leaves at nine", concepts=[other, concept])
    assert door.memory(mine)["concepts"] == [concept]
    assert set(ids(door.read("search_by_concept", concept=concept))) == {mine, both}


@pytest.mark.parametrize("field", ["files_read", "files_modified"])
@pytest.mark.parametrize(
    "path", ["src/gate/lock.py", "lock.py", "src/gate", "./src/gate/", "/home/ada/src/gate/lock.py"]
)
def test_a_file_finds_its_memories(door: Door, field: str, path: str) -> None:
    """A path, its end, a folder above it, and the path from the root find what read or modified the file."""
    mine = door.store("The lock sticks in winter", **{field: ["src/gate/lock.py", "README.md"]})
    door.store("The harbour has a crane", **{field: ["src/crane.py"]})
    assert ids(door.read("search_by_file", file=path)) == [mine]


def test_a_list_shows_metadata_and_previews(door: Door) -> None:
    """A list has every field but the layers, and the beginning of the content in their place."""
    memory_id = door.store(**FIELDS | {"sensitivity": "public", "content": "The scheduler retries. " * 50})
    whole = door.memory(memory_id)
    [one] = door.read("list_memories")["memories"]
    shown = set(whole) - {"content", "abstract", "overview", "notes"} | {"preview"}
    assert set(one) - {"last_accessed_at"} == shown
    assert whole["content"].startswith(one["preview"].removesuffix("…"))
    assert len(one["preview"]) <= 200
    assert all(one[name] == value for name, value in FIELDS.items() if name not in ("content", "sensitivity"))


def test_a_timeline_is_ordered_by_creation(door: Door) -> None:
    """The timeline goes by when memories were made, whatever became of them later, and narrows by its filters."""
    labels = {"type": "change", "project": "harbour", "session_id": "s1"}
    made = []
    for text in ("The crane lifts", "The ferry leaves", "The pier is long"):
        made.append(door.store(text, **labels))
        door.time.pass_days(1)
    door.store("The gate is shut")
    door.reply("update_memory", id=made[0], importance=0.9)
    assert ids(door.read("get_timeline", order="oldest"))[:3] == made
    for name, value in labels.items():
        assert ids(door.read("get_timeline", **{name: value})) == made
    assert ids(door.read("get_timeline", order="newest", session_id="s1")) == made[::-1]
    assert ids(door.read("get_timeline", limit=2, session_id="s1")) == made[1:]
    assert ids(door.read("get_timeline", limit=2, offset=2, session_id="s1")) == made[:1]


def test_the_same_content_is_one_memory(door: Door) -> None:
    """By the SHA-256 of its content: the id comes back, the time is refreshed, there is one row, the journal tells."""
    content = "The tide is high at noon."
    first = door.store(content)
    before = door.memory(first)
    door.time.pass_days(3)
    assert door.reply("store_memory", content=content) == f"Memory updated successfully (ID: {first})"
    after = door.memory(first)
    assert after["updated_at"] > before["updated_at"]
    assert after["updated_at"] == door.time.now.isoformat(timespec="seconds")
    assert after["created_at"] == before["created_at"]
    assert door.read("list_memories")["total"] == 1
    assert door.perform("get_memory", id=first).content_hash == hashlib.sha256(content.encode()).hexdigest()
    assert door.actions(first) == ["insert", "refresh"]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_the_score_has_its_weight(door: Door, part: str) -> None:
    """The score is 0.55 graded match + 0.20 recency + 0.15 importance + 0.10 trust; recency halves in 21 days."""
    door.store("The mascot is a quokka", importance=0.8, trust=0.3)
    for halvings in range(4):
        [hit] = door.read("search_memories", query="which animal is the mascot?", min_score=0.0)["memories"]
        graded = grade(hit["similarity"], FLOOR, PARTS["match"])
        said = {"match": graded, "recency": 0.5**halvings, "importance": 0.8, "trust": 0.3}
        assert hit["why"][part] == pytest.approx(PARTS[part] * said[part], abs=0.001)
        assert hit["score"] == pytest.approx(sum(hit["why"][name] for name in PARTS), abs=0.003)
        assert set(hit["why"]) == {*PARTS, "found_by"}
        door.time.pass_days(21)


def test_results_below_the_lowest_score_are_left_out(door: Door) -> None:
    """`min_score` is 0.35 unless another is given; what is below it is not in the answer."""
    memory_id = door.store("The mascot is a quokka", importance=0.0, trust=0.0)
    door.time.pass_days(2_000)
    query = "which animal is the mascot?"
    [hit] = door.read("search_memories", query=query)["memories"]
    assert 0.35 <= hit["score"] < 0.9  # what is relevant passes by its match alone, at any age
    assert ids(door.read("search_memories", query=query, min_score=hit["score"] - 0.01)) == [memory_id]
    assert ids(door.read("search_memories", query=query, min_score=hit["score"] + 0.01)) == []
    assert ids(door.read("search_memories", query="recipe for a sourdough bread")) == []
    important = door.store("The mascot is a quokka", importance=1.0, trust=1.0)
    assert important == memory_id
    assert ids(door.read("search_memories", query=query, min_score=hit["score"] + 0.01)) == [memory_id]


def test_the_best_score_comes_first(door: Door) -> None:
    """Results are ordered by their scores."""
    for number, name in enumerate(("quokka", "heron", "otter")):
        door.store(f"A mascot was proposed: the {name}", importance=number / 2)
    hits = door.read("search_memories", query="mascot proposed", min_score=0.0)["memories"]
    scores = [hit["score"] for hit in hits]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert "otter" in hits[0]["content"]


def test_the_score_alone_orders_what_is_newer_too(door: Door) -> None:
    """An important older statement stands before a newer one of little importance, which `recall` puts first."""
    older = door.store("The deploy runs on Jenkins", importance=1.0, trust=1.0)
    door.time.pass_days(1)
    newer = door.store("The deploy no longer runs on Jenkins, it now runs on Buildkite", importance=0.0, trust=0.0)
    query = "what does the deploy run on?"
    hits = door.read("search_memories", query=query, min_score=0.0)["memories"]
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    assert ids({"memories": hits}) == [older, newer]


@pytest.mark.parametrize("field", ["content", "title", "subtitle"])
def test_full_text_covers(door: Door, field: str) -> None:
    """A word that stands in one of the three columns alone is found by its letters there."""
    texts = {"content": "The crane lifts", "title": "Harbour", "subtitle": "of the town"}
    memory_id = door.store(**texts | {field: f"{texts[field]} zorbex"})
    door.store("The ferry leaves at nine")
    [hit] = door.read("search_memories", query="zorbex")["memories"]
    assert hit["id"] == memory_id
    assert "words" in hit["why"]["found_by"]


def test_every_read_by_id_is_counted(door: Door) -> None:
    """`get_memory` counts each access with its time; searches and lists do not."""
    memory_id = door.store("The mascot is a quokka")
    for count in range(3):
        assert door.memory(memory_id)["accessed_count"] == count
    last = door.time.now.isoformat(timespec="seconds")
    door.time.pass_days(1)
    door.found("quokka")
    [one] = door.read("list_memories")["memories"]
    assert (one["accessed_count"], one["recalled_count"]) == (3, 1)
    assert one["last_accessed_at"] >= last


def test_there_is_no_cap_by_default(door: Door) -> None:
    """`max_memories` is 0, which is no limit."""
    assert Settings().max_memories == 0
    for number in range(40):
        door.store(f"Item {number} of the inventory", fact_type="event")
    assert door.read("list_memories", limit=100)["total"] == 40


def test_beyond_the_cap_the_least_valuable_go(opening: Opening) -> None:
    """Lowest `accessed_count` first, then the oldest `updated_at`, then the lowest `importance`."""
    door = opening(max_memories=4).door()
    read, oldest = door.store("The quokka sleeps", importance=0.0), door.store("The heron flies", importance=1.0)
    door.time.pass_days(1)
    slight, weighty = door.store("The otter swims", importance=0.1), door.store("The stork nests", importance=0.9)
    door.memory(read)
    gone = []
    for text in ("The lynx hides", "The crane lifts", "The wombat digs"):
        door.time.pass_days(1)
        new = door.store(text)
        door.memory(new)
        left = set(ids(door.read("list_memories")))
        assert len(left) == 4
        gone.append({read, oldest, slight, weighty} - left)
    assert gone == [{oldest}, {oldest, slight}, {oldest, slight, weighty}]
    assert door.actions(oldest) == ["insert", "evict"]


@pytest.mark.parametrize("action", ["insert", "update", "delete", "refresh"])
def test_the_journal_records(door: Door, action: str) -> None:
    """Each kind of write leaves its line, with who did it and when."""
    memory_id = door.store("The pier is long")
    if action == "update":
        door.reply("update_memory", id=memory_id, importance=0.9)
    elif action == "delete":
        door.reply("delete_memory", id=memory_id)
    elif action == "refresh":
        door.store("The pier is long")
    line = door.read("history", id=memory_id)["history"][-1]
    assert line["action"] == action
    assert (line["actor"], line["at"]) == (door.caller.user, door.time.now.isoformat(timespec="seconds"))


def test_no_tool_changes_the_journal(door: Door) -> None:
    """Whatever a tool does, lines of the journal are added, never changed or taken away; none writes one itself."""

    def lines() -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(door.home / "memory.db", timeout=30)) as database:
            return database.execute("SELECT * FROM journal ORDER BY id").fetchall()

    memory_id = door.store("The pier is long", ttl_days=1)
    before = lines()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("store_memory", {"content": "The pier is long"}),
        ("update_memory", {"id": memory_id, "content": "The pier is longer"}),
        ("memory_forget", {"id": memory_id}),
        ("restore", {"id": memory_id}),
        ("store_fact", {"subject": "pier", "predicate": "is", "object": "long"}),
        ("summarize_old", {}),
        ("delete_memory", {"id": memory_id}),
        ("purge_expired", {}),
    ]
    for tool, arguments in calls:
        door.reply(tool, **arguments)
        after = lines()
        assert after[: len(before)] == before
        before = after
    assert [one.name for one in VERBS if one.answer == list[JournalEntry] and one.writes] == []


def test_purging_removes_what_has_expired(door: Door) -> None:
    """`purge_expired` removes for good exactly what has passed its time, and the journal keeps that it did."""
    gone, stays = door.store("The fair is on", ttl_days=1), door.store("The pier is long", ttl_days=3)
    door.time.pass_days(2)
    assert door.read("purge_expired") == {"message": "1 expired memory removed.", "ids": [gone]}
    assert door.actions(gone) == ["insert", "purge"]
    assert ids(door.read("list_memories")) == [stays]
    assert door.reply("restore", id=gone) == f"Memory {gone} not found."
    assert door.reply("purge_expired") == "0 expired memories removed."


def test_old_memories_are_condensed_by_category(door: Door) -> None:
    """`summarize_old` writes one summary for each category of what is older than it is told, 30 days by default."""
    said = {"attic": ("maps", "trunks", "lamps"), "cellar": ("wine", "coal", "apples")}
    for room, things in said.items():
        for thing in things:
            door.store(f"The {room} holds old {thing}", category=room)
    door.time.pass_days(29)
    assert door.reply("summarize_old") == "0 memories condensed into 0 summaries."
    door.time.pass_days(2)
    assert door.reply("summarize_old") == "6 memories condensed into 2 summaries."
    for room, things in said.items():
        one, *originals = door.read("list_memories", category=room)["memories"]
        assert {original["superseded_by"] for original in originals} == {one["id"]}
        content = door.memory(one["id"])["content"]
        assert one["type"] == "compressed_summary"
        assert all(thing in content for thing in things)


def test_deleting_is_for_good_and_journalled(door: Door) -> None:
    """`delete_memory` leaves nothing to find, and a line that says who did it."""
    memory_id = door.store("The mascot is a quokka")
    assert door.reply("delete_memory", id=memory_id) == f"Memory {memory_id} deleted."
    assert door.found("quokka") == []
    assert door.reply("restore", id=memory_id) == f"Memory {memory_id} not found."
    assert door.actions(memory_id) == ["insert", "delete"]


@pytest.mark.parametrize("part", FACT)
def test_a_fact_is_stored_and_found_by(door: Door, part: str) -> None:
    """A triple comes back with its parts, and each part finds it, letter case aside; without any all are found."""
    text = door.reply("store_fact", **FACT)
    assert text.startswith("Fact stored successfully with ID: ")
    door.reply("store_fact", subject="ferry", predicate="leaves at", object="nine")
    [fact] = door.read("query_facts", **{part: FACT[part].upper()})["facts"]
    assert {name: fact[name] for name in FACT} == FACT
    assert door.read("query_facts", **{part: "nothing of the kind"})["facts"] == []
    assert door.read("query_facts")["total"] == 2
