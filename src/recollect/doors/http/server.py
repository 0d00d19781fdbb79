"""The server of a team: its routes, and how the caller is known.

The process of the server: open the store, listen, answer until it is told to end, finish what was taken, close.

Its log is one JSON object a line on standard error, each with its request. No line holds the text of a memory or a
token: of an error that nobody foresaw only its kind and its place are written.

Who asks the server of a team: whoever holds a token, with the roles that it opens by now.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import signal
import ssl
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit
from typing import Any, ClassVar, Final

from anyio.to_thread import run_sync
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from pythonjsonlogger.json import JsonFormatter
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

import recollect
from recollect.app import App
from recollect.auth.administration import HANDLERS, administer
from recollect.auth.authenticate import authenticate, look_again
from recollect.auth.browsers import of_browser, sign_in
from recollect.auth.principal import Principal
from recollect.domain.requests import Caller
from recollect.domain.verbs import ADMIN, Verb
from recollect.doors.handlers import perform
from recollect.doors.http.access import OPEN, Access, Asked, Asker, Asking, address_of
from recollect.doors.http.application import Application
from recollect.doors.http.connections import BoundedProtocol, Process
from recollect.doors.http.entrance import request_id
from recollect.doors.http.events import Event
from recollect.doors.http.messages import to_recollect_error
from recollect.doors.http.metrics import CONTENT_TYPE, Metrics, timed
from recollect.doors.http.openapi import parameter
from recollect.doors.serializers import wire_bytes
from recollect.doors.web.entry import Browser
from recollect.errors import Forbidden, InvalidInput, TooManyRequests, Unauthorized
from recollect.server_url import is_loopback
from recollect.sessions.project_settings import narrowed
from recollect.settings import Settings
from recollect.store.sql.database import confirmed_by

METRICS: Final = "/metrics"
FRESH: Final = 0.1  # seconds after which it is looked once more what a token opens
_MIB: Final = 2**20
_IMPORT_MIB: Final = 64  # of a batch of an import
_LANES: Final = 4
_OF_ADMINS: Final = frozenset({"doctor"})
"""Verbs that look at the whole store."""
_ACCEPTING: Final = "/v1/admin/accept_invitation"
_NARROWS: Final = ("team", "project", "zone")
_INVITED: Final = "An invitation opens nothing else: `recollect token accept` makes a token of it."


@dataclass
class Member(Asker):
    """Who holds a token, and `again`, which looks up what it opens by now."""

    app: App
    principal: Principal
    again: Callable[[], Principal]
    at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.names = {"user": self.principal.user, "token": self.principal.token}

    def asking(self, query: QueryParams, also: Collection[str] = ()) -> Asking:
        """Return what gives the caller; their rights are looked up once more in each transaction that it writes in."""
        named = address_of(query, (*_NARROWS, *also), "; who asks comes from the token alone")
        place = [named.get(name, "") for name in _NARROWS]

        @contextmanager
        def asking(name: str) -> Iterator[tuple[App, Caller]]:
            if name in _OF_ADMINS and not self.current().administers():
                raise Forbidden(f"You have no right to `{name}`: it is for admins of the deployment.")
            caller = self.current().caller(*place)
            with confirmed_by(lambda: self.confirm(lambda now: now.caller(*place) == caller)):
                yield self.app, caller

        return asking

    def event(self, query: QueryParams, fields: dict[str, Any], client: dict[str, Any]) -> Event:
        """Return what an event is run with; the client's settings turn nothing on, and raise no limit."""
        asking = self.asking(query)
        with asking("") as (app, caller):
            settings = narrowed(app.lifecycle, client, caller.project)

        def run(name: str, **given: Any) -> Any:
            with asking(name) as (app, caller):
                return perform(replace(app, lifecycle=settings), name, given, caller)

        return Event(fields, caller.user, run)

    def administer(self, name: str, fields: dict[str, Any]) -> Any:
        """Run an operation of administration, for as long as the rights are those that the request began with."""
        known = self.current()
        with confirmed_by(lambda: self.confirm(lambda now: now == known)):
            return administer(self.app, name, fields, known)

    def current(self) -> Principal:
        """Return who asks, as of now where the request was on its way for a while; raise `Unauthorized`."""
        if time.monotonic() - self.at > FRESH:
            self.principal, self.at = self.again(), time.monotonic()
        return self.principal

    def confirm(self, kept: Callable[[Principal], bool]) -> None:
        """Raise `Forbidden` where the rights that matter are not those any more that the request began with."""
        if not kept(self.again()):
            raise Forbidden("What your token opens was changed while the request was on its way: send it again.")


class Rates:
    """Counts the requests of each token over the last minute, in this replica alone; `most` of 0 is no limit."""

    def __init__(self, most: int) -> None:
        self._item = RateLimitItemPerMinute(most) if most else None
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    def take(self, token: str) -> None:
        """Count a request of the token with this prefix; raise `TooManyRequests` beyond the limit."""
        if self._item is not None and not self._limiter.hit(self._item, token):
            again = self._limiter.get_window_stats(self._item, token).reset_time
            raise TooManyRequests(max(1.0, again - time.time()))


class TeamAccess(Access):
    """Lets in who holds a token, for what its roles allow, and administers; the store's opening `began` at a moment."""

    name: ClassVar = "the server"
    about: ClassVar = "Who asks comes from the token alone."
    parameters: ClassVar = (
        parameter("team", "Team whose memories are seen. Default: the only team of the user"),
        parameter("project", "Project whose memories are seen. Default: none"),
        parameter("zone", "Time zone in which a day begins, such as `Europe/Berlin`. Default: `UTC`"),
    )
    event_parameters: ClassVar = parameters
    client: ClassVar = ("settings", "Settings of the client's project; they turn on nothing and raise no limit", {})
    administration: ClassVar = HANDLERS

    def __init__(self, app: App, settings: Settings, began: float | None = None) -> None:
        self._numbers = Metrics()
        watched = timed(replace(app, reads_folders=False), self._numbers.spent)
        most = settings.max_body_mib * _MIB
        super().__init__(watched, self._numbers, lanes=_LANES, workers=settings.workers, most=most)
        self.larger["/v1/import_batch"] = _IMPORT_MIB * _MIB
        self._metrics_token = settings.metrics_token
        self._rates = Rates(settings.requests_per_minute)
        self._numbers.measure(app, self.events, time.monotonic() if began is None else began)

    async def admit(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """Let a request in that carries a valid token, but for one that asks too often, or is only invited."""
        path = scope["path"]
        if path in OPEN:
            return
        if await self.admit_browser(scope, headers):
            if (browsing := scope.get("state", {}).get("asker")) is not None:
                self._rates.take(browsing.principal.token)
            return
        bearer = _bearer(headers)
        if path == METRICS:
            await run_sync(self._admit_metrics, bearer)
            return
        member = await run_sync(self._member, bearer)
        scope.setdefault("state", {})["asker"] = member
        if member.principal.invitation and path != _ACCEPTING:
            raise Forbidden(_INVITED)
        self._rates.take(member.principal.token)

    def browser(self, token: str) -> Browser:
        """Return what a browser is let in as whose person has pasted a token, for as long as that is valid."""
        return self._browser(sign_in(self.app, token.strip()))

    def recognized(self, name: str) -> Browser:
        """Return a browser that this replica or another one has let in; raise `Unauthorized` for any other name."""
        if not of_browser(self.app, name):
            raise Unauthorized("Invalid token: it is none of a browser.")
        return self.browsers.let_in(self._browser(name))

    def left(self, browser: Browser) -> None:
        """Let a browser that signs out be known no more, by any replica."""
        super().left(browser)
        who = authenticate(self.app, browser.name)
        administer(self.app, "revoke_token", {"prefix": who.token}, who)

    def _browser(self, name: str) -> Browser:
        who = self._member(name).principal
        teams = who.known_teams
        return Browser(partial(self._member, name), {"team": teams[0]} if teams else {}, who.user, name=name)

    def _member(self, bearer: str) -> Member:
        return Member(self.app, authenticate(self.app, bearer), partial(look_again, self.app, bearer))

    def routes(self, post: Callable[..., Route]) -> list[Route]:
        """Return administration and the metrics."""
        administration = (post(f"/v1/admin/{one.name}", partial(_administration, one)) for one in ADMIN)
        return [*administration, Route(METRICS, self._metrics)]

    def _admit_metrics(self, bearer: str) -> None:
        """Let in who holds the token for metrics, or that of an admin of the deployment."""
        wanted = self._metrics_token
        if wanted and hmac.compare_digest(bearer.encode(), wanted.encode()):
            return
        if not authenticate(self.app, bearer).administers():
            raise Forbidden("You have no right to the metrics: they are for admins of the deployment.")

    async def _metrics(self, _: Request) -> Response:
        return Response(await run_sync(self._numbers.text), media_type=CONTENT_TYPE)


def _administration(found: Verb, asked: Asked) -> bytes:
    address_of(asked.query, ())
    return wire_bytes(found.answer, asked.who.administer(found.name, asked.body))


def _bearer(headers: Mapping[bytes, bytes]) -> str:
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer" or not token.strip():
        raise Unauthorized("Missing token: A request carries `Authorization: Bearer TOKEN`.")
    return token.strip().decode("latin-1")


log = logging.getLogger(__name__)

ROLE: Final = "recollect serve --host"
"""The role under which a server owns a store in a folder."""
_FINISH: Final = 60  # seconds for the requests that run when the server is told to end
_EVENTS: Final = 60.0  # seconds for the events that wait then
_LEAVING: Final = 2.0  # seconds in which a proxy learns by /readyz that this one goes, before it stops listening
_KEEP_ALIVE: Final = 75
_BACKLOG: Final = 1_024
_CONNECTIONS: Final = 4_096
_CHATTY: Final = ("alembic", "httpx", "httpx2", "uvicorn.error", "mcp", "sse_starlette", "asyncio", "chromadb")
_LOGGED: Final = ("asctime", "levelname", "name", "message")


class _Protocol(BoundedProtocol):
    """HTTP on one connection of many clients, which a proxy may keep open."""

    most = staticmethod(lambda: min(_CONNECTIONS, getrlimit(RLIMIT_NOFILE)[0] // 2))


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Where the server listens, and what protects what is said there."""

    host: str
    port: int
    tls_cert: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False
    insecure: bool = False

    def check(self) -> None:
        """Raise `InvalidInput` where tokens would cross a network in the clear and nobody said so."""
        if bool(self.tls_cert) != bool(self.tls_key):
            raise InvalidInput("tls", "Invalid TLS: --tls-cert and --tls-key are given together.")
        if not (self.tls_cert or self.behind_proxy or self.insecure or is_loopback(self.host)):
            raise InvalidInput(
                "host",
                f"Refused to listen on {self.host} without encryption: give --tls-cert and --tls-key, or "
                "--behind-proxy where a proxy in front terminates TLS, or --insecure to send tokens in the clear.",
            )

    @property
    def leaving(self) -> float:
        """Return for how many seconds it answers after it was told to end: a proxy sends nothing more meanwhile."""
        return _LEAVING if self.behind_proxy else 0.0

    @property
    def url(self) -> str:
        """Return the address for clients of this machine."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls_cert else 'http'}://{host}:{self.port}"


def serve(
    settings: Settings,
    listening: Listening,
    opened: Callable[[App], object] = lambda _: None,
    ready: Callable[[], object] = lambda: None,
) -> None:
    """Serve the store until SIGTERM or SIGINT; then finish what runs, work off the events, and close the store.

    What the vector index lacks then stays queued, but for one batch; other replicas, or the next start, take it up.
    `opened` is called with the open store before anybody is let in, and `ready` once requests are answered. Raises
    `InvalidInput` for an address that is not protected, and what opening a store raises.
    """
    listening.check()
    began = time.monotonic()
    _when_told_to_end(_leave)
    try:
        with recollect.open_app(settings, wait=False, role=ROLE) as app:
            opened(app)
            log_to_stderr()
            access = TeamAccess(app, settings, began)
            process = TeamProcess(access, listening, ready)
            _when_told_to_end(lambda: setattr(process, "should_exit", True))  # until uvicorn listens to signals itself
            process.run()
            log.info("stopping")
            if not access.events.finish(_EVENTS):
                log.warning("%d events of sessions were lost, as the server had to end", access.events.waiting)
    except (OSError, SQLAlchemyError, ssl.SSLError) as error:
        raise to_recollect_error(error, "the server") from None
    log.info("stopped")


def _when_told_to_end(act: Callable[[], object]) -> None:
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, lambda *_: act())


def _leave() -> None:
    """End before anything is served, so that what is open by then is closed in order."""
    log.info("stopped before it served")
    sys.exit(0)


class TeamProcess(Process):
    """Listens somewhere, says when it has begun, and that it leaves for a while before it takes no more."""

    def __init__(self, access: TeamAccess, listening: Listening, ready: Callable[[], object] = lambda: None) -> None:
        super().__init__(
            Application(access),
            host=listening.host,
            port=listening.port,
            http=_Protocol,
            ssl_certfile=listening.tls_cert,
            ssl_keyfile=listening.tls_key,
            backlog=_BACKLOG,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=_FINISH,
        )
        self._access = access
        self._ready = ready
        self.leaving = listening.leaving

    async def startup(self, sockets: Any = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: Any = None) -> None:
        """Answer for a while as one that is not ready any more, and end then."""
        self._access.leaving = True
        until = self.leaving + asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() < until and not self.force_exit:
            await asyncio.sleep(0.1)
        await super().shutdown(sockets)


class _Formatter(JsonFormatter):
    """Writes records without what exceptions say, which may be a value of a memory."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the standard library's name
        return f"{ei[0].__name__ if ei[0] else ''} at\n{''.join(traceback.format_tb(ei[2]))}"

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        super().add_fields(log_data, record, message_dict)
        if found := request_id.get():
            log_data["request_id"] = found


def log_handler() -> logging.Handler:
    """Return what writes records as JSON lines to standard error."""
    found = logging.StreamHandler(sys.stderr)
    names = {"asctime": "time", "levelname": "level", "name": "logger"}
    form = _Formatter(" ".join(f"%({one})s" for one in _LOGGED), rename_fields=names, datefmt="%Y-%m-%dT%H:%M:%SZ")
    form.converter = time.gmtime
    found.setFormatter(form)
    return found


def log_to_stderr() -> None:
    """Send the log of this process to standard error, one JSON object a line."""
    logging.basicConfig(handlers=[log_handler()], level=logging.INFO, force=True)
    logging.raiseExceptions = False  # nobody reads standard error any more
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)
