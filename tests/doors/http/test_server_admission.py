"""Rights that end while a request is on its way: it then reads and changes nothing, and weak tokens do no more."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from recollect.auth.authenticate import authenticate
from recollect.doors.http import entrance
from recollect.doors.http import team as team_access
from team_server import Talk, TeamServer

Meanwhile = Callable[[], object]
WRITES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/v1/remember", {"content": "The mast is pine."}),
    ("/v1/store_fact", {"subject": "mast", "predicate": "is", "object": "pine"}),
    ("/v1/memory", {"action": "remember", "content": "The mast is pine."}),
    ("/v1/import_batch", {"items": [{"kind": "memory", "where": "1", "fields": {"content": "x"}}], "last": True}),
    ("/v1/admin/add_token", {"days": 0}),
)


def slowly(talk: Talk, path: str, body: dict[str, Any], who: str, meanwhile: Meanwhile) -> tuple[int, str]:
    """Send a request whose body ends after something has happened; return its status and what it was answered."""
    raw, sent = json.dumps(body).encode(), list[dict[str, Any]]()
    query = b"" if "/admin/" in path or path == "/mcp" else b"project=engine"
    token = talk.headers(who)["Authorization"].encode()
    headers = [
        (b"authorization", token),
        (b"content-type", b"application/json"),
        (b"accept", b"application/json, text/event-stream"),
    ]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": query}
    scope |= {"headers": headers, "http_version": "1.1", "scheme": "http", "server": ("test", 80), "root_path": ""}
    parts = iter([(raw[:1], True), (raw[1:], False)])

    async def receive() -> dict[str, Any]:
        part, more = next(parts, (b"", False))
        if not more:
            await anyio.to_thread.run_sync(meanwhile)
        return {"type": "http.request", "body": part, "more_body": more}

    async def send(message: Any) -> None:
        sent.append(message)

    assert talk.client.portal is not None
    talk.client.portal.call(talk.client.app, scope, receive, send)
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:]).decode()


def prefix_of(token: str) -> str:
    """Return the characters by which people know a token."""
    return token.split("_")[1]


def endings(team: TeamServer) -> dict[str, Meanwhile]:
    """Return each way in which Ada's rights end."""
    return {
        "revoked": lambda: team.administer("revoke_token", prefix=prefix_of(team.tokens["ada"])),
        "invited anew": lambda: team.administer("invite_user", user="ada"),
        "disabled": lambda: team.administer("disable_user", user="ada"),
        "expelled": lambda: team.administer("revoke_team", team="crew", user="ada"),
    }


@pytest.mark.parametrize("end", ["revoked", "invited anew", "disabled", "expelled"])
def test_a_write_whose_right_ends_on_its_way_does_nothing(
    talk: Talk, team: TeamServer, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """However lately a token was looked up, the transaction looks again: nothing is stored, and no token is made."""
    monkeypatch.setattr(team_access, "FRESH", 1_000.0)
    before = len(team.administer("list_tokens", user="ada").tokens)
    meanwhile, statuses = endings(team)[end], []
    for path, body in WRITES:
        statuses.append(slowly(talk, path, body, "ada", meanwhile)[0])
        team.administer("enable_user", user="ada")
        team.administer("grant_team", team="crew", user="ada", role="writer")
        team.tokens["ada"] = team.token_of(team.administer("invite_user", user="ada").token)
        before += 2 + (end == "invited anew")
    assert set(statuses) <= {401, 403}
    assert len(team.administer("list_tokens", user="ada").tokens) == before
    assert talk.post("/v1/list_memories", {}).json()["total"] == 0
    assert talk.post("/v1/query_facts", {}).json()["total"] == 0


def test_a_question_whose_right_ends_on_its_way_is_not_answered(
    talk: Talk, team: TeamServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token is looked up again once the body has come, where that took its time."""
    monkeypatch.setattr(team_access, "FRESH", 0.0)
    talk.post("/v1/remember", {"content": "The mast is pine."})
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    call |= {"params": {"name": "memory", "arguments": {"action": "recall", "query": "mast"}}}
    asked: tuple[tuple[str, dict[str, Any]], ...] = (("/v1/recall", {"query": "mast"}), ("/mcp", call))
    for path, body in asked:
        status, told = slowly(talk, path, body, "ada", endings(team)["revoked"])
        assert "pine" not in told
        assert status == 401 or "Invalid token" in told
        team.tokens["ada"] = team.token_of(team.administer("invite_user", user="ada").token)


def test_a_body_that_does_not_come_is_not_waited_for(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sends the head alone is answered 408 in the end."""
    monkeypatch.setattr(entrance, "BODY", 0.05)
    held = anyio.Event()

    async def never() -> dict[str, Any]:
        await held.wait()
        return {}

    sent = list[dict[str, Any]]()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/recall", "query_string": b""}
    scope["headers"] = [(b"authorization", talk.headers("ada")["Authorization"].encode())]
    assert talk.client.portal is not None
    talk.client.portal.call(talk.client.app, scope, never, send)
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]


def test_an_invitation_opens_nothing_else(talk: Talk, team: TeamServer) -> None:
    """It lists no tokens, shows no document, speaks no MCP and revokes nothing, itself included."""
    invited = team.administer("invite_user", user="eve")
    paths = ("/v1/admin/list_tokens", "/v1/admin/revoke_token", "/v1/recall", "/mcp", "/v1/admin/list_teams")
    for path in paths:
        assert talk.post(path, {"prefix": invited.prefix}, invited.token, params={}).status_code == 403, path
    assert talk.ask("GET", "/openapi.json", invited.token).status_code == 403
    assert talk.post("/v1/admin/accept_invitation", {}, invited.token).status_code == 200


def test_a_weak_token_ends_itself_alone(talk: Talk, team: TeamServer) -> None:
    """A token that only reads revokes no other token of its user; a full one of theirs does."""
    ada = authenticate(team.app, team.tokens["ada"])
    weak = talk.post("/v1/admin/add_token", {"role": "reader"}).json()
    refused = talk.post("/v1/admin/revoke_token", {"prefix": ada.token}, weak["token"])
    assert (refused.status_code, talk.post("/v1/stats").status_code) == (404, 200)
    assert talk.post("/v1/admin/revoke_token", {"prefix": weak["prefix"]}, weak["token"]).status_code == 200
    other = talk.post("/v1/admin/add_token", {"role": "reader"}).json()
    assert talk.post("/v1/admin/revoke_token", {"prefix": other["prefix"]}).status_code == 200


def test_a_chain_of_labels_is_not_followed(talk: Talk, team: TeamServer) -> None:
    """A user chooses labels: as long a chain of tokens as they like keeps no admin from ending all of them."""
    first = prefix_of(team.tokens["ada"])
    browser = talk.post("/v1/admin/add_token", {"label": f"browser of {first}"}).json()
    last = talk.post("/v1/admin/add_token", {"label": f"browser of {browser['prefix']}"}).json()
    assert talk.post("/v1/admin/revoke_token", {"prefix": first}).status_code == 200
    statuses = [talk.post("/v1/recall", {"query": "mast"}, each["token"]).status_code for each in (browser, last)]
    assert statuses == [401, 200]
    team.administer("disable_user", user="ada")
    assert talk.post("/v1/recall", {"query": "mast"}, last["token"]).status_code == 401
