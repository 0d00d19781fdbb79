"""What runs before the daemon's routes: authentication, and the count of requests."""

from __future__ import annotations

import hmac
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.errors import Forbidden, InvalidInput, TooLarge, Unauthorized

MOST = 2**26  # bytes of one request
_LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


class Activity:
    """When the daemon got its last request and how many are running, by the monotonic clock."""

    def __init__(self) -> None:
        self.requests = 0
        self.idle_before = 0.0
        self._running = 0
        self._last_request = time.monotonic()

    def reset(self) -> None:
        """Count idle time from now on."""
        self._last_request = time.monotonic()

    def __enter__(self) -> None:
        self.idle_before = self.idle_seconds
        self.requests += 1
        self._running += 1

    def __exit__(self, *_: object) -> None:
        self._running -= 1
        self._last_request = time.monotonic()

    @property
    def idle_seconds(self) -> float:
        """Return the seconds since the last request ended; 0 while one runs."""
        return 0.0 if self._running else time.monotonic() - self._last_request


class TokenAuth:
    """Pass on only requests that carry the token, for a host and from an origin of this machine, and count them."""

    def __init__(self, app: ASGIApp, token: str, activity: Activity) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()
        self._activity = activity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 421 for another host, 403 for another origin, 401 for a wrong token, 413 for too much."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if _is_tcp(scope) and _hostname(b"//" + headers.get(b"host", b"")) not in _LOCAL_HOSTS:
            await _reject(421, "Host not allowed: use 127.0.0.1 or localhost.")(scope, receive, send)
        elif b"origin" in headers and _hostname(headers[b"origin"]) not in _LOCAL_HOSTS:
            await _reject(403, "Cross-origin request rejected.")(scope, receive, send)
        elif not hmac.compare_digest(headers.get(b"authorization", b""), self._expected):
            await _reject(401, "Invalid token: `recollect status --token` prints that of this store.")(
                scope, receive, send
            )
        elif _length(headers) > MOST:
            await _reject(413, f"Request too large: at most {MOST} bytes.")(scope, receive, send)
        else:
            with self._activity:
                await self._app(scope, _bounded(receive), send)


def _is_tcp(scope: Scope) -> bool:
    """Return whether the request came over TCP, where a web page may have sent it, and not over the Unix socket."""
    server = scope.get("server")
    return server is not None and server[1] is not None


def _hostname(address: bytes) -> str:
    try:
        return urlsplit(address.decode("latin-1")).hostname or ""
    except ValueError:
        return ""


def _length(headers: Mapping[bytes, bytes]) -> int:
    given = headers.get(b"content-length", b"")
    return int(given) if given.isdigit() else 0


def _bounded(receive: Receive) -> Receive:
    """Return what receives a body, also one of unsaid length, up to the bound."""
    received = 0

    async def receiving() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > MOST:
            raise InvalidInput("request", f"Request too large: at most {MOST} bytes.")
        return message

    return receiving


def _reject(status: int, message: str) -> JSONResponse:
    headers = {"Connection": "close"} | ({"WWW-Authenticate": "Bearer"} if status == 401 else {})
    kind = {401: Unauthorized, 403: Forbidden, 413: TooLarge}.get(status, InvalidInput)
    return JSONResponse({"error": kind.__name__, "message": message}, status, headers)
