"""Traces and metrics by OpenTelemetry, sent to the receiver that its own standard variables name.

The SDK reads those variables itself. Spans are made here and not by the instrumentations for ASGI and SQLAlchemy, which
write addresses with what people search for, and messages of errors with values of rows; and the provider stays in this
module, so that no library adds spans of its own. What is written is `recollect.spans`' promise: words of this program,
numbers and types. Statements of SQL are written with placeholders, without their parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final, TypeVar

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Histogram, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import NonRecordingSpan, Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from sqlalchemy import Engine, event
from typing_extensions import override

from recollect import __version__, process
from recollect.doors.http.access import SECONDS, Measures, refusal_of
from recollect.doors.http.asker import Asker
from recollect.errors import InvalidInput, RecollectError
from recollect.spans import Attribute, Finish, Tracing, traced_by

T = TypeVar("T")

_NAME: Final = "recollect"
_EXPORTERS: Final = ("otlp", "none")
_PROTOCOL: Final = "http/protobuf"
_NONE: Final = "none"
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"))
_OTHER: Final = "_OTHER"  # of a method that HTTP does not know, as the conventions of OpenTelemetry say
_FAILURE: Final = 500  # the lowest status of a fault of ours
_LONGEST: Final = 2_000  # characters of a statement; what follows in a longer statement are placeholders
_STATEMENT: Final = re.compile(r"\s*([A-Za-z]+)")
_TABLE: Final = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+([a-z_][a-z0-9_]*)")
_PARENT: Final = TraceContextTextMapPropagator()


def exporting() -> AbstractContextManager[Measures]:
    """Return a block in which spans and metrics are sent, what is left at its end; it gives what hears of requests.

    Raises `InvalidInput` for a variable that asks for another exporter or protocol than OTLP over HTTP.
    """
    return _exporting({kind: _is_exported(kind) for kind in ("TRACES", "METRICS")})


@contextmanager
def _exporting(wanted: Mapping[str, bool]) -> Iterator[Measures]:
    resource = _resource()
    spans = TracerProvider(resource=resource, shutdown_on_exit=False)
    if wanted["TRACES"]:
        spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    readers = [PeriodicExportingMetricReader(OTLPMetricExporter())] if wanted["METRICS"] else []
    numbers = MeterProvider(readers, resource, shutdown_on_exit=False)
    try:
        with _traced(OtlpSpans(spans)) if wanted["TRACES"] else nullcontext():
            yield OtlpNumbers(numbers)
    finally:
        spans.shutdown()
        numbers.shutdown()


def _is_exported(kind: str) -> bool:
    """Return whether traces or metrics are sent; raise `InvalidInput` where they would go another way than ours."""
    name = f"OTEL_{kind}_EXPORTER"
    exporter = process.named(name) or _EXPORTERS[0]
    if exporter not in _EXPORTERS:
        raise InvalidInput(name, f"Invalid {name}: Must be `otlp` or `none`, not `{exporter}`")
    for name in (f"OTEL_EXPORTER_OTLP_{kind}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if (protocol := process.named(name) or _PROTOCOL) != _PROTOCOL:
            raise InvalidInput(name, f"Invalid {name}: Must be `{_PROTOCOL}`, not `{protocol}`")
    return exporter != _NONE


def _resource() -> Resource:
    """Describe this process: by the name that the variables give it, else `recollect`, and by its version."""
    known = Resource.create({SERVICE_VERSION: __version__})
    named = not str(known.attributes[SERVICE_NAME]).startswith("unknown_service")
    return known if named else known.merge(Resource({SERVICE_NAME: _NAME}))


class OtlpSpans(Tracing):
    """Makes the spans of requests and of their parts; while it is used, statements of SQL are spans too."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer(_NAME, __version__)

    @override
    @contextmanager
    def request(self, method: str, route: str, parent: str) -> Iterator[Finish]:
        known = method if method in _METHODS else _OTHER
        above = _PARENT.extract({"traceparent": parent}, context.Context())
        name = f"{known} {route}".rstrip()
        attributes = {"http.request.method": known} | ({"http.route": route} if route else {})
        with self._opened(name, attributes, SpanKind.SERVER, above) as opened:

            def finish(status: int) -> None:
                opened.set_attribute("http.response.status_code", status)
                if status >= _FAILURE:
                    opened.set_attribute("error.type", str(status))
                    opened.set_status(Status(StatusCode.ERROR))

            yield finish

    @override
    @contextmanager
    def span(self, name: str, attributes: dict[str, Attribute]) -> Iterator[object]:
        if not _is_traced():
            yield None
            return
        with self._opened(name, attributes) as opened:
            try:
                yield opened
            except Exception as error:  # whatever it is, its type is noted and it goes on
                _note_error(opened, error)
                raise

    def statement(self, sql: str, system: str, rows: int) -> Span | None:
        """Begin the span of an SQL statement that runs so many times at once; None outside of a request."""
        if not _is_traced():
            return None
        word = _STATEMENT.match(sql)
        operation = word[1].upper() if word else _OTHER
        attributes: dict[str, Attribute] = {"db.system.name": system, "db.operation.name": operation}
        attributes |= {"db.query.text": sql[:_LONGEST]} | ({"db.operation.batch.size": rows} if rows > 1 else {})
        name = " ".join((operation, *dict.fromkeys(_TABLE.findall(sql)))) or operation
        return self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)

    @override
    def carried(self, work: Callable[[], T]) -> Callable[[], T]:
        if not _is_traced():
            return work
        parent = trace.set_span_in_context(NonRecordingSpan(trace.get_current_span().get_span_context()))

        def run() -> T:
            token = context.attach(parent)
            try:
                return work()
            finally:
                context.detach(token)

        return run

    @override
    def trace_id(self) -> str:
        known = trace.get_current_span().get_span_context()
        return trace.format_trace_id(known.trace_id) if known.is_valid else ""

    def _opened(
        self,
        name: str,
        attributes: dict[str, Any],
        kind: SpanKind = SpanKind.INTERNAL,
        above: context.Context | None = None,
    ) -> AbstractContextManager[Span]:
        return self._tracer.start_as_current_span(
            name, above, kind, attributes, record_exception=False, set_status_on_exception=False
        )


@contextmanager
def _traced(tracing: OtlpSpans) -> Iterator[None]:
    """Let `tracing` make the spans of this process, those of SQL in every database too, until the block ends."""
    begun: dict[int, Span] = {}

    def begin(connection: Any, _cursor: Any, sql: str, values: Any, about: Any, many: bool) -> None:
        if (span := tracing.statement(sql, connection.dialect.name, len(values) if many else 1)) is not None:
            begun[id(about)] = span

    def end(_connection: Any, _cursor: Any, _sql: str, _values: Any, about: Any, _many: bool) -> None:
        if (span := begun.pop(id(about), None)) is not None:
            span.end()

    def fail(failure: Any) -> None:
        if (span := begun.pop(id(failure.execution_context), None)) is not None:
            _note_error(span, failure.original_exception)
            span.end()

    listeners: dict[str, Callable[..., None]] = {
        "before_cursor_execute": begin,
        "after_cursor_execute": end,
        "handle_error": fail,
    }
    with traced_by(tracing):
        for name, listener in listeners.items():
            event.listen(Engine, name, listener)
        try:
            yield
        finally:
            for name, listener in listeners.items():
                event.remove(Engine, name, listener)


def _is_traced() -> bool:
    """Return whether a request is under way here whose trace is kept."""
    known = trace.get_current_span().get_span_context()
    return known.is_valid and known.trace_flags.sampled


def _note_error(span: Span, error: BaseException) -> None:
    """Note the type of an error, and whether it is a failure; what it says may be a text of somebody's."""
    span.set_attribute("error.type", type(error).__name__)
    if not isinstance(error, RecollectError) or error.status >= _FAILURE:
        span.set_status(Status(StatusCode.ERROR))


class OtlpNumbers(Measures):
    """Counts and times what a replica answers, under names that Prometheus has for its own of these numbers."""

    def __init__(self, provider: MeterProvider) -> None:
        self._meter = provider.get_meter(_NAME, __version__)
        self._requests = self._meter.create_counter("recollect.requests", "1", "Answered requests")
        self._seconds = self._histogram("recollect.request", "From a request's head to the end of its answer")
        self._stages = self._histogram("recollect.stage", "Part of an operation")
        self._calls = self._meter.create_counter("recollect.tool_calls", "1", "Calls of MCP tools")
        self._refusals = self._meter.create_counter("recollect.refusals", "1", "Refused requests")
        self._running = self._meter.create_up_down_counter("recollect.requests_running", "", "Requests under way")

    def _histogram(self, name: str, about: str) -> Histogram:
        return self._meter.create_histogram(name, "s", about, explicit_bucket_boundaries_advisory=SECONDS)

    @override
    def watch(self, name: str, about: str, value: Callable[[], float]) -> None:
        def observe(_: CallbackOptions) -> list[Observation]:
            return [Observation(value())]

        self._meter.create_observable_gauge(f"recollect.{name}", [observe], "", about)

    @override
    def began(self) -> None:
        self._running.add(1)

    @override
    def ended(self, label: str, status: int, seconds: float, asker: Asker | None) -> None:
        self._running.add(-1)
        self._requests.add(1, {"operation": label, "status": str(status)})
        self._seconds.record(seconds, {"operation": label})

    @override
    def spent(self, operation: str, stage: str, seconds: float) -> None:
        self._stages.record(seconds, {"operation": operation, "stage": stage})

    @override
    def called(self, tool: str, status: int) -> None:
        self._calls.add(1, {"tool": tool, "status": str(status)})

    @override
    def refused(self, error: RecollectError) -> None:
        if kind := refusal_of(error):
            self._refusals.add(1, {"kind": kind})
