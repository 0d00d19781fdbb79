"""What the server tells of itself: readiness, numbers, its log; and what it takes of sessions, and how often."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from every_operation import REQUESTS
from recollect import App, Settings
from recollect.doors import handlers
from recollect.doors.http import logs
from recollect.doors.http.application import Application
from recollect.doors.http.metrics import timed
from recollect.doors.http.team import TeamAccess
from run_operations import add, do
from team_server import Talk, TeamServer

MARK = "quokka"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Return what the server writes to its log meanwhile."""
    stream, handler, root = io.StringIO(), logs.log_handler(), logging.getLogger()
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(stream)
    client, level = logging.getLogger("httpx2"), root.level
    client.setLevel(logging.WARNING)  # the client in this process writes whole addresses
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)
    client.setLevel(logging.NOTSET)


def test_the_log_holds_no_text_and_no_token(team: TeamServer, talk: Talk, written: io.StringIO) -> None:
    """Each request leaves a line with its id; none holds what a memory says, a token, or a query."""
    for name, fields in REQUESTS:
        answer = talk.post(f"/v1/{name}", fields, headers={"X-Request-ID": f"id-{name}"})
        assert answer.headers["x-request-id"] == f"id-{name}"
    talk.post("/v1/recall", {"query": f"the {MARK} of the harbour", "limit": f"{MARK}"})
    talk.post("/v1/remember", {"content": f"{MARK} ghp_" + "a1B2" * 9})
    talk.post("/v1/hooks/tool:post", {"fields": {"session_id": MARK, "tool": "Bash", "output": MARK}})
    assert team.access.events.finish(30)
    talk.ask("POST", f"/v1/{MARK}", headers={"Authorization": f"Bearer {MARK}"})
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    ours = [line for line in lines if line.get("message") == "answered"]
    assert [line["request_id"] for line in ours][: len(REQUESTS)] == [f"id-{name}" for name, _ in REQUESTS]
    assert {"operation", "status", "seconds", "time", "level"} <= ours[0].keys()
    assert ours[0]["token"] == team.tokens["ada"].split("_")[1]
    assert ours[0]["verb"] == "remember"
    text = written.getvalue()
    assert MARK not in text
    assert not [token for token in team.tokens.values() if token in text]


def test_an_error_names_the_request_that_the_log_tells_of(
    talk: Talk, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An id that is well-formed is taken, else one is made; a person reads in the error which id to look for."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError(MARK)

    monkeypatch.setitem(handlers.HANDLERS, "stats", broken)
    answer = talk.post("/v1/stats", {}, headers={"X-Request-ID": "r-1"})
    told = "Internal error in the server: ZeroDivisionError; see its log for the request r-1."
    assert answer.json() == {"error": "RecollectError", "message": told, "request_id": "r-1"}
    assert "r-1" in next(one for one in written.getvalue().splitlines() if "ZeroDivisionError" in one)
    refused = talk.post("/v1/recall", {"limit": "x"}, headers={"X-Request-ID": f"{MARK} is no id"})
    made = refused.headers["x-request-id"]
    assert (re.fullmatch("[0-9a-f]{32}", made) is not None, refused.json()["request_id"]) == (True, made)
    assert MARK not in written.getvalue()


def test_the_metrics_count_what_was_answered(talk: Talk, team: TeamServer) -> None:
    """Requests by operation and status, seconds by stage, refusals by kind, and what waits are all told."""
    talk.post("/v1/remember", {"content": "The pier is long."})
    talk.post("/v1/recall", {"query": "pier"})
    talk.post("/v1/remember", {"content": "x"}, "bob")
    talk.post("/v1/remember", {"content": "x"}, "nobody")
    talk.post("/v1/remember", {"content": "ghp_" + "a1B2" * 9})
    talk.post("/v1/" + "z" * 50)
    told = dict(line.rsplit(" ", 1) for line in talk.ask("GET", "/metrics", "root").text.splitlines())
    for name, status in (("remember", 200), ("recall", 200), ("remember", 403), ("remember", 401), ("other", 404)):
        assert told[f'recollect_requests_total{{operation="{name}",status="{status}"}}'] == "1.0"
    for kind in ("secret", "forbidden", "unauthorized"):
        assert told[f'recollect_refusals_total{{kind="{kind}"}}'] == "1.0"
    for stage in ("authenticate", "wait", "embed", "vectors", "text", "load"):
        assert float(told[f'recollect_stage_seconds_count{{operation="recall",stage="{stage}"}}']) >= 1
    assert float(told['recollect_stage_seconds_sum{operation="remember",stage="write"}']) > 0
    assert float(told["recollect_outbox_depth"]) >= 0
    for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"):
        assert float(told[name]) > 0
    assert told['python_gc_collections_total{generation="0"}']
    assert 0 <= float(told["recollect_connections_used"]) <= float(told["recollect_connections_most"])
    assert told["recollect_events_waiting"] == "0.0"
    assert told["recollect_model_ready"] == "1.0"


def test_the_search_for_words_is_timed(app: App) -> None:
    """The time of a recall by words is that of what is known of them, and of the search for what holds them."""
    spent: list[str] = []
    slow = timed(app, lambda _operation, stage, _seconds: spent.append(stage))
    add(slow, "The pier is long.")
    spent.clear()
    assert do(slow, "recall", query="pier").hits
    assert spent.count("text") == 2


def test_health_and_readiness_need_no_token(talk: Talk) -> None:
    """Whoever watches the server asks without a token, and learns nothing else."""
    assert talk.ask("GET", "/healthz", "").json() == {"ready": True}
    ready = talk.ask("GET", "/readyz", "")
    assert (ready.status_code, ready.json()["ready"], ready.json()["database"]) == (200, True, "ready")


def test_a_token_that_asks_too_often_waits(app: App, settings: Settings, team: TeamServer) -> None:
    """Beyond the limit the answer is 429 and says when to try again; the tokens of others are not held up."""
    team.application = Application(TeamAccess(app, settings.model_copy(update={"requests_per_minute": 3})))
    with team.talking() as talk:
        answers = [talk.post("/v1/stats") for _ in range(5)]
        assert [one.status_code for one in answers][:3] == [200] * 3
        assert (answers[4].status_code, answers[4].json()["error"]) == (429, "TooManyRequests")
        assert 1 <= int(answers[4].headers["retry-after"]) <= 60
        assert talk.post("/v1/stats", {}, "bob").status_code == 200


def test_metrics_open_to_their_own_token(app: App, settings: Settings, team: TeamServer) -> None:
    """A token that is set for the metrics opens them, and nothing else."""
    team.application = Application(TeamAccess(app, settings.model_copy(update={"metrics_token": "watcher"})))
    with team.talking() as talk:
        assert talk.ask("GET", "/metrics", "watcher").status_code == 200
        assert talk.post("/v1/stats", {}, "watcher").status_code == 401


def test_events_of_sessions_are_answered_and_worked_off(talk: Talk, team: TeamServer, tmp_path: Path) -> None:
    """A prompt gets its memories, what tools wrote is captured, and no file of the server's own disk counts."""
    talk.post("/v1/remember", {"content": "The harbour is deployed with src/ship.py on Fridays."})
    event = {"session_id": "s1", "agent": "claude-code", "folder": str(tmp_path)}
    (tmp_path / "recollect.toml").write_text("inject = false\n")
    asked = {"fields": event | {"prompt": "When is the harbour deployed with src/ship.py?"}}
    answer = talk.post("/v1/hooks/prompt:submit", asked).json()
    assert answer["taken"] is True
    assert "Fridays" in answer["text"]
    off = talk.post("/v1/hooks/prompt:submit", asked | {"settings": {"inject": False}}).json()
    assert off["text"] == ""
    assert team.access.events.finish(30)
    shown = talk.post("/v1/show_session", {"session_id": "s1"})
    assert shown.status_code == 200
    for wrong in ({"fields": {}}, {"fields": []}, {"user": "bob"}, {"fields": event | {"name": "x"}}):
        assert talk.post("/v1/hooks/session:end", wrong).status_code == 422
    assert talk.post("/v1/hooks/session:nap", asked).status_code == 404


def test_settings_of_a_client_turn_nothing_on(app: App, settings: Settings, team: TeamServer) -> None:
    """Where the server injects nothing, no client's settings make it."""
    silent = replace(app, lifecycle=app.lifecycle.model_copy(update={"inject": False}))
    team.application = Application(TeamAccess(silent, settings))
    with team.talking() as talk:
        talk.post("/v1/remember", {"content": "The harbour is deployed on Fridays."})
        asked = {"fields": {"session_id": "s", "prompt": "When is the harbour deployed?"}, "settings": {"inject": True}}
        assert talk.post("/v1/hooks/prompt:submit", asked).json()["text"] == ""
