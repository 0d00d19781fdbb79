"""Traces and metrics by OpenTelemetry, as a real receiver of OTLP gets them: what is in them, and what never is."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import text

import recollect.doors.http
from every_operation import REQUESTS
from otlp_receiver import Received, attributes, receiving
from page_visitor import Visitor
from recollect import App, Settings, spans
from recollect.doors import handlers
from recollect.doors.http import server
from recollect.doors.http.application import Application
from recollect.doors.http.listening import Listening
from recollect.doors.http.logs import log_handler
from recollect.doors.http.team import TeamAccess
from recollect.errors import InvalidInput
from recollect.store.vectors import vector_search
from team_server import Talk, TeamServer

pytestmark = pytest.mark.slow

MARK = "quokka"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
ABOVE = "00f067aa0ba902b7"
PARENT = {"traceparent": f"00-{TRACE}-{ABOVE}-01", "tracestate": f"vendor={MARK}"}
BOTH = {"Accept": "application/json, text/event-stream"}


@contextmanager
def observed(
    team: TeamServer, settings: Settings, monkeypatch: pytest.MonkeyPatch, **variables: str
) -> Iterator[tuple[Talk, Received]]:
    """Give what asks a server that sends its telemetry, and the receiver; all has come when the block has ended."""
    with receiving() as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.url)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with server._telemetry() as exported:
            team.access = TeamAccess(team.app, settings.model_copy(update={"requests_per_minute": 0}), None, exported)
            team.application = Application(team.access)
            with team.talking() as talk:
                yield talk, received
                assert team.access.events.finish(30)


def tree(received: Received, trace: str = TRACE) -> dict[str, list[str]]:
    """Return the names of the spans of a trace, each with those of the spans above it, the nearest first."""
    found = {one.span_id: one for one in received.spans if one.trace_id.hex() == trace}
    above = {}
    for one in found.values():
        chain, at = [], one
        while (at := found.get(at.parent_span_id)) is not None:
            chain.append(at.name)
        above[one.name] = chain
    return above


def call_tool(talk: Talk, name: str, **arguments: Any) -> Any:
    """Call a tool over MCP, as a part of the trace of the tests."""
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    return talk.ask("POST", "/mcp", json=asked, params={"project": "engine"}, headers=BOTH | PARENT)


def test_a_recall_is_a_trace_down_to_its_statements(
    team: TeamServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trace of the client goes on through route, verb, steps of search and embedding to SQL and Chroma."""
    monkeypatch.setattr(vector_search, "_SCANNED", -1)  # else the vectors of so few are compared without Chroma
    with observed(team, settings, monkeypatch, OTEL_SERVICE_NAME="memory") as (talk, received):
        assert talk.post("/v1/remember", {"content": "The pier is long."}).status_code == 200
        team.app.vectors.sync()
        asked = {"query": "pier", "max_tokens": 500}
        assert talk.post("/v1/recall", asked, headers=PARENT).json()["hits"]
    above, route = tree(received), "POST /v1/recall"
    steps = {f"search.{step}" for step in ("parse", "candidates", "signals", "match", "order", "hits", "budget")}
    assert steps | {"embed", "text", "vectors", "load", "fusion", "chroma query", route} <= above.keys()
    assert above["verb recall"] == [route]
    assert all(chain[-2:] == ["verb recall", route] for name, chain in above.items() if name in steps)
    assert above["search.parse"] == ["search.signals", "verb recall", route]
    assert above["chroma query"][:2] == ["vectors", "search.candidates"]
    assert any(name.startswith("SELECT memory") and chain[0] == "load" for name, chain in above.items())
    [top] = [one for one in received.spans if one.name == route]
    assert (top.parent_span_id.hex(), top.trace_state) == (ABOVE, "")
    told = {"http.request.method": "POST", "http.route": "/v1/recall", "http.response.status_code": 200}
    assert attributes(top) == told
    statements = [one for one in received.spans if one.name.startswith("SELECT memory")]
    named = next(one for one in statements if one.trace_id == top.trace_id)
    assert attributes(named)["db.system.name"] == "sqlite"
    assert attributes(named)["db.query.text"].startswith("SELECT memory.")
    about = received.resource()
    assert (about["service.name"], bool(about["service.instance.id"])) == ("memory", True)


def test_a_call_of_a_tool_and_an_event_are_traces_too(
    team: TeamServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool of MCP stands between route and verb; what is worked off after an event belongs to the event's trace."""
    event = {"fields": {"session_id": "s1", "tool": "Bash", "input": {"command": "ls"}, "output": "src"}}
    with observed(team, settings, monkeypatch) as (talk, received):
        assert call_tool(talk, "memory", action="recall", query="pier").status_code == 200
        other = PARENT | {"traceparent": PARENT["traceparent"].replace("4bf9", "4bfa")}
        assert talk.post("/v1/hooks/tool:post", event, headers=other).json()["taken"]
    assert tree(received)["verb recall_compact"] == ["tool memory", "POST /mcp"]
    above = tree(received, TRACE.replace("4bf9", "4bfa"))
    assert above["verb tool_post"] == ["POST /v1/hooks/tool:post"]
    assert received.resource()["service.name"] == "recollect"


def test_a_failure_is_told_by_its_type(team: TeamServer, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal has a type and no status of failure; what breaks is a failure down to its statement."""
    with observed(team, settings, monkeypatch) as (talk, received):
        talk.post("/v1/get_memory", {"id": "404"})
        with team.app.records.writing("project:crew/engine", "ada") as writing:
            writing.transaction.execute(text("ALTER TABLE label RENAME TO label_away"))
        assert talk.post("/v1/remember", {"content": "The mast is pine.", "tags": ["ship"]}).status_code >= 500
        with team.app.records.writing("project:crew/engine", "ada") as writing:
            writing.transaction.execute(text("ALTER TABLE label_away RENAME TO label"))
    told = {one.name: (attributes(one).get("error.type"), one.status.code) for one in received.spans}
    assert told["verb get_memory"] == ("NotFound", 0)
    assert told["POST /v1/get_memory"] == (None, 0)
    assert told["POST /v1/remember"][1] == 2
    assert any(name.endswith("label") and kind == "OperationalError" for name, (kind, _) in told.items())
    assert not any(one.status.message or one.events for one in received.spans)


def _hostile_requests(talk: Talk) -> None:
    """Send the marked text wherever a request has room for any."""
    for name, fields in REQUESTS:
        talk.post(f"/v1/{name}", fields, headers=PARENT)
    talk.post("/v1/remember", {"content": f"{MARK} ghp_" + "a1B2" * 9}, headers=PARENT)
    talk.post("/v1/recall", {"query": MARK, "limit": MARK}, headers=PARENT)
    talk.post("/v1/list_memories", {MARK: MARK}, headers=PARENT)
    talk.post(f"/v1/{MARK}", {}, headers=PARENT)
    talk.ask(MARK.upper(), "/v1/recall", headers=PARENT, params={})
    talk.post("/v1/stats", {}, headers={"traceparent": MARK, "X-Request-ID": MARK, "User-Agent": MARK})
    talk.post("/v1/stats", {}, MARK, headers=PARENT)
    talk.post("/v1/stats", {}, params={"project": MARK}, headers=PARENT)
    for tool in ("memory", MARK):
        call_tool(talk, tool, action="recall", query=MARK, fact_type=MARK)
        call_tool(talk, tool, action=MARK, content=MARK)
    call_tool(talk, "memory", action="remember", content=f"The {MARK} sleeps.")
    talk.post("/v1/hooks/tool:post", {"fields": {"session_id": MARK, "tool": MARK, "output": MARK}}, headers=PARENT)
    talk.post("/v1/admin/add_team", {"team": MARK}, "root", headers=PARENT, params={})
    talk.post("/v1/admin/revoke_token", {"prefix": MARK}, "root", headers=PARENT, params={})


@pytest.mark.parametrize("where", ["sqlite", "postgresql"])
def test_no_exported_byte_holds_a_text(
    where: str,
    settings: Settings,
    open_store: Callable[..., App],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is asked and however it fails, no text, query, name or token is in what the receiver gets."""
    url = {} if where == "sqlite" else {"database_url": request.getfixturevalue("migrated_postgres_url")}
    app = open_store(**url)
    team = TeamServer(app, settings)

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError(f"the {MARK} of the harbour")

    with observed(team, settings, monkeypatch) as (talk, received):
        _hostile_requests(talk)
        page = Visitor(talk.client, team="crew", project="engine")
        page.sign_in(team.tokens["ada"])
        assert MARK in page.get("browse", q=MARK).text
        monkeypatch.setitem(handlers.HANDLERS, "stats", broken)
        assert talk.post("/v1/stats", {}, headers=PARENT).status_code == 500
        with app.records.writing("project:crew/engine", "ada") as writing:
            connection = writing.transaction
            connection.execute(text("ALTER TABLE label RENAME TO label_away"))
        failed = talk.post("/v1/remember", {"content": f"{MARK} at sea", "tags": [MARK]}, headers=PARENT)
        assert failed.status_code >= 500
        with app.records.writing("project:crew/engine", "ada") as writing:
            connection = writing.transaction
            connection.execute(text("ALTER TABLE label_away RENAME TO label"))
    sent = b"\n".join(received.bodies).lower()
    assert len(received.spans) > 1_000
    assert "verb forget" in {one.name for one in received.spans}
    assert MARK.encode() not in sent
    assert not [name for name, token in team.tokens.items() if token.split("_", 2)[2].lower().encode() in sent]
    assert not [word for word in ("ada", "a1b2a1b2", "src/ship.py", "pier", "mast") if _word(word, sent)]


def _word(word: str, sent: bytes) -> bool:
    """Say whether a word stands in bytes by itself."""
    return re.search(rb"(?<![a-z])" + re.escape(word.encode()) + rb"(?![a-z])", sent) is not None


def test_the_numbers_are_those_of_prometheus(
    team: TeamServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each number of our own that `/metrics` has is sent too, under the name that Prometheus makes of it."""
    with observed(team, settings, monkeypatch, OTEL_TRACES_EXPORTER="none") as (talk, received):
        talk.post("/v1/remember", {"content": "The pier is long."})
        talk.post("/v1/recall", {"query": "pier"})
        talk.post("/v1/stats", {}, "nobody")
        call_tool(talk, "memory", action="recall", query="pier")
        page = talk.ask("GET", "/metrics", "root").text
    assert received.spans == []
    kinds = dict(re.findall(r"^# TYPE (recollect_\w+) (counter|gauge|histogram)$", page, re.MULTILINE))
    sent = {}
    for name, metric in received.metrics.items():
        unit = "_seconds" if metric.unit == "s" else ""
        sums = metric.HasField("sum") and metric.sum.is_monotonic
        sent[f"{name.replace('.', '_')}{unit}{'_total' * sums}"] = metric
    assert {name for name in kinds if not name.endswith("_created")} == sent.keys()
    [asked] = [
        one for one in sent["recollect_requests_total"].sum.data_points if attributes(one)["operation"] == "recall"
    ]
    assert (attributes(asked)["status"], asked.as_int) == ("200", 1)
    [refused] = sent["recollect_refusals_total"].sum.data_points
    assert (attributes(refused), refused.as_int) == ({"kind": "unauthorized"}, 1)
    [called] = sent["recollect_tool_calls_total"].sum.data_points
    assert attributes(called) == {"tool": "memory", "status": "200"}
    seconds = next(
        one for one in sent["recollect_stage_seconds"].histogram.data_points if attributes(one)["stage"] == "embed"
    )
    assert seconds.count >= 1
    assert seconds.explicit_bounds[0] == 0.001


@pytest.mark.parametrize("variables", [{"OTEL_TRACES_SAMPLER": "always_off"}, {"OTEL_METRICS_EXPORTER": "none"}])
def test_the_standard_variables_decide(
    variables: dict[str, str], team: TeamServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sampler that keeps nothing leaves no span, and an exporter that is `none` nothing of its kind."""
    with observed(team, settings, monkeypatch, **variables) as (talk, received):
        assert talk.post("/v1/stats", {}).status_code == 200
        assert talk.ask("GET", "/healthz", "").status_code == 200
    sampled = "OTEL_TRACES_SAMPLER" not in variables
    assert bool(received.spans) == sampled
    assert bool(received.metrics) != sampled
    assert not [one for one in received.spans if "healthz" in one.name]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
    ],
)
def test_another_exporter_is_refused(
    name: str, value: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable that asks for what is not offered is named with what is allowed, before a store is opened."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput, match=rf"Invalid {name}: Must be `.*, not `{value}`"):
        server.serve(settings, Listening(host="127.0.0.1", port=0))


def test_the_extra_is_asked_for(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a receiver is named and the packages are absent, the server does not start and names the extra."""
    monkeypatch.delitem(sys.modules, "recollect.doors.http.telemetry", raising=False)
    monkeypatch.delattr(recollect.doors.http, "telemetry", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:9")
    wanted = 'ENDPOINT is set, which needs some packages more: `pip install "recollect[telemetry]"`.'
    with pytest.raises(InvalidInput, match=re.escape(f"OTEL_EXPORTER_OTLP_TRACES_{wanted}")):
        server.serve(settings, Listening(host="127.0.0.1", port=0))


def test_nothing_is_made_unless_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a receiver, with an empty one, or with the SDK disabled, nothing is opened for telemetry."""
    for variables in (
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_SERVICE_NAME": "memory"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
    ):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with server._telemetry() as exported:
            assert exported is None
            assert spans.span("a") is spans.span("b")
            work = object
            assert spans.carried(work) is work


def test_each_line_of_the_log_names_its_trace_and_its_verb(
    team: TeamServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line of a request has the id of its trace; that of a tool also says which verb the tool has run."""
    form = log_handler().formatter
    assert form is not None
    lines: list[dict[str, Any]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(form.format(record)))

    log, handler = logging.getLogger("recollect.doors.http.metrics"), Kept()
    monkeypatch.setattr(log, "handlers", [handler])
    log.setLevel(logging.INFO)
    try:
        with observed(team, settings, monkeypatch) as (talk, _):
            call_tool(talk, "memory", action="recall", query="pier")
    finally:
        log.setLevel(logging.NOTSET)
    [line] = [one for one in lines if one["operation"] == "mcp"]
    assert (line["trace_id"], line["verb"], line["user"]) == (TRACE, "recall_compact", "ada")
