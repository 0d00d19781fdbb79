"""The `memory` tool across processes: what stdout carries, who owns the store, and who sees what after a restart."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from daemon_place import Place
from stdio_client import SERVER, environment_of, talking
from stores import altered_model


@pytest.mark.full
def test_stdout_carries_only_the_protocol(tmp_path: Path) -> None:
    """Line by line, everything on standard output is JSON-RPC, and the process ends well when its input does."""
    asked: list[dict[str, Any]] = [
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        _call(3, action="remember", content="the mascot is a quokka"),
        _call(4, action="recall", query="quokka"),
        _call(5, action="nonsense"),
    ]
    with subprocess.Popen(
        [SERVER, "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment_of(tmp_path / "home"),
        encoding="utf-8",
    ) as server:
        answers = []
        for message in asked:
            server.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
            server.stdin.flush()
            if "id" in message:
                answers.append(json.loads(server.stdout.readline()))
        rest, complaints = server.communicate()
    assert [(answer["jsonrpc"], answer["id"]) for answer in answers] == [("2.0", number) for number in range(1, 6)]
    assert answers[1]["result"]["tools"][0]["name"] == "memory"
    assert [answers[number]["result"].get("isError", False) for number in (2, 3, 4)] == [False, False, True]
    assert rest == ""
    assert "Traceback" not in complaints
    assert server.returncode == 0


def _call(number: int, **arguments: Any) -> dict[str, Any]:
    return {"id": number, "method": "tools/call", "params": {"name": "memory", "arguments": arguments}}


@pytest.mark.full
def test_a_second_server_names_the_owner(tmp_path: Path) -> None:
    """On a store that is in use a server lists its tool, and a call is told in one sentence who owns the store."""
    home = tmp_path / "home"
    environment = environment_of(home)
    with talking(environment) as first:
        first.remember("the first one was here")
        owner = json.loads((home / "owner.json").read_text(encoding="utf-8"))
        with talking(environment) as second:
            assert [tool.name for tool in second.tools()] == ["memory"]
            for arguments in ({"action": "recall", "query": "x"}, {"action": "remember", "content": "x"}):
                message = second.refused(**arguments)
                assert message.startswith(f"The store in {home} is in use by process {owner['pid']} (recollect mcp, ")
        assert [one["content"] for one in first.recall("first one")] == ["the first one was here"]


@pytest.mark.full
def test_a_second_server_takes_over(tmp_path: Path) -> None:
    """When the owner has gone, the server that was refused before opens the store at the next call."""
    environment = environment_of(tmp_path / "home")
    with talking(environment) as second:
        with talking(environment) as first:
            outcomes = [one.call(action="remember", content="who was it?").is_error for one in (first, second)]
        assert sorted(outcomes) == [False, True]
        winner_is_second = not outcomes[1]
        if not winner_is_second:
            assert [one["content"] for one in second.recall("who was it?")] == ["who was it?"]
        assert second.remember("who was it?")


def test_memories_outlive_their_process(tmp_path: Path) -> None:
    """A new process on the same store finds what the old one stored, by meaning too, and not what it forgot."""
    environment = environment_of(tmp_path / "home")
    with talking(environment) as talk:
        kept = talk.remember("Production deploys go out on Tuesday mornings")
        gone = talk.remember("The mascot is a quokka")
        talk.reply(action="forget", id=gone)
    with talking(environment, mode="legacy") as talk:
        talk.warm()
        assert [one["id"] for one in talk.recall("when do we ship releases?")] == [kept]
        assert talk.recall("quokka") == []


@pytest.mark.full
def test_projects_are_apart_and_the_team_is_shared(place: Place) -> None:
    """Another project sees neither this project's memories nor, for another user, personal ones; team's are shared."""
    with place.talk() as ada:
        ids = {scope: ada.remember(f"the obelisk of {scope}", scope=scope) for scope in ("personal", "project", "team")}
        assert {one.get("scope", "project") for one in ada.recall("obelisk")} == {"personal", "project", "team"}
    with place.changed(project="other").talk() as ada:
        assert {one.get("scope", "project") for one in ada.recall("obelisk")} == {"personal", "team"}
        assert ada.reply(action="forget", id=ids["project"]) == f"Memory {ids['project']} not found."
    with place.changed(user="bob", project="other").talk() as bob:
        assert {one["scope"] for one in bob.recall("obelisk")} == {"team"}
    with place.changed(user="eve", team="rivals").talk() as eve:
        assert eve.recall("obelisk") == []


@pytest.mark.full
@pytest.mark.parametrize("breakage", ["home is a file", "models are altered"])
def test_a_broken_installation_is_told_in_the_answer(tmp_path: Path, breakage: str) -> None:
    """When the store cannot be opened, the tool is listed all the same and a call says why in one sentence."""
    home = tmp_path / "home"
    changes = {}
    if breakage == "home is a file":
        home.write_text("not a folder", encoding="utf-8")
    else:
        changes["MODELS_DIR"] = str(altered_model(tmp_path / "models"))
    with talking(environment_of(home, **changes)) as talk:
        assert [tool.name for tool in talk.tools()] == ["memory"]
        if breakage == "home is a file":
            assert talk.refused(action="recall", query="x").startswith(f"The data folder {home} cannot be written: ")
        else:
            talk.remember("words still answer")
            result = talk.call(action="recall", query="words still answer")
            assert result.structured_content["memories"][0]["content"] == "words still answer"
            assert "Vector search skipped: The model file " in result.structured_content["notes"][0]
