"""What a request passes before its route: its size, its rate and who asks.

Who asks over HTTP, and what may be asked: all in which the local daemon and the server of a team differ.

What every request passes: its id, who sends it, how much and for how long; whatever breaks becomes a sentence.
"""

from __future__ import annotations

import re
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple

import anyio
from anyio.to_thread import run_sync
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.app import App
from recollect.domain.requests import Caller
from recollect.doors.http.events import Event, Events
from recollect.doors.http.messages import failed, to_recollect_error
from recollect.doors.web import PAGE
from recollect.doors.web.entry import Browser, Browsers, check_origin, cookie_of, is_page
from recollect.errors import InvalidInput, RecollectError, TooLarge, Unauthorized

Asking = Callable[[str], AbstractContextManager[tuple[App, Caller]]]
"""Gives, for the operation of this name, the store and who asks, with the rights that they have by now."""
OPEN: Final = frozenset({"/healthz", "/readyz"})
"""What is answered to anybody."""
_LONGEST: Final = 200
_NAMES: Final = ("user", "team", "project", "zone")


class Asker(ABC):
    """Whoever was let in with one request; the log calls them by `names`."""

    names: Mapping[str, str] = {}

    @abstractmethod
    def asking(self, query: QueryParams, also: Collection[str] = ()) -> Asking:
        """Return what gives the caller that an address names, which may say `also` something else.

        Raises `InvalidInput` for an address that says anything more, or too little.
        """

    @abstractmethod
    def event(self, query: QueryParams, fields: dict[str, Any], client: dict[str, Any]) -> Event:
        """Return what an event of a session is run with, under the settings of the client that sent it."""


class Asked(NamedTuple):
    """A request that was let in: who sends it, what stands behind `?`, its body and its idempotency key."""

    who: Any
    query: QueryParams
    body: dict[str, Any]
    key: str


class Measures:
    """Is told what becomes of requests, and keeps nothing of it."""

    def began(self) -> None:
        """Note that a request has come."""

    def spent(self, operation: str, stage: str, seconds: float) -> None:
        """Note how long a stage of an operation took."""

    def called(self, tool: str, status: int) -> None:
        """Note how a call of a tool by MCP ended."""

    def refused(self, error: RecollectError) -> None:
        """Note an error that a request is answered with."""

    def ended(self, label: str, status: int, seconds: float, asker: Asker | None) -> None:
        """Note how a request ended, and who sent it where they were let in."""


class Access(ABC):
    """Lets requests in to a store, and offers more than the operations to those that are let in."""

    name: ClassVar[str]
    """What a sentence about an error calls the process."""
    about: ClassVar[str]
    """How it is known who asks, in the words of the OpenAPI document."""
    parameters: ClassVar[Sequence[dict[str, Any]]]
    """What an address may say, as the OpenAPI document describes it."""
    event_parameters: ClassVar[Sequence[dict[str, Any]]]
    """What the address of an event may say."""
    client: ClassVar[tuple[str, str, dict[str, Any]]]
    """Under what name an event carries the settings of its client, what stands there, and an example."""
    administration: ClassVar[dict[str, Callable[..., Any]]] = {}
    """What runs each verb of administration that may be asked."""

    def __init__(self, app: App, measures: Measures, *, lanes: int, workers: int, most: int) -> None:
        self.app = app
        self.measures = measures
        self.most = most
        """How many bytes a body may have."""
        self.larger: dict[str, int] = {}
        """How many it may have at these addresses."""
        self.events = Events(lanes)
        self.workers = workers
        self.browsers = Browsers()
        self.leaving = False
        """Whether the process was told to end, so that nobody shall send it more."""

    async def admit_browser(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        """Put who a browser is signed in as into the state of a request for the page, as `asker`, and the `browser`.

        Nobody is there for one that is not signed in. Says whether the request is one of a browser at all. Raises
        `Forbidden` for what another site sends.
        """
        if not is_page(scope["path"]) or b"authorization" in headers:
            return False
        check_origin(scope, headers)
        if name := cookie_of(headers):
            try:
                known = self.browsers.known(name)
                browser = known if known is not None else await run_sync(self.recognized, name)
                scope.setdefault("state", {}).update(asker=await run_sync(browser.asker), browser=browser)
            except Unauthorized:
                self.browsers.leave(name)
        return True

    def recognized(self, name: str) -> Browser:
        """Return a browser that another process has let in; raise `Unauthorized` for one that nobody knows."""
        raise Unauthorized(f"Nobody let in a browser of this name ({len(name)} characters).")

    def left(self, browser: Browser) -> None:
        """Let a browser that signs out be known no more."""
        self.browsers.leave(browser.name)

    @abstractmethod
    async def admit(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """Put who asks into the state of a request, as `asker`; nobody is there for what is open to all.

        Raises `Unauthorized` or another refusal.
        """

    def browser(self, token: str) -> Browser:
        """Return what a browser is let in as whose person has pasted a token; raise `Unauthorized`, or `Forbidden`."""
        del token
        raise Unauthorized("Signing in needs a one-time address: `recollect page` opens it.")

    @abstractmethod
    def routes(self, post: Callable[..., Route]) -> list[Route]:
        """Return what is answered beside the operations; `post` makes a route of a path and what works on a request."""


def address_of(query: QueryParams, known: Collection[str], why: str = "") -> dict[str, str]:
    """Return what stands behind `?` in an address; raise `InvalidInput` for anything else than what is `known` there.

    `why` ends the sentence about it.
    """
    given = query.multi_items()
    for name, value in given:
        if name not in known:
            names = ", ".join(f"`{one}`" for one in known)
            takes = f"An address takes {names}{why}." if known else "This address takes none."
            raise InvalidInput(name, f"Unknown parameter: {takes}")
        if name in _NAMES and (len(value) > _LONGEST or "\0" in value or not value.isprintable()):
            raise InvalidInput(name, f"Invalid {name}: Must have at most {_LONGEST} characters, all of them printable")
    if twice := [name for name in _NAMES if [one for one, _ in given].count(name) > 1]:
        raise InvalidInput(twice[0], f"Invalid {twice[0]}: Must be given once")
    return {name: value.strip() for name, value in given}


request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being answered."""
operation: ContextVar[str] = ContextVar("operation", default="background")
"""The operation that runs; what no request asks for is the `background`."""
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
    status: int = 0
    began: float = field(default_factory=time.perf_counter)

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.request_id.encode())]
        await self.send(message)


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
        label = self._labels.get(PAGE if is_page(scope["path"]) else scope["path"], "other")
        answer = _Answer(_request_id(headers), send)
        request_id.set(answer.request_id)
        operation.set(label)
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
            self._access.measures.ended(label, answer.status or _LEFT, seconds, _asker(scope))

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
