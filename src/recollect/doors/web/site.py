"""The site: its routes, and how what a screen returns becomes HTML, JSON or a refusal.

Every response says what a browser may load: what comes from here, and no script or style within a page.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from anyio.to_thread import run_sync
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic_core import to_json
from starlette.background import BackgroundTask
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from recollect import __version__
from recollect.doors.http.access import Access
from recollect.doors.http.messages import JSON, answered, failed, to_recollect_error
from recollect.doors.http.peers import is_of_another_user
from recollect.doors.web import (
    PAGE,
    actions,
    checkup,
    inbox,
    memories,
    near,
    provider_entry,
    reports,
    sessions,
    today,
    words,
    zones,
)
from recollect.doors.web.entry import COOKIE, LIFE, Browser, own_address
from recollect.doors.web.visit import Done, Shown, Visit
from recollect.errors import Forbidden, InvalidInput, NotFound, RecollectError, TooLarge, Unauthorized

HTML: Final = "text/html; charset=utf-8"
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
STATIC: Final = Path(__file__).with_name("static")
_TEMPLATES: Final = Path(__file__).with_name("templates")
_FIELDS: Final = 2_000  # of a form
_SIGN_IN: Final = 4_096  # bytes of the form that nobody was let in for


class Screen(NamedTuple):
    """One address below `/page`: what shows it, what its form does, and its name in the navigation."""

    path: str
    show: Callable[[Visit], Shown] | None = None
    act: Callable[[Visit], Done | Shown] | None = None
    name: str = ""


SCREENS: Final = (
    Screen("/", today.opened, name="Today"),
    Screen("/browse", memories.browse, name="Browse"),
    Screen("/memory/{id}", memories.one),
    Screen("/memory/{id}/edit", memories.edit, actions.edit),
    Screen("/memory/{id}/move", memories.move, actions.move),
    Screen("/act", actions.confirm, actions.act),
    Screen("/undo", None, actions.undo),
    Screen("/inbox", inbox.listed, inbox.decide, "Inbox"),
    Screen("/near", near.listed, near.decide, "Duplicates"),
    Screen("/sessions", sessions.listed, name="Sessions"),
    Screen("/session", sessions.one, sessions.correct),
    Screen("/journal", reports.journal, name="Journal"),
    Screen("/health", reports.health, reports.check_up, "Health"),
    Screen("/team", reports.team, reports.administer, "Team"),
    Screen("/start", reports.start, reports.trial, "First steps"),
    Screen("/changes", reports.changes),
)
"""Every screen but those that let a browser in and out."""


class Site:
    """The page over one store."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._templates = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=words.written,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= words.FILTERS
        team = bool(access.administration)
        navigation = [
            (screen.path[1:], screen.name) for screen in SCREENS if screen.name and (team or screen.path != "/team")
        ]
        self._templates.globals |= {"static": self._static_address, "version": __version__, "_navigation": navigation}
        self._checkup = checkup.Checkup(access.app)
        routes = [
            Route(screen.path, partial(self._answer_screen, screen), methods=_methods_of(screen)) for screen in SCREENS
        ]
        self._router = Router(
            [
                *routes,
                Route("/open", self._redeem_address),
                Route("/sign-in", self._sign_in, methods=["GET", "POST"]),
                Route("/sign-in/begin", self._begin_sign_in),
                Route("/sign-in/done", self._end_sign_in),
                Route("/sign-out", self._sign_out, methods=["POST"]),
                Route("/zone", self._store_zone, methods=["POST"]),
                Route("/static/{name}", self._static_file),
            ],
            redirect_slashes=False,
            default=self._answer_missing,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; whatever breaks becomes a sentence."""
        if scope["path"] == PAGE:
            await RedirectResponse(f"{PAGE}/", 308)(scope, receive, send)
            return
        try:
            await self._router(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - a person must get a message for any error
            request = Request(scope)
            await self._error_response(request, to_recollect_error(error, self._access.name))(scope, receive, send)

    @cached_property
    def _file_hashes(self) -> dict[str, str]:
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:12] for path in STATIC.iterdir()}

    def _static_address(self, name: str) -> str:
        return f"{PAGE}/static/{name}?v={self._file_hashes[name]}"

    async def _answer_screen(self, screen: Screen, request: Request) -> Response:
        """Answer a request for a screen; without sign-in show the form for that."""
        browser: Browser | None = getattr(request.state, "browser", None)
        asker = getattr(request.state, "asker", None)
        if asker is None:
            return self._please_sign_in(request)
        form = _parse_form(await request.body()) if request.method == "POST" else QueryParams()
        if browser is not None and request.method == "POST" and not browser.sent(form.get("token", "")):
            raise Forbidden("This form is from another sign-in: go back, load the page again, and send it once more.")
        path, query = request.url.path, request.query_params
        zone = zones.zone_named(request.cookies.get(zones.COOKIE, ""))
        visit = Visit(self._access, self._checkup, asker, browser, path, query, form, request.path_params, zone)
        return await run_sync(self._run_screen, screen, visit, request)

    def _run_screen(self, screen: Screen, visit: Visit, request: Request) -> Response:
        """Run a screen, in a thread; the error of a form is shown on the screen of that form."""
        try:
            work = screen.act if request.method == "POST" else screen.show
            found = work(visit) if work is not None else Done(visit.link(""), "")
            if isinstance(found, Shown):
                return self._render(found, visit, request)
        except Exception as error:  # noqa: BLE001 - a person must get a message for any error
            known = to_recollect_error(error, self._access.name)
            self._access.measures.refused(known)
            return self._error_response(request, known, visit)
        if wants_json(request):
            response = answered(to_json({"message": found.message} | dict(found.data)))
        else:
            response = RedirectResponse(found.to, 303)
            if visit.browser is not None:
                visit.browser.changed(found.message, found.undo)
        response.background = BackgroundTask(found.after) if found.after is not None else None
        return _with_headers(response)

    def _render(self, found: Shown, visit: Visit, request: Request) -> Response:
        """Return what a screen shows as JSON where the request asks for that, else as HTML."""
        if wants_json(request):
            if (error := found.data.get("error")) is not None:
                return _with_headers(failed(error))
            body = {name: value for name, value in found.data.items() if not name.startswith("_")}
            return _with_headers(answered(to_json(body), found.status))
        return self._render_html(found, visit)

    def _render_html(self, found: Shown, visit: Visit | None = None) -> Response:
        """Return the rendered template, with the message of the last change and the choice of places."""
        message, undo = "", None
        if visit is not None and (browser := visit.browser) is not None:
            message, browser.message = browser.message, ""
            undo = browser.changes.get(browser.undo_code) if message else None
        template = self._templates.get_template(found.template)
        common: dict[str, Any] = {"visit": visit, "message": message, "undo": undo, "error": None, "waiting": 0}
        zone = visit.zone if visit is not None else None
        common |= {"_zone": zone, "_zone_words": zones.zone_words(zone, self._access.app.clock())}
        if visit is not None and visit.browser is not None:
            common |= {"places": reports.places(visit), "waiting": inbox.waiting(visit)}
        body = template.render(common | found.data)
        return _with_headers(Response(body, found.status, media_type=HTML))

    def _error_response(self, request: Request, error: RecollectError, visit: Visit | None = None) -> Response:
        """Return an error as JSON or as a screen, with the header `Retry-After` where it has any."""
        if wants_json(request):
            return _with_headers(failed(error))
        data = {"error": error, "field": getattr(error, "field", "")}
        response = self._render_html(Shown("error.html", data, error.status), visit)
        if (value := failed(error).headers.get("Retry-After")) is not None:
            response.headers["Retry-After"] = value
        return response

    def _please_sign_in(self, request: Request, error: RecollectError | None = None) -> Response:
        """Return the form for signing in, or the error as JSON."""
        if wants_json(request):
            return _with_headers(
                failed(error or Unauthorized("Sign in first, or send a token: `Authorization: Bearer …`."))
            )
        wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        onward = own_address(request.query_params.get("next", wanted if request.method == "GET" else ""), f"{PAGE}/")
        sign_in = self._access.sign_in
        provider = sign_in.provider_name if sign_in is not None else ""
        data = {"error": error, "onward": onward, "team": bool(self._access.administration), "provider": provider}
        return self._render_html(Shown("sign_in.html", data, error.status if error else 401))

    async def _redeem_address(self, request: Request) -> Response:
        """Turn a one-time address into a cookie."""
        of_another_user = partial(is_of_another_user, request.scope)
        browser = self._access.browsers.redeem(request.query_params.get("code", ""), of_another_user)
        if browser is None:
            error = Unauthorized("This address was used already, or is too old: `recollect page` makes another one.")
            return self._please_sign_in(request, error)
        return self._let_in(request, browser, f"{PAGE}/")

    async def _sign_in(self, request: Request) -> Response:
        """Let a browser in whose form holds a valid token, else show the form again with the error."""
        if request.method == "GET":
            return self._please_sign_in(request)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _SIGN_IN:
                raise TooLarge(f"Request too large: At most {_SIGN_IN:,} bytes are taken.")
        form = _parse_form(body)
        try:
            browser = await run_sync(self._access.browser, form.get("secret", ""))
        except RecollectError as error:
            return self._please_sign_in(request, error)
        return self._let_in(request, browser, own_address(form.get("next", ""), f"{PAGE}/"))

    async def _begin_sign_in(self, request: Request) -> Response:
        return _with_headers(await provider_entry.to_provider(self._access, request))

    async def _end_sign_in(self, request: Request) -> Response:
        """Let in a browser that comes back from the identity provider."""
        try:
            browser, onward = await provider_entry.from_provider(self._access, request)
            response = self._let_in(request, browser, onward)
        except RecollectError as error:
            self._access.measures.refused(error)
            response = self._please_sign_in(request, error)
        provider_entry.forget(self._access, response)
        return response

    def _let_in(self, request: Request, browser: Browser, onward: str) -> Response:
        response = RedirectResponse(onward, 303)
        self._access.browsers.let_in(browser)
        return self._with_cookie(_with_headers(response), request, COOKIE, browser.name, LIFE)

    def _with_cookie(self, response: Response, request: Request, name: str, value: str, life: float) -> Response:
        """Add a cookie that no script reads and that only the page gets, over TLS alone where people reach it so.

        Behind a proxy the request itself does not say that, unless it has an `Origin`; the server's own address does.
        """
        sign_in = self._access.sign_in
        by_tls = request.url.scheme == "https" or request.headers.get("origin", "").startswith("https:")
        secure = by_tls or (sign_in is not None and sign_in.secure)
        response.set_cookie(name, value, int(life), path=PAGE, secure=secure, httponly=True, samesite="lax")
        return response

    async def _sign_out(self, request: Request) -> Response:
        """Forget the browser and delete its cookie."""
        browser: Browser | None = getattr(request.state, "browser", None)
        if browser is not None:
            if not browser.sent(_parse_form(await request.body()).get("token", "")):
                raise Forbidden("This form is from another sign-in: load the page again.")
            await run_sync(self._access.left, browser)
        response = RedirectResponse(f"{PAGE}/sign-in", 303)
        response.delete_cookie(COOKIE, path=PAGE)
        return _with_headers(response)

    async def _store_zone(self, request: Request) -> Response:
        """Keep the time zone of a browser in a cookie; a script sends it and then loads the screen again."""
        browser: Browser | None = getattr(request.state, "browser", None)
        form = _parse_form(await request.body())
        if browser is None or not browser.sent(form.get("token", "")):
            raise Forbidden("This form is from another sign-in: load the page again.")
        zone = zones.zone_from_browser(form.get("zone", ""))
        response = _with_headers(Response(status_code=204))
        return self._with_cookie(response, request, zones.COOKIE, zone.key, zones.LIFE)

    async def _static_file(self, request: Request) -> Response:
        """Return a file of the page; with its hash in the address a browser may keep it."""
        name = request.path_params["name"]
        if name not in self._file_hashes:
            raise NotFound("There is nothing at this address.")
        response = _with_headers(FileResponse(STATIC / name))
        if request.query_params.get("v") == self._file_hashes[name]:
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response

    async def _answer_missing(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        error = NotFound("There is nothing at this address.")
        await self._error_response(request, error)(scope, receive, send)


def wants_json(request: Request) -> bool:
    """Say whether a request asks for the JSON of a screen."""
    accepted = request.headers.get("accept", "")
    return request.query_params.get("format") == "json" or (JSON in accepted and "text/html" not in accepted)


def _methods_of(screen: Screen) -> list[str]:
    return ["GET"] * (screen.show is not None) + ["POST"] * (screen.act is not None)


def _parse_form(body: bytes) -> QueryParams:
    """Return the fields of a form; raise `InvalidInput` for a body that no browser sends."""
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FIELDS, errors="strict")
    except ValueError:
        raise InvalidInput("form", "Invalid form: It is not what a browser sends") from None
    return QueryParams([(name, value.replace("\r\n", "\n")) for name, value in pairs])


def _with_headers(response: Response) -> Response:
    """Return the response with the headers that protect the page."""
    for name, value in HEADERS.items():
        response.headers[name] = value
    return response
