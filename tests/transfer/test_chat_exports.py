"""Transcripts of agents and exports of chats: who said what, in which session, at which place."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from recollect.domain.fields import MAX_CONTENT
from recollect.domain.transfer import ImportFormat, MemoryRecord
from recollect.transfer.formats import FORMATS
from recollect.transfer.reading import Unreadable

Read = Callable[..., Any]
CLAUDE = json.dumps(
    [
        {
            "uuid": "c2",
            "name": "Tea",
            "chat_messages": [
                {"uuid": "m1", "sender": "human", "text": "Green tea?", "created_at": "2026-01-02T03:04:05Z"},
                {
                    "uuid": "m2",
                    "sender": "assistant",
                    "text": "odd",
                    "content": [{"type": "tool_use"}, {"type": "text", "text": "At 80 degrees."}],
                },
                {"uuid": "m3", "sender": "assistant", "text": " "},
            ],
        }
    ]
)


def lines(*entries: Any) -> str:
    return "\n".join(map(json.dumps, entries))


def claude_code(speaker: str, content: Any, number: str, **more: Any) -> dict[str, Any]:
    base = {"parentUuid": None, "sessionId": "s1", "cwd": "/home/ada/engine", "timestamp": "2026-01-02T03:04:05Z"}
    return base | {"type": speaker, "uuid": number, "message": {"role": speaker, "content": content}} | more


def codex(role: str, kind: str, text: str) -> dict[str, Any]:
    payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return {"timestamp": "2026-01-02T03:04:05Z", "type": "response_item", "payload": payload}


def chatgpt(*said: tuple[str, Any], **more: Any) -> dict[str, Any]:
    """Return a conversation in which each message answers the one before."""
    mapping: dict[str, Any] = {"n0": {"message": None, "parent": None, "children": ["n1"]}}
    for number, (role, content) in enumerate(said, 1):
        whole = content if isinstance(content, dict) else {"content_type": "text", "parts": [content]}
        message = {"id": f"m{number}", "author": {"role": role}, "create_time": 1767225600.5 + number, "content": whole}
        mapping[f"n{number}"] = {"message": message, "parent": f"n{number - 1}", "children": []}
    last = f"n{len(said)}"
    return {
        "title": "Tea",
        "conversation_id": "c1",
        "create_time": 1.0,
        "mapping": mapping,
        "current_node": last,
    } | more


CLAUDE_CODE = lines(
    {"type": "summary", "summary": "x", "leafUuid": "y"},
    claude_code("user", "Why does the build fail?<system-reminder>be nice</system-reminder>", "u1"),
    claude_code("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Java 8."}], "u2"),
    claude_code("assistant", [{"type": "tool_use", "name": "Bash", "input": {}}], "u3"),
    claude_code("user", [{"type": "tool_result", "content": "ok"}], "u4"),
    claude_code("user", "<command-name>/clear</command-name>", "u5"),
    claude_code("user", "meta", "u6", isMeta=True),
    claude_code("assistant", "subagent", "u7", isSidechain=True),
    claude_code("user", "Thanks.", "u8"),
    claude_code("user", "Thanks.", "u8"),
)
CODEX = lines(
    {
        "type": "session_meta",
        "timestamp": "t",
        "payload": {"id": "s2", "cwd": "/home/ada/engine", "instructions": None},
    },
    codex("user", "input_text", "<environment_context>x</environment_context>"),
    codex("developer", "input_text", "rules"),
    codex("user", "input_text", "Why does the build fail?"),
    {"type": "event_msg", "payload": {"type": "user_message", "message": "Why does the build fail?"}},
    {"type": "response_item", "payload": {"type": "function_call", "name": "shell"}},
    codex("assistant", "output_text", "Java 8."),
)
CHATGPT = json.dumps(
    [
        chatgpt(
            ("system", "You are helpful."),
            ("user", "Green tea?"),
            ("assistant", {"content_type": "code", "text": "search()"}),
            ("user", {"content_type": "multimodal_text", "parts": [{"asset_pointer": "x"}, "See this."]}),
            ("tool", "result"),
            ("assistant", "At 80 degrees."),
        )
    ]
)


@pytest.mark.parametrize(
    ("format", "text", "said", "keys"),
    [
        (
            ImportFormat.CLAUDE_CODE,
            CLAUDE_CODE,
            [("user", "Why does the build fail?"), ("assistant", "Java 8."), ("user", "Thanks.")],
            ["claude-code:s1/u1", "claude-code:s1/u2", "claude-code:s1/u8"],
        ),
        (
            ImportFormat.CODEX,
            CODEX,
            [("user", "Why does the build fail?"), ("assistant", "Java 8.")],
            ["codex:s2/4", "codex:s2/7"],
        ),
        (
            ImportFormat.CHATGPT,
            CHATGPT,
            [("user", "Green tea?"), ("user", "See this."), ("assistant", "At 80 degrees.")],
            ["chatgpt:c1/m2", "chatgpt:c1/m4", "chatgpt:c1/m6"],
        ),
        (
            ImportFormat.CLAUDE,
            CLAUDE,
            [("user", "Green tea?"), ("assistant", "At 80 degrees.")],
            ["claude:c2/m1", "claude:c2/m2"],
        ),
    ],
)
def test_what_was_said_arrives(
    read: Read, format: ImportFormat, text: str, said: list[tuple[str, str]], keys: list[str]
) -> None:
    """Messages of user and assistant arrive with speaker, session, place, time and key; all else is left out."""
    found = read(format, text, "x.jsonl")
    records = [MemoryRecord(**one.fields) for one in found.memories]
    assert [(one.speaker, one.content) for one in records] == said
    assert [one.key for one in records] == keys
    assert [one.position for one in records] == list(range(len(said)))
    assert {one.session_id for one in records} == {keys[0].partition(":")[2].partition("/")[0]}
    assert records[0].observed_at is not None
    assert records[0].tags == (str(format),)
    chat = format in (ImportFormat.CHATGPT, ImportFormat.CLAUDE)
    assert {one.fields.get("scope") for one in found.memories} == {"personal" if chat else None}
    assert found.problems == []


def test_the_project_of_a_transcript_is_its_folder(read: Read) -> None:
    """A session remembers in which project it took place."""
    for format, text in ((ImportFormat.CLAUDE_CODE, CLAUDE_CODE), (ImportFormat.CODEX, CODEX)):
        assert {one.fields["project"] for one in read(format, text, "x.jsonl").memories} == {"engine"}


def test_only_the_branch_that_is_shown_is_read(read: Read) -> None:
    """Of a message that was written again the last version counts; without a last node the youngest leaf leads."""
    talk = chatgpt(("user", "Green tea?"), ("assistant", "Boil it."))
    again = {"id": "m9", "author": {"role": "assistant"}, "create_time": 1.9e9, "content": {"content_type": "text"}}
    again["content"]["parts"] = ["At 80 degrees."]
    talk["mapping"]["n9"] = {"message": again, "parent": "n1", "children": []}
    for last, answer in (
        ("n9", "At 80 degrees."),
        ("n2", "Boil it."),
        (None, "At 80 degrees."),
        ("x", "At 80 degrees."),
    ):
        found = read(ImportFormat.CHATGPT, json.dumps([talk | {"current_node": last}]))
        assert found.contents == ["Green tea?", answer]


def test_a_circle_of_messages_ends(read: Read) -> None:
    """Messages that answer each other in a circle are each read once."""
    talk = chatgpt(("user", "a"), ("assistant", "b"))
    talk["mapping"]["n1"]["parent"] = "n2"
    assert read(ImportFormat.CHATGPT, json.dumps(talk)).contents == ["a", "b"]


def test_what_claude_noted_arrives(read: Read) -> None:
    """The texts that the Claude apps keep about a person and each project are memories."""
    noted = [{"conversations_memory": "Works on tea.", "project_memories": {"p1": "A shop."}, "account_uuid": "u"}]
    found = read(ImportFormat.CLAUDE, json.dumps(noted))
    assert found.contents == ["Works on tea.", "A shop."]
    assert [one.fields["key"] for one in found.memories] == ["claude-memory:u/", "claude-memory:u/p1"]
    assert {one.fields["scope"] for one in found.memories} == {"personal"}


def test_a_long_message_becomes_several(read: Read) -> None:
    """What is longer than a memory may be is cut, each part a valid memory of its own."""
    found = read(ImportFormat.CLAUDE_CODE, lines(claude_code("user", "x" * (MAX_CONTENT + 1), "u1")), "x.jsonl")
    assert [MemoryRecord(**one.fields).key for one in found.memories] == ["claude-code:s1/u1", "claude-code:s1/u1~2"]


@pytest.mark.parametrize("format", [ImportFormat.CHATGPT, ImportFormat.CLAUDE])
@pytest.mark.parametrize(
    "broken",
    [b"", b" ", b"[", b'[{"mapping": ', b"\xff\xfe[", b'[{"a": NaN}]', b"[" * 5_000, b'[{"a": "caf\xe9"}]', b"[1}"],
    ids=["empty", "blank", "open", "cut", "utf16", "nan", "deep", "latin1", "mismatch"],
)
def test_a_broken_export_is_unreadable(read: Read, format: ImportFormat, broken: bytes) -> None:
    """Whatever is no JSON is refused in a sentence, and what stands before that was read."""
    with pytest.raises(Unreadable):
        read(format, broken)
    whole = CHATGPT if format is ImportFormat.CHATGPT else CLAUDE
    things = FORMATS[format].read(io.BytesIO(whole[:-1].encode() + b", {"), "x")
    assert next(things).fields["content"] == "Green tea?"
    with pytest.raises(Unreadable):
        list(things)


@pytest.mark.parametrize("entry", [7, None, "x", {}, {"mapping": 3}, {"chat_messages": 3}, {"mapping": {"a": 1}}])
def test_an_odd_conversation_is_told_and_passed_over(read: Read, entry: Any) -> None:
    """What is no conversation is a problem or says nothing; the others are read."""
    for format, whole in ((ImportFormat.CHATGPT, CHATGPT), (ImportFormat.CLAUDE, CLAUDE)):
        found = read(format, json.dumps([entry, *json.loads(whole)]), "x")
        assert found.contents[0] == "Green tea?"
        assert [one.where for one in found.problems] in ([], ["x, conversation 1"])


def test_a_giant_conversation_is_refused(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """One conversation may not fill the memory; an export of many may be of any size."""
    monkeypatch.setattr("recollect.transfer.json_stream.LARGEST_FILE", 300_000)
    talk = chatgpt(("user", "x" * 50_000))
    assert len(read(ImportFormat.CHATGPT, json.dumps([talk] * 20)).memories) == 20
    with pytest.raises(Unreadable, match="larger than"):
        read(ImportFormat.CHATGPT, json.dumps([chatgpt(("user", "x" * 400_000))]))
