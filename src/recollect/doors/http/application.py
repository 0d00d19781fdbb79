"""The HTTP application over one open store: operations, MCP, the events of sessions, and whether it is ready.

The local daemon and the server of a team are this application; who asks, and what more they may ask, `access` says.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property, partial
from typing import Any, Final

import anyio
from anyio.to_thread import run_sync
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.domain.verbs import VERBS, Verb
from recollect.doors import memory_tool, toolsets
from recollect.doors.current_request import operation
from recollect.doors.handlers import perform
from recollect.doors.http import openapi
from recollect.doors.http.access import Access
from recollect.doors.http.asker import Asked, Asking
from recollect.doors.http.entrance import Entrance
from recollect.doors.http.events import OPERATIONS, Taken, parts_of
from recollect.doors.http.mcp_http import McpOverHttp
from recollect.doors.http.messages import answered, failed, key_of, read_object, to_recollect_error
from recollect.doors.memory_tool import CallTool
from recollect.doors.serializers import wire_bytes
from recollect.doors.web import PAGE
from recollect.doors.web.route import PageRoute
from recollect.errors import InvalidInput, RecollectError
from recollect.spans import span

_MCP: Final = ("/mcp", "/mcp/")
_TOOLSETS: Final = ("toolset",)

_NO_ROUTE: Final = {
    404: ("NotFound", "There is nothing at this address: `/openapi.json` says what there is."),
    405: ("MethodNotAllowed", "This address takes another method: `/openapi.json` says which."),
}


class Application:
    """The routes over the store of `access`, with everything that a request passes before it is answered."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._mcp = McpOverHttp(self._run_of, access.most)
        routes = self._build_routes()
        handlers = {HTTPException: _no_route}
        api = Starlette(routes=routes, lifespan=self._lifespan, exception_handlers=handlers)  # type: ignore[arg-type]
        api.router.redirect_slashes = False
        labels = {one.path: one.path.removeprefix("/v1/").strip("/").replace("/", "_") for one in routes}
        self._entrance = Entrance(api, access, labels)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._entrance(scope, receive, send)

    def end_streams(self) -> None:
        """End the open streams of MCP, so that none keeps the process from ending."""
        self._mcp.end()

    def _build_routes(self) -> list[Route | Mount]:
        return [
            *(self._post_route(f"/v1/{one.name}", partial(self._run_operation, one)) for one in VERBS),
            self._post_route("/v1/memory", self._run_memory_tool),
            *(self._hook_route(f"/v1/hooks/{one}", partial(self._take_event, one)) for one in OPERATIONS),
            *self.access.routes(self._post_route),
            *(Route(path, _AddressChecked(self._mcp)) for path in _MCP),
            Route("/healthz", _answer_health),
            Route("/readyz", self._answer_readiness),
            Route("/openapi.json", self._answer_document),
            Mount(PAGE, PageRoute(self.access)),
        ]

    def _post_route(self, path: str, work: Callable[[Asked], Any], *, wait: bool = True) -> Route:
        """Return a route for JSON requests that `work` answers with JSON; each error has its own status.

        Without `wait` the request is answered at once, whatever else is running.
        """

        async def endpoint(request: Request) -> Response:
            try:
                asked = await _read_request(request)
                found = await self._run_in_thread(work, asked) if wait else work(asked)
                return answered(found if isinstance(found, bytes) else to_json(found))
            except Exception as error:  # noqa: BLE001 - the client must get a message for any error
                return failed(self._count_error(error))

        return Route(path, endpoint, methods=["POST"])

    def _hook_route(self, path: str, work: Callable[[Asked], Taken]) -> Route:
        """Return the route of an event. Memories in its answer count as shown once the agent's hook has received it.

        A hook that gave up has closed its connection by the time of the answer.
        """

        async def endpoint(request: Request) -> Response:
            try:
                taken: Taken = await self._run_in_thread(work, await _read_request(request))
                response = answered(to_json(taken.body))
                if taken.delivered is not None and not await request.is_disconnected():
                    response.background = BackgroundTask(_run_quietly, taken.delivered)
                return response
            except Exception as error:  # noqa: BLE001 - the client must get a message for any error
                return failed(self._count_error(error))

        return Route(path, endpoint, methods=["POST"])

    async def _run_in_thread(self, work: Callable[[Asked], Any], asked: Asked) -> Any:
        """Run the request's work in a thread and return its result; measure how long it waited for the thread."""
        began = time.perf_counter()

        def run() -> Any:
            started = time.perf_counter()
            self.access.measures.spent(operation.get(), "wait", started - began)
            asked.who.confirm()
            self.access.measures.spent(operation.get(), "confirm", time.perf_counter() - started)
            return work(asked)

        return await run_sync(run)

    def _count_error(self, error: Exception) -> RecollectError:
        """Return the error as one of ours, and count it where it is a refusal."""
        known = to_recollect_error(error, self.access.name)
        self.access.measures.refused(known)
        return known

    def _run_operation(self, found: Verb, asked: Asked) -> bytes:
        found.check(asked.body)
        with asked.who.asking(asked.query)(found.name) as (app, caller):
            return wire_bytes(found.answer, perform(app, found.name, asked.body, caller, asked.key))

    def _run_memory_tool(self, asked: Asked) -> dict[str, Any]:
        with asked.who.asking(asked.query)(memory_tool.NAME) as (app, caller):
            return memory_tool.run(app, asked.body, caller, asked.key).structured

    def _take_event(self, name: str, asked: Asked) -> Taken:
        event = asked.who.event(asked.query, *parts_of(asked.body, self.access.client[0]))
        event_id, late = str(asked.body.get("id", "")), bool(asked.body.get("late"))
        return self.access.events.take(name, event, self.access.app.clock().isoformat(), event_id, late=late)

    def _run_of(self, request: Request) -> CallTool:
        """Return the function that runs tool calls for the sender of this request."""
        asking, key = request.state.asker.asking(request.query_params, _TOOLSETS), key_of(request)
        return lambda name, arguments: self._call_tool(asking, name, arguments, key)

    def _call_tool(self, asking: Asking, name: str, arguments: dict[str, Any], key: str) -> memory_tool.ToolAnswer:
        """Run a call of a tool, and count its status."""
        status = RecollectError.status
        operation.set(name)
        try:
            with span(f"tool {name}"), asking(name) as (app, caller):
                answer = toolsets.run(app, name, arguments, caller, key)
            status = 200
            return answer
        except Exception as error:  # noqa: BLE001 - the client must get a message for any error
            known = self._count_error(error)
            status = known.status
            raise known from None
        finally:
            self.access.measures.called(name, status)

    async def _answer_readiness(self, _: Request) -> Response:
        """Answer whether database and model can be used; without the vector index text search answers."""
        body = await run_sync(self._readiness_now)
        return answered(to_json(body), 200 if body["ready"] else 503)

    def _readiness_now(self) -> dict[str, Any]:
        """Return whether the process is ready, and the state of database, model and vector index."""
        app = self.access.app
        try:
            app.vectors.waiting()
            database = "ready"
        except Exception as error:  # noqa: BLE001 - whatever breaks, the answer is that it does not answer
            to_recollect_error(error)
            database = "away"
        model = "ready" if app.embedder.ready else "failed" if app.embedder.failure else "loading"
        return {
            "ready": database == model == "ready" and not self.access.leaving,
            "database": database,
            "model": model,
            "vector_index": app.vectors.state,
        }

    async def _answer_document(self, _: Request) -> Response:
        return answered(await run_sync(lambda: self._document_bytes))

    @cached_property
    def _document_bytes(self) -> bytes:
        return to_json(openapi.document(self.access))

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = self.access.workers
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._mcp.run)
            yield
            tasks.cancel_scope.cancel()


class _AddressChecked:
    """Refuses an address that says what it may not, before a message of MCP is read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            request.state.asker.asking(request.query_params, _TOOLSETS)
        except InvalidInput as error:
            await failed(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)


async def _read_request(request: Request) -> Asked:
    body = await read_object(request)
    return Asked(request.state.asker, request.query_params, body, key_of(request))


def _run_quietly(work: Callable[[], object]) -> None:
    """Run work that follows an answer; an error in it is only logged, as nobody waits for it."""
    try:
        work()
    except Exception as error:  # noqa: BLE001 - the answer has been sent
        to_recollect_error(error)


async def _answer_health(_: Request) -> Response:
    return answered(b'{"ready":true}')


async def _no_route(_: Request, error: HTTPException) -> Response:
    """Answer that there is nothing at an address, or that it takes another method."""
    kind, message = _NO_ROUTE.get(error.status_code, ("InvalidInput", "Malformed request"))
    return answered(to_json({"error": kind, "message": message}), error.status_code, dict(error.headers or {}))
