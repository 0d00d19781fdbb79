"""Single messages of MCP for the pipe that `recollect mcp` is: each comes with who asks and how its session began.

Nothing is kept between two of them, so that another process can go on when this one is killed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Final, NamedTuple

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from recollect.doors.memory_tool import ToolAnswer
from recollect.doors.serving.errors import error_response
from recollect.doors.serving.mcp_http import guarded
from recollect.errors import InvalidInput

PATH: Final = "/mcp/message"
REPLY: Final = "/mcp/reply"
_LINES: Final = b"application/x-ndjson"
_NO_MESSAGE: Final = '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Not a message of MCP"}}'
_BEAT: Final = 5.0  # seconds between two signs of life

CallTool = Callable[[Request, dict[str, Any], str, dict[str, Any]], ToolAnswer]
"""Runs a tool by its name with arguments, for whom the request or its body, the first arguments, say."""


class _Asked(NamedTuple):
    """What comes with a message: what runs calls of tools, the client's toolsets, and whether its replies come here."""

    run: Callable[..., ToolAnswer]
    sets: list[str]
    replies: bool


class McpMessages:
    """An ASGI application that loads the MCP SDK at the first request, and answers in JSON, one object a line.

    With `replies` it is the one process that a client's replies in the middle of a call come to.
    """

    def __init__(self, call: CallTool, *, replies: bool = False) -> None:
        self._call = call
        self._replies = replies
        self._back: Any = None
        self._door: Any = None
        self._server: Any = None
        self._loading = anyio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the message of a request until it is answered, or until the client leaves."""
        request = Request(scope, receive)
        try:
            body = dict(await request.json())
            message, sets, opening = dict(body["message"]), list(body["toolsets"]), body.get("opening")
        except (KeyError, TypeError, ValueError, RecursionError) as error:
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
            asked = _Asked(guarded(partial(self._call, request, body)), sets, self._replies)
            try:
                await self._door.exchange(self._server, opening, message, asked, say, self._back)
            except* ValueError:
                await say(_NO_MESSAGE)
            tasks.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b""})

    async def reply(self, request: Request) -> Response:
        """Take what a client answers to a request that it got in the middle of a call."""
        try:
            await self._load()
            await self._back.answered(dict((await request.json())["message"]))
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            return error_response(InvalidInput("message", f"Malformed reply: {type(error).__name__}: {error}"))
        return JSONResponse({})

    async def _load(self) -> None:
        async with self._loading:
            if self._server is None:
                self._door = await run_sync(import_module, "recollect.doors.mcp")  # takes most of a second
                self._back = self._door.BackChannel()
                self._server = self._door.build(
                    lambda asked: asked.run, lambda asked: asked.sets, lambda asked: asked.replies
                )


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
    scope.cancel()
