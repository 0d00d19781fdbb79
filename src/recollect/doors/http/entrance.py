"""The entrance of every request: it gives an id, lets the sender in, limits size and time, and words any error."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import anyio
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.doors.current_request import operation, request_id, verbs
from recollect.doors.http.access import Access
from recollect.doors.http.asker import Asker
from recollect.doors.http.messages import failed, to_recollect_error
from recollect.doors.web import PAGE
from recollect.doors.web.entry import is_page
from recollect.errors import RecollectError, TooLarge
from recollect.spans import request as request_span

PROBES: Final = ("healthz", "readyz", "metrics")
"""Operations that a machine asks all the time, so that no line of the log and no trace is of them."""
FIELDS: Final = "fields"
"""The entry in the state of a request that holds further header fields of its answer."""
_GIVEN_ID: Final = re.compile(rb"[A-Za-z0-9._:-]{1,100}")
_LEFT: Final = 499  # the client closed the connection before it was answered
BODY: Final = 60.0  # seconds in which a body must have come


class TooSlow(RecollectError):
    """A body did not come in time."""

    status = 408


@dataclass
class _Answer:
    """What is known of a request when it has been answered."""

    request_id: str
    send: Send
    challenge: str
    scope: Scope
    status: int = 0
    began: float = field(default_factory=time.perf_counter)

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [(name, self._replaced(name, value)) for name, value in message.get("headers", ())]
            more = self.scope.get("state", {}).get(FIELDS, {}).items()
            headers += [(name.lower().encode(), value.encode()) for name, value in more]
            message["headers"] = [*headers, (b"x-request-id", self.request_id.encode())]
        await self.send(message)

    def _replaced(self, name: bytes, value: bytes) -> bytes:
        return self.challenge.encode() if name.lower() == b"www-authenticate" else value


class Entrance:
    """Lets requests in; `labels` says for each address what the log and the metrics call it."""

    def __init__(self, app: ASGIApp, access: Access, labels: Mapping[str, str]) -> None:
        self._app = app
        self._access = access
        self._labels = labels

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; whatever breaks becomes a sentence for the client."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        route = PAGE if is_page(scope["path"]) else scope["path"]
        label = self._labels.get(route, "other")
        answer = _Answer(_request_id(headers), send, self._access.challenge(scope["path"]), scope)
        request_id.set(answer.request_id)
        operation.set(label)
        verbs.set([])
        if label in PROBES:
            await self._measured(label, scope, receive, answer, headers)
            return
        parent = headers.get(b"traceparent", b"").decode("latin-1")
        with request_span(scope["method"], route if route in self._labels else "", parent) as finish:
            await self._measured(label, scope, receive, answer, headers)
            finish(answer.status)

    async def _measured(
        self, label: str, scope: Scope, receive: Receive, answer: _Answer, headers: Mapping[bytes, bytes]
    ) -> None:
        """Answer a request, and let it be counted whatever becomes of it."""
        self._access.measures.began()
        try:
            await self._answer(scope, receive, answer, headers)
        except ClientDisconnect:
            answer.status = answer.status or _LEFT
        except Exception as error:  # noqa: BLE001 - the client must get a message for any error
            known = to_recollect_error(error, self._access.name)
            self._access.measures.refused(known)
            if answer.status == 0:
                await _closing(failed(known))(scope, receive, answer)
        finally:
            seconds = time.perf_counter() - answer.began
            answer.status = answer.status or _LEFT
            self._access.measures.ended(label, answer.status, seconds, _asker(scope))

    async def _answer(self, scope: Scope, receive: Receive, answer: _Answer, headers: Mapping[bytes, bytes]) -> None:
        began = time.perf_counter()
        access, path = self._access, scope["path"]
        await access.admit(scope, headers)
        if _asker(scope) is None:
            await self._app(scope, receive, answer)
            return
        access.measures.spent(operation.get(), "authenticate", time.perf_counter() - began)
        with anyio.move_on_after(BODY) as waiting:
            body = await _body(receive, headers, access.larger.get(path, access.most))
        if waiting.cancelled_caught:
            raise TooSlow(f"Request too slow: Its body must come within {BODY:g} seconds.")
        await self._app(scope, _replayed(body, receive), answer)


def _asker(scope: Scope) -> Asker | None:
    found: Asker | None = scope.get("state", {}).get("asker")
    return found


def _request_id(headers: Mapping[bytes, bytes]) -> str:
    given = headers.get(b"x-request-id", b"")
    return given.decode() if _GIVEN_ID.fullmatch(given) else uuid.uuid4().hex


async def _body(receive: Receive, headers: Mapping[bytes, bytes], most: int) -> bytes:
    """Return the body, of which at most so many bytes are read; raise `TooLarge` for more."""
    length = headers.get(b"content-length", b"0")
    too_large = TooLarge(f"Request too large: At most {most:,} bytes are taken.")
    if length.isdigit() and int(length[:20]) > most:
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
    if response.status_code in (401, 403, 408, 413, 421, 429):
        response.headers["Connection"] = "close"
    return response
