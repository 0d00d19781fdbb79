"""Who asks the server of a team: whoever holds a token, with the roles that it opens by now."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Final

from anyio.to_thread import run_sync
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from recollect.app import App
from recollect.auth.administration import HANDLERS, administer
from recollect.auth.authenticate import INVALID, authenticate, look_again, remembered
from recollect.auth.browsers import is_browser_token, sign_in
from recollect.auth.limits import take_request
from recollect.auth.principal import Principal
from recollect.auth.tokens import is_signed
from recollect.domain.requests import Caller
from recollect.domain.verbs import ADMIN, ADMIN_BY_NAME, Verb
from recollect.doors.handlers import perform
from recollect.doors.http.access import OPEN, Access, Measures, address_of
from recollect.doors.http.asker import Asked, Asker, Asking
from recollect.doors.http.entrance import FIELDS
from recollect.doors.http.events import Event
from recollect.doors.http.messages import answered, failed
from recollect.doors.http.metrics import CONTENT_TYPE, Metrics, timed
from recollect.doors.http.openapi import parameter
from recollect.doors.http.sign_in import SignIn
from recollect.doors.serializers import wire_bytes
from recollect.doors.web.entry import Browser
from recollect.errors import Forbidden, QuotaFull, RecollectError, TooManyRequests, Unauthorized
from recollect.sessions.project_settings import narrowed_settings
from recollect.settings import Settings
from recollect.store.sql.database import confirmed_by
from recollect.store.sql.request_rates import Allowance

METRICS: Final = "/metrics"
LIMITS: Final = "/v1/limits"
FRESH: Final = 0.1  # seconds after which it is looked once more what a token opens
_MIB: Final = 2**20
_IMPORT_MIB: Final = 64  # of a batch of an import
_LANES: Final = 4
_OF_ADMINS: Final = frozenset({"doctor"})
"""Verbs that look at the whole store."""
_OPERATIONS: Final = "/v1/"
_ACCEPTING: Final = "/v1/admin/accept_invitation"
_NARROWS: Final = ("team", "project", "zone")
_INVITED: Final = "An invitation opens nothing else: `recollect token accept` makes a token of it."


@dataclass
class Member(Asker):
    """Who holds the token `bearer`, with what it opens; `confirmed` says whether this request has looked that up."""

    app: App
    principal: Principal
    bearer: str = field(repr=False)
    confirmed: bool = True
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
            with confirmed_by(lambda: self.require(lambda now: now.caller(*place) == caller)):
                try:
                    yield self.app, caller
                except QuotaFull as full:
                    known = not full.team or full.team in self.principal.teams
                    raise full if known else full.without_numbers() from None

        return asking

    def event(self, query: QueryParams, fields: dict[str, Any], client: dict[str, Any]) -> Event:
        """Return the work of an event. The client's settings cannot turn anything on, nor raise a limit."""
        asking = self.asking(query)
        with asking("") as (app, caller):
            settings = narrowed_settings(app.lifecycle, client, caller.project)

        def run(name: str, **given: Any) -> Any:
            with asking(name) as (app, caller):
                return perform(replace(app, lifecycle=settings), name, given, caller)

        return Event(fields, caller.user, run)

    def administer(self, name: str, fields: dict[str, Any]) -> Any:
        """Run an operation of administration while the user still has the rights with which the request began."""
        known = self.current()
        with confirmed_by(lambda: self.require(lambda now: now == known)):
            return administer(self.app, name, fields, known)

    def confirm(self) -> None:
        """Check the remembered rights of the token once more; raise `Unauthorized` where it has none any more."""
        if not self.confirmed:
            self.principal, self.at = authenticate(self.app, self.bearer), time.monotonic()
            self.confirmed = True

    def current(self) -> Principal:
        """Return the user of this request, looked up again after a while; raise `Unauthorized` for an ended token."""
        self.confirm()
        if time.monotonic() - self.at > FRESH:
            self.principal, self.at = look_again(self.app, self.bearer), time.monotonic()
        return self.principal

    def require(self, kept: Callable[[Principal], bool]) -> None:
        """Raise `Forbidden` where the rights are no longer those with which the request began."""
        if not kept(look_again(self.app, self.bearer)):
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
    """Lets in who holds a token, for what its roles allow, and administers; the store's opening `began` at a moment.

    Where the numbers of the replica go elsewhere too, `exported` hears them.
    """

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

    def __init__(
        self, app: App, settings: Settings, began: float | None = None, exported: Measures | None = None
    ) -> None:
        self._numbers = Metrics(exported)
        watched = timed(replace(app, reads_folders=False), self._numbers.spent)
        most = settings.max_body_mib * _MIB
        super().__init__(watched, self._numbers, lanes=_LANES, workers=settings.concurrent_requests, most=most)
        self.larger["/v1/import_batch"] = _IMPORT_MIB * _MIB
        self._metrics_token = settings.metrics_token
        self.sign_in = SignIn(app, settings) if settings.oidc_issuer else None
        self._rates = Rates(settings.requests_per_minute)
        self.metrics_text: Callable[[], bytes] = self._numbers.text
        """Returns what `/metrics` answers."""
        self._numbers.measure(app, self.events, time.monotonic() if began is None else began)

    async def admit(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """Let a request with a valid token in, unless the token asks too often or its user is only invited."""
        path = scope["path"]
        if path in OPEN or (self.sign_in is not None and path in self.sign_in.open):
            return
        if await self.admit_browser(scope, headers):
            if (browsing := scope.get("state", {}).get("asker")) is not None:
                await self._count(scope, browsing)
            return
        bearer = _token_in(headers)
        known = remembered(self.app, bearer) if path.startswith(_OPERATIONS) else None
        if known is None and self.sign_in is not None and is_signed(bearer):
            await _introduce(self.sign_in, bearer)
        if path == METRICS:
            await run_sync(self._admit_metrics, bearer)
            return
        if known is not None:  # the thread that does the work looks the token up
            member = Member(self.app, known, bearer, confirmed=False)
        else:
            member = await run_sync(self._authenticate, bearer)
        scope.setdefault("state", {})["asker"] = member
        if member.principal.invitation and path != _ACCEPTING:
            raise Forbidden(_INVITED)
        await self._count(scope, member)

    async def _count(self, scope: Scope, member: Member) -> None:
        """Count a request of a member in this process, and in the database where its user or team has a limit there.

        Raises `TooManyRequests`.
        """
        self._rates.take(member.principal.token)
        team = QueryParams(scope.get("query_string", b"")).get("team", "").strip()
        if self._allowances(member.principal, team):
            scope["state"][FIELDS] = await run_sync(self._take, member, team)

    def _allowances(self, principal: Principal, team: str) -> list[Allowance]:
        """Return how often the user, and the team that a request names, may ask; nothing of those without a limit."""
        return [] if principal.invitation else self.app.limits.allowances(principal.holders(team), principal.limits)

    def _take(self, member: Member, team: str) -> dict[str, str]:
        """Count a request by the limits of this moment, and return the fields of its answer that say what is left."""
        member.confirm()
        allowances = self._allowances(member.principal, team)
        return take_request(self.app, member.principal, allowances) if allowances else {}

    def browser(self, token: str) -> Browser:
        """Return the browser of a person who has pasted a token, let in for as long as the token is valid."""
        return self._browser_of(sign_in(self.app, token.strip()))

    def recognized(self, name: str) -> Browser:
        """Return a browser that this replica or another one has let in; raise `Unauthorized` for any other name."""
        if not is_browser_token(self.app, name):
            raise Unauthorized("Invalid token: it is none of a browser.")
        return self.browsers.let_in(self._browser_of(name))

    def left(self, browser: Browser) -> None:
        """Forget a browser that signs out, in every replica."""
        super().left(browser)
        who = authenticate(self.app, browser.name)
        administer(self.app, "revoke_token", {"prefix": who.token}, who)

    def _browser_of(self, name: str) -> Browser:
        who = self._authenticate(name).principal
        teams = who.known_teams
        return Browser(partial(self._authenticate, name), {"team": teams[0]} if teams else {}, who.user, name=name)

    def _authenticate(self, bearer: str) -> Member:
        if self.sign_in is None and is_signed(bearer):
            raise Unauthorized(INVALID)
        return Member(self.app, authenticate(self.app, bearer), bearer)

    def routes(self, post: Callable[..., Route]) -> list[Route]:
        """Return the routes of administration, of limits and metrics, and of the description of sign-in."""
        administration = (post(f"/v1/admin/{one.name}", partial(_run_administration, one)) for one in ADMIN)
        signing_in = self.sign_in.routes() if self.sign_in is not None else []
        metrics, limits = Route(METRICS, self._answer_metrics), Route(LIMITS, self._answer_limits)
        return [*administration, metrics, limits, *signing_in]

    def _admit_metrics(self, bearer: str) -> None:
        """Let in the token for metrics, or the token of an admin of the deployment."""
        wanted = self._metrics_token
        if wanted and hmac.compare_digest(bearer.encode(), wanted.encode()):
            return
        if not self._authenticate(bearer).principal.administers():
            raise Forbidden("You have no right to the metrics: they are for admins of the deployment.")

    async def _answer_limits(self, request: Request) -> Response:
        """Answer what the sender and their teams use of their limits."""
        try:
            address_of(request.query_params, ("team",))
            found = await run_sync(partial(request.state.asker.administer, "show_limits", {}))
            return answered(wire_bytes(ADMIN_BY_NAME["show_limits"].answer, found))
        except RecollectError as error:
            return failed(error)

    async def _answer_metrics(self, _: Request) -> Response:
        return Response(await run_sync(self.metrics_text), media_type=CONTENT_TYPE)


def _run_administration(found: Verb, asked: Asked) -> bytes:
    address_of(asked.query, ())
    return wire_bytes(found.answer, asked.who.administer(found.name, asked.body))


async def _introduce(sign_in: SignIn, bearer: str) -> None:
    """Let an access token of the provider in that comes for the first time."""
    if not await run_sync(sign_in.knows, bearer):
        await run_sync(sign_in.admit, bearer, limiter=sign_in.threads)


def _token_in(headers: Mapping[bytes, bytes]) -> str:
    """Return the token in the headers; raise `Unauthorized` without one."""
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer" or not token.strip():
        raise Unauthorized("Missing token: A request carries `Authorization: Bearer TOKEN`.")
    return token.strip().decode("latin-1")
