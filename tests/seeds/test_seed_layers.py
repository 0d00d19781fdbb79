"""The three-layer memory's specification (004): layers, six categories, the store's methods, deduplication."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from file_transfer import export_file, import_file
from recollect.app import Capabilities
from recollect.domain.enums import Choice
from recollect.domain.requests import Draft
from recollect.domain.transfer import ExportPage
from run_operations import always
from seed_doors import Door, ids, open_house

SIX = {
    "profile": "profile",
    "preferences": "preference",
    "entities": "entity",
    "events": "event",
    "cases": "case",
    "patterns": "pattern",
}
LAYERS = {
    "abstract": "Disk full on deploy",
    "overview": "The deploy failed since the disk was full. It was grown.",
    "content": "The deploy of the ledger failed at noon since its disk was full; Ada grew it to 80 GB and ran it.",
}
OLD, MORE = "The user prefers dark mode in the editor.", "The font is Fira Code."


def put(door: Door, content: str, category: str = "patterns", **fields: Any) -> str:
    """Remember with `memory_remember` and return the id."""
    return str(door.read("memory_remember", content=content, category=category, **fields)["id"])


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_is_kept(door: Door, layer: str) -> None:
    """Each of the three comes back as it was said, whatever the others are."""
    assert door.memory(put(door, **LAYERS))[layer] == LAYERS[layer]


@pytest.mark.parametrize(("layer", "words", "letters"), [("abstract", 20, 200), ("overview", 200, 600)])
def test_a_layer_is_made_from_the_content(door: Door, layer: str, words: int, letters: int) -> None:
    """Layers that nobody wrote are the beginning of the content: a line of 20 words, a paragraph."""
    content = "The harbour has three cranes. " + "Each of them lifts ten tons of coal. " * 40
    made = door.memory(put(door, content))[layer]
    assert content.startswith(made)
    assert 5 <= len(made.split()) <= words
    assert len(made) <= letters


def test_the_abstract_goes_into_the_prompt(door: Door) -> None:
    """L0 is the line that stands before a model."""
    memory_id = put(door, **LAYERS)
    lines = door.read("format_for_prompt")["text"].splitlines()
    assert f"- [{memory_id}] (pattern, {door.time.now.date()}) {LAYERS['abstract']}" in lines


def test_the_overview_is_the_detail_where_the_content_does_not_fit(door: Door) -> None:
    """L1 is what recall shows of a long memory within a small budget; L2 is read by id."""
    memory_id = put(door, **LAYERS | {"content": "The disk of the deploy was full again, so we grew it. " * 60})
    [detail] = door.read("memory_recall", query="disk full on deploy", max_tokens=150)["details"]
    assert detail["overview"] == LAYERS["overview"]
    assert "content" not in detail
    assert door.memory(memory_id)["content"].count("again") == 60


@pytest.mark.parametrize("category", SIX)
def test_a_category_is_kept_and_lists(door: Door, category: str) -> None:
    """Each of the six is stored, in plural or singular, and similar ones and recall are narrowed by it."""
    mine = put(door, "The lighthouse keeper is Grace", category=category)
    put(door, "The lighthouse was painted", category="patterns" if category != "patterns" else "cases")
    kind = SIX[category]
    assert door.memory(mine)["fact_type"] == kind
    for asked in (category, kind):
        assert ids(door.read("memory_recall", query="lighthouse", fact_type=asked)) == [mine]
        assert ids(door.read("find_similar", content="lighthouse", threshold=-1.0, fact_type=asked)) == [mine]
        assert [one.id for one in door.perform("list_memories", fact_type=asked).memories] == [int(mine)]


@pytest.mark.parametrize("scope", ["personal", "project", "team"])
def test_knowledge_is_remembered_in_its_scope(door: Door, scope: str) -> None:
    """`memory_remember` writes to the scope it is given, the project by default."""
    assert door.memory(put(door, "The pier is long", scope=scope))["scope"] == scope
    assert door.memory(put(door, "The mascot is a quokka"))["scope"] == "project"


def test_another_category_is_refused(door: Door) -> None:
    """What is none of the six is bad input that names them."""
    message = "Invalid category: Must be `profile`, `preference`, `entity`, `event`, `case`, or `pattern`"
    assert door.refused("memory_remember", content="x", category="rumours") == message


def test_a_memory_has_vector_counter_and_times(door: Door) -> None:
    """An embedding finds it, uses are counted, and its times are those of its making and its last change."""
    memory_id = put(door, **LAYERS)
    [near] = door.read("find_similar", content=LAYERS["content"])["memories"]
    assert near["cosine"] == pytest.approx(1.0, abs=0.001)
    door.time.pass_days(1)
    door.reply("update_memory", id=memory_id, trust=0.9)
    body = door.memory(memory_id)
    assert body["updated_at"] == door.time.now.isoformat(timespec="seconds") > body["created_at"]
    assert door.memory(memory_id)["accessed_count"] == 1


def test_what_was_added_is_there_after_a_restart(tmp_path: Path) -> None:
    """Every write is on disk when it is acknowledged, so that the next opening has it."""
    first = open_house(tmp_path)
    memory_id = put(first.door(), **LAYERS)
    first.app.close()
    second = open_house(tmp_path)
    try:
        assert second.door().memory(memory_id)["content"] == LAYERS["content"]
    finally:
        second.app.close()


def test_jsonl_goes_out_and_comes_in(door: Door, tmp_path: Path) -> None:
    """A store is saved to a file of JSON lines and loaded from it by somebody else, layers and categories included."""
    put(door, **LAYERS, category="cases")
    export_file(door.app, tmp_path / "memories.jsonl", ExportPage(), door.caller)
    assert all(json.loads(line) for line in (tmp_path / "memories.jsonl").read_text(encoding="utf-8").splitlines())
    other = replace(door, caller=door.caller.model_copy(update={"user": "eve", "team": "far", "project": "away"}))
    assert import_file(door.app, tmp_path / "memories.jsonl", other.caller).new == 1
    [one] = other.perform("list_memories").memories
    assert (one.abstract, one.overview, one.content, one.fact_type) == (*LAYERS.values(), "case")


def test_the_old_file_is_imported(door: Door, tmp_path: Path) -> None:
    """A line of the old `memories.jsonl` becomes a memory with its layers, category and usage."""
    line = {"id": "mem_1", "category": "events", **LAYERS, "vector": [0.1, 0.2], "active_count": 7}
    (tmp_path / "memories.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert import_file(door.app, tmp_path / "memories.jsonl", door.caller).new == 1
    [one] = door.perform("list_memories").memories
    assert (one.abstract, one.overview, one.content) == tuple(LAYERS.values())
    assert (one.fact_type, one.accessed_count) == ("event", 7)


def test_the_methods_of_the_store(door: Door) -> None:
    """Add, get, update, list and delete are verbs here; an unknown id is not found."""
    memory_id = put(door, **LAYERS)
    assert door.memory(memory_id)["content"] == LAYERS["content"]
    door.reply("update_memory", id=memory_id, content="The disk has 90 GB now")
    assert door.memory(memory_id)["content"] == "The disk has 90 GB now"
    assert ids(door.read("list_memories")) == [memory_id]
    assert door.reply("delete_memory", id=memory_id) == f"Memory {memory_id} deleted."
    assert door.refused("get_memory", id=memory_id) == f"Memory {memory_id} not found."
    assert door.refused("update_memory", id=memory_id, content="x") == f"Memory {memory_id} not found."


def test_a_list_is_sorted_by_usage(door: Door) -> None:
    """A list of one category comes most used first."""
    made = [put(door, text, category="cases") for text in ("The crane fell", "The gate stuck", "The bell cracked")]
    put(door, "The pier is long")
    for memory_id, times in ((made[1], 3), (made[2], 1)):
        for _ in range(times):
            door.memory(memory_id)
    listed = door.perform("list_memories", fact_type="cases", order="used").memories
    assert [str(one.id) for one in listed] == [made[1], made[2], made[0]]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("piece", ["zorb42exmark", "orb42exm"])
def test_keywords_are_found_in_every_layer(door: Door, layer: str, piece: str) -> None:
    """A word that stands in one layer alone is found, whole and as a substring."""
    mine = put(door, **LAYERS | {layer: f"{LAYERS[layer]} zorb42exmark"})
    put(door, "A heron stands on the pier")
    assert ids(door.read("search_memories", query=piece)) == [mine]


def test_a_vector_search_is_nearest_first_and_bounded(door: Door) -> None:
    """The top K by cosine, in one category when that is asked for."""
    near = put(door, "The upload limit is 5 MB", category="cases")
    nearer = put(door, "The upload limit is 6 MB", category="cases")
    put(door, "The upload limit is 6 MB for everybody")
    asked = {"content": "The upload limit is 6 MB", "threshold": -1.0, "fact_type": "cases"}
    assert ids(door.read("find_similar", **asked)) == [nearer, near]
    assert ids(door.read("find_similar", **asked, limit=1)) == [nearer]


def test_similar_means_a_cosine_of_seven_tenths(door: Door) -> None:
    """Without a threshold exactly those of at least 0.7 are similar."""
    for text in ("The upload limit is 5 MB", "Uploads may be large", "Files are limited in size", "A heron flies"):
        put(door, text, category="events")
    every = door.read("find_similar", content="The upload limit is 6 MB", threshold=-1.0)["memories"]
    similar = door.read("find_similar", content="The upload limit is 6 MB")["memories"]
    assert similar == [one for one in every if one["cosine"] >= 0.7]
    assert 0 < len(similar) < len(every)


def test_a_prompt_has_the_top_memories(door: Door) -> None:
    """Markdown of at most so many entries, most used first."""
    made = [put(door, text) for text in ("The crane lifts", "The ferry leaves", "The pier is long")]
    door.memory(made[1])
    prompt = door.read("format_for_prompt", max_entries=2)
    assert prompt["ids"][0] == made[1]
    assert sum(line.startswith("- [") for line in prompt["text"].splitlines()) == 2


def test_recall_counts_the_use(door: Door) -> None:
    """What recall shows in detail has been used once more."""
    memory_id = put(door, "The mascot is a quokka")
    for _ in range(2):
        door.read("memory_recall", query="which animal is the mascot?")
    assert door.memory(memory_id)["recalled_count"] == 2


def test_recall_falls_back_to_keywords(door: Door) -> None:
    """What no vector is near to is found by its letters."""
    memory_id = put(door, "The retry budget lives in MAX_BACKOFF_SECONDS")
    put(door, "The pier is long")
    assert ids(door.read("memory_recall", query="BACKOFF_SEC"))[:1] == [memory_id]


def test_recall_gives_the_top(door: Door) -> None:
    """`limit` is how many of the best are shown."""
    for number in range(5):
        put(door, f"The anchor number {number}", category="events")
    assert len(door.read("memory_recall", query="anchor", limit=3)["details"]) == 3


def test_remember_validates(door: Door) -> None:
    """Without a content or a category nothing is stored."""
    assert door.refused("memory_remember", category="cases") == "Missing content: `memory_remember` requires `content`"
    assert door.refused("memory_remember", content="x") == "Missing category: `memory_remember` requires `category`"
    assert door.read("stats")["memories"] == 0


@pytest.mark.parametrize(
    ("choice", "content"),
    [
        (Choice.SKIP, "the user prefers dark mode in the editor"),
        (Choice.CREATE, f"{OLD} {MORE}"),
        (Choice.CREATE, "The user prefers light mode in the editor."),
    ],
)
def test_without_a_model_the_same_is_skipped_and_the_near_is_named(door: Door, choice: Choice, content: str) -> None:
    """By itself the store skips what says the same; whatever else is near is created, and the answer names the old."""
    old = put(door, OLD, category="preferences")
    answer = door.answer("memory_remember", content=content, category="preferences")
    assert answer.structured["outcome"] == ("updated" if choice is Choice.SKIP else "stored")
    assert (answer.structured["id"] == old) is (choice is Choice.SKIP)
    named = [one["id"] for one in answer.structured.get("near", [])]
    assert named == ([] if choice is Choice.SKIP else [old])
    assert door.memory(old)["content"] == OLD
    assert len(door.read("list_memories")["memories"]) == (1 if choice is Choice.SKIP else 2)


@pytest.mark.parametrize("choice", [Choice.CREATE, Choice.MERGE, Choice.SKIP])
def test_a_model_may_decide(door: Door, choice: Choice) -> None:
    """Where a judge is there it chooses between CREATE, MERGE and SKIP; what it skips is never lost."""
    old = put(door, OLD, category="preferences")
    judged = replace(door, app=replace(door.app, capabilities=Capabilities(reconcile=always(choice))))
    new = f"{OLD} {MORE}"
    answer = judged.answer("memory_remember", content=new, category="preferences")
    assert (answer.structured["id"] == old) is (choice is not Choice.CREATE)
    assert MORE in door.memory(answer.structured["id"])["content"]


@pytest.mark.parametrize("choice", Choice)
def test_a_profile_always_merges(door: Door, choice: Choice) -> None:
    """A profile joins the most similar profile, whatever a judge says; nothing of either is lost."""
    old = put(door, "Ada is a mathematician.", category="profile")
    judged = replace(door, app=replace(door.app, capabilities=Capabilities(reconcile=always(choice))))
    answer = judged.answer("memory_remember", content="Ada lives in London.", category="profile")
    assert (answer.structured["id"], answer.structured["outcome"]) == (old, "merged")
    content = door.memory(old)["content"]
    assert "mathematician" in content
    assert "London" in content


@pytest.mark.parametrize("category", ["events", "cases"])
@pytest.mark.parametrize("choice", Choice)
def test_events_and_cases_are_always_created(door: Door, category: str, choice: Choice) -> None:
    """What happened and what solved a problem are entries of their own, the very same text too: MERGE is overridden."""
    first = put(door, "The deploy failed on Friday.", category=category)
    judged = replace(door, app=replace(door.app, capabilities=Capabilities(reconcile=always(choice))))
    for content in ("The deploy failed on Friday. It rained.", "The deploy failed on Friday."):
        answer = judged.answer("memory_remember", content=content, category=category)
        assert answer.structured["outcome"] == "stored"
        assert answer.structured["id"] != first
    assert len(door.read("list_memories")["memories"]) == 3


@pytest.mark.parametrize("hard", [False, True])
def test_forgetting_by_id(door: Door, hard: bool) -> None:
    """A memory is deleted by its id, and is in no list after."""
    memory_id = put(door, "The mascot is a quokka")
    assert door.reply("memory_forget", id=memory_id, hard=hard) == f"Memory {memory_id} deleted."
    assert ids(door.read("list_memories")) == []
    assert door.reply("memory_forget", id="424242", hard=hard) == "Memory 424242 not found."


def test_candidates_are_deduplicated_as_they_come(door: Door) -> None:
    """A list of candidates becomes new memories and, as a model chooses, merges, each embedded at once."""
    judged = replace(door, app=replace(door.app, capabilities=Capabilities(reconcile=always(Choice.MERGE))))
    candidates = [Draft(content=text, fact_type="preference") for text in (OLD, OLD, f"{OLD} {MORE}", "Tea at five.")]
    done = [str(judged.perform("remember", **one.model_dump(exclude_unset=True)).status) for one in candidates]
    assert done == ["stored", "updated", "merged", "stored"]
    assert len(ids(door.read("find_similar", content=OLD, threshold=-1.0))) == 2
