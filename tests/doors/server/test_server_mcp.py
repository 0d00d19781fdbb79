"""MCP at the server: stateless, so that any replica answers any message, each for whose token it carries."""

from __future__ import annotations

import json
from copy import copy
from typing import Any

from recollect import App, Settings
from recollect.doors.server.application import Server
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
    other.application = Server(app, settings).application()
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


def test_single_messages_are_answered(talk: Talk) -> None:
    """`POST /mcp/message` answers one message in lines of JSON, and says of what is no message that it is none."""
    asked = message("tools/call", name="memory", arguments={"action": "remember", "content": "The mast is pine."})
    body = {"message": asked, "opening": OPENING, "toolsets": ["memory"], "request_id": "r1"}
    answer = talk.post("/mcp/message", body, params={"project": "engine"})
    lines = [json.loads(line) for line in answer.text.splitlines() if line]
    assert lines[-1]["result"]["structuredContent"]["id"] == "1"
    wrong = talk.post("/mcp/message", body | {"message": {"x": 1}}, params={})
    assert json.loads(wrong.text.splitlines()[-1])["error"]["code"] == -32600
    assert talk.post("/mcp/message", {"message": 1}, params={}).status_code == 422
