"""What stands before the daemon's routes: who may come in, that somebody came, and sentences for whatever breaks."""

from __future__ import annotations

import hmac
import logging
import time
import traceback
from urllib.parse import urlsplit

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.errors import RecollectError, StoreUnusable

log = logging.getLogger(__name__)

_HERE = frozenset({"127.0.0.1", "localhost", "::1"})


class Activity:
    """When the daemon was last asked for something, and what is under way; immune to changes of the clock."""

    def __init__(self) -> None:
        self.requests = 0
        self.idle_before = 0.0
        self._under_way = 0
        self._last = time.monotonic()

    def begin(self) -> None:
        """Count idleness from now on: nobody could come before."""
        self._last = time.monotonic()

    def __enter__(self) -> None:
        self.idle_before = self.idle_seconds
        self.requests += 1
        self._under_way += 1

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1
        self._last = time.monotonic()

    @property
    def idle_seconds(self) -> float:
        """Return for how long nobody has wanted anything."""
        return 0.0 if self._under_way else time.monotonic() - self._last


class Guard:
    """Let in only whoever knows the token and calls this machine by its own name, and note that somebody came."""

    def __init__(self, inner: ASGIApp, token: str, activity: Activity) -> None:
        self._inner = inner
        self._expected = f"Bearer {token}".encode()
        self._activity = activity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 421, 403 or 401 without looking further at a request that must not come in."""
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if _by_port(scope) and _named(b"//" + headers.get(b"host", b"")) not in _HERE:
            await _refuse(421, "The memory daemon answers only under this machine's own name.")(scope, receive, send)
        elif b"origin" in headers and _named(headers[b"origin"]) not in _HERE:
            await _refuse(403, "The memory daemon answers no web page of elsewhere.")(scope, receive, send)
        elif not hmac.compare_digest(headers.get(b"authorization", b""), self._expected):
            await _refuse(401, "The memory daemon does not know this token.")(scope, receive, send)
        else:
            with self._activity:
                await self._inner(scope, receive, send)


def plain(error: Exception) -> RecollectError:
    """Return what broke as an error of ours; the log gets the place, never values, which may be memory text."""
    if isinstance(error, RecollectError):
        return error
    place = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s at\n%s", type(error).__name__, place)
    if isinstance(error, DBAPIError):
        why = str(error.orig).partition("\n")[0]  # behind it PostgreSQL tells the values
        return StoreUnusable(f"The store cannot be used: {why}.")
    if isinstance(error, OSError):
        return StoreUnusable(f"The store cannot be used: {error.strerror or error}.")
    if isinstance(error, SQLAlchemyError):
        return StoreUnusable(f"The store cannot be used: {type(error).__name__}.")
    return RecollectError(f"Something in the memory daemon broke: {type(error).__name__}; its log says where.")


def _by_port(scope: Scope) -> bool:
    """Say whether the request came over TCP, where a web page may have sent it, and not over the Unix socket."""
    server = scope.get("server")
    return server is not None and server[1] is not None


def _named(address: bytes) -> str:
    try:
        return urlsplit(address.decode("latin-1")).hostname or ""
    except ValueError:
        return ""


def _refuse(status: int, message: str) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"error": "DaemonUnreachable", "message": message}, status, headers)
