"""Spans: the parts of a request and how long each takes, for whoever has turned telemetry on; without that, nothing.

The name of a span and its attributes are words of this program, numbers and types. Never a text, a query, a name that
somebody chose, or the message of an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import ParamSpec, TypeAlias, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

Attribute: TypeAlias = str | int | float
Finish: TypeAlias = Callable[[int], object]
"""Takes the HTTP status with which a request ended."""

_NOTHING = nullcontext()
_UNHEARD: AbstractContextManager[Finish] = nullcontext(lambda _status: None)


class Tracing:
    """What makes spans. This class makes none: it stands there until telemetry is turned on."""

    def request(self, method: str, route: str, parent: str) -> AbstractContextManager[Finish]:
        """Open the span of an HTTP request below its `parent`, the text of its header `traceparent`, or empty."""
        del method, route, parent
        return _UNHEARD

    def span(self, name: str, attributes: dict[str, Attribute]) -> AbstractContextManager[object]:
        """Open a span inside the span that is open here; where none is, there is nothing to measure."""
        del name, attributes
        return _NOTHING

    def carried(self, work: Callable[[], T]) -> Callable[[], T]:
        """Return the work as a part of the request that is under way here, whichever thread runs it later."""
        return work

    def trace_id(self) -> str:
        """Return the id of the trace that is open here, 32 hexadecimal digits; an empty text without a trace."""
        return ""


_tracing = Tracing()


def request(method: str, route: str, parent: str) -> AbstractContextManager[Finish]:
    """Open the span of an HTTP request; see `Tracing.request`."""
    return _tracing.request(method, route, parent)


def span(name: str, **attributes: Attribute) -> AbstractContextManager[object]:
    """Open a span inside the span of the request that is under way here."""
    return _tracing.span(name, attributes)


def spanned(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let every call of the decorated function be a span."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def run(*arguments: P.args, **named: P.kwargs) -> T:
            with _tracing.span(name, {}):
                return function(*arguments, **named)

        return run

    return decorate


def carried(work: Callable[[], T]) -> Callable[[], T]:
    """Return the work as a part of the request that is under way here, whichever thread runs it later."""
    return _tracing.carried(work)


def trace_id() -> str:
    """Return the id of the trace that is open here; an empty text without a trace."""
    return _tracing.trace_id()


@contextmanager
def traced_by(tracing: Tracing) -> Iterator[None]:
    """Let `tracing` make the spans of this process until the block ends."""
    global _tracing
    before, _tracing = _tracing, tracing
    try:
        yield
    finally:
        _tracing = before
