"""A request to the daemon by a process that must not wait for imports, such as a hook."""

from __future__ import annotations

import json
import time

from recollect.client import runtime
from recollect.client.http import Response, send
from recollect.store_owner import LOCK, is_locked, owns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import Any

STARTING = "starting.lock"
"""The file that is locked by whoever starts the daemon."""
LARGEST_ANSWER = 2**22  # bytes
_TOO_OLD = (401, 404, 405)  # the token of another daemon, or one that does not know the address


class Absent(Exception):
    """No daemon that could take the request is running."""


class Outdated(Absent):
    """A daemon is running that does not know the request, or another than the runtime file tells of."""


class _Hurried:
    """A connection on which nothing is waited for beyond a deadline."""

    def __init__(self, link: socket, deadline: float) -> None:
        self._link = link
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        self._link.settimeout(_seconds_left(self._deadline))
        self._link.sendall(data)

    def recv(self, size: int) -> bytes:
        self._link.settimeout(_seconds_left(self._deadline))
        return self._link.recv(size)


def post(home: str, path: str, content: bytes, deadline: float) -> dict[str, Any]:
    """Send JSON to the daemon of a store and return the answer; raise `Absent` where nobody takes it.

    Raises `OSError` where no answer comes before the deadline, or the daemon ends before it.
    """
    found = _runtime_of_daemon(home)
    try:
        link = found.connect(_seconds_left(deadline))
    except OSError:
        raise Absent from None
    try:
        stream = _Hurried(link, deadline)
        send(stream, "POST", path, "localhost", found.headers | {"Content-Type": "application/json"}, content)
        response = Response(stream)
        if response.status in _TOO_OLD:
            raise Outdated
        answer = json.loads(response.read(LARGEST_ANSWER)) if response.status == 200 else None
        return answer if isinstance(answer, dict) else {}
    finally:
        link.close()


def _runtime_of_daemon(home: str) -> runtime.Runtime:
    """Return the daemon's runtime data; raise `Absent` without a file of them that can be trusted."""
    try:
        found = runtime.read(home)
    except OSError:
        found = None
    if found is None or not (found.socket or owns(home, found.pid)):
        raise Absent
    return found


def is_busy(home: str) -> bool:
    """Return whether some process owns the store or starts the daemon; a second start would only wait for it."""
    return is_locked(f"{home}/{LOCK}") or is_locked(f"{home}/{STARTING}")


def _seconds_left(deadline: float) -> float:
    """Return the seconds until the deadline; raise `TimeoutError` after it."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
