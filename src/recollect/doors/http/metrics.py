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
from recollect.doors.current_request import operation, verbs
from recollect.doors.http.access import REFUSALS, SECONDS, Measures, refusal_of
from recollect.doors.http.asker import Asker
from recollect.doors.http.entrance import PROBES
from recollect.doors.http.events import Events
from recollect.errors import RecollectError
from recollect.spans import span

log = logging.getLogger(__name__)

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

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
_BLOCKS: Final = frozenset({"writing"})
"""Methods that return a block, which is timed to its end."""


class Metrics(Measures):
    """Counts and times what a replica answers, and writes a line of each request into the log.

    Where the numbers go elsewhere too, `exported` hears the same.
    """

    def __init__(self, exported: Measures | None = None) -> None:
        self._exported = exported or Measures()
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
            buckets=SECONDS,
            registry=self._registry,
        )
        self._stages = Histogram(
            "recollect_stage_seconds",
            "Part of an operation",
            ["operation", "stage"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._calls = Counter("recollect_tool_calls", "Calls of MCP tools", ["tool", "status"], registry=self._registry)
        self._refusals = Counter("recollect_refusals", "Refused requests", ["kind"], registry=self._registry)
        self._running = Gauge("recollect_requests_running", "Requests under way", registry=self._registry)
        self._answered = cache(lambda label, status: self._requests.labels(label, str(status)))
        self._time, self._part = cache(self._seconds.labels), cache(self._stages.labels)
        for kind in REFUSALS.values():
            self._refusals.labels(kind)

    def measure(self, app: App, events: Events, began: float) -> None:
        """Add the gauges: work that waits, looked up at each scrape, and the seconds until the model was loaded."""
        self.watch("events_waiting", "Events of sessions that wait", lambda: events.waiting)
        self.watch("events_lost", "Events of sessions that did not fit or failed", lambda: events.lost)
        self.watch(
            "connections_used", "Connections to the database in use", lambda: app.records.overview.connections()[0]
        )
        self.watch("connections_most", "Connections that may be in use", lambda: app.records.overview.connections()[1])
        self.watch(
            "outbox_depth", "Memories that the vector index does not have as they are", lambda: _queue_depth(app)
        )
        self.watch("model_ready", "1 when the embedding model is loaded", lambda: float(app.embedder.ready))
        loaded = [0.0]

        def wait() -> None:
            if app.embedder.wait(threading.TIMEOUT_MAX) and app.embedder.ready:
                loaded[0] = time.monotonic() - began

        self.watch("model_load_seconds", "From the start to the loaded model; 0 before", lambda: loaded[0])
        threading.Thread(target=wait, name="recollect-model-watch", daemon=True).start()

    def watch(self, name: str, about: str, value: Callable[[], float]) -> None:
        """Add a gauge."""
        Gauge(f"recollect_{name}", about, registry=self._registry).set_function(value)
        self._exported.watch(name, about, value)

    def began(self) -> None:
        """Count a request that runs."""
        self._running.inc()
        self._exported.began()

    def ended(self, label: str, status: int, seconds: float, asker: Asker | None) -> None:
        """Count a request that was answered."""
        self._running.dec()
        self._answered(label, status).inc()
        self._time(label).observe(seconds)
        self._exported.ended(label, status, seconds, asker)
        level = logging.DEBUG if label in PROBES else logging.INFO
        if log.isEnabledFor(level):
            ran = verbs.get()
            about: dict[str, object] = {"operation": label, "status": status, "seconds": round(seconds, 4)}
            about |= ({"verb": ran[0]} if ran else {}) | dict(asker.names if asker else {})
            log.log(level, "answered", extra=about)

    def called(self, tool: str, status: int) -> None:
        """Count a call of a tool by MCP."""
        self._calls.labels(tool, str(status)).inc()
        self._exported.called(tool, status)

    def spent(self, operation: str, stage: str, seconds: float) -> None:
        """Note how long a stage of an operation took."""
        self._part(operation, stage).observe(seconds)
        self._exported.spent(operation, stage, seconds)

    def refused(self, error: RecollectError) -> None:
        """Count an error where it is a refusal."""
        if kind := refusal_of(error):
            self._refusals.labels(kind).inc()
        self._exported.refused(error)

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
        with span(stage):
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
