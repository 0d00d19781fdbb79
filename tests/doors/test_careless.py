"""What careless agents send: what is plain is taken as it was meant, the rest is refused in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callers import ADA
from recollect import App
from recollect.domain.requests import Listing, Update
from recollect.doors import toolsets
from recollect.doors.memory_tool import ToolAnswer
from recollect.errors import InvalidInput
from run_operations import call_tool

Call = Callable[..., ToolAnswer]
MOMENT = "Must be a day or a time, such as `2026-05-07` or `2026-05-07T13:30:00+02:00`"
OBSERVED = "Must be `bugfix`, `feature`, `refactor`, `change`, `discovery`, or `decision`"
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    *(
        (tool, {name: value}, f"Invalid {name}: {MOMENT}")
        for tool, name in (("get_timeline", "since"), ("get_timeline", "until"), ("query_facts", "as_of"))
        for value in (2026, "2026", "20260507", 1.5, True, "2026-02-30", "0000-01-01", "yesterday", ["2026-05-07"])
    ),
    ("store_memory", {"content": "x", "observed_at": 2026}, f"Invalid observed_at: {MOMENT}"),
    ("store_fact", {"subject": "a", "predicate": "b", "object": "c", "valid_from": 7}, f"Invalid valid_from: {MOMENT}"),
    ("search_memories", {"query": "x", "limit": True}, "Invalid limit: Must be a whole number from 1 to 100"),
    ("store_memory", {"content": "x", "trust": True}, "Invalid trust: Must be 0.0–1.0"),
    ("memory_store", {"content": "x", "importance": False}, "Invalid importance: Must be 0–10"),
    ("find_similar", {"content": "x", "threshold": True}, "Invalid threshold: Must be -1.0–1.0"),
    ("store_memory", {"content": "x", "category": 5}, "Invalid category: Must be a string"),
    ("store_memory", {"content": "x", "key": "k" * 501}, "Invalid key: Must have at most 500 characters"),
    ("store_memory", {"content": "x", "title": "t" * 2001}, "Invalid title: Must have at most 2000 characters"),
    (
        "store_memory",
        {"content": "x", "tags": [str(n) for n in range(201)]},
        "Invalid tags: Must have at most 200 entries",
    ),
    ("store_memory", {"content": "x", "type": "checkpoint"}, f"Invalid type: {OBSERVED}"),
    ("store_memory", {"content": "x", "type": ["bugfix"]}, f"Invalid type: {OBSERVED}"),
    ("update_memory", {"id": "1", "type": "session_summary"}, f"Invalid type: {OBSERVED}"),
    ("update_memory", {"id": "1"}, "Nothing to change: Must name a field beside `id`, such as `content` or `tags`"),
    ("update_memory", {"id": "1", "title": None}, "Nothing to change: Must name a field beside `id`, such as "),
    ("memory_store", {"id": "1"}, "Nothing to change: Must name a field beside `id`, such as `content` or `tags`"),
    ("find_similar", {"content": "x", "id": "1"}, "Invalid id: Must not be given together with `content`"),
    ("search_memories", {"query": "x", "fact_type": "rumour"}, "Invalid fact_type: Must be `general`, `preference`, "),
    ("list_memories", {"concepts": ["magic"]}, "Invalid concepts: Must be `how-it-works`, `why-it-exists`, "),
    ("memory", {"action": "forget", "id": True}, "Invalid id: Must be a string"),
    ("memory", {"action": "forget", "id": ["1"]}, "Invalid id: Must be a string"),
    ("memory", {"action": "forget", "id": {"id": "1"}}, "Invalid id: Must be a string"),
]


@pytest.fixture
def call(app: App) -> Call:
    """Return a function that calls a tool on an open store."""
    return lambda name, **arguments: call_tool(app, name, arguments, ADA)


def whole(app: App) -> tuple[int, ...]:
    """Count what a refused call must leave as it is."""
    stats = call_tool(app, "stats", {}, ADA).structured
    return stats["memories"], stats["facts"], len(call_tool(app, "history", {"id": "1"}, ADA).structured["history"])


@pytest.mark.parametrize(("tool", "arguments", "message"), REFUSED)
def test_what_is_not_plain_is_refused(app: App, call: Call, tool: str, arguments: dict[str, Any], message: str) -> None:
    """The sentence names the field and what is allowed, without the words of any library; nothing is written."""
    call("store_memory", content="the drawbridge is up")
    before = whole(app)
    answer = call(tool, **arguments)
    assert answer.failed
    [text] = answer.texts
    assert text.startswith(message)
    assert answer.structured == {"message": text, "error": "InvalidInput"}
    assert whole(app) == before


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ('["lexer", "crash"]', ["lexer", "crash"]),
        ("lexer, crash,", ["lexer", "crash"]),
        ("lexer", ["lexer"]),
        (["a, b"], ["a, b"]),
        ("[draft", ["[draft"]),
    ],
)
def test_tags_may_come_as_one_text(call: Call, given: Any, kept: list[str]) -> None:
    """A JSON text of a list, and names between commas, are the list that was meant; a list is taken as it is."""
    call("store_memory", content="the drawbridge is up", tags=given)
    assert call("get_memory", id="1").structured["tags"] == kept


def test_concepts_and_files_may_come_as_one_text(call: Call) -> None:
    """Concepts may stand between commas, in any case; one path is one file, commas and all."""
    call("store_memory", content="a", concepts="Gotcha, trade-off", files_read="a,b.py", files_modified='["c.py"]')
    body = call("get_memory", id="1").structured
    assert (body["concepts"], body["files_read"], body["files_modified"]) == (
        ["gotcha", "trade-off"],
        ["a,b.py"],
        ["c.py"],
    )


def test_names_and_headings_have_one_line(call: Call) -> None:
    """Where a name or a heading breaks off into another line, a space stands; a content keeps its lines."""
    call(
        "store_memory",
        content="one\ntwo",
        key="gate\nkey",
        title="Up \r\n and down",
        tags=["a\u2028b"],
        category="c\td",
    )
    body = call("get_memory", id="1").structured
    assert (body["content"], body["key"], body["title"]) == ("one\ntwo", "gate key", "Up and down")
    assert (body["tags"], body["category"]) == (["a b"], "c\td")
    assert call("store_memory", content="three", key="gate\nkey").texts[0] == "Memory updated successfully (ID: 1)"


def test_numbers_may_come_as_texts(call: Call) -> None:
    """Numbers and truth values may come as their texts."""
    call("store_memory", content="the drawbridge is up", importance="0.9", ttl_days="7", discovery_tokens="12")
    body = call("get_memory", id="1", allow_private="true").structured
    assert (body["importance"], body["ttl_days"], body["discovery_tokens"]) == (0.9, 7.0, 12)
    assert call("list_memories", limit="1", offset="0").structured["total"] == 1


def test_filters_list_their_choices_once_in_a_set(call: Call) -> None:
    """A search and a list filter by kind and concept; which there are is told where they are stored."""
    call("store_memory", content="the drawbridge is up", fact_type="decision", concepts=["gotcha"])
    call("store_memory", content="the moat is full", fact_type="context", concepts=["pattern"])
    for tool, fields in (("search_memories", {"query": "moat or drawbridge", "min_score": 0}), ("list_memories", {})):
        for filters in ({"fact_type": "decisions"}, {"concepts": "gotcha"}):
            assert [one["id"] for one in call(tool, **fields, **filters).structured["memories"]] == ["1"]
        properties = toolsets.TOOLS[tool].schema["properties"]
        assert properties["fact_type"] == {"type": "string"}
        assert properties["concepts"] == {"type": "array", "items": {"type": "string"}}


def test_a_day_that_is_none_is_refused_from_python_too() -> None:
    """Requests check themselves, whichever way they are made."""
    with pytest.raises(InvalidInput, match="Invalid until: Must be a day or a time"):
        Listing(until="2026-13-01")
    with pytest.raises(InvalidInput, match="Nothing to change"):
        Update(id="1")
