"""MCP over streamable HTTP inside the daemon: the same tools for clients that speak HTTP themselves.

The address says which: `/mcp` offers the default toolset, `/mcp?toolset=store&toolset=dual` others.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import anyio
from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.doors import memory_tool, toolsets
from recollect.doors.daemon.guard import plain
from recollect.doors.memory_tool import Answer
from recollect.ports import App


class Streamable:
    """An ASGI application that loads the MCP SDK when the first client comes; the guard has let that one in."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._inner: ASGIApp | None = None
        self._wanted = anyio.Event()
        self._ready = anyio.Event()
        self._scope: anyio.CancelScope | None = None

    async def run(self) -> None:
        """Serve sessions until `end`, once somebody wants any."""
        with anyio.CancelScope() as self._scope:
            await self._wanted.wait()
            sessions = await run_sync(self._sessions)
            async with sessions.run():
                self._inner = sessions.handle_request
                self._ready.set()
                await anyio.sleep_forever()

    def end(self) -> None:
        """End every session, so that no open stream keeps the daemon from ending."""
        if self._scope is not None:
            self._scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request to the SDK; the first one waits for it to be loaded."""
        self._wanted.set()
        await self._ready.wait()
        if self._inner is not None:
            await self._inner(scope, receive, send)

    def _sessions(self) -> Any:
        door: Any = import_module("recollect.doors.mcp")  # half a second that most daemons never need
        manager: Any = import_module("mcp.server.streamable_http_manager")
        return manager.StreamableHTTPSessionManager(door.build(_Here(self._app)))


class _Here:
    """The backend of the MCP door over the daemon's own open store; the caller is the daemon's."""

    def __init__(self, app: App) -> None:
        self._app = app

    def begin(self) -> None:
        return None

    def close(self) -> None:
        return None

    def tool(self, name: str, arguments: dict[str, Any], _: Callable[[str], None]) -> Answer:
        try:
            return toolsets.call(self._app, name, arguments)
        except Exception as error:  # noqa: BLE001 - a client must get a sentence whatever broke
            return memory_tool.failure(plain(error))
