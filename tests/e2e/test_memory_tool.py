"""The `memory` tool, row by row as its specification lists it, through a real client in both protocol eras."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from tokenizers import Tokenizer

from command_line import call
from places import DEFAULT_MODEL
from recollect.domain.enums import FactType
from stdio_client import Talk, environment_of, memories_in, talking

STORED = re.compile(r"Memory stored successfully with ID: (\d+)")
UPDATED = re.compile(r"Memory updated successfully \(ID: (\d+)\)")
ACTIONS = "Invalid action: Must be `remember`, `recall`, or `forget`"
CONFIDENCE = "Invalid confidence: Must be 0.0–1.0"
SCOPES = "Invalid scope: Must be `personal`, `project`, or `team`"
LIMIT = "Invalid limit: Must be a whole number from 1 to 100"
NAMES = ("action", "content", "title", "key", "fact_type", "category", "confidence", "when", "scope", "query", "limit")
NAMES += ("offset", "id", "supersedes")
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, ACTIONS),
    ({"action": ""}, ACTIONS),
    ({"action": "  "}, ACTIONS),
    ({"action": "delete"}, ACTIONS),
    ({"action": None}, ACTIONS),
    ({"action": "remember"}, "Missing content: `remember` requires `content`"),
    ({"action": "remember", "content": " \n"}, "Missing content: `remember` requires `content`"),
    ({"action": "remember", "query": "x"}, "Missing content: `remember` requires `content`"),
    ({"action": "recall"}, "Missing query: `recall` requires `query`"),
    ({"action": "recall", "query": ""}, "Missing query: `recall` requires `query`"),
    ({"action": "recall", "content": "x"}, "Missing query: `recall` requires `query`"),
    ({"action": "forget"}, "Missing id: `forget` requires `id`"),
    ({"action": "forget", "id": " "}, "Missing id: `forget` requires `id`"),
    ({"action": "remember", "content": "x", "confidence": 1.1}, CONFIDENCE),
    ({"action": "remember", "content": "x", "confidence": -0.1}, CONFIDENCE),
    ({"action": "remember", "content": "x", "confidence": "sure"}, CONFIDENCE),
    ({"action": "remember", "content": "x", "scope": "galaxy"}, SCOPES),
    ({"action": "recall", "query": "x", "scope": "galaxy"}, SCOPES),
    ({"action": "forget", "id": "1", "scope": "galaxy"}, SCOPES),
    ({"action": "recall", "query": "x", "limit": 0}, LIMIT),
    ({"action": "recall", "query": "x", "limit": 101}, LIMIT),
    ({"action": "recall", "query": "x", "limit": "few"}, LIMIT),
    ({"action": "remember", "content": 42}, "Invalid content: Must be a string"),
    ({"action": "remember", "content": ["x"]}, "Invalid content: Must be a string"),
    ({"action": "remember", "content": "a\x00b"}, "Invalid content: Contains a NUL character"),
    ({"action": "remember", "content": "x" * 200_001}, "Invalid content: Must have at most 200000 characters"),
]


@dataclass(frozen=True)
class Place:
    """A server in conversation, and where its store lies."""

    talk: Talk
    home: Path


@pytest.fixture(
    scope="module", params=[("auto", "0"), ("legacy", "0"), ("auto", "1")], ids=["auto", "legacy", "daemon"]
)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Return one server for all tests here: in each protocol era, and as a client of the daemon."""
    era, daemon = request.param
    home = tmp_path_factory.mktemp("store")
    environment = environment_of(home, DAEMON=daemon)
    try:
        with talking(environment, era) as talk:
            talk.warm()
            yield Place(talk, home)
    finally:
        assert call(["stop"], environment, home).code == 0


@pytest.fixture
def talk(place: Place) -> Talk:
    """Return the conversation alone."""
    return place.talk


def test_one_tool_is_offered(talk: Talk) -> None:
    """There is one tool, `memory`; it says in its annotations that it writes, deletes, and stays inside the store."""
    [tool] = talk.tools()
    assert (tool.name, tool.title) == ("memory", "Memory")
    assert "`recall`" in tool.description
    hints = tool.annotations
    assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint) == (
        False,
        True,
        False,
        False,
    )


def test_another_tool_is_unknown(talk: Talk) -> None:
    """Calling a tool that does not exist is an error that names the one that does."""
    with pytest.raises(MCPError, match=r"Unknown tool: `remember`\. Allowed: `memory`"):
        talk.use("remember", content="x")


def test_the_schema_is_flat_and_whole(talk: Talk) -> None:
    """The schema lists the specified parameters and `supersedes`, each explained, and requires only `action`."""
    [tool] = talk.tools()
    schema = tool.input_schema
    assert tuple(schema["properties"]) == NAMES
    assert schema["required"] == ["action"]
    assert schema["additionalProperties"] is False
    for one in schema["properties"].values():
        assert one["type"] in ("string", "number", "integer", "array")
        assert one["description"]
    assert schema["properties"]["action"]["enum"] == ["remember", "recall", "forget"]
    assert schema["properties"]["scope"]["enum"] == ["personal", "project", "team"]
    assert {"preference", "decision", "context", "general"} <= set(schema["properties"]["fact_type"]["enum"])


def test_the_schema_is_small(talk: Talk) -> None:
    """All that a model is shown of the tool is at most 1,000 tokens by a tokenizer, 700 by the rule of thumb."""
    [tool] = talk.tools()
    shown = json.dumps(tool.model_dump(mode="json", by_alias=True, exclude_none=True), ensure_ascii=False)
    tokenizer = Tokenizer.from_file(str(DEFAULT_MODEL / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    assert len(tokenizer.encode(shown, add_special_tokens=False).ids) <= 1_000
    assert len(shown) / 4 <= 700


@pytest.mark.parametrize(
    "arguments",
    [
        {"action": "remember", "content": "structured answers are checked"},
        {"action": "recall", "query": "structured answers"},
        {"action": "recall", "query": "xqzvw"},
        {"action": "recall", "id": "1"},
        {"action": "forget", "id": "999999"},
        {"action": "remember"},
    ],
)
def test_answers_come_structured_too(talk: Talk, arguments: dict[str, Any]) -> None:
    """Every answer, errors too, has beside its text the same as an object that meets the declared output schema."""
    [tool] = talk.tools()
    result = talk.call(**arguments)
    body, schema = result.structured_content, tool.output_schema
    assert set(schema["required"]) <= set(body) <= set(schema["properties"])
    types = {"string": str, "array": list}
    assert all(isinstance(value, types[schema["properties"][name]["type"]]) for name, value in body.items())
    if result.is_error or "memories" not in body:
        assert result.content[0].text == body["message"]
    else:
        assert json.loads(result.content[0].text) == body["memories"]


def test_remember_as_in_the_specification(talk: Talk) -> None:
    """The specification's example is stored, and said again it is updated."""
    example = {
        "action": "remember",
        "content": "We use TypeScript strict mode with noImplicitAny",
        "key": "typescript_config",
        "fact_type": "decision",
        "category": "development",
        "scope": "project",
    }
    first, again = STORED.fullmatch(talk.reply(**example)), UPDATED.fullmatch(talk.reply(**example))
    assert first is not None
    assert again is not None
    assert first[1] == again[1]


def test_a_key_upserts(talk: Talk) -> None:
    """The same key again updates that memory: the new text is recalled, the old one is not."""
    memory_id = talk.remember("npm installs the packages", key="package_manager")
    assert talk.reply(action="remember", content="pnpm installs them", key="package_manager") == (
        f"Memory updated successfully (ID: {memory_id})"
    )
    [hit] = [one for one in talk.recall("pnpm") if one["id"] == memory_id]
    assert (hit["content"], hit["key"]) == ("pnpm installs them", "package_manager")


@pytest.mark.parametrize("kind", FactType)
def test_fact_types(talk: Talk, kind: FactType) -> None:
    """Every fact type is stored and filters, in the singular and in the plural."""
    memory_id = talk.remember(f"a {kind} about the heliport", fact_type=kind)
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    for said in (kind, plural):
        hits = talk.recall("heliport", fact_type=said, limit=100)
        assert {one.get("fact_type", "general") for one in hits} == {kind}
        assert memory_id in [one["id"] for one in hits]


def test_defaults(talk: Talk) -> None:
    """Without anything else a memory is general, of the project, and believed by half, which only its whole says."""
    talk.remember("the gazebo is painted green")
    [hit] = talk.recall("gazebo")
    assert set(hit) == {"id", "content", "similarity", "certainty", "found_by", "date"}
    [whole] = json.loads(talk.reply(action="recall", id=hit["id"]))
    assert (whole["fact_type"], whole["scope"], whole["confidence"]) == ("general", "project", 0.5)
    assert {"key", "category"}.isdisjoint(whole)


def test_category_groups_and_filters(talk: Talk) -> None:
    """A category is kept, and recall with it gives only what belongs to it."""
    talk.remember("the lighthouse blinks twice", category="signals")
    talk.remember("the lighthouse has a keeper", category="people")
    assert len(talk.recall("lighthouse")) == 2
    assert [one["content"] for one in talk.recall("lighthouse", category="people")] == ["the lighthouse has a keeper"]
    assert talk.recall("lighthouse", category="people", fact_type="decision") == []


@pytest.mark.parametrize("confidence", [0.0, 0.25, 1.0, "0.75"])
def test_confidence_is_kept(talk: Talk, confidence: float) -> None:
    """A confidence from 0 to 1 is kept, given as a number or as text."""
    memory_id = talk.remember(f"the aqueduct leaks at {confidence}", confidence=confidence)
    [hit] = [one for one in talk.recall("aqueduct leaks", limit=100) if one["id"] == memory_id]
    assert hit["confidence"] == float(confidence)


def test_saying_it_again_raises_confidence(talk: Talk) -> None:
    """The same thing remembered again is the same memory, believed a fifth more of what was missing."""
    first = talk.remember("the windmill turns left")
    assert talk.remember("the windmill turns left") == first
    assert talk.recall("windmill")[0]["confidence"] == 0.6


@pytest.mark.parametrize("scope", ["personal", "project", "team"])
def test_scopes(talk: Talk, scope: str) -> None:
    """A memory lies in its scope; recall sees all three, with a scope only that one."""
    memory_id = talk.remember(f"the carillon plays for {scope}", scope=scope)
    assert memory_id in [one["id"] for one in talk.recall("carillon")]
    assert {one.get("scope", "project") for one in talk.recall("carillon", scope=scope)} == {scope}


def test_recall_returns_an_array_with_similarities(talk: Talk) -> None:
    """Recall gives a JSON array; each hit has a similarity of two decimals, and says in a word how it was found."""
    talk.remember("Production deploys go out on Tuesday mornings")
    hits = talk.recall("when do we ship releases?")
    assert hits[0]["content"] == "Production deploys go out on Tuesday mornings"
    assert hits[0]["found_by"] == "meaning"
    for one in hits:
        assert 0.0 <= one["similarity"] <= 1.0
        assert one["similarity"] == round(one["similarity"], 2)


def test_recall_falls_back_to_words_and_typos(talk: Talk) -> None:
    """An exact identifier and a misspelt word find their memory first."""
    talk.remember("The retry budget lives in MAX_BACKOFF_SECONDS")
    assert talk.recall("MAX_BACKOFF_SECONDS")[0]["content"] == "The retry budget lives in MAX_BACKOFF_SECONDS"
    talk.remember("Integration tests run in Kubernetes")
    assert talk.recall("kuberntes")[0]["content"] == "Integration tests run in Kubernetes"


def test_recall_says_when_nothing_is_relevant(talk: Talk) -> None:
    """Where nothing is relevant the array is empty, and a sentence says so."""
    result = talk.call(action="recall", query="banana bread recipe")
    assert [content.text for content in result.content] == ["[]", "Nothing relevant found."]
    assert not result.is_error


def test_limit(talk: Talk) -> None:
    """Ten results are given by default, as many as asked for otherwise, as a number or as text."""
    for number in range(12):
        talk.remember(f"The submarine has torpedo tube {number}")
    assert len(talk.recall("submarine torpedo tube")) == 10
    assert len(talk.recall("submarine torpedo tube", limit=5)) == 5
    assert len(talk.recall("submarine torpedo tube", limit="5")) == 5
    assert len(talk.recall("submarine torpedo tube", limit=50)) == 12


@pytest.mark.parametrize("as_type", [str, int])
def test_forget(talk: Talk, as_type: type) -> None:
    """Forgetting deletes and says so, also when the id comes as a number; the second time there is nothing left."""
    memory_id = talk.remember("The mascot is a quokka")
    given = as_type(memory_id)
    assert talk.reply(action="forget", id=given) == f"Memory {memory_id} deleted."
    assert all(one["id"] != str(memory_id) for one in talk.recall("quokka"))
    assert talk.reply(action="forget", id=given) == f"Memory {memory_id} not found."


@pytest.mark.parametrize("odd", ["424242", "abc", "-1", "0", "1.5", "1; DROP TABLE memory"])
def test_forget_what_is_not_there(talk: Talk, odd: str) -> None:
    """What is no memory's id is not found; that is an answer, not an error."""
    assert talk.reply(action="forget", id=odd) == f"Memory {odd} not found."


def test_forget_looks_in_its_scope(talk: Talk) -> None:
    """With a scope, a memory elsewhere is not found, and stays."""
    memory_id = talk.remember("the sundial is personal", scope="personal")
    assert talk.reply(action="forget", id=memory_id, scope="team") == f"Memory {memory_id} not found."
    assert talk.reply(action="forget", id=memory_id, scope="personal") == f"Memory {memory_id} deleted."


def secret() -> str:
    """Build what looks like a GitHub token, so that none stands in this file."""
    return "gh" + "p_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_errors_are_the_specified_sentences(place: Place, arguments: dict[str, Any], message: str) -> None:
    """Whatever is missing or wrong is said in the specification's words, and nothing is written."""
    before = memories_in(place.home)
    assert place.talk.refused(**arguments) == message
    assert memories_in(place.home) == before


@pytest.mark.parametrize("action", ["remember", "recall"])
def test_an_invalid_fact_type_names_the_valid_ones(place: Place, action: str) -> None:
    """A fact type that does not exist is refused with the list of those that do."""
    before = memories_in(place.home)
    message = place.talk.refused(action=action, content="x", query="x", fact_type="rumour")
    assert message.startswith("Invalid fact_type: Must be `general`, `preference`, `decision`, `context`, ")
    assert memories_in(place.home) == before


def test_an_unknown_parameter_is_named(place: Place) -> None:
    """A misspelt parameter is an error that names it and the ones there are, never silence."""
    before = memories_in(place.home)
    message = place.talk.refused(action="remember", content="x", catgory="typo")
    allowed = ", ".join(f"`{name}`" for name in NAMES)
    assert message == f"Unknown parameter: `catgory`. Did you mean `category`? Allowed: {allowed}"
    assert memories_in(place.home) == before


@pytest.mark.parametrize("field", ["content", "key", "category"])
def test_a_secret_is_refused(place: Place, field: str) -> None:
    """A secret in any text of `remember` is refused; the answer names field and kind, never the value."""
    before = memories_in(place.home)
    result = place.talk.call(**{"action": "remember", "content": "the deploy token", field: f"it is {secret()}"})
    assert result.is_error
    assert secret() not in str(result)
    text = result.content[0].text
    assert text.startswith("Secret detection: Blocks storage of API keys, tokens, and passwords")
    assert f"`{field}`" in text
    assert memories_in(place.home) == before


@pytest.mark.parametrize("text", ['{"a":1}', "[1]", "42", "true", "null", '"quoted"'])
def test_text_that_is_json_stays_text(talk: Talk, text: str) -> None:
    """Content and query that happen to be JSON are text like any other."""
    memory_id = talk.remember(text)
    hits = talk.recall(text, limit=100)
    assert text in [one["content"] for one in hits if one["id"] == memory_id]


def test_blank_and_null_count_as_absent(talk: Talk) -> None:
    """Parameters given as blank text or null are as good as not given."""
    blank = {"key": "", "fact_type": " ", "category": None, "confidence": "", "scope": "", "query": "", "id": ""}
    talk.remember("the drawbridge is up", **blank)
    [hit] = talk.recall("drawbridge", content="", limit=None, fact_type="", category=" ", scope=None)
    assert {"key", "fact_type", "category", "scope", "confidence"}.isdisjoint(hit)


def test_words_are_taken_in_any_case(talk: Talk) -> None:
    """Action, fact type and scope may be written in any case."""
    assert STORED.fullmatch(talk.reply(action="Remember", content="the orangery", fact_type="Decisions", scope="TEAM"))
    assert talk.recall("orangery", fact_type="DECISION", scope="Team")
