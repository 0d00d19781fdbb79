"""What every request passes: its id, who sends it, how often, how much and for how long; and its line in the log."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import anyio
from anyio.to_thread import run_sync
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.auth.principal import Principal
from recollect.doors.server import logs, stages
from recollect.doors.server.bodies import failed
from recollect.doors.server.metrics import Metrics
from recollect.doors.server.rates import Rates
from recollect.doors.serving.errors import to_recollect_error
from recollect.errors import Forbidden, RecollectError, TooLarge, Unauthorized

log = logging.getLogger(__name__)

OPEN: Final = frozenset({"/healthz", "/readyz"})
"""What is answered without a token."""
METRICS: Final = "/metrics"
_GIVEN_ID: Final = re.compile(rb"[A-Za-z0-9._:-]{1,100}")
_LEFT: Final = 499  # the client closed the connection before it was answered


_ACCEPTING: Final = "/v1/admin/accept_invitation"
BODY: Final = 60.0  # seconds in which a body must have come
FRESH: Final = 0.1  # seconds after which it is looked once more what a token opens


class TooSlow(RecollectError):
    """A body did not come in time."""

    status = 408


@dataclass
class Admission:
    """Who was let in, and `again`, which looks up what their token opens by now."""

    principal: Principal
    again: Callable[[], Principal]
    at: float = field(default_factory=time.monotonic)

    def current(self) -> Principal:
        """Return who asks, as of now where the request was on its way for a while; raise `Unauthorized`."""
        if time.monotonic() - self.at > FRESH:
            self.principal, self.at = self.again(), time.monotonic()
        return self.principal

    def confirm(self, kept: Callable[[Principal], bool]) -> None:
        """Raise `Forbidden` where the rights that matter are not those any more that the request began with."""
        if not kept(self.again()):
            raise Forbidden("What your token opens was changed while the request was on its way: send it again.")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Who is let in, and how much of a body is read: so many bytes, or those that `larger` says for an address."""

    admit: Callable[[str], Principal]
    again: Callable[[str], Principal]
    admit_metrics: Callable[[str], None]
    rates: Rates
    most: int
    larger: Mapping[str, int]


@dataclass
class _Answer:
    """What is known of a request when it has been answered."""

    request_id: str
    send: Send
    status: int = 0
    began: float = field(default_factory=time.perf_counter)
    principal: Principal | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.request_id.encode())]
        await self.send(message)


class Entrance:
    """Lets requests in; `labels` says for each address what the log and the metrics call it."""

    def __init__(self, app: ASGIApp, rules: Rules, metrics: Metrics, labels: Mapping[str, str]) -> None:
        self._app = app
        self._rules = rules
        self._metrics = metrics
        self._labels = labels

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; whatever breaks becomes a sentence for the client."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        label = self._labels.get(scope["path"], "other")
        answer = _Answer(_request_id(headers), send)
        logs.request_id.set(answer.request_id)
        stages.operation.set(label)
        self._metrics.began()
        try:
            await self._answer(scope, receive, answer, headers)
        except ClientDisconnect:
            answer.status = answer.status or _LEFT
        except Exception as error:  # noqa: BLE001 - the client must get a message for any error
            known = to_recollect_error(error, "the server")
            self._metrics.refused(known)
            if answer.status == 0:
                await _closing(failed(known))(scope, receive, answer)
        finally:
            self._end(label, answer)

    async def _answer(self, scope: Scope, receive: Receive, answer: _Answer, headers: Mapping[bytes, bytes]) -> None:
        path, rules = scope["path"], self._rules
        if path in OPEN:
            await self._app(scope, receive, answer)
            return
        bearer, asked_at = _bearer(headers), time.perf_counter()
        if path == METRICS:
            await run_sync(rules.admit_metrics, bearer)
        else:
            who = answer.principal = await run_sync(rules.admit, bearer)
            if who.invitation and path != _ACCEPTING:
                raise Forbidden("An invitation opens nothing else: `recollect token accept` makes a token of it.")
            scope.setdefault("state", {})["admission"] = Admission(who, partial(rules.again, bearer))
            rules.rates.take(who.token)
        self._metrics.spent(stages.operation.get(), "authenticate", time.perf_counter() - asked_at)
        with anyio.move_on_after(BODY) as waiting:
            body = await _body(receive, headers, rules.larger.get(path, rules.most))
        if waiting.cancelled_caught:
            raise TooSlow(f"Request too slow: Its body must come within {BODY:g} seconds.")
        await self._app(scope, _replayed(body, receive), answer)

    def _end(self, label: str, answer: _Answer) -> None:
        seconds = time.perf_counter() - answer.began
        status = answer.status or _LEFT
        self._metrics.ended(label, status, seconds)
        who = {"user": answer.principal.user, "token": answer.principal.token} if answer.principal else {}
        level = logging.DEBUG if label in ("healthz", "readyz", "metrics") else logging.INFO
        log.log(level, "answered", extra={"operation": label, "status": status, "seconds": round(seconds, 4)} | who)


def _request_id(headers: Mapping[bytes, bytes]) -> str:
    given = headers.get(b"x-request-id", b"")
    return given.decode() if _GIVEN_ID.fullmatch(given) else uuid.uuid4().hex


def _bearer(headers: Mapping[bytes, bytes]) -> str:
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer" or not token.strip():
        raise Unauthorized("Missing token: A request carries `Authorization: Bearer TOKEN`.")
    return token.strip().decode("latin-1")


async def _body(receive: Receive, headers: Mapping[bytes, bytes], most: int) -> bytes:
    """Return the body, of which at most so many bytes are read; raise `TooLarge` for more."""
    said = headers.get(b"content-length", b"0")
    too_large = TooLarge(f"Request too large: At most {most:,} bytes are taken.")
    if said.isdigit() and int(said[:20]) > most:
        raise too_large
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        more = message.get("more_body", False)
        if size > most:
            raise too_large
    return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read, and then what else comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receiving() -> Message:
        return left.pop() if left else await receive()

    return receiving


def _closing(response: Response) -> Response:
    """Let the connection end where a body may still be on its way that nobody reads."""
    if response.status_code in (401, 403, 408, 413, 429):
        response.headers["Connection"] = "close"
    return response
