"""The numbers of one replica for Prometheus, in a registry of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from recollect.errors import Forbidden, RecollectError, SecretFound, TooLarge, TooManyRequests, Unauthorized

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_REFUSALS: Final[dict[type[RecollectError], str]] = {
    SecretFound: "secret",
    Forbidden: "forbidden",
    Unauthorized: "unauthorized",
    TooManyRequests: "rate",
    TooLarge: "size",
}


class Metrics:
    """Counts and times what a replica answers."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
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
        for kind in _REFUSALS.values():
            self._refusals.labels(kind)

    def gauge(self, name: str, about: str, value: Callable[[], float]) -> None:
        """Add a number that is asked for at each scrape."""
        Gauge(f"recollect_{name}", about, registry=self._registry).set_function(value)

    def began(self) -> None:
        """Count a request that runs."""
        self._running.inc()

    def ended(self, operation: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._running.dec()
        self._requests.labels(operation, str(status)).inc()
        self._seconds.labels(operation).observe(seconds)

    def called(self, tool: str, status: int) -> None:
        """Count a call of a tool by MCP."""
        self._calls.labels(tool, str(status)).inc()

    def spent(self, operation: str, stage: str, seconds: float) -> None:
        """Note how long a stage of an operation took."""
        self._stages.labels(operation, stage).observe(seconds)

    def refused(self, error: RecollectError) -> None:
        """Count an error where it is a refusal."""
        if (kind := _REFUSALS.get(type(error))) is not None:
            self._refusals.labels(kind).inc()

    def text(self) -> bytes:
        """Return all numbers in the format of Prometheus."""
        return generate_latest(self._registry)
