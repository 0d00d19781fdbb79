"""The minimal-context memory's specification (001): its columns, four types, ten steps, time to live, dual response."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest

from recollect.domain.enums import EntityType
from recollect.search.budget import printed
from recollect.search.scores import grade
from seed_doors import Door, House, ids

FOUR = ("fact", "entity", "relationship", "self")
STORED: dict[str, Any] = {
    "content": "Grace drinks green tea in the morning",
    "summary": "Grace: tea",
    "type": "self",
    "importance": 9,
    "tags": ["tea"],
    "ttl_days": 12.0,
    "scope": "personal",
}
SHOWN = {"summary": "abstract", "type": "fact_type"}
TENTHS = {"importance": 0.9}
ENTITIES = {
    "person": ("Yesterday Ada Lovelace opened the engine.", "Ada Lovelace"),
    "organisation": ("The contract is with Acme Corp.", "Acme Corp"),
    "place": ("The office moved to Berlin.", "Berlin"),
    "thing": ("We pay with Stripe now.", "Stripe"),
    "concept": ("The next OTA comes in May.", "OTA"),
    "file": ("The guard is in src/parse/lexer.py.", "src/parse/lexer.py"),
    "url": ("See https://example.org/engine for it.", "https://example.org/engine"),
    "email": ("Write to ada@example.org about it.", "ada@example.org"),
    "version": ("It broke in v2.3.1 first.", "v2.3.1"),
    "identifier": ("The budget is MAX_BACKOFF_SECONDS.", "MAX_BACKOFF_SECONDS"),
    "ticket": ("It was closed as ENGINE-42.", "ENGINE-42"),
    "hashtag": ("Everything about #launch is here.", "launch"),
}
HABIT = {"match": 0.40, "importance": 0.30, "recency": 0.20, "frequency": 0.10}


def put(door: Door, content: str, **fields: Any) -> str:
    """Store a memory with `memory_store` and return its id."""
    return str(door.read("memory_store", content=content, **fields)["id"])


@pytest.mark.parametrize("name", STORED)
def test_a_parameter_of_memory_store_is_kept(door: Door, name: str) -> None:
    """What is given comes back: `summary` as the abstract, `type` as the fact type, importance in tenths."""
    body = door.memory(put(door, **STORED))
    assert body[SHOWN.get(name, name)] == TENTHS.get(name, STORED[name])


@pytest.mark.parametrize("name", ["content", "summary", "type", "importance", "tags", "ttl_days"])
def test_a_parameter_of_memory_store_updates(door: Door, name: str) -> None:
    """With an `id` what is given is changed and the rest stays."""
    memory_id = put(door, "The pier is long", importance=2)
    before = door.memory(memory_id)
    assert door.reply("memory_store", id=memory_id, **{name: STORED[name]}) == (
        f"Memory updated successfully (ID: {memory_id})"
    )
    after = door.memory(memory_id)
    assert after[SHOWN.get(name, name)] == TENTHS.get(name, STORED[name])
    stays = {"content", "importance", "fact_type", "created_at"} - {SHOWN.get(name, name)}
    assert {one: after[one] for one in stays} == {one: before[one] for one in stays}


def test_without_an_id_a_memory_is_created(door: Door) -> None:
    """`memory_store` says which one it has made."""
    text = door.reply("memory_store", content="The pier is long")
    assert text == f"Memory stored successfully with ID: {text.rpartition(' ')[2]}"


@pytest.mark.parametrize("kind", FOUR)
def test_a_memory_type_is_kept_and_filters(door: Door, kind: str) -> None:
    """Each of the four types is stored, and recall narrows by it."""
    mine = put(door, f"The lighthouse and its {kind}", type=kind)
    put(door, "The lighthouse was painted", type=next(one for one in FOUR if one != kind))
    assert door.memory(mine)["fact_type"] == kind
    assert ids(door.read("memory_recall", query="lighthouse", fact_type=kind)) == [mine]


@pytest.mark.parametrize("importance", range(11))
def test_importance_has_ten_steps(door: Door, importance: int) -> None:
    """0–10 is kept as 0–1."""
    assert door.memory(put(door, "The pier is long", importance=importance))["importance"] == importance / 10


def test_importance_is_five_by_default(door: Door) -> None:
    """Whoever does not say how important a memory is, means medium."""
    assert door.memory(put(door, "The pier is long"))["importance"] == 0.5


@pytest.mark.parametrize("importance", [-1, 11, 10.1])
def test_importance_beyond_the_scale_is_refused(door: Door, importance: float) -> None:
    """What is not on the scale is bad input."""
    message = "Invalid importance: Must be 0–10"
    assert door.refused("memory_store", content="x", importance=importance) == message


@pytest.mark.parametrize("importance", range(1, 11))
def test_the_term_is_thirty_days_for_each_step(ageing: Door, importance: int) -> None:
    """`ttl_days = importance * 30`: so long the memory is recalled, and then no more."""
    memory_id = put(ageing, "The pier is long", importance=importance)
    ends = ageing.time.now + timedelta(days=importance * 30)
    [one] = ageing.read("list_memories")["memories"]
    assert one["expires_at"] == ends.isoformat(timespec="seconds")
    ageing.time.pass_days(importance * 30 - 0.01)
    assert ids(ageing.read("list_memories")) == [memory_id]
    ageing.time.pass_days(0.01)
    assert ids(ageing.read("list_memories")) == []
    assert ids(ageing.read("memory_recall", query="pier")) == []


@pytest.mark.parametrize("importance", [1, 3, 4, 10])
@pytest.mark.parametrize("use", ["get_memory", "memory_recall"])
def test_access_refreshes_the_term_of_what_is_important(ageing: Door, importance: int, use: str) -> None:
    """From 4 on a use lets the memory live on from now, below that it does not; each use counts."""
    memory_id = put(ageing, "The pier is long", importance=importance)
    ends = ageing.time.now + timedelta(days=importance * 30)
    ageing.time.pass_days(10)
    for _ in range(2):
        ageing.read(use, **({"id": memory_id} if use == "get_memory" else {"query": "pier"}))
    [one] = ageing.read("list_memories")["memories"]
    later = ends + timedelta(days=10 if importance >= 4 else 0)
    assert one["expires_at"] == later.isoformat(timespec="seconds")
    assert one["accessed_count" if use == "get_memory" else "recalled_count"] == 2


def test_a_store_keeps_everything_by_default(door: Door) -> None:
    """Terms by importance are a setting; without it nothing ends that was not told to."""
    assert "expires_at" not in door.memory(put(door, "The pier is long", importance=1))


@pytest.mark.parametrize("column", ["id", "created_at", "last_accessed_at", "accessed_count", "expires_at"])
def test_a_column_is_shown(door: Door, column: str) -> None:
    """What the store itself notes of a memory can be read: when it was made and used, how often, when it ends."""
    memory_id = put(door, "The pier is long", ttl_days=2)
    made = door.time.now
    door.time.pass_days(1)
    door.memory(memory_id)
    expected = {
        "id": memory_id,
        "created_at": made.isoformat(timespec="seconds"),
        "last_accessed_at": door.time.now.isoformat(timespec="seconds"),
        "accessed_count": 1,
        "expires_at": (made + timedelta(days=2)).isoformat(timespec="seconds"),
    }
    assert door.memory(memory_id)[column] == expected[column]


def test_forgetting_softly_marks_as_deleted(door: Door) -> None:
    """A forgotten memory is hidden and counted as deleted, its provenance says so, and it can be restored."""
    memory_id = put(door, "The mascot is a quokka")
    answer = door.answer("memory_forget", id=memory_id)
    assert answer.texts[0] == f"Memory {memory_id} deleted."
    assert ids(door.read("memory_recall", query="quokka")) == []
    assert (door.read("stats")["memories"], door.read("stats")["deleted"]) == (0, 1)
    assert door.reply("restore", id=memory_id) == f"Memory {memory_id} restored."
    assert ids(door.read("memory_recall", query="quokka")) == [memory_id]
    assert door.actions(memory_id) == ["insert", "delete", "restore"]


def test_forgetting_hard_leaves_only_provenance(door: Door) -> None:
    """With `hard` nothing is left to restore but the record of what happened."""
    memory_id = put(door, "The mascot is a quokka")
    assert door.reply("memory_forget", id=memory_id, hard=True) == f"Memory {memory_id} deleted."
    assert door.read("stats")["deleted"] == 0
    assert door.reply("restore", id=memory_id) == f"Memory {memory_id} not found."
    assert door.actions(memory_id) == ["insert", "delete"]


def test_provenance_tells_operation_time_and_metadata(door: Door) -> None:
    """Each line says what was done, when, by whom, and to which fields."""
    memory_id = put(door, "The pier is long")
    door.time.pass_days(1)
    door.reply("memory_store", id=memory_id, importance=9)
    first, second = door.read("history", id=memory_id)["history"]
    assert (first["action"], second["action"]) == ("insert", "update")
    assert second["at"] == door.time.now.isoformat(timespec="seconds") > first["at"]
    assert second["actor"] == door.caller.user
    assert "importance" in str(second)


@pytest.mark.parametrize("kind", EntityType)
def test_entities_are_extracted(door: Door, kind: str) -> None:
    """Each memory knows what it names, and what kind of thing that is."""
    text, name = ENTITIES[kind]
    entities = door.memory(put(door, text))["entities"]
    assert any(one["entity_type"] == kind and name in one["entity"] for one in entities), entities


@pytest.mark.parametrize("layer", ["content", "summary"])
def test_text_search_covers(door: Door, layer: str) -> None:
    """A word that stands in the content or in the summary alone finds its memory, also after an update of that."""
    texts = {"content": "The crane lifts", "summary": "About the harbour"}
    memory_id = put(door, **texts | {layer: f"{texts[layer]} zorbex"})
    [hit] = door.read("search_memories", query="zorbex")["memories"]
    assert hit["id"] == memory_id
    assert "words" in hit["why"]["found_by"]
    door.reply("memory_store", id=memory_id, **{layer: f"{texts[layer]} vrimply"})
    assert ids(door.read("search_memories", query="vrimply")) == [memory_id]
    assert ids(door.read("search_memories", query="zorbex")) == []
    door.reply("memory_forget", id=memory_id)
    assert ids(door.read("search_memories", query="vrimply")) == []


@pytest.mark.parametrize(
    ("said", "asked"),
    [("threshing", "threshed"), ("harvesters", "harvesting"), ("ponies", "pony"), ("bridge", "bridges")],
)
def test_words_are_stemmed(door: Door, said: str, asked: str) -> None:
    """Another form of a word finds it by its stem."""
    memory_id = put(door, f"We saw the {said} beyond the hill")
    [hit] = door.read("search_memories", query=asked)["memories"]
    assert hit["id"] == memory_id
    assert "words" in hit["why"]["found_by"]


@pytest.mark.parametrize("part", HABIT)
def test_a_part_of_the_hybrid_score_has_its_weight(door: Door, part: str) -> None:
    """0.40 match + 0.30 importance + 0.20 recency + 0.10 frequency, which is full at twenty uses."""
    memory_id = put(door, "The mascot is a quokka", importance=8)
    for _ in range(5):
        door.memory(memory_id)
    door.time.pass_days(21)
    [hit] = door.perform("memory_recall", query="which animal is the mascot?").hits
    said = {
        "match": grade(hit.match, door.app.embedder.card.floor, 0.40),
        "importance": 0.8,
        "recency": 0.5,
        "frequency": math.log1p(5) / math.log1p(20),
    }
    assert hit.parts[part] == pytest.approx(HABIT[part] * said[part])
    assert hit.score == pytest.approx(sum(hit.parts.values()))
    assert set(hit.parts) == set(HABIT)


@pytest.fixture(scope="module")
def library(house: House) -> Door:
    """Return a door behind which twelve long memories tell of one thing."""
    rooms = "attic cellar kitchen hall study barn stable tower chapel yard loft porch".split()
    door = house.door()
    for place, room in enumerate(rooms):
        text = f"The lighthouse has a {room} that was painted in {1900 + place}. "
        put(door, text + f"In the {room} stand lamps. " * 40)
    return door


def tokens(door: Door, body: Any) -> int:
    """Count the tokens of an answer, or of a part of it, as it is printed."""
    counter = door.app.embedder.counter()
    assert counter is not None
    return counter(printed(body))


def test_every_match_has_a_line_of_twenty_words(library: Door) -> None:
    """The index lists all matches in lines of at most twenty words, which are about twenty tokens each."""
    answer = library.read("memory_recall", query="rooms of the lighthouse", max_tokens=2_000)
    assert len(set(ids(answer))) == 12
    for line in answer["index"]:
        number, _, abstract = line.partition(": ")
        assert library.memory(number)["content"].startswith(abstract.rstrip("…"))
        assert len(abstract.split()) <= 20
        assert tokens(library, line) <= 30


@pytest.mark.parametrize("most", [64, 150, 400, 900, 2_000, 10_000])
def test_the_budget_bounds_the_whole_answer(library: Door, most: int) -> None:
    """Index and details together have at most `max_tokens`; what is left out is counted."""
    answer = library.read("memory_recall", query="rooms of the lighthouse", max_tokens=most)
    assert tokens(library, answer) <= most
    assert len(answer["index"]) + answer["unlisted"] == 12
    assert len(answer["details"]) + answer["omitted"] == 12


def test_the_budget_is_two_thousand_by_default(library: Door) -> None:
    """Without `max_tokens` the answer is the one for 2,000."""
    asked = {"query": "rooms of the lighthouse"}
    plain, told = library.read("memory_recall", **asked), library.read("memory_recall", **asked, max_tokens=2_000)
    shapes = [{name: len(one[name]) for name in ("index", "details")} for one in (plain, told)]
    assert shapes[0] == shapes[1]
    assert 1_000 < tokens(library, plain) <= 2_000


def test_details_show_the_top_matches_as_deep_as_fits(library: Door) -> None:
    """The best matches come in full while there is room, with their metadata; others by their overview."""
    answer = library.read("memory_recall", query="rooms of the lighthouse", max_tokens=2_000)
    shown = [one["id"] for one in answer["details"]]
    assert shown == ids(answer)[: len(shown)]
    assert len(shown) < 12
    first = answer["details"][0]
    assert first["content"] == library.memory(first["id"])["content"]
    assert {"content", "passage", "overview", "abstract"} & set(answer["details"][-1])


def test_the_index_halves_what_is_read(library: Door) -> None:
    """With an index a model is shown all matches for less than half of the tokens that their contents have."""
    plain = library.read("search_memories", query="rooms of the lighthouse", limit=100, min_score=0.0)
    assert len(plain["memories"]) == 12
    half = tokens(library, plain) // 2
    answer = library.read("memory_recall", query="rooms of the lighthouse", max_tokens=half)
    assert len(set(ids(answer))) == 12
    assert answer["details"]
    assert tokens(library, answer) <= half
