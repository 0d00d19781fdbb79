"""The daemon's application: its address says who asks, and it answers as the server of a team does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import QueryParams
from starlette.testclient import TestClient

from local_access import TOKEN, local_access
from recollect import App, Caller, Settings
from recollect.doors.http.application import Application
from recollect.errors import InvalidInput


def test_an_address_names_its_caller(settings: Settings) -> None:
    """User, project and team come from the address, beside what else it may say."""
    asked = QueryParams("user=ada&project=engine&team=crew&toolset=store")
    with local_access(None, settings).asking(asked, ("toolset",))("memory") as (_, caller):
        assert caller == Caller(user="ada", project="engine", team="crew")


@pytest.mark.parametrize(("address", "field"), [("project=engine", "user"), ("user=ada&project=+", "project")])
def test_an_address_without_a_name_is_refused(settings: Settings, address: str, field: str) -> None:
    """The error is of the missing field, and says how an address is written."""
    with pytest.raises(InvalidInput, match=rf"^Missing {field}: The address says who asks: `/mcp\?user=NAME") as raised:
        local_access(None, settings).asking(QueryParams(address))
    assert raised.value.field == field


@pytest.mark.parametrize(
    "address",
    [
        "user=ada&project=engine&projct=x",
        "user=ada&user=bob&project=engine",
        "user=ada&project=engine&zone=Mars/Olympus",
        "user=ada&project=engine&zone=UTC&zone=Asia/Tokyo",
    ],
)
def test_an_address_says_nothing_else(settings: Settings, address: str) -> None:
    """A misspelt name is refused, and so is one that is given twice, or a time zone that there is not."""
    with pytest.raises(InvalidInput):
        local_access(None, settings).asking(QueryParams(address))


@pytest.fixture
def asking(app: App, settings: Settings) -> Iterator[Callable[..., Any]]:
    """Return what asks the daemon's application as Ada, with the token."""
    who = {"user": "ada", "project": "engine"}
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    application = Application(local_access(app, settings))
    with TestClient(application, base_url="http://localhost", raise_server_exceptions=False) as client:

        def ask(method: str, path: str, body: Any = None, **options: Any) -> Any:
            return client.request(method, path, json=body, **({"params": who, "headers": bearer} | options))

        yield ask


def test_the_daemon_answers_what_the_server_of_a_team_does(asking: Callable[..., Any], tmp_path: Path) -> None:
    """Operations, the one tool, events and errors have the same addresses and the same form."""
    stored = asking("POST", "/v1/remember", {"content": "The quokka of the harbour deploys on Fridays."}).json()
    found = asking("POST", "/v1/memory", {"action": "recall", "query": "quokka"}).json()
    assert [one["id"] for one in found["memories"]] == [stored["id"]]
    client = {"given": {"user": "ada", "project": "engine"}, "variables": {}, "folder": str(tmp_path), "user": "ada"}
    event = {"id": "1", "fields": {"session_id": "s", "prompt": "Who deploys the harbour?"}, "client": client}
    answer = asking("POST", "/v1/hooks/prompt:submit", event, params={}).json()
    assert answer["taken"]
    assert "Fridays" in answer["text"]
    wrong = asking("POST", "/v1/recall", {"query": "q", "limit": "x"})
    assert (wrong.status_code, wrong.json()["error"], wrong.json()["field"]) == (422, "InvalidInput", "limit")
    assert asking("POST", "/v1/nothing", {}).status_code == 404
    assert asking("GET", "/v1/recall").status_code == 405


def test_an_address_says_in_which_zone_days_begin(asking: Callable[..., Any]) -> None:
    """A day is that of the zone which the address names; the MCP tool and operations read it alike."""
    who = {"user": "ada", "project": "engine"}
    in_tokyo = who | {"zone": "Asia/Tokyo"}
    fields = {"content": "The quokka left the harbour.", "observed_at": "2026-11-29T01:30"}
    assert asking("POST", "/v1/remember", fields, params=in_tokyo).status_code == 200
    day = {"since": "2026-11-29", "until": "2026-11-29"}
    for params, total in ((in_tokyo, 1), (who | {"zone": "UTC"}, 0)):
        assert asking("POST", "/v1/list_memories", day, params=params).json()["total"] == total
    refused = asking("POST", "/v1/list_memories", {}, params=who | {"zone": "Mars/Olympus"})
    assert (refused.status_code, refused.json()["field"]) == (422, "zone")


def test_a_lost_answer_is_had_again_under_its_key(asking: Callable[..., Any]) -> None:
    """The same key gets the first answer; one that is no plain text is refused."""
    for key, status in (("once", 200), ("once", 200), ("k" * 201, 422)):
        headers = {"Authorization": f"Bearer {TOKEN}", "Idempotency-Key": key}
        assert asking("POST", "/v1/remember", {"content": "The mast is oak."}, headers=headers).status_code == status
    assert asking("POST", "/v1/list_memories", {}).json()["total"] == 1


def test_its_document_says_how_it_is_asked(asking: Callable[..., Any]) -> None:
    """The address says who asks, an event carries what makes its client's settings, and nobody administers."""
    document = asking("GET", "/openapi.json", params={}).json()
    told = document["paths"]["/v1/recall"]["post"]["parameters"]
    assert {one["name"] for one in told if one["required"]} == {"user", "project"}
    event = document["paths"]["/v1/hooks/session:end"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(event["properties"]) == {"fields", "client", "id", "late"}
    assert not [path for path in document["paths"] if "/admin/" in path]
    bare = {"fields": {"session_id": "s"}}
    assert asking("POST", "/v1/hooks/session:end", bare, params={}).json()["field"] == "folder"
    assert asking("POST", "/v1/hooks/session:end", bare | {"client": {"folder": "/"}}, params={}).json()["taken"]


def test_whoever_watches_needs_no_token(asking: Callable[..., Any]) -> None:
    """Health and readiness are open to this machine, and to no page of another origin."""
    assert asking("GET", "/healthz", headers={}, params={}).json() == {"ready": True}
    assert asking("GET", "/readyz", headers={}, params={}).json()["database"] == "ready"
    assert asking("GET", "/healthz", headers={"Origin": "https://evil.example"}, params={}).status_code == 403
    assert asking("GET", "/openapi.json", headers={}, params={}).status_code == 401
