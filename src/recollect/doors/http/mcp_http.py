"""MCP over streamable HTTP: the same tools for clients that speak HTTP themselves.

The address says for which toolsets: `/mcp?toolset=store` offers another than the default one. In the daemon it also
says who asks: `/mcp?user=ada&project=engine`. Names stand there and not in headers, which carry ASCII only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.doors.memory_tool import CallTool


class McpOverHttp:
    """An ASGI application that loads the MCP SDK at the first request.

    `run_of` returns the function that runs tool calls for the sender of a request; a body may have `most` bytes.
    """

    def __init__(self, run_of: Callable[[Request], CallTool], most: int) -> None:
        self._run_of = run_of
        self._most = most
        self._handler: ASGIApp | None = None
        self._requested = anyio.Event()
        self._ready = anyio.Event()
        self._scope: anyio.CancelScope | None = None

    async def run(self) -> None:
        """Serve sessions until `end`, from the first request on."""
        with anyio.CancelScope() as self._scope:
            await self._requested.wait()
            sessions = await run_sync(self._open_sessions)
            async with sessions.run():
                self._handler = sessions.handle_request
                self._ready.set()
                await anyio.sleep_forever()

    def end(self) -> None:
        """End every session, so that no open stream keeps the process alive."""
        if self._scope is not None:
            self._scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to the SDK, which the first one waits for."""
        self._requested.set()
        await self._ready.wait()
        if self._handler is not None:
            await self._handler(scope, receive, send)

    def _open_sessions(self) -> Any:
        """Return the session manager of the SDK, which is imported here as it takes half a second."""
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from recollect.doors.mcp import build  # takes half a second, which most daemons never need

        server = build(self._run_of, lambda request: request.query_params.getlist("toolset"))
        return StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=self._most)
