"""The daemon's inside: a small HTTP application over one open store, guarded by the token of the runtime file.

Thin clients post tool calls and operations; MCP clients that speak HTTP find the same tool under `/mcp`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import anyio
import psutil
from anyio.to_thread import run_sync
from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from recollect.domain import Caller, OnSecret
from recollect.doors import memory_tool, toolsets
from recollect.doors.daemon.guard import Activity, Guard, plain
from recollect.doors.daemon.moving import Moving
from recollect.doors.daemon.runtime import Runtime
from recollect.doors.daemon.streamable import Streamable
from recollect.errors import InvalidInput, ModelMismatch, RecollectError
from recollect.operations.table import BY_NAME, perform
from recollect.ports import App

_WORKERS = 64
_AT_ONCE = ("hello", "status", "stop", "progress")
_IN_A_THREAD = ("tool", "operation", "reindex")


class Daemon:
    """The routes over one open store."""

    def __init__(self, app: App, runtime: Runtime, model: str, stop: Callable[[], None]) -> None:
        self.activity = Activity()
        self.runtime = runtime
        self._app = app
        self._model = model
        self._stop = stop
        self._mcp = Streamable(app)
        self._moving = Moving(app, self._end)
        self._loop: asyncio.AbstractEventLoop | None = None

    def application(self) -> ASGIApp:
        """Return the guarded ASGI application."""
        routes = [Route(f"/{name}", _answering(getattr(self, name), wait=False), methods=["POST"]) for name in _AT_ONCE]
        routes += [
            Route(f"/{name}", _answering(getattr(self, name), wait=True), methods=["POST"]) for name in _IN_A_THREAD
        ]
        routes += [Route(path, self._mcp) for path in ("/mcp", "/mcp/")]
        return Guard(Starlette(routes=routes, lifespan=self._lifespan), self.runtime.token, self.activity)

    def hello(self, _: dict[str, Any]) -> dict[str, Any]:
        """Say who is there; always at once, however much else is under way."""
        return {"pid": self.runtime.pid, "version": self.runtime.version, "protocol": self.runtime.protocol}

    def tool(self, body: dict[str, Any]) -> dict[str, Any]:
        """Run one call of a tool, whichever toolset it is of."""
        caller, name = Caller(**body["caller"]), str(body.get("name", memory_tool.NAME))
        arguments, request_id = dict(body["arguments"]), str(body.get("request_id", ""))
        return asdict(toolsets.call(self._app_for(body), name, arguments, caller, request_id))

    def operation(self, body: dict[str, Any]) -> dict[str, Any]:
        """Run one operation of the table; the result is the noun it returns, as JSON."""
        if body.get("name") not in BY_NAME:
            raise InvalidInput("name", f"Unknown operation: Must be one of {', '.join(sorted(BY_NAME))}")
        caller = Caller(**body["caller"])
        app, shape = self._app_for(body), BY_NAME[body["name"]].answer
        result = perform(app, body["name"], body["fields"], caller, body.get("request_id", ""))
        return {"result": TypeAdapter(shape).dump_python(result, mode="json")}

    def reindex(self, body: dict[str, Any]) -> dict[str, Any]:
        """Begin to bring the indexes up to date or the store to another model, and answer as soon as it goes on."""
        models_dir = body.get("models_dir")
        where = Path(models_dir) if models_dir else None
        self._moving.start(str(body["model"]), where, everything=bool(body.get("everything")))
        return self._moving.progress()

    def progress(self, _: dict[str, Any]) -> dict[str, Any]:
        """Say how far the reindex is."""
        return self._moving.progress()

    def status(self, _: dict[str, Any]) -> dict[str, Any]:
        """Say who owns the store, since when, with how much memory, and how ready it is."""
        about = {name: value for name, value in asdict(self.runtime).items() if name != "token"}
        return about | {
            "memory_bytes": psutil.Process().memory_info().rss,
            "requests": self.activity.requests,
            "idle_seconds": round(self.activity.idle_before, 1),
            "model": "ready" if self._app.embedder.ready else self._app.warmup.failure or "loading",
            "vector_index": self._app.vectors.state,
        }

    def stop(self, _: dict[str, Any]) -> dict[str, Any]:
        """Finish what is under way and end."""
        self._stop()
        self._mcp.end()
        return {"stopping": True}

    @property
    def idle_seconds(self) -> float:
        """Return for how long nobody has wanted anything and nothing is under way."""
        return 0.0 if self._moving.running else self.activity.idle_seconds

    def close(self) -> None:
        """Break off what is under way in the background."""
        self._moving.stop()

    def _end(self) -> None:
        """End from another thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.stop, {})

    def _app_for(self, body: dict[str, Any]) -> App:
        """Return the store as this request wants it: the client's rule for secrets, never another model."""
        wanted = body.get("model", self._model)
        if wanted not in (self._model, self._app.embedder.card.id):
            raise ModelMismatch(
                f"The memory daemon of this store works with the embedding model {self._model}, but {wanted} is "
                "configured. Set RECOLLECT_MODEL back, or run `recollect reindex` to move the store to the other model."
            )
        chosen = body.get("on_secret")
        return replace(self._app, on_secret=OnSecret(chosen)) if chosen else self._app

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        anyio.to_thread.current_default_thread_limiter().total_tokens = _WORKERS
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._mcp.run)
            yield
            tasks.cancel_scope.cancel()


def _answering(work: Callable[[dict[str, Any]], dict[str, Any]], *, wait: bool) -> Callable[[Request], Any]:
    """Make a route of a plain function: JSON in, JSON out, errors of ours with their own status."""

    async def endpoint(request: Request) -> JSONResponse:
        try:
            body = dict(await request.json())
            return JSONResponse(await run_sync(work, body) if wait else work(body))
        except RecollectError as error:
            return _refusal(error)
        except (KeyError, TypeError, ValueError) as error:
            message = f"The request is not of this daemon's form: {type(error).__name__}: {error}"
            return _refusal(InvalidInput("request", message))
        except Exception as error:  # noqa: BLE001 - a client must get a sentence whatever broke
            return _refusal(plain(error))

    return endpoint


def _refusal(error: RecollectError) -> JSONResponse:
    return JSONResponse({"error": type(error).__name__, "message": str(error)}, error.status)
