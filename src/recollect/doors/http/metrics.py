"""The numbers of one replica for Prometheus, in a registry of its own: what it answers, and how long each part takes.

What embeds, searches, loads and writes is timed in passing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from recollect.app import App
from recollect.doors.http.access import Measures
from recollect.doors.http.asker import Asker
from recollect.doors.http.entrance import operation
from recollect.doors.http.events import Events
from recollect.errors import Forbidden, QuotaFull, RecollectError, SecretFound, TooLarge, TooManyRequests, Unauthorized

log = logging.getLogger(__name__)

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_REFUSALS: Final[dict[type[RecollectError], str]] = {
    SecretFound: "secret",
    Forbidden: "forbidden",
    Unauthorized: "unauthorized",
    TooManyRequests: "rate",
    QuotaFull: "limit",
    TooLarge: "size",
}

Spent = Callable[[str, str, float], None]
"""Takes the operation, the stage, and its seconds."""

_STAGES: Final[dict[str, dict[str, str]]] = {
    "embedder": {"read": "embed"},
    "vectors": {
        "nearest": "vectors",
        "cosines": "vectors",
        "late_interaction": "late_interaction",
        "similarities": "vectors",
        "sync_memory": "index",
    },
    "text": {"search": "text", "ranked": "text", "substring": "text", "similar": "fuzzy"},
    "records": {"load": "load", "read_candidates": "load", "query_facts": "text", "writing": "write"},
    "fusion": {"matches": "fusion"},
}
_OF_MACHINES: Final = ("healthz", "readyz", "metrics")
"""Operations that a machine asks all the time, so that the log holds none of them."""
_BLOCKS: Final = frozenset({"writing"})
"""Methods that return a block, which is timed to its end."""


class Metrics(Measures):
    """Counts and times what a replica answers, and writes a line of each request into the log."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)  # CPU, memory, open files and the start of the process
        GCCollector(registry=self._registry)
        self._requests = Counter(
            "recollect_requests", "Answered requests", ["operation", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "recollect_request_seconds",
            "From a request's head to the end of its answer",
            ["operation"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._stages = Histogram(
            "recollect_stage_seconds",
            "Part of an operation",
            ["operation", "stage"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._calls = Counter("recollect_tool_calls", "Calls of MCP tools", ["tool", "status"], registry=self._registry)
        self._refusals = Counter("recollect_refusals", "Refused requests", ["kind"], registry=self._registry)
        self._running = Gauge("recollect_requests_running", "Requests under way", registry=self._registry)
        self._answered = cache(lambda label, status: self._requests.labels(label, str(status)))
        self._time, self._part = cache(self._seconds.labels), cache(self._stages.labels)
        for kind in _REFUSALS.values():
            self._refusals.labels(kind)

    def measure(self, app: App, events: Events, began: float) -> None:
        """Add the gauges: work that waits, looked up at each scrape, and the seconds until the model was loaded."""
        self._add_gauge("events_waiting", "Events of sessions that wait", lambda: events.waiting)
        self._add_gauge("events_lost", "Events of sessions that did not fit or failed", lambda: events.lost)
        self._add_gauge(
            "connections_used", "Connections to the database in use", lambda: app.records.overview.connections()[0]
        )
        self._add_gauge(
            "connections_most", "Connections that may be in use", lambda: app.records.overview.connections()[1]
        )
        self._add_gauge(
            "outbox_depth", "Memories that the vector index does not have as they are", lambda: _queue_depth(app)
        )
        self._add_gauge("model_ready", "1 when the embedding model is loaded", lambda: float(app.embedder.ready))
        loaded = [0.0]

        def wait() -> None:
            if app.embedder.wait(threading.TIMEOUT_MAX) and app.embedder.ready:
                loaded[0] = time.monotonic() - began

        self._add_gauge("model_load_seconds", "From the start to the loaded model; 0 before", lambda: loaded[0])
        threading.Thread(target=wait, name="recollect-model-watch", daemon=True).start()

    def _add_gauge(self, name: str, about: str, value: Callable[[], float]) -> None:
        Gauge(f"recollect_{name}", about, registry=self._registry).set_function(value)

    def began(self) -> None:
        """Count a request that runs."""
        self._running.inc()

    def ended(self, label: str, status: int, seconds: float, asker: Asker | None) -> None:
        """Count a request that was answered."""
        self._running.dec()
        self._answered(label, status).inc()
        self._time(label).observe(seconds)
        level = logging.DEBUG if label in _OF_MACHINES else logging.INFO
        if log.isEnabledFor(level):
            names = asker.names if asker else {}
            about = {"operation": label, "status": status, "seconds": round(seconds, 4), **names}
            log.log(level, "answered", extra=about)

    def called(self, tool: str, status: int) -> None:
        """Count a call of a tool by MCP."""
        self._calls.labels(tool, str(status)).inc()

    def spent(self, operation: str, stage: str, seconds: float) -> None:
        """Note how long a stage of an operation took."""
        self._part(operation, stage).observe(seconds)

    def refused(self, error: RecollectError) -> None:
        """Count an error where it is a refusal."""
        if (kind := _REFUSALS.get(type(error))) is not None:
            self._refusals.labels(kind).inc()

    def text(self) -> bytes:
        """Return all numbers in the format of Prometheus."""
        return generate_latest(self._registry)


class _Timed:
    """A part of an app whose methods are timed."""

    def __init__(self, part: Any, stages: dict[str, str], spent: Spent) -> None:
        for name, stage in stages.items():
            method = getattr(part, name)
            timed = _timed_block(method, stage, spent) if name in _BLOCKS else _timed_method(method, stage, spent)
            setattr(self, name, timed)
        self._part = part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)


def timed(app: App, spent: Spent) -> App:
    """Return the app with its parts timed."""
    parts: dict[str, Any] = {name: _Timed(getattr(app, name), stages, spent) for name, stages in _STAGES.items()}
    return replace(app, **parts)


@contextmanager
def _measuring_time(stage: str, spent: Spent) -> Iterator[None]:
    began = time.perf_counter()
    try:
        yield
    finally:
        spent(operation.get(), stage, time.perf_counter() - began)


def _timed_method(method: Callable[..., Any], stage: str, spent: Spent) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        with _measuring_time(stage, spent):
            return method(*arguments, **named)

    return call


def _timed_block(method: Callable[..., Any], stage: str, spent: Spent) -> Callable[..., Any]:
    """Return a context manager's method with the time inside its block measured."""

    @contextmanager
    def block(*arguments: Any, **named: Any) -> Iterator[Any]:
        with _measuring_time(stage, spent), method(*arguments, **named) as inside:
            yield inside

    return block


def _queue_depth(app: App) -> float:
    """Return how many memories wait for their vectors, NaN while the database is away."""
    try:
        return float(app.vectors.waiting())
    except RecollectError:
        return float("nan")
