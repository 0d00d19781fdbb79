"""A request to the daemon by a process that must not wait for imports, such as a hook; and the files it is found by."""

from __future__ import annotations

import _socket  # `socket` takes longer to import than all that follows
import json
import os
import time

from recollect import process
from recollect.private_files import read_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RUNTIME = "daemon.json"
"""The file with the address of a store's daemon and its token."""
STARTING = "starting.lock"
"""The file that is locked by whoever starts the daemon."""
LARGEST_ANSWER = 2**22  # bytes
_LOCK, _OWNER = "owner.lock", "owner.json"
_TOO_OLD = (401, 404, 405)  # the token of another daemon, or one that does not know the address


class Absent(Exception):
    """No daemon that could take the request is running."""


class Outdated(Absent):
    """A daemon is running that does not know the request, or another than the runtime file tells of."""


def address(home: str) -> dict[str, Any]:
    """Return what the runtime file says; raise `Absent` where none is that may be trusted."""
    try:
        content = read_private(f"{home}/{RUNTIME}")
        found = json.loads(content) if content else None
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("token"), str):
        raise Absent
    if not (isinstance(found.get("socket"), str) and found["socket"]) and not owns(home, found.get("pid")):
        raise Absent
    return found


def owns(home: str, pid: object) -> bool:
    """Say whether a process owns the store; without, another program may have its port by now."""
    try:
        with open(f"{home}/{_OWNER}", "rb") as file:  # noqa: PTH123 - pathlib takes long to import
            return _held(f"{home}/{_LOCK}") and bool(json.load(file)["pid"] == pid)
    except (OSError, ValueError, TypeError, KeyError):
        return False


def is_busy(home: str) -> bool:
    """Say whether some process owns the store, or is starting the daemon: another start would only wait for it."""
    return _held(f"{home}/{_LOCK}") or _held(f"{home}/{STARTING}")


def _held(lock: str) -> bool:
    """Say whether some process holds a lock file at this moment."""
    try:
        handle = os.open(lock, os.O_RDWR)
    except OSError:
        return False
    try:
        return not process.take_lock(handle, shared=True)
    except OSError:
        return False
    finally:
        os.close(handle)


def post(found: dict[str, Any], path: str, content: bytes, deadline: float) -> dict[str, Any]:
    """Send JSON and return the answer; raise `Absent` where nobody takes it, else whatever goes wrong."""
    unix = bool(found["socket"])
    link = _socket.socket(_socket.AF_UNIX if unix else _socket.AF_INET, _socket.SOCK_STREAM)
    try:
        try:
            link.settimeout(_left(deadline))
            link.connect(found["socket"] if unix else ("127.0.0.1", found["port"]))
        except OSError:
            raise Absent from None
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {found['token']}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
        )
        link.sendall(head.encode("latin-1") + content)
        return _parsed(_received(link, deadline))
    finally:
        link.close()


def _received(link: _socket.socket, deadline: float) -> bytes:
    """Return all that comes until the connection ends."""
    parts, size = [], 0
    while size < LARGEST_ANSWER:
        link.settimeout(_left(deadline))
        part = link.recv(65_536)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _parsed(response: bytes) -> dict[str, Any]:
    """Return the object in a response; raise `Outdated` for one of a daemon that cannot take the request.

    Raises `ConnectionError` where the daemon ended before it answered.
    """
    head, found, content = response.partition(b"\r\n\r\n")
    if not found:
        raise ConnectionError
    status = int(head.split(b" ", 2)[1])
    if status in _TOO_OLD:
        raise Outdated
    answer = json.loads(content) if status == 200 else None
    return answer if isinstance(answer, dict) else {}


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
