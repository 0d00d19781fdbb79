"""MCP over streamable HTTP: the same tools for clients that speak HTTP themselves.

The address says for which toolsets: `/mcp?toolset=store` offers another than the default one. In the daemon it also
says who asks: `/mcp?user=ada&project=engine`. Names stand there and not in headers, which carry ASCII only.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import anyio
from anyio.to_thread import run_sync
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.domain.requests import Caller
from recollect.doors.memory_tool import ToolAnswer
from recollect.doors.serving.errors import to_recollect_error
from recollect.errors import InvalidInput

Run = Callable[[str, dict[str, Any], object], ToolAnswer]

_WHO = "The address says who asks: `/mcp?user=NAME&project=NAME`, and `&team=NAME` where the team is not `local`."


class McpOverHttp:
    """An ASGI application that loads the MCP SDK at the first request.

    `run_of` returns what runs tool calls for who sent a request; `options` are those of the SDK's sessions.
    """

    def __init__(self, run_of: Callable[[Request], Run], **options: object) -> None:
        self._run_of = run_of
        self._options = options
        self._handler: ASGIApp | None = None
        self._requested = anyio.Event()
        self._ready = anyio.Event()
        self._scope: anyio.CancelScope | None = None

    async def run(self) -> None:
        """Serve sessions until `end`, from the first request on."""
        with anyio.CancelScope() as self._scope:
            await self._requested.wait()
            sessions = await run_sync(self._sessions)
            async with sessions.run():
                self._handler = sessions.handle_request
                self._ready.set()
                await anyio.sleep_forever()

    def end(self) -> None:
        """End every session, so that no open stream keeps the daemon from ending."""
        if self._scope is not None:
            self._scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to the SDK, which the first one waits for."""
        self._requested.set()
        await self._ready.wait()
        if self._handler is not None:
            await self._handler(scope, receive, send)

    def _sessions(self) -> Any:
        door: Any = import_module("recollect.doors.mcp")  # takes half a second, which most daemons never need
        manager: Any = import_module("mcp.server.streamable_http_manager")
        return manager.StreamableHTTPSessionManager(door.build(self._reporting, _sets_of), **self._options)

    def _reporting(self, request: Request) -> Run:
        """Return what runs tool calls for a request, and logs an error that nobody meant."""

        def run(name: str, arguments: dict[str, Any], report: object) -> ToolAnswer:
            try:
                return self._run_of(request)(name, arguments, report)
            except Exception as error:  # noqa: BLE001 - the client must get a message for any error
                raise to_recollect_error(error) from None

        return run


def caller_of(asked: QueryParams) -> Caller:
    """Return the caller that an address names; raise `InvalidInput` where it names no user or no project."""
    for name in ("user", "project"):
        if not asked.get(name, "").strip():
            raise InvalidInput(name, f"Missing {name}: {_WHO}")
    return Caller(**{name: asked[name] for name in ("user", "team", "project") if name in asked})


def _sets_of(request: Request) -> list[str]:
    """Return the toolsets that an address asks for."""
    return request.query_params.getlist("toolset")
