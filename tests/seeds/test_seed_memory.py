"""The `memory` tool's specification (003), in process: its examples, values, defaults, messages and errors."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from recollect.domain.enums import FactType
from run_operations import token
from seed_doors import Door

STORED = re.compile(r"Memory stored successfully with ID: \d+")
UPDATED = re.compile(r"Memory updated successfully \(ID: \d+\)")
USAGE = {
    "action": "remember",
    "content": "The team uses builder pattern for config structs",
    "fact_type": "decision",
    "category": "architecture",
}
EXAMPLE = {
    "action": "remember",
    "content": "We use TypeScript strict mode with noImplicitAny",
    "key": "typescript_config",
    "fact_type": "decision",
    "category": "development",
    "scope": "project",
}
VALUES: dict[str, Any] = {
    "content": "The gazebo is green",
    "key": "gazebo",
    "fact_type": "preference",
    "category": "garden",
    "confidence": 0.9,
    "scope": "team",
}
ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    "action": ({"action": "delete"}, "Invalid action: Must be `remember`, `recall`, or `forget`"),
    "no action": ({}, "Invalid action: Must be `remember`, `recall`, or `forget`"),
    "content": ({"action": "remember"}, "Missing content: `remember` requires `content`"),
    "query": ({"action": "recall"}, "Missing query: `recall` requires `query`"),
    "id": ({"action": "forget"}, "Missing id: `forget` requires `id`"),
    "confidence": (
        {"action": "remember", "content": "x", "confidence": 1.1},
        "Invalid confidence: Must be 0.0–1.0",
    ),
    "scope": (
        {"action": "remember", "content": "x", "scope": "galaxy"},
        "Invalid scope: Must be `personal`, `project`, or `team`",
    ),
}
SECRETS = {
    "API key": "the api key is " + "sk-" + "proj-" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7d",
    "token": f"the deploy token is {token()}",
    "password": "db_pass" + "word = " + "hunter2" + "-Correct-Horse-9",
}


def recalled(door: Door, query: str, **fields: Any) -> list[dict[str, Any]]:
    """Recall and return the JSON array that the first text holds."""
    return list(json.loads(door.reply("memory", action="recall", query=query, **fields)))


def remembered(door: Door, content: str, **fields: Any) -> str:
    """Remember and return the id."""
    return str(door.read("memory", action="remember", content=content, **fields)["id"])


def test_the_usage_example_works(door: Door) -> None:
    """The call that the specification opens with is stored as it says."""
    assert STORED.fullmatch(door.reply("memory", **USAGE))
    [hit] = recalled(door, "builder pattern")
    assert {name: hit[name] for name in ("content", "fact_type", "category")} == {
        name: USAGE[name] for name in ("content", "fact_type", "category")
    }


def test_the_remember_example_works(door: Door) -> None:
    """Said once it is stored, said again under the same key it is updated, in these words."""
    assert STORED.fullmatch(door.reply("memory", **EXAMPLE))
    assert UPDATED.fullmatch(door.reply("memory", **EXAMPLE))
    assert len(recalled(door, "TypeScript strict mode")) == 1


def test_the_recall_example_works(door: Door) -> None:
    """A JSON array of what is about authentication and a decision, with similarities, at most five."""
    for number, way in enumerate(("passkeys", "OAuth", "SAML", "magic links", "client certificates", "LDAP")):
        remembered(door, f"Authentication decision {number}: we use {way}", fact_type="decision", key=way)
    remembered(door, "Authentication is discussed on Tuesdays", fact_type="context")
    hits = recalled(door, "authentication decisions", fact_type="decision", limit=5)
    assert len(hits) == 5
    assert {hit["fact_type"] for hit in hits} == {"decision"}
    assert all(0.0 < hit["similarity"] <= 1.0 for hit in hits)


def test_the_forget_example_works(door: Door) -> None:
    """A memory is deleted by its id given as text, and not found the second time, in these words."""
    memory_id = remembered(door, "The mascot is a quokka")
    assert door.reply("memory", action="forget", id=memory_id) == f"Memory {memory_id} deleted."
    assert door.reply("memory", action="forget", id=memory_id) == f"Memory {memory_id} not found."
    assert door.reply("memory", action="forget", id="424242") == "Memory 424242 not found."


def test_forgetting_empties_both_stores(door: Door) -> None:
    """What is forgotten is neither in the SQL database nor in the vector index, and both agree."""
    memory_id = remembered(door, "The mascot is a quokka")
    [namespace] = door.caller.namespaces("project")
    door.app.vectors.sync()
    assert door.app.vectors._index.ids(namespace) == {f"{memory_id}.0"}
    door.reply("memory", action="forget", id=memory_id)
    door.app.vectors.sync()
    assert [check for check in door.app.checks() if not check.well] == []
    assert door.app.vectors._index.ids(namespace) == set()
    with closing(sqlite3.connect(door.home / "memory.db")) as database:
        for query in ("SELECT 1 FROM memory WHERE id = ?", "SELECT 1 FROM vector WHERE memory_id = ?"):
            assert database.execute(query, (memory_id,)).fetchall() == []
    assert door.read("stats", scope="project")["memories"] == 0
    assert door.read("find_similar", content="The mascot is a quokka", threshold=-1.0)["memories"] == []


@pytest.mark.parametrize("name", VALUES)
def test_a_parameter_of_remember_is_kept(door: Door, name: str) -> None:
    """What is given comes back in recall."""
    remembered(door, **VALUES)
    [hit] = recalled(door, "gazebo")
    assert hit[name] == VALUES[name]


def test_a_title_is_kept(door: Door) -> None:
    """The statement in few words that an agent gives stands as the title of the memory, and is found by its words."""
    mine = remembered(door, "The gazebo was painted on 3 May, with two coats.", title="The gazebo is green since May")
    [hit] = recalled(door, "green since")
    assert hit["id"] == mine


@pytest.mark.parametrize("kind", FactType)
def test_a_fact_type_is_set_and_filters(door: Door, kind: str) -> None:
    """Each kind is stored by `remember`, and `recall` shows only that one when it is asked for."""
    mine = remembered(door, f"The lighthouse: its {kind}", fact_type=kind)
    remembered(door, "The lighthouse was painted", fact_type="general" if kind != "general" else "context")
    hits = recalled(door, "lighthouse", fact_type=kind)
    assert [(hit["id"], hit.get("fact_type", "general")) for hit in hits] == [(mine, kind)]


@pytest.mark.parametrize("scope", ["personal", "project", "team"])
def test_a_scope_is_set_and_filters(door: Door, scope: str) -> None:
    """Each scope is stored, and recall with it sees that one only; without it all three are seen."""
    made = {one: remembered(door, f"The {one} carillon plays", scope=one) for one in ("personal", "project", "team")}
    assert [hit["id"] for hit in recalled(door, "carillon", scope=scope)] == [made[scope]]
    assert len(recalled(door, "carillon")) == 3


def test_a_category_filters(door: Door) -> None:
    """Recall with a category shows that group alone."""
    remembered(door, "The lighthouse blinks twice", category="signals")
    mine = remembered(door, "The lighthouse has a keeper", category="people")
    assert [hit["id"] for hit in recalled(door, "lighthouse", category="people")] == [mine]


@pytest.mark.parametrize(("name", "value"), [("fact_type", "general"), ("confidence", 0.5), ("scope", "project")])
def test_a_default_of_remember_holds(door: Door, name: str, value: Any) -> None:
    """A memory of which nothing else is said is general, of the project, and believed by half."""
    made = remembered(door, "The gazebo is green")
    [hit] = recalled(door, "gazebo")
    assert name not in hit
    [whole] = json.loads(door.reply("memory", action="recall", id=made))
    assert whole[name] == value


def test_ten_results_by_default(door: Door) -> None:
    """Recall returns ten at most unless `limit` says otherwise."""
    for number in range(12):
        remembered(door, f"The submarine has torpedo tube {number}", fact_type="event")
    assert len(recalled(door, "submarine torpedo tube")) == 10
    assert len(recalled(door, "submarine torpedo tube", limit=2)) == 2
    assert len(recalled(door, "submarine torpedo tube", limit=12)) == 12


def test_a_key_upserts(door: Door) -> None:
    """The same key in the same scope is the same memory; in another scope it is another."""
    first = remembered(door, "npm installs the packages", key="tool")
    assert remembered(door, "pnpm installs them", key="tool") == first
    assert remembered(door, "pnpm installs them", key="tool", scope="team") != first
    assert [hit["content"] for hit in recalled(door, "installs", scope="project")] == ["pnpm installs them"]


@pytest.mark.parametrize("confidence", [0.0, 0.5, 1.0])
def test_confidence_runs_from_nought_to_one(door: Door, confidence: float) -> None:
    """Both ends of the range are taken."""
    remembered(door, "The gazebo is green", confidence=confidence)
    assert recalled(door, "gazebo")[0].get("confidence", 0.5) == confidence


def test_an_answer_names_what_is_near(door: Door) -> None:
    """After its one sentence the answer of `remember` names near memories, as text and as data."""
    old = remembered(door, "The gazebo in the garden is green")
    answer = door.answer("memory", action="remember", content="The gazebo in the garden is blue")
    message, near = answer.texts
    assert STORED.fullmatch(message)
    (one,) = answer.structured["near"]
    assert (one["id"], one["line"]) == (old, "The gazebo in the garden is green")
    assert near == (
        f'Near memories: {old} ({one["likeness"]:.2f}): "The gazebo in the garden is green". '
        "To replace one, remember this again with its id as `supersedes`."
    )


def test_a_memory_is_replaced_by_another(door: Door) -> None:
    """With `supersedes` the named memory leaves recall, and the answer says so."""
    old = remembered(door, "The gazebo in the garden is green")
    answer = door.answer("memory", action="remember", content="The gazebo was painted blue", supersedes=int(old))
    message, note = answer.texts
    assert STORED.fullmatch(message)
    assert note == f"Replaces memory {old}, which is now hidden."
    assert [hit["content"] for hit in recalled(door, "gazebo")] == ["The gazebo was painted blue"]


def test_a_memory_gets_a_new_version(door: Door) -> None:
    """With `id` the memory keeps its id and says the new text."""
    old = remembered(door, "The gazebo in the garden is green")
    answer = door.answer("memory", action="remember", content="The gazebo was painted blue", id=old)
    assert answer.texts[0] == f"Memory updated successfully (ID: {old})"
    assert [(hit["id"], hit["content"]) for hit in recalled(door, "gazebo")] == [(old, "The gazebo was painted blue")]


@pytest.mark.parametrize("name", ["id", "supersedes"])
def test_an_unknown_memory_is_not_replaced(door: Door, name: str) -> None:
    """An id that the caller does not see is refused, and nothing is stored."""
    sentence = door.refused("memory", action="remember", content="The gazebo is blue", **{name: "424242"})
    assert sentence == "Memory 424242 not found."
    assert recalled(door, "gazebo") == []


def test_evidence_raises_confidence(door: Door) -> None:
    """What starts low grows each time the same is said: a fifth of the doubt goes."""
    for expected in (0.5, 0.6, 0.68):
        remembered(door, "The gazebo is green")
        assert recalled(door, "gazebo")[0].get("confidence", 0.5) == expected


@pytest.mark.parametrize(
    ("query", "way"),
    [("which animal represents the club?", "meaning"), ("MASCOT_NAME", "words"), ("quokak", "fuzzy")],
)
def test_recall_searches_by(door: Door, query: str, way: str) -> None:
    """Vectors find, and so do words and misspelt words."""
    mine = remembered(door, "The mascot is a quokka, see MASCOT_NAME")
    remembered(door, "The ferry to the island leaves at nine")
    hits = recalled(door, query)
    assert hits[0]["id"] == mine
    said = {"meaning": {"meaning"}, "words": {"words", "both"}, "fuzzy": {"spelling", "both"}}
    assert hits[0]["found_by"] in said[way]


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_said_word_for_word(door: Door, name: str) -> None:
    """What is missing or wrong is said in the specification's sentence, and nothing is written."""
    arguments, sentence = ERRORS[name]
    assert door.refused("memory", **arguments) == sentence
    assert door.read("stats")["memories"] == 0


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("field", ["content", "key", "category"])
def test_a_secret_is_blocked(door: Door, kind: str, field: str) -> None:
    """API keys, tokens and passwords are refused in any text, without being repeated, and nothing is stored."""
    said = {"content": "How we deploy"} | {field: SECRETS[kind]}
    sentence = door.refused("memory", action="remember", **said)
    assert sentence.startswith("Secret detection: Blocks storage of API keys, tokens, and passwords")
    assert f"`{field}`" in sentence
    assert SECRETS[kind].split()[-1] not in sentence
    assert door.read("stats")["memories"] == 0
