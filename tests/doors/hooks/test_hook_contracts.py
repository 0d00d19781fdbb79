"""What coding agents report becomes our events, and our answers are in their words; as their references show both."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

import recorded_hooks as recorded
from hook_payloads import BASE, CASES, payload
from recollect.domain.verbs import BY_NAME, PARTS
from recollect.doors import hook, hook_contracts, hook_texts
from recollect.doors.agents.agents import agents
from recollect.doors.http.events import OPERATIONS
from recollect.sessions.observations.notes import observe
from recollect.sessions.observations.occurrence import ASSISTANT, prompt_occurrence, tool_occurrence
from recollect.sessions.observations.trail import Trail

INJECTION = {  # as Codex checks it; Claude Code and Gemini CLI take the same
    "type": "object",
    "additionalProperties": False,
    "required": ["hookSpecificOutput"],
    "properties": {
        "hookSpecificOutput": {
            "type": "object",
            "additionalProperties": False,
            "required": ["hookEventName", "additionalContext"],
            "properties": {"hookEventName": {"type": "string"}, "additionalContext": {"type": "string"}},
        }
    },
}


def heard(event: str, agent: str, said: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return our event and its fields but for the session's id."""
    found = hook_contracts.understood(event, agent, said)
    fields = hook._event_fields(found) if found else None
    return None if found is None or fields is None else (found.event, fields)


@pytest.mark.parametrize(("agent", "name", "fields", "event", "ours"), CASES, ids=[f"{a}-{n}" for a, n, *_ in CASES])
def test_a_payload_becomes_our_event(
    agent: str, name: str, fields: dict[str, Any], event: str, ours: dict[str, Any]
) -> None:
    """Each event of each reference is one of ours, with its fields, which the operation of the event takes."""
    said = payload(agent, name, fields)
    session = said.get("session_id") or said["conversation_id"]
    assert heard("", agent, said) == (event, {"session_id": session} | ours)
    assert hook_contracts.folder_of(said) == "/srv/engine"
    passed_on = {field: value for field, value in ours.items() if field != "transcript"}  # the daemon keeps that
    request = (BY_NAME | PARTS)[OPERATIONS[event]].request(**passed_on, session_id=session, agent=agent)
    assert request.model_dump()["session_id"] == session


@pytest.mark.parametrize(("agent", "name", "fields", "event", "ours"), CASES, ids=[f"{a}-{n}" for a, n, *_ in CASES])
def test_the_sender_is_known_by_its_payload(
    agent: str, name: str, fields: dict[str, Any], event: str, ours: dict[str, Any]
) -> None:
    """Where the command names no agent, the payload tells; Codex only with a turn, as it writes Claude Code's form."""
    found = hook_contracts.understood("", "", payload(agent, name, fields))
    assert found is not None
    assert found.agent == agent
    assert found.event == event


@pytest.mark.parametrize(
    ("agent", "name", "fields", "noise", "said"),
    recorded.CASES,
    ids=[f"{agent}-{name}-{fields.get('tool_name', '')}" for agent, name, fields, *_ in recorded.CASES],
)
def test_a_recorded_event_becomes_a_memory_or_noise(
    agent: str, name: str, fields: dict[str, Any], noise: str, said: tuple[str, ...]
) -> None:
    """What released agents report is read as it is meant: edits by their text, outputs without what is around them."""
    found = heard("", agent, payload(agent, name, fields))
    assert found is not None
    event, ours = found
    one = (
        prompt_occurrence(ours["prompt"])
        if event == "prompt:submit"
        else tool_occurrence(
            ours.get("tool", ASSISTANT), ours.get("input", {}), ours["output"], failed=ours.get("failed", False)
        )
    )
    became = observe(one, Trail(), folder="/srv/engine")
    assert became.noise == noise
    assert (not became.notes) is bool(noise)
    for note in became.notes[:1]:
        text = " ".join(each.content for each in became.notes)
        assert [part for part in said if part not in text] == []
        assert "Fridays" not in text
        assert [part for part in recorded.WRAPPING if part in text and agent != "claude-code"] == []
        assert "src/pool.py" in note.files_modified or "src/pool.py" not in text
        assert not ({"***", "begin", "patch"} & set(note.tags))


def test_every_event_has_its_operation() -> None:
    """Each of our events has something that runs for it, and each agent's table speaks of our events alone."""
    assert set(OPERATIONS) == set(hook_contracts.OURS)
    assert set(OPERATIONS.values()) <= set(BY_NAME) | set(PARTS)
    assert {rule.event for one in hook_contracts.CONTRACTS.values() for rule in one.rules.values()} == set(OPERATIONS)


def test_what_is_installed_is_understood() -> None:
    """The hooks that are written are events of the agent's contract, and report all of our events that it has.

    An agent that takes no context before it uses a tool has no event for that.
    """
    with_hooks = {name: one.hooks for name, one in agents().items() if one.hooks}
    assert set(with_hooks) == set(hook_contracts.CONTRACTS)
    for name, form in with_hooks.items():
        rules = hook_contracts.CONTRACTS[name].rules
        before = set() if name in ("claude-code", "codex") else {hook_contracts.BEFORE}
        assert {rules[event].event for event in form.events} == set(hook_contracts.OURS) - before


def test_the_payloads_name_counts_more_than_the_commands() -> None:
    """Our names and the agent's are taken; what the payload says wins; an unknown event is none."""
    said = payload("claude-code", "SessionEnd", {"reason": "logout"})
    assert heard("session:start", "claude-code", said) == ("session:end", {"session_id": "abc123", "reason": "logout"})
    unnamed = {"session_id": "s", "prompt": "Go"}
    for name in ("prompt:submit", "UserPromptSubmit"):
        assert heard(name, "", unnamed) == ("prompt:submit", unnamed)
    assert heard("prompt:submit", "gemini-cli", unnamed) == ("prompt:submit", unnamed)
    for name, agent in (("Notification", ""), ("", ""), ("PostToolUse", "emacs"), ("SubagentStart", "claude-code")):
        assert heard(name, agent, unnamed) is None


def test_gemini_compacts_only_where_a_person_asks() -> None:
    """Its event with the trigger `auto` comes before every turn of the model, and lets nothing be shown again."""
    assert heard("", "gemini-cli", payload("gemini-cli", "PreCompress", {"trigger": "auto"})) is None
    assert heard("", "", payload("claude-code", "PreCompact", {"trigger": "auto"})) is not None


@pytest.mark.parametrize("agent", BASE)
def test_an_injection_is_in_the_agents_words(agent: str) -> None:
    """The context stands where the reference has it; Cursor, without a place for it, and other events get nothing."""
    contract = hook_contracts.CONTRACTS[agent]
    name = contract.event_for(hook_contracts.PROMPT)
    found = hook_contracts.understood("", agent, payload(agent, name, {"prompt": "Go"}))
    assert found is not None
    answer = hook_contracts.injection(found, "<memory-context>")
    assert (answer is None) is (agent == "cursor")
    if answer is not None and contract.plain:
        assert answer == {contract.plain: "<memory-context>"}
    elif answer is not None:
        jsonschema.validate(answer, INJECTION)
        assert answer["hookSpecificOutput"] == {"hookEventName": name, "additionalContext": "<memory-context>"}
    assert hook_contracts.injection(found, "") is None
    ended = hook_contracts.understood("session:end", agent, BASE[agent] | {"session_id": "s"})
    assert ended is not None
    assert hook_contracts.injection(ended, "text") is None


@pytest.mark.parametrize(
    ("agent", "answer"),
    [
        ("claude-code", {"decision": "block", "reason": "<memory-ask>"}),
        ("codex", {"decision": "block", "reason": "<memory-ask>"}),
        ("gemini-cli", {"decision": "block", "reason": "<memory-ask>"}),
        ("cursor", {"followup_message": "<memory-ask>"}),
        ("opencode", {"context": "<memory-ask>"}),
    ],
)
def test_an_agent_goes_on_with_a_text_at_the_end_of_a_turn(agent: str, answer: dict[str, str]) -> None:
    """What lets an agent go on stands where its reference has it; nothing is said where there is no text."""
    name = hook_contracts.CONTRACTS[agent].event_for(hook_contracts.TURN)
    found = hook_contracts.understood(name, agent, payload(agent, name, {"last_assistant_message": "Done."}))
    assert found is not None
    assert hook_contracts.injection(found, "<memory-ask>") == answer
    assert hook_contracts.injection(found, "") is None


def test_cursor_running_the_hooks_of_claude_code_reports_nothing_twice() -> None:
    """Cursor may run Claude Code's hooks too; its own report the same session."""
    said = payload("cursor", "beforeSubmitPrompt", {"prompt": "Go"})
    assert heard("UserPromptSubmit", "claude-code", said) is None
    assert heard("beforeSubmitPrompt", "cursor", said) is not None


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_name": "mcp__recollect__memory", "tool_response": "3 memories found."},
        {"tool_name": "mcp__plugin_recollect_recollect__memory", "tool_response": "3 memories found."},
        {"tool_name": "", "tool_response": "x"},
        {"tool_name": 7, "tool_response": "x"},
        {"tool_name": "Bash"},
        {"tool_name": "Bash", "tool_input": "", "tool_response": {"stdout": "", "stderr": ""}},
        {"tool_name": "Bash", "tool_response": "x", "session_id": ["a"]},
        {"tool_name": "Bash", "tool_response": "x", "session_id": "  "},
    ],
)
def test_what_says_nothing_is_not_reported(fields: dict[str, Any]) -> None:
    """Our own tool, a tool without a name, one that said nothing, and an event of no session are left out."""
    assert heard("PostToolUse", "claude-code", payload("claude-code", "PostToolUse", fields)) is None


def test_a_stop_without_a_message_ends_a_turn_all_the_same() -> None:
    """Where the agent does not hand on what it said last, as Cursor, it may still be asked something."""
    found = heard("", "claude-code", payload("claude-code", "Stop", {"stop_hook_active": True}))
    assert found == ("turn:end", {"session_id": "abc123", "output": "", "continued": True})


@pytest.mark.parametrize(
    ("agent", "tool", "given", "stores"),
    [
        ("claude-code", "mcp__recollect__memory", {"action": "remember", "content": "We ship on Fridays."}, True),
        ("claude-code", "mcp__recollect__memory", {"action": "recall", "query": "ship"}, False),
        ("claude-code", "mcp__recollect__store_memory", {"content": "We ship on Fridays."}, True),
        ("claude-code", "mcp__recollect__search_memories", {"query": "ship"}, False),
        ("codex", "mcp__recollect__memory_store", {"content": "We ship on Fridays."}, True),
        ("gemini-cli", "mcp_recollect_memory", {"action": "remember", "content": "We ship on Fridays."}, True),
        ("cursor", "MCP:memory", '{"action": "remember", "content": "We ship on Fridays."}', True),
        ("opencode", "recollect_memory", {"action": "remember", "content": "We ship on Fridays."}, True),
    ],
)
def test_that_an_agent_stored_something_is_reported_and_not_what(
    agent: str, tool: str, given: object, stores: bool
) -> None:
    """The agent that stores by itself need not be asked; of the answer only the id is sent, and not what was stored."""
    said = "Memory stored successfully with ID: 12\nNear memories: 3 (0.71): We ship on Fridays."
    answers = {
        "claude-code": json.dumps({"message": said, "id": "12", "outcome": "stored"}),
        "codex": {
            "content": [{"type": "text", "text": said}],
            "structuredContent": {"message": said},
            "isError": False,
        },
        "gemini-cli": {"llmContent": [{"text": f"<untrusted_context>\n{said}\n</untrusted_context>"}]},
        "cursor": json.dumps({"content": [{"type": "text", "text": said}]}),
        "opencode": {"output": [{"type": "text", "text": said}]},
    }
    fields = {"tool_name": tool, "tool_input": given, "tool_response": answers[agent], "tool_output": answers[agent]}
    name = hook_contracts.CONTRACTS[agent].event_for(hook_contracts.TOOL)
    found = heard("", agent, payload(agent, name, fields))
    assert (found is not None) is stores
    if found is not None:
        event, ours = found
        assert (event, ours["tool"], ours["input"]) == ("tool:post", "recollect", {"action": "remember"})
        assert ours["output"] == "Memory stored successfully with ID: 12"
        assert "ship" not in json.dumps(ours)


def test_long_texts_keep_their_ends() -> None:
    """Of what is too long head and tail are sent, and how much is missing is said."""
    text = "a" * 150_000 + "b" * 150_000
    sent = hook_texts.cut(text)
    assert len(sent) < hook_texts.LONGEST + 100
    assert sent.startswith("aaa")
    assert sent.endswith("bbb")
    assert "[100000 characters are left out]" in sent
    said = {"tool_name": "Write", "tool_input": {"content": text, "deep": {"list": [text] * 3}}, "tool_response": text}
    found = heard("", "", payload("claude-code", "PostToolUse", said))
    assert found is not None
    assert len(json.dumps(found[1])) < 500_000


def test_what_cannot_be_stored_is_replaced() -> None:
    """Lone surrogates become question marks and zero bytes spaces, in texts and in names."""
    said = {"tool_name": "Bash", "tool_input": {"\ud800": "a\0b"}, "tool_response": "\udcff x \0"}
    found = heard("", "", payload("claude-code", "PostToolUse", said))
    assert found is not None
    assert found[1]["input"] == {"?": "a b"}
    assert found[1]["output"] == "? x  "


def test_deep_and_wide_values_end() -> None:
    """A value that is nested deeply, or has very many items, is cut instead of followed."""
    deep: Any = "the end"
    for _ in range(500):
        deep = {"content": [deep]}
    assert hook_texts.text_of(deep) == ""
    assert "the end" not in json.dumps(hook_texts.given(deep))
    wide = hook_texts.arguments({str(number): "x" * 1_000 for number in range(5_000)})
    assert len(json.dumps(wide)) < 2_000_000
    assert hook_texts.arguments('["not an object"]') == {}
    assert hook_texts.arguments("free text") == {"input": "free text"}
    assert hook_texts.text_of(True) == "true"


@pytest.mark.parametrize(
    ("agent", "name", "answered", "output"),
    [
        ("gemini-cli", "AfterTool", {"tool_response": {"llmContent": "", "error": "no such file"}}, "no such file"),
        ("cursor", "postToolUse", {"tool_output": '{"exitCode": 2, "stderr": "no rule"}'}, "no rule"),
        ("codex", "PostToolUse", {"tool_response": {"exit_code": 1, "output": "1 failed"}}, "1 failed"),
        ("codex", "PostToolUse", {"tool_response": "Exit code: 2\nWall time: 1 s\nOutput:\nno rule"}, "no rule"),
        ("codex", "PostToolUse", {"tool_response": "Exit code: 2\nno rule"}, "no rule"),
        (
            "gemini-cli",
            "AfterTool",
            {
                "tool_response": {
                    "llmContent": "Command: make\nDirectory: (root)\nOutput: no rule\nError: (none)\nExit Code: 2\n"
                    "Signal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 7"
                }
            },
            "no rule",
        ),
    ],
)
def test_a_failure_that_only_the_answer_tells(agent: str, name: str, answered: dict[str, Any], output: str) -> None:
    """An error or an exit code in the tool's answer makes it a tool that failed."""
    said = {"tool_name": "Bash", "tool_input": {"command": "make"}} | answered
    found = heard("", agent, payload(agent, name, said))
    assert found is not None
    assert (found[1]["failed"], found[1]["output"]) == (True, output)


@pytest.mark.parametrize(
    "text", ['{"name": "recollect", "private": true}', "[1, 2]", "{not JSON", "[]", '{"exitCode": 0, "stdout": "fine"}']
)
def test_json_that_a_tool_wrote_stays_as_it_is(text: str) -> None:
    """The content of a file of JSON is not taken for an answer; an answer in a text is read."""
    found = heard("", "", payload("claude-code", "PostToolUse", {"tool_name": "Bash", "tool_response": text}))
    assert found is not None
    assert (found[1]["output"], found[1]["failed"]) == ("fine" if "stdout" in text else text, False)


def test_pictures_are_left_out() -> None:
    """What an image says in characters is not sent; what a tool is given under the same name is."""
    image = {"type": "image", "source": {"type": "base64", "data": "aGVsbG8=" * 99}}
    said = {
        "tool_name": "Read",
        "tool_input": {"data": "kept"},
        "tool_response": [{"type": "text", "text": "a"}, image],
    }
    found = heard("", "", payload("claude-code", "PostToolUse", said))
    assert found is not None
    assert found[1]["input"] == {"data": "kept"}
    assert "aGVsbG8=" not in found[1]["output"]
