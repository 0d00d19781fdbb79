"""The daemon's HTTP application over one open store: operations, commands, events of sessions, and MCP under `/mcp`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import psutil
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.app import App
from recollect.client.runtime import Runtime
from recollect.client.transport import KEY
from recollect.domain.enums import OnSecret
from recollect.domain.fields import one_of
from recollect.domain.verbs import BY_NAME
from recollect.doors import hook_spool, toolsets
from recollect.doors.daemon import commands, hook_requests
from recollect.doors.daemon.auth import Activity, TokenAuth
from recollect.doors.daemon.reindex_job import ReindexJob
from recollect.doors.operations import perform
from recollect.doors.serializers import wire_bytes
from recollect.doors.serving import mcp_http
from recollect.doors.serving.errors import error_response, to_recollect_error
from recollect.doors.serving.hook_queue import HookQueue
from recollect.doors.serving.mcp_http import McpOverHttp
from recollect.errors import InvalidInput, ModelMismatch, RecollectError
from recollect.settings import Settings

log = logging.getLogger(__name__)

_WORKERS = 64
_FINISH = 30.0  # seconds for the events that wait when the daemon stops
_AT_ONCE = ("ping", "status", "stop", "progress")
_IN_THREAD = ("command", "hook", "reindex")


class Daemon:
    """The routes over one open store."""

    def __init__(self, app: App, runtime: Runtime, model: str, folder: Path, stop: Callable[[], None]) -> None:
        self.activity = Activity()
        self.runtime = runtime
        self._app = app
        self._model = model
        self._folder = folder
        self._stop = stop
        self._mcp = McpOverHttp(self._run_of, stateless=True)
        self._reindex_job = ReindexJob(app, self._end)
        self._hooks = HookQueue()
        self._loop: asyncio.AbstractEventLoop | None = None

    def application(self) -> ASGIApp:
        """Return the ASGI application, with authentication."""
        routes = [
            Route(f"/{name}", _answering(_from_body(getattr(self, name), wait=name in _IN_THREAD)), methods=["POST"])
            for name in (*_AT_ONCE, *_IN_THREAD)
        ]
        routes.append(Route("/v1/{name}", _answering(self._operation), methods=["POST"]))
        routes += [Route(path, _Asked(self._mcp)) for path in ("/mcp", "/mcp/")]
        return TokenAuth(Starlette(routes=routes, lifespan=self._lifespan), self.runtime.token, self.activity)

    def ping(self, _: dict[str, Any]) -> dict[str, Any]:
        """Return process and version; at once, whatever else is running."""
        return {name: self.runtime.public[name] for name in ("pid", "version", "protocol")}

    def _run_of(self, request: Request) -> mcp_http.Run:
        """Return what runs tool calls for the caller that the address of this request names."""
        caller, app, key = mcp_http.caller_of(request.query_params), self._app_for(request.query_params), _key(request)
        return lambda name, arguments, _: toolsets.run(app, name, arguments, caller, key)

    async def _operation(self, request: Request) -> Response:
        """Run one operation of the table for the caller that the address names; answer in JSON."""
        asked, name = request.query_params, request.path_params["name"]
        if name not in BY_NAME:
            raise InvalidInput("name", f"Unknown operation: Must be one of {', '.join(sorted(BY_NAME))}")
        caller, app, fields = mcp_http.caller_of(asked), self._app_for(asked), dict(await request.json())

        def run() -> bytes:
            return wire_bytes(BY_NAME[name].answer, perform(app, name, fields, caller, _key(request)))

        return Response(await run_sync(run), media_type="application/json")

    def command(self, body: dict[str, Any]) -> dict[str, Any]:
        """Run the command line of a client that imports nothing, and return what it prints."""
        return commands.run(body, self._serving(str(body["request_id"])))

    def hook(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a prompt of a coding agent's session; take its other events to work them off later."""
        app = self._app
        later = app.ask_later if app.capabilities.chat is not None else None
        return hook_requests.take(body, self._serving(""), app.clock().isoformat(), self._hooks, later)

    def _serving(self, request_id: str) -> Callable[[Settings], Callable[..., Any]]:
        """Return what makes, of a client's settings, what runs operations for that client.

        One command may run several: each has an id of its own, which a retry of the command finds again.
        """

        def serving(settings: Settings) -> Callable[..., Any]:
            app = self._app_for({"model": settings.model, "on_secret": str(settings.on_secret)})

            def run(name: str, **fields: Any) -> Any:
                own = request_id and f"{request_id} {name} {sorted(fields.items())}"
                return perform(app, name, fields, settings.caller, own)

            return run

        return serving

    def reindex(self, body: dict[str, Any]) -> dict[str, Any]:
        """Start to update the indexes or to move the store to another model; answer once the model is loaded."""
        models_dir = body.get("models_dir")
        where = Path(models_dir) if models_dir else None
        self._reindex_job.start(str(body["model"]), where, everything=bool(body.get("everything")))
        return self._reindex_job.progress()

    def progress(self, _: dict[str, Any]) -> dict[str, Any]:
        """Return how far the reindex is."""
        return self._reindex_job.progress()

    def status(self, _: dict[str, Any]) -> dict[str, Any]:
        """Return process, start time, memory use, and whether model and vector index are ready."""
        return self.runtime.public | {
            "memory_bytes": psutil.Process().memory_info().rss,
            "requests": self.activity.requests,
            "idle_seconds": round(self.activity.idle_before, 1),
            "model": "ready" if self._app.embedder.ready else self._app.embedder.failure or "loading",
            "vector_index": self._app.vectors.state,
            "events_waiting": self._hooks.waiting,
            "events_lost": self._hooks.lost + hook_spool.lost(str(self._folder)),
        }

    def stop(self, _: dict[str, Any]) -> dict[str, Any]:
        """Finish running requests and stop."""
        self._stop()
        self._mcp.end()
        return {"stopping": True}

    @property
    def idle_seconds(self) -> float:
        """Return the seconds without a request, an event that waits, or a running reindex."""
        return 0.0 if self._reindex_job.running or self._hooks.waiting else self.activity.idle_seconds

    def finish(self) -> None:
        """Work off the events that were taken."""
        if not self._hooks.finish(_FINISH):
            log.warning("%d events of sessions were lost, as the daemon had to end", self._hooks.waiting)

    def close(self) -> None:
        """Stop the reindex, if one is running."""
        self._reindex_job.stop()

    def _end(self) -> None:
        """Stop from another thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.stop, {})

    def _app_for(self, asked: Mapping[str, str]) -> App:
        """Return the store with the rule for secrets of a client; raise `ModelMismatch` for another model."""
        wanted = asked.get("model", self._model)
        if wanted not in (self._model, self._app.embedder.card.id):
            raise ModelMismatch(
                f"The memory daemon of this store uses the embedding model {self._model}, but {wanted} is "
                "configured. Set RECOLLECT_MODEL back, or run `recollect reindex` to move the store to the other model."
            )
        chosen = asked.get("on_secret")
        if chosen and chosen not in tuple(OnSecret):
            raise InvalidInput("on_secret", f"Invalid on_secret: {one_of(OnSecret)}")
        return replace(self._app, on_secret=OnSecret(chosen)) if chosen else self._app

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        anyio.to_thread.current_default_thread_limiter().total_tokens = _WORKERS
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._mcp.run)
            yield
            tasks.cancel_scope.cancel()


class _Asked:
    """Refuses a request whose address does not say who asks."""

    def __init__(self, mcp: McpOverHttp) -> None:
        self._mcp = mcp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            mcp_http.caller_of(QueryParams(scope["query_string"]))
        except InvalidInput as error:
            await error_response(error)(scope, receive, send)
            return
        await self._mcp(scope, receive, send)


Endpoint = Callable[[Request], Awaitable[Response]]


def _from_body(work: Callable[[dict[str, Any]], dict[str, Any]], *, wait: bool) -> Endpoint:
    """Make a route of a function: JSON in, JSON out."""

    async def endpoint(request: Request) -> Response:
        body = dict(await request.json())
        return JSONResponse(await run_sync(work, body) if wait else work(body))

    return endpoint


def _answering(endpoint: Endpoint) -> Endpoint:
    """Let each error be answered with its own status."""

    async def answering(request: Request) -> Response:
        try:
            return await endpoint(request)
        except RecollectError as error:
            return error_response(error)
        except (KeyError, TypeError, ValueError) as error:
            message = f"Malformed request: {type(error).__name__}: {error}"
            return error_response(InvalidInput("request", message))
        except Exception as error:  # noqa: BLE001 - the client must get a message for any error
            return error_response(to_recollect_error(error))

    return answering


def _key(request: Request) -> str:
    return request.headers.get(KEY, "")
