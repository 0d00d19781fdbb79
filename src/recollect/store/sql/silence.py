"""A connection to PostgreSQL that waits for no server that takes connections and answers none, as a frozen one does.

Its machine still confirms what we send, so that no limit of TCP ends such a wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any

_SILENCE = 30.0  # seconds until a server that does not answer is asked whether it is there

_Call = Generator[Any, Any, Any]


def watch(connection: Any, answers: Callable[[], bool], failure: type[Exception]) -> None:
    """Let calls of a connection (psycopg's) end with `failure` when the server is silent and no longer `answers`.

    `answers` is asked whenever nothing was heard for half a minute: a statement may take its time.
    """
    wait = connection.wait

    def watched(call: _Call, *given: Any, **named: Any) -> Any:
        return wait(_heard(call, lost), *given, **named)

    def lost() -> None:
        if not answers():
            connection.pgconn.finish()
            raise failure("the server is silent")

    connection.wait = watched


def _heard(call: _Call, lost: Callable[[], None]) -> _Call:
    """Go through a call, which gets what is ready of the connection, and call `lost` after each time of silence."""
    ready, until = None, time.monotonic() + _SILENCE
    while True:
        try:
            wanted = call.send(ready)
        except StopIteration as ended:
            return ended.value
        ready = yield wanted
        if not ready and time.monotonic() > until:
            lost()
        if ready or time.monotonic() > until:
            until = time.monotonic() + _SILENCE
