"""A receiver of OpenTelemetry in this process: takes OTLP over HTTP, and keeps it decoded and as it came."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

_KINDS: dict[str, tuple[Any, Any]] = {
    "/v1/traces": (ExportTraceServiceRequest, ExportTraceServiceResponse),
    "/v1/metrics": (ExportMetricsServiceRequest, ExportMetricsServiceResponse),
}


class Received:
    """What a receiver has got: whole `bodies` as bytes, and `requests` as they were decoded, by their path."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[bytes] = []
        self.requests: dict[str, list[Any]] = {path: [] for path in _KINDS}

    @property
    def spans(self) -> list[Any]:
        """Return every span, in the order in which they ended."""
        groups = (group for sent in self.requests["/v1/traces"] for group in sent.resource_spans)
        return [span for group in groups for scope in group.scope_spans for span in scope.spans]

    @property
    def metrics(self) -> dict[str, Any]:
        """Return the metrics by their names, each as it was sent last."""
        groups = (group for sent in self.requests["/v1/metrics"] for group in sent.resource_metrics)
        return {one.name: one for group in groups for scope in group.scope_metrics for one in scope.metrics}

    def resource(self, path: str = "/v1/traces") -> dict[str, str]:
        """Return the attributes of the process that sent."""
        first = self.requests[path][0]
        [group] = first.resource_spans if path == "/v1/traces" else first.resource_metrics
        return attributes(group.resource)


def attributes(holder: Any) -> dict[str, Any]:
    """Return the attributes of a span, a point or a resource by their names."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in holder.attributes}


@contextmanager
def receiving() -> Iterator[Received]:
    """Give a receiver that listens on this machine until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            plain = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            sent, answer = _KINDS[self.path]
            received.bodies.append(plain)
            received.requests[self.path].append(sent.FromString(plain))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            text = answer().SerializeToString()
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received = Received(f"http://127.0.0.1:{server.server_port}")
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield received
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
