"""Limits of a team's server as its users meet them: over HTTP, MCP and the command line, on two replicas."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event

from clock import Clock
from command_line import Ended, call
from recollect import App, Settings
from stores import open_app
from team_server import TeamServer, listening

pytestmark = pytest.mark.slow

OWN = {"scope": "personal"}
DEFAULTS = {"user": {"memories": 2}, "team": {"memories": 3, "projects": 2}}


@pytest.fixture
def limited(settings: Settings, clock: Clock) -> Iterator[Callable[..., TeamServer]]:
    """Return what opens a server with limits in its settings."""
    opened: list[App] = []

    def opening(limits: dict[str, Any] | None = None, **changes: Any) -> TeamServer:
        changes |= {"limits": json.dumps(DEFAULTS if limits is None else limits)}
        chosen = Settings(**(settings.model_dump(exclude_unset=True) | changes))
        opened.append(open_app(chosen, clock=clock))
        return TeamServer(opened[-1], chosen)

    yield opening
    for app in opened:
        app.close()


def text(number: int) -> dict[str, str]:
    """Return a memory that resembles no other."""
    return {"content": ("Quays", "Keels", "Gulls", "Masts", "Winds", "Tides")[number] + f" of the year {number}"}


def test_a_full_person_is_refused(limited: Callable[..., TeamServer]) -> None:
    """What is beyond the limit is not stored, and the answer says what is used and allowed; forgetting makes room."""
    with limited().talking() as talk:
        ids = [talk.post("/v1/remember", text(number) | OWN).json()["id"] for number in range(2)]
        refused = talk.post("/v1/remember", text(2) | OWN)
        assert (refused.status_code, refused.json()["error"]) == (403, "QuotaFull")
        assert refused.json() | {"message": "", "request_id": ""} == {
            "error": "QuotaFull",
            "message": "",
            "request_id": "",
            "limit": "memories",
            "used": 2,
            "most": 2,
        }
        assert not talk.post("/v1/recall", {"query": "Gulls"} | OWN).json()["hits"]
        assert talk.post("/v1/remember", text(1) | OWN).json()["status"] == "updated", "the same adds nothing"
        assert talk.post("/v1/remember", text(3) | {"supersedes": ids[0]}).status_code == 200
        assert talk.post("/v1/forget", {"id": ids[1]}).status_code == 200
        assert talk.post("/v1/remember", text(2) | OWN).status_code == 200
        assert talk.post("/v1/remember", text(4) | OWN, "bob").status_code == 200, "each has their own limit"


def test_an_import_is_refused_by_the_batch(limited: Callable[..., TeamServer]) -> None:
    """A batch that does not fit leaves nothing; the same without what is too much is taken."""
    with limited().talking() as talk:
        items = [{"kind": "memory", "where": str(number), "fields": text(number) | OWN} for number in range(3)]
        whole = talk.post("/v1/import_batch", {"items": items, "last": True})
        assert whole.status_code == 403, whole.text
        assert "has 0 of 2 memories, and this adds 3" in whole.json()["message"]
        assert talk.post("/v1/stats").json()["memories"] == 0
        assert talk.post("/v1/import_batch", {"items": items[:2], "last": True}).status_code == 200


def test_mcp_says_which_limit(limited: Callable[..., TeamServer]) -> None:
    """The tool's answer is the same sentence, as an error."""
    with limited({"user": {"memories": 0}, "team": {"bytes": 10}}).talking() as talk:
        arguments = {"action": "remember", "content": "More than ten bytes"}
        asked = {"method": "tools/call", "params": {"name": "memory", "arguments": arguments}}
        headers = {"Accept": "application/json, text/event-stream"}
        message = {"jsonrpc": "2.0", "id": 1} | asked
        answer = talk.post("/mcp", message, headers=headers, params={"project": "engine"})
        told = answer.text
        assert "the team crew has 0 of 10 bytes of content, and this adds 19" in told
        assert '"isError":true' in told


def test_everybody_sees_their_own(limited: Callable[..., TeamServer]) -> None:
    """A member sees what they and their teams use; nobody sees what another person uses, nor a team of others."""
    server = limited()
    with server.talking() as talk:
        talk.post("/v1/remember", text(0) | OWN)
        talk.post("/v1/remember", text(1))
        seen = talk.ask("GET", "/v1/limits", params={}).json()
        assert [(each["kind"], each["name"]) for each in seen["holders"]] == [("user", "ada"), ("team", "crew")]
        uses = {
            each["name"]: {use["resource"]: (use["used"], use["most"]) for use in each["uses"]}
            for each in seen["holders"]
        }
        assert (uses["ada"]["memories"], uses["ada"]["bytes"]) == ((1, 2), (len(text(0)["content"]), None))
        assert (uses["crew"]["memories"], uses["crew"]["projects"]) == ((1, 3), (1, 2))
        assert talk.post("/v1/admin/show_limits", {}, "ada").json() == seen
        others = talk.ask("GET", "/v1/limits", "eve", params={}).json()["holders"]
        assert [each["name"] for each in others] == ["eve"]
        root = talk.ask("GET", "/v1/limits", "root", params={}).json()["holders"]
        assert [each["name"] for each in root] == ["root"], "who administers is no member"


def test_a_guest_learns_no_numbers_of_the_team(limited: Callable[..., TeamServer]) -> None:
    """Who has a role in a project alone is refused by the team's limit, and not told how much the team holds."""
    server = limited({"team": {"memories": 1}})
    server.administer("add_project", team="crew", project="engine")
    server.administer("grant_project", team="crew", project="engine", user="eve", role="writer")
    with server.talking() as talk:
        assert talk.post("/v1/remember", text(0) | {"scope": "team"}).status_code == 200
        refused = talk.post("/v1/remember", text(1), "eve", params={"team": "crew", "project": "engine"})
        assert refused.status_code == 403
        assert set(refused.json()) == {"error", "message", "limit", "request_id"}
        assert "the team crew has no room for more memories" in refused.json()["message"]
        assert not any(letter.isdigit() for letter in refused.json()["message"])


def test_a_person_who_asks_too_often_waits(limited: Callable[..., TeamServer], clock: Clock) -> None:
    """All tokens of a user share the limit; each answer says what is left, a refusal when to come again."""
    server = limited({"user": {"requests_minute": 4, "requests_day": 100}})
    with server.talking() as talk:
        first = talk.post("/v1/stats")
        assert first.headers["ratelimit-policy"] == '"user-minute";q=4;w=60, "user-day";q=100;w=86400'
        assert first.headers["ratelimit"] == '"user-minute";r=3;t=15, "user-day";r=99;t=864'
        second = server.token_of(server.administer("invite_user", user="bob").token)
        assert [talk.post("/v1/stats", {}, "ada").status_code for _ in range(3)] == [200] * 3
        refused = talk.post("/v1/stats")
        assert (refused.status_code, refused.headers["retry-after"], refused.json()["retry_after"]) == (429, "15", 15)
        assert "your limit, 4 requests a minute, is used up. Try again in 15 s." in refused.json()["message"]
        assert refused.headers["ratelimit"].startswith('"user-minute";r=0;t=60')
        assert talk.ask("GET", "/page/", "ada").status_code == 429, "whatever is asked"
        assert talk.post("/v1/stats", {}, second).status_code == 200
        clock.now += timedelta(seconds=15)
        assert [talk.post("/v1/stats").status_code for _ in range(2)] == [200, 429]


def test_a_team_shares_its_requests(limited: Callable[..., TeamServer]) -> None:
    """A request counts towards the team that it names, or the only team of its user."""
    server = limited({"team": {"requests_minute": 3}})
    with server.talking() as talk:
        answers = [talk.post("/v1/stats", {}, who).status_code for who in ("ada", "bob", "ada", "bob")]
        assert answers == [200, 200, 200, 429]
        assert "the limit of the team crew, 3 requests a minute" in talk.post("/v1/stats").json()["message"]
        assert talk.post("/v1/stats", {}, "eve", params={}).status_code == 200
        assert "ratelimit" not in talk.post("/v1/stats", {}, "eve", params={}).headers


def test_two_replicas_count_as_one(deployed: Settings, clock: Clock) -> None:
    """What is taken at one replica is gone at the other, of requests as of room; a change counts at both at once."""
    chosen = deployed.model_copy(update={"limits": '{"user": {"requests_minute": 30, "memories": 5}}'})
    with open_app(chosen, clock=clock) as app, open_app(chosen, clock=clock) as other_app:
        one = TeamServer(app, chosen)
        other = TeamServer.__new__(TeamServer)
        other.__dict__.update(one.__dict__)
        other.app, other.access = other_app, type(one.access)(other_app, chosen)
        other.application = type(one.application)(other.access)
        with one.talking() as here, other.talking() as there:
            both = (here, there)
            with ThreadPoolExecutor(6) as pool:
                asking = lambda number: both[number % 2].post("/v1/remember", text(number % 6) | OWN)  # noqa: E731
                asked = pool.map(asking, range(12))
                found = [(answer.status_code, answer.json().get("status")) for answer in asked]
            assert found.count((200, "stored")) == 5
            assert found.count((403, None)) >= 1
            rest = [both[number % 2].post("/v1/stats").status_code for number in range(24)]
            assert rest == [200] * 18 + [429] * 6
            one.administer("set_limits", kind="user", whose="ada", requests_minute=0)
            assert [each.post("/v1/stats").status_code for each in both] == [200, 200]


def test_without_limits_a_request_costs_what_it_did(team: TeamServer) -> None:
    """Where nobody has a limit no statement asks for any, and no field of the answer names any."""
    with team.talking() as talk:
        talk.post("/v1/stats")
        sent: list[str] = []

        def note(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
            sent.append(statement)

        engine = team.app.accounts._database.engine
        event.listen(engine, "before_cursor_execute", note)
        answer = talk.post("/v1/admin/list_teams")
        event.remove(engine, "before_cursor_execute", note)
    assert not any("usage_limit" in each or "request_rate" in each for each in sent)
    assert not [name for name in answer.headers if name.startswith("ratelimit")]


def test_the_command_line(limited: Callable[..., TeamServer], tmp_path: Path) -> None:
    """An admin sets, lists and clears limits; a member sees what is used; a refusal has exit code 16."""
    server = limited()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    with listening(server) as at:

        def run(who: str, *words: str) -> Ended:
            ours = {"RECOLLECT_URL": at.url, "RECOLLECT_TOKEN": server.tokens[who], "RECOLLECT_HOME": str(tmp_path)}
            return call(words, environment | ours, tmp_path)

        done = run("root", "limit", "set", "user", "ada", "--memories", "1", "--requests-day", "500")
        assert "Limits of the user ada: 1 memories, 500 requests a day." in done.out
        assert "every team" in run("root", "limit", "list").out
        assert run("ada", "remember", "--scope", "personal", "Gulls").code == 0
        full = run("ada", "remember", "--scope", "personal", "Keels")
        assert (full.code, "the user ada has 1 of 1 memories" in full.err) == (16, True)
        seen = json.loads(run("ada", "limits", "--json").out)
        assert seen["holders"][0]["uses"][0] == {"resource": "memories", "used": 1, "most": 1}
        assert "memories" in run("ada", "limits").out
        assert "1 of 1 memories" in run("ada", "status").out
        assert run("ada", "limit", "set", "user", "ada", "--memories", "9").code == 11
        run("root", "limit", "set", "user", "eve", "--requests-minute", "2")
        ends = [run("eve", "token", "list") for _ in range(3)]
        assert [end.code for end in ends] == [0, 0, 13], ends
        assert "your limit, 2 requests a minute, is used up. Try again in 30 s." in ends[2].err
        assert "memories" in run("root", "limit", "clear", "user", "ada", "--resource", "memories").out
