"""MCP at the server: stateless, so that any replica answers any message, each for whose token it carries."""

from __future__ import annotations

import json
from copy import copy
from typing import Any

from recollect import App, Settings
from recollect.doors.http.application import Application
from recollect.doors.http.team import TeamAccess
from team_server import Talk, TeamServer

OPENING = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
BOTH = {"Accept": "application/json, text/event-stream"}


def message(method: str, **params: Any) -> dict[str, Any]:
    """Return a request of MCP."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def call(talk: Talk, arguments: dict[str, Any], who: str = "ada") -> Any:
    """Call the tool `memory` over streamable HTTP and return its result."""
    asked = message("tools/call", name="memory", arguments=arguments)
    answer = talk.ask("POST", "/mcp", who, json=asked, params={"project": "engine"}, headers=BOTH)
    assert answer.status_code == 200, answer.text
    data = [line for line in answer.text.splitlines() if line.startswith("data: {")]
    return json.loads(data[0].removeprefix("data: "))["result"]


def test_two_replicas_answer_one_client(app: App, settings: Settings, team: TeamServer) -> None:
    """What one replica was told another answers, with no session between them; a reader is told that they may not."""
    other = copy(team)
    other.application = Application(TeamAccess(app, settings))
    with team.talking() as one, other.talking() as two:
        assert one.post("/mcp", OPENING, headers=BOTH, params={"project": "engine"}).status_code == 200
        stored = call(two, {"action": "remember", "content": "The quokka deploys on Fridays."})
        assert stored["structuredContent"]["id"]
        found = call(one, {"action": "recall", "query": "quokka"}, "bob")
        assert "Fridays" in found["content"][0]["text"]
        refused = call(two, {"action": "remember", "content": "No."}, "bob")
        assert refused["isError"]
        assert "no right to write" in refused["content"][0]["text"]


def test_the_address_offers_toolsets(talk: Talk) -> None:
    """`?toolset=` offers other tools; a user in the address is refused."""
    asked = message("tools/list")
    answer = talk.ask("POST", "/mcp", json=asked, params={"toolset": "store"}, headers=BOTH)
    assert "store_memory" in answer.text
    assert talk.ask("POST", "/mcp", json=asked, params={"user": "bob"}, headers=BOTH).status_code == 422


def test_a_key_lets_a_call_take_effect_once(talk: Talk) -> None:
    """A call that is sent again under its key, as after a lost connection, gets the first answer."""
    asked = message("tools/call", name="memory", arguments={"action": "remember", "content": "The mast is pine."})
    headers = BOTH | {"Idempotency-Key": "r1"}
    answers = [talk.ask("POST", "/mcp", json=asked, params={"project": "engine"}, headers=headers) for _ in range(2)]
    assert [json.loads(one.text.partition("data: ")[2])["result"]["content"][0]["text"] for one in answers] == [
        "Memory stored successfully with ID: 1"
    ] * 2
