"""Single messages of MCP for the pipe that `recollect mcp` is: each comes with who asks and how its session began.

The daemon keeps nothing between two of them, so that the next daemon can go on when this one is killed.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from recollect.doors import memory_tool
from recollect.doors.daemon.auth import error_response, to_recollect_error
from recollect.doors.memory_tool import ToolAnswer
from recollect.errors import InvalidInput

PATH: Final = "/mcp/message"
_LINES: Final = b"application/x-ndjson"
_BEAT: Final = 5.0  # seconds between two signs of life

CallTool = Callable[[dict[str, Any], str, dict[str, Any]], ToolAnswer]
"""Runs a tool by its name with arguments, for whom the first argument, the request's body, says."""


class _Asked(NamedTuple):
    """What comes with a message: what runs calls of tools, and the toolsets that its client was offered."""

    run: Callable[..., ToolAnswer]
    sets: list[str]


class McpMessages:
    """An ASGI application that loads the MCP SDK at the first request, and answers in JSON, one object a line."""

    def __init__(self, call: CallTool) -> None:
        self._call = call
        self._door: Any = None
        self._server: Any = None
        self._loading = anyio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the message of a request until it is answered, or until the client leaves."""
        try:
            body = dict(await Request(scope, receive).json())
            message, sets, opening = dict(body["message"]), list(body["toolsets"]), body.get("opening")
        except (KeyError, TypeError, ValueError) as error:
            malformed = InvalidInput("request", f"Malformed request: {type(error).__name__}: {error}")
            await error_response(malformed)(scope, receive, send)
            return

        async def say(line: str) -> None:
            await send({"type": "http.response.body", "body": f"{line}\n".encode(), "more_body": True})

        async def beat() -> None:
            while True:
                await anyio.sleep(_BEAT)
                await say("")

        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", _LINES)]})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(beat)
            tasks.start_soon(_until_gone, receive, tasks.cancel_scope)
            await self._load()
            await self._door.exchange(self._server, opening, message, _Asked(self._run_of(body), sets), say)
            tasks.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b""})

    def _run_of(self, body: dict[str, Any]) -> Callable[..., ToolAnswer]:
        def run(name: str, arguments: dict[str, Any], _: object) -> ToolAnswer:
            try:
                return self._call(body, name, arguments)
            except Exception as error:  # noqa: BLE001 - the client must get a message for any error
                return memory_tool.failure(to_recollect_error(error))

        return run

    async def _load(self) -> None:
        async with self._loading:
            if self._server is None:
                self._door = await run_sync(import_module, "recollect.doors.mcp")  # takes most of a second
                self._server = self._door.build(lambda asked: asked.run, lambda asked: asked.sets)


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
    scope.cancel()
