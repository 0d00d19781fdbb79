"""The server as a process that is watched: its telemetry reaches a receiver, and its log is JSON to the last line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from otlp_receiver import attributes, receiving
from team_process import Asking, free_port, serving_team


def log_lines(text: str) -> list[dict[str, Any]]:
    """Return what a server has logged since it said where it serves; a line that is no JSON fails the test."""
    return [json.loads(line) for line in text.splitlines() if not line.startswith(("Serving ", "This is the token"))]


def test_a_process_sends_what_it_has_before_it_ends(tmp_path: Path) -> None:
    """What was measured last is sent when the server ends in order, and the log has the trace of each request."""
    with receiving() as received, serving_team(tmp_path / "home", tmp_path / "log") as process:
        process.set(OTEL_EXPORTER_OTLP_ENDPOINT=received.url, OTEL_SERVICE_NAME="memory")
        token = process.init()
        process.start()
        ask = Asking(process.url, token)
        ask("remember", content="The quokka sleeps.", scope="personal")
        assert ask("recall", query="quokka")["hits"]
        assert process.stop() == 0
        names = {span.name for span in received.spans}
        answered = [line for line in log_lines(process.log()) if line["message"] == "answered"]
    assert {"POST /v1/remember", "verb recall", "search.match"} <= names
    points = received.metrics["recollect.request"].histogram.data_points
    counts = {attributes(point)["operation"]: point.count for point in points}
    assert (counts["remember"], counts["recall"]) == (1, 1)
    assert received.resource("/v1/metrics")["service.name"] == "memory"
    traces = {span.trace_id.hex() for span in received.spans}
    assert {line["trace_id"] for line in answered} == traces
    assert b"quokka" not in b"".join(received.bodies)


def test_a_receiver_that_is_away_costs_nothing_but_its_spans(tmp_path: Path) -> None:
    """Where nobody takes the telemetry the server answers, logs JSON alone, names no text, and ends with 0."""
    with serving_team(tmp_path / "home", tmp_path / "log") as process:
        process.set(
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{free_port()}",
            OTEL_EXPORTER_OTLP_TIMEOUT="1",
            OTEL_BSP_SCHEDULE_DELAY="100",
        )
        ask = Asking(process.url, process.init())
        process.start()
        ask("remember", content="The quokka sleeps.", scope="personal")
        assert ask("recall", query="quokka")["hits"]
        assert process.stop() == 0
        lines = log_lines(process.log())
    assert any(line["logger"].startswith("opentelemetry") for line in lines)
    assert "quokka" not in str(lines)
