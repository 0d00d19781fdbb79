"""The server's HTTP application over one open store: operations, MCP, the events of sessions, and its own state."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

import anyio
from anyio.to_thread import run_sync
from fastapi import FastAPI
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect import __version__
from recollect.app import App
from recollect.auth.administration import administer
from recollect.auth.authenticate import authenticate, look_again
from recollect.client.transport import KEY
from recollect.domain.requests import Caller
from recollect.domain.verbs import ADMIN, VERBS, Verb
from recollect.doors import memory_tool, toolsets
from recollect.doors.operations import perform
from recollect.doors.serializers import wire_bytes
from recollect.doors.server import address, document, probes, stages
from recollect.doors.server.bodies import answered, failed, read_object
from recollect.doors.server.entrance import METRICS, Admission, Entrance, Rules
from recollect.doors.server.events import Events, operation_of
from recollect.doors.server.metrics import CONTENT_TYPE, Metrics
from recollect.doors.server.rates import Rates
from recollect.doors.serving import hook_events
from recollect.doors.serving.errors import to_recollect_error
from recollect.doors.serving.mcp_http import McpOverHttp, Run
from recollect.errors import Forbidden, InvalidInput
from recollect.ports.accounts import confirmed_by
from recollect.settings import Settings

_MIB: Final = 2**20
_OF_ADMINS: Final = frozenset({"doctor"})
"""Operations that look at the whole store."""
_LONGEST_KEY: Final = 200
_SESSIONS: Final = frozenset((*hook_events.OPERATIONS.values(), "prompt_submit", "list_sessions", "show_session"))
_HEALTHY: Final = "Say that the process answers."
_READY: Final = "Say whether database and model can be used. Without the vector index words answer, and it is ready."
_MCP: Final = ("/mcp", "/mcp/")

Work = Callable[[Admission, address.Address, dict[str, Any], str], bytes]
"""Runs what a request asks for: who sends it, its address, its body and its idempotency key; returns JSON."""


class Server:
    """The routes over one open store, whose opening `began` at that moment of the monotonic clock."""

    def __init__(self, app: App, settings: Settings, began: float | None = None) -> None:
        self.metrics = Metrics()
        self.events = Events()
        self.leaving = False
        """Whether it was told to end, so that nobody shall send it more."""
        self._app = stages.timed(replace(app, reads_folders=False), self.metrics.spent)
        self._settings = settings
        self._mcp = McpOverHttp(self._run_of, stateless=True, max_request_body_size=settings.max_body_mib * _MIB)
        parts = [operation_of(one) for one in hook_events.OPERATIONS]
        self._schemas = document.Schemas([*VERBS, *parts, *ADMIN])
        probes.measure(app, self.events, self.metrics, time.monotonic() if began is None else began)

    def application(self) -> ASGIApp:
        """Return the ASGI application, with everything that a request passes before it is answered."""
        api = FastAPI(
            title="Recollect",
            version=__version__,
            description="Memory for AI agents and their teams. Who asks comes from the token alone.",
            lifespan=self._lifespan,
            redirect_slashes=False,
            docs_url=None,  # their scripts would come from elsewhere
            redoc_url=None,
            exception_handlers={HTTPException: _no_route},
        )
        api.openapi = partial(document.whole, api, self._schemas.components)  # type: ignore[method-assign]
        self._add_operations(api)
        self._add_others(api)
        rules = Rules(
            admit=partial(authenticate, self._app),
            again=partial(look_again, self._app),
            admit_metrics=self._admit_metrics,
            rates=Rates(self._settings.requests_per_minute),
            most=self._settings.max_body_mib * _MIB,
            larger={"/v1/import_batch": self._settings.max_import_mib * _MIB},
        )
        return Entrance(api, rules, self.metrics, _labels(api))

    def end_streams(self) -> None:
        """End the open streams of MCP, so that none keeps the server from ending."""
        self._mcp.end()

    def _add_operations(self, api: FastAPI) -> None:
        schemas = self._schemas
        for one in VERBS:
            told = schemas.route(one)
            api.add_api_route(
                f"/v1/{one.name}",
                self._endpoint(partial(self._operation, one), keyed=one.writes),
                methods=["POST"],
                operation_id=one.name,
                tags=["sessions" if one.name in _SESSIONS else "memories"],
                **told,
            )
        for one in ADMIN:
            told = schemas.route(one, narrowed=False)
            api.add_api_route(
                f"/v1/admin/{one.name}",
                self._endpoint(partial(self._administration, one), keyed=False, narrowed=False),
                methods=["POST"],
                operation_id=f"admin_{one.name}",
                tags=["administration"],
                **told,
            )

    def _add_others(self, api: FastAPI) -> None:
        api.add_api_route(
            "/v1/memory",
            self._endpoint(self._memory, keyed=True),
            methods=["POST"],
            operation_id="memory",
            tags=["memories"],
            **document.memory(memory_tool.input_schema(), memory_tool.output_schema()),
        )
        for event in hook_events.OPERATIONS:
            api.add_api_route(
                f"/v1/hooks/{event}",
                self._endpoint(partial(self._hook, event), keyed=False),
                methods=["POST"],
                operation_id=f"hook_{event.replace(':', '_')}",
                tags=["sessions"],
                **document.hook(event, self._schemas.request(operation_of(event))),
            )
        api.add_api_route("/healthz", _health, methods=["GET"], **document.probe("Health", _HEALTHY))
        api.add_api_route("/readyz", self._ready, methods=["GET"], **document.probe("Readiness", _READY, unready=True))
        api.add_api_route(METRICS, self._metrics, methods=["GET"], include_in_schema=False)
        api.router.routes += [Route(path, _Checked(self._mcp, ("toolset",))) for path in _MCP]

    def _endpoint(self, work: Work, *, keyed: bool, narrowed: bool = True) -> Callable[[Request], Awaitable[Response]]:
        """Make a route of what works on a request: JSON in, JSON out, each error with its own status."""

        async def endpoint(request: Request) -> Response:
            try:
                asked = address.read(request.query_params) if narrowed else address.none(request.query_params)
                key = _key(request) if keyed else ""
                body = await read_object(request)
                asked_at = time.perf_counter()

                def run() -> bytes:
                    self.metrics.spent(stages.operation.get(), "wait", time.perf_counter() - asked_at)
                    return work(request.state.admission, asked, body, key)

                return answered(await run_sync(run))
            except Exception as error:  # noqa: BLE001 - the client must get a message for any error
                return self._failed(error)

        return endpoint

    def _failed(self, error: Exception) -> Response:
        known = to_recollect_error(error, "the server")
        self.metrics.refused(known)
        return failed(known)

    def _operation(
        self, operation: Verb, who: Admission, asked: address.Address, body: dict[str, Any], key: str
    ) -> bytes:
        if operation.name in _OF_ADMINS and not who.current().administers():
            raise Forbidden(f"You have no right to `{operation.name}`: it is for admins of the deployment.")
        with _asking(who, asked) as caller:
            return wire_bytes(operation.answer, perform(self._app, operation.name, body, caller, key))

    def _administration(
        self, operation: Verb, who: Admission, _: address.Address, body: dict[str, Any], key: str
    ) -> bytes:
        del key
        known = who.current()
        with confirmed_by(lambda: who.confirm(lambda now: now == known)):
            return wire_bytes(operation.answer, administer(self._app, operation.name, body, known))

    def _memory(self, who: Admission, asked: address.Address, body: dict[str, Any], key: str) -> bytes:
        with _asking(who, asked) as caller:
            return document.packed(memory_tool.run(self._app, body, caller, key).structured)

    def _hook(self, event: str, who: Admission, asked: address.Address, body: dict[str, Any], _: str) -> bytes:
        taken = self.events.take(self._app, event, body, partial(_asking, who, asked))
        return document.packed({"text": ""} | taken)

    def _run_of(self, request: Request) -> Run:
        """Return what runs tool calls for who sent this request."""
        who, asked, key = request.state.admission, address.read(request.query_params, ("toolset",)), _key(request)
        return lambda name, arguments, _: self._call(who, asked, name, arguments, key)

    def _call(
        self, who: Admission, asked: address.Address, name: str, arguments: dict[str, Any], key: str
    ) -> memory_tool.ToolAnswer:
        """Run one call of a tool, and count how it ends."""
        status = 500
        stages.operation.set(name)
        try:
            with _asking(who, asked) as caller:
                answer = toolsets.run(self._app, name, arguments, caller, key)
            status = 200
            return answer
        except Exception as error:  # noqa: BLE001 - it is counted, and answered as a sentence
            known = to_recollect_error(error, "the server")
            self.metrics.refused(known)
            status = known.status
            raise known from None
        finally:
            self.metrics.called(name, status)

    def _admit_metrics(self, bearer: str) -> None:
        """Let in who holds the token for metrics, or that of an admin of the deployment."""
        if probes.is_metrics_token(bearer, self._settings.metrics_token):
            return
        if not authenticate(self._app, bearer).administers():
            raise Forbidden("You have no right to the metrics: they are for admins of the deployment.")

    async def _ready(self) -> Response:
        """Say whether the database and the model can be used; without the vector index texts answer."""
        body = await run_sync(probes.readiness, self._app)
        body["ready"] = body["ready"] and not self.leaving
        return JSONResponse(body, 200 if body["ready"] else 503)

    async def _metrics(self) -> Response:
        return Response(await run_sync(self.metrics.text), media_type=CONTENT_TYPE)

    @asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = self._settings.workers
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._mcp.run)
            yield
            tasks.cancel_scope.cancel()


@contextmanager
def _asking(who: Admission, asked: address.Address) -> Iterator[Caller]:
    """Give the caller of a request, whose rights are looked up once more in each transaction that it writes in."""
    caller = asked.caller(who.current())
    with confirmed_by(lambda: who.confirm(lambda now: asked.caller(now) == caller)):
        yield caller


class _Checked:
    """Refuses an address that says what it may not, before a message of MCP is read."""

    def __init__(self, app: ASGIApp, also: tuple[str, ...] = ()) -> None:
        self._app = app
        self._also = also

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            address.read(QueryParams(scope["query_string"]), self._also)
        except InvalidInput as error:
            await failed(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)


async def _health() -> Response:
    return JSONResponse({"ready": True})


async def _no_route(_: Request, error: Exception) -> Response:
    """Say that there is nothing at an address, or that it takes another method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    kind, message = _NO_ROUTE.get(status, ("InvalidInput", "Malformed request"))
    return JSONResponse({"error": kind, "message": message}, status, headers)


_NO_ROUTE: Final = {
    404: ("NotFound", "There is nothing at this address: `/openapi.json` says what there is."),
    405: ("MethodNotAllowed", "This address takes another method: `/openapi.json` says which."),
}


def _key(request: Request) -> str:
    """Return the idempotency key of a request; raise `InvalidInput` for one that is too long or no plain text."""
    key = request.headers.get(KEY, "")
    if len(key) > _LONGEST_KEY or not (key.isascii() and key.isprintable()):
        raise InvalidInput(
            "Idempotency-Key", f"Invalid Idempotency-Key: Must have at most {_LONGEST_KEY} printable ASCII characters"
        )
    return key


def _labels(api: FastAPI) -> dict[str, str]:
    """Return for each address what the log and the metrics call it."""
    paths = [str(getattr(one, "path", "")) for one in api.routes]
    return {path: path.removeprefix("/v1/").strip("/").replace("/", "_") for path in paths}
