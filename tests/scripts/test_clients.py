"""The parts of scripts/clients: the model server in each protocol, what is kept of a hook, and the sum of a run."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

Module = Callable[[str], ModuleType]
PROMPT = "When do we ship?"
SCHEMA = {"type": "object", "properties": {"action": {"type": "string"}}}
ANTHROPIC = {
    "messages": [{"role": "user", "content": [{"type": "text", "text": PROMPT}]}],
    "tools": [{"name": "mcp__recollect__memory", "input_schema": SCHEMA}],
}
RESPONSES = {
    "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": PROMPT}]}],
    "tools": [{"type": "namespace", "name": "mcp__recollect", "tools": [{"name": "memory", "parameters": SCHEMA}]}],
}
CHAT = {
    "messages": [{"role": "user", "content": PROMPT}],
    "tools": [{"type": "function", "function": {"name": "recollect_memory", "parameters": SCHEMA}}],
}
GEMINI = {
    "contents": [{"role": "user", "parts": [{"text": PROMPT}]}],
    "tools": [{"functionDeclarations": [{"name": "mcp_recollect_memory", "parametersJsonSchema": SCHEMA}]}],
}
ANSWERED: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "v1/messages": (ANTHROPIC, "messages", {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Tuesday"}),
    "v1/responses": (RESPONSES, "input", {"type": "function_call_output", "output": "Tuesday"}),
    "v1/chat/completions": (CHAT, "messages", {"role": "tool", "content": "Tuesday"}),
    "v1beta/models/any:generateContent": (
        GEMINI,
        "contents",
        {"role": "user", "parts": [{"functionResponse": {"response": {"output": "Tuesday"}}}]},
    ),
}


@pytest.mark.parametrize("path", ANSWERED)
def test_the_model_calls_the_tool_and_ends(path: str, module: Module, tmp_path: Path) -> None:
    """In each protocol, whole and as a stream, the script's call comes first, and the last text after its result."""
    protocols, model = module("agent_drivers.protocols"), module("agent_drivers.model")
    body, key, result = ANSWERED[path]
    result = {"role": "user", "content": [result]} if path == "v1/messages" else result
    asked = protocols.Step("memory", {"action": "recall"})
    with model.ModelServer() as server:
        url = server.open("case", tmp_path / "requests")
        conversation = server.conversations["case"]
        conversation.steps[PROMPT] = (asked,)
        for answer in (_posted(f"{url}/{path}", body), _posted(_streamed(f"{url}/{path}"), body | {"stream": True})):
            assert '"action' in answer.replace("\\", "")
            assert "memory" in answer
            assert "Done." not in answer
        last = _posted(f"{url}/{path}", body | {key: [*body[key], result]})
        assert "Done." in last
    assert [len(one.results) for one in conversation.after(PROMPT)] == [0, 0, 1]
    assert "Tuesday" in conversation.requests[-1].results[0][1]
    assert len(list((tmp_path / "requests").glob("*.json"))) == 3


def test_a_model_looks_for_tools_that_come_later(module: Module, tmp_path: Path) -> None:
    """Where an agent offers a search or a wait for tools the model does that first, once, and it counts as no step."""
    protocols, model = module("agent_drivers.protocols"), module("agent_drivers.model")
    conversation = model.Conversation(tmp_path, {PROMPT: (protocols.Step("memory", {"action": "recall"}),)})
    dialect = protocols.DIALECTS["/messages"]
    body = ANTHROPIC | {"tools": [{"name": "WaitForMcpServers"}]}
    waits = dialect.whole(conversation.answer(dialect.read(body)), body, 1)["content"][0]
    assert waits["name"] == "WaitForMcpServers"
    waited = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": waits["id"], "content": "ready"}]}
    later = ANTHROPIC | {"messages": [*ANTHROPIC["messages"], waited]}
    assert conversation.answer(dialect.read(later)).tool.name == "mcp__recollect__memory"
    assert conversation.answer(dialect.read(later | {"tools": []})) == "There is no tool to memory."


def test_a_question_that_quotes_a_prompt_is_answered_as_the_question(module: Module, tmp_path: Path) -> None:
    """Of two prompts in one text the first counts, and the model takes the time of its step."""
    protocols, model = module("agent_drivers.protocols"), module("agent_drivers.model")
    asked = protocols.Step(text="I stored it.", seconds=0.05)
    conversation = model.Conversation(tmp_path, {PROMPT: (protocols.Step("shell"),), "What was learnt?": (asked,)})
    said = [(0, PROMPT), (2, f"What was learnt? Noted so far: {PROMPT}")]
    begun = time.monotonic()
    assert conversation.answer(protocols.Request(said=said)) == "I stored it."
    assert time.monotonic() - begun >= 0.05


def test_a_session_holds_what_the_model_read(module: Module, tmp_path: Path) -> None:
    """Requests for a title, which offer no tools, are left out; what an agent escapes is read as it was meant."""
    programs, place = module("agent_drivers.programs"), module("agent_drivers.place")
    model, protocols = module("agent_drivers.model"), module("agent_drivers.protocols")
    with model.ModelServer() as server:
        here = place.Place(tmp_path, "agent", "case", server)
    tools = [protocols.Tool("mcp__recollect__memory", {})]
    here.model.requests += [
        protocols.Request(said=[(0, PROMPT)], body="a title"),
        protocols.Request(said=[(0, PROMPT)], results=[(1, "Tuesday")], tools=tools, body="&lt;memory-index&gt;"),
        protocols.Request(said=[(0, "another prompt")], tools=tools, body="another session"),
    ]
    session = programs.ClaudeCode().session(here, place.Ended(0, "", "", 1.0), PROMPT)
    assert (session.sent, session.results, session.offered) == (("<memory-index>",), ("Tuesday",), True)


def test_arguments_follow_the_schema_of_each_tool(module: Module) -> None:
    """One step becomes the call that each agent's own tool takes, a patch where it takes bare text."""
    protocols = module("agent_drivers.protocols")

    def made(kind: str, tool: Any, **arguments: str) -> Any:
        return protocols.Request(tools=[tool]).call(protocols.Step(kind, arguments)).arguments

    listed = protocols.Tool("shell", {"properties": {"command": {"type": "array"}}})
    assert made("shell", listed, command="ls") == {"command": ["bash", "-lc", "ls"]}
    named = protocols.Tool("exec_command", {"properties": {"cmd": {}}})
    assert made("shell", named, command="ls") == {"cmd": "ls"}
    patch = protocols.Tool("apply_patch", {}, bare=True)
    assert "+one\n+two\n" in made("write", patch, path="a.txt", content="one\ntwo")
    assert protocols.Request(tools=[protocols.Tool("save_memory", {})]).offered("memory") is None


def test_what_a_hook_got_and_said_is_kept(module: Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder passes a hook's input, answer and exit code on, and keeps them with the time that it took."""
    place, model = module("agent_drivers.place"), module("agent_drivers.model")
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\ncat >&2\nprintf %s "$ANSWER"\nexit 3\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(place, "PROGRAM", program)
    with model.ModelServer() as server:
        here = place.Place(tmp_path, "agent", "case", server)
    here.variables["ANSWER"] = json.dumps({"hookSpecificOutput": {"additionalContext": "We ship on Tuesdays."}})
    done = here.run([str(here.recorder), "hook", "Stop", "--agent", "codex"], '{"session_id": "s"}')
    (hook,) = here.hooks()
    assert done.out == here.variables["ANSWER"]
    assert (done.code, hook.code, hook.event) == (3, 3, "Stop")
    assert (hook.payload, hook.errors) == ({"session_id": "s"}, '{"session_id": "s"}')
    assert (hook.injected, hook.folder) == ("We ship on Tuesdays.", str(here.project))
    assert hook.ms > 0
    assert not hook.asks


@pytest.mark.parametrize(
    "answer",
    [{"decision": "block", "reason": "<memory-ask>\n?\n</memory-ask>"}, {"context": "<memory-ask>\n?\n</memory-ask>"}],
)
def test_a_hook_that_asks_is_told_from_others(answer: dict[str, str], module: Module) -> None:
    """The question at the end of a turn is known in each form that agents take."""
    place = module("agent_drivers.place")
    assert place.Hook("Stop", {}, json.dumps(answer), "", 0, 1.0, "/").asks


def test_a_program_is_stopped_at_its_limit(module: Module, tmp_path: Path) -> None:
    """One that does not end is killed with what it started, and told as such."""
    place, model = module("agent_drivers.place"), module("agent_drivers.model")
    with model.ModelServer() as server:
        here = place.Place(tmp_path, "agent", "case", server)
    process = here.start(["sh", "-c", "sleep 600 & sleep 600"])
    done = here.end(process, 0.05)
    assert done.told == "stopped after 0 s"
    assert subprocess.run(["pgrep", "-r", "R,S,D", "-g", str(process.pid)], capture_output=True).stdout == b""


def test_the_sum_of_a_run(module: Module) -> None:
    """The table has a row for each case and a column for each agent; figures are those of all cases together."""
    clients, cases = module("agent_drivers.__main__"), module("agent_drivers.cases")
    found = [
        cases.Outcome("codex", "call", "green", hooks=[("Stop", 100.0), ("Stop", 300.0)], injected=[40, 60]),
        cases.Outcome("codex", "stopped", "red", "the first prompt was lost: nothing", hooks=[("Stop", 200.0)]),
        cases.Outcome("inspector", "call", "not offered", "it has no model"),
    ]
    told = clients.figures(found)
    assert told["cold_first_prompt"] == {"kept": 0, "of": 1}
    assert told["hook_ms"] == {"Stop": {"times": 3, "median": 200, "slowest": 300}}
    assert told["injected_bytes"] == {"times": 2, "most": 60, "all": 100}
    console = Console(width=100, record=True, quiet=False, file=None)
    with console.capture() as caught:
        clients.show(found, {"codex": "1.0", "inspector": "2.0"}, console)
    shown = caught.get()
    assert "red: codex/stopped: the first prompt was lost" in shown
    assert "not offered: inspector/call: it has no model" in shown


def test_only_some_cases(module: Module) -> None:
    """`--only` takes an agent, a case, or both, and refuses what is not known."""
    clients = module("agent_drivers.__main__")
    assert [(one.name, case) for one, case in clients.chosen(["codex/call"])] == [("codex", "call")]
    assert {case for _, case in clients.chosen(["/call"])} == {"call"}
    assert {one.name for one, _ in clients.chosen(["codex"])} == {"codex"}
    with pytest.raises(SystemExit, match="nonsense"):
        clients.chosen(["nonsense"])


def _posted(url: str, body: dict[str, Any]) -> str:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return str(answer.read().decode())


def _streamed(url: str) -> str:
    return url.replace(":generateContent", ":streamGenerateContent")
