"""The request that a process of HTTP answers: its id, its address, and the verb that it came to.

Outside of a request there is none of that, and noting a verb does nothing.
"""

from __future__ import annotations

from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being answered."""
operation: ContextVar[str] = ContextVar("operation", default="background")
"""The operation that runs; work that no request asks for is the `background`."""
verbs: ContextVar[list[str] | None] = ContextVar("verbs", default=None)
"""The verbs that the request has run, in their order; threads that work on the request share the list."""


def note_verb(name: str) -> None:
    """Note that the request which is being answered runs a verb."""
    if (known := verbs.get()) is not None:
        known.append(name)
