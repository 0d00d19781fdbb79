"""The MCP door over stdio: answers `initialize` and `tools/list` at once, opens the store meanwhile.

Standard output belongs to the protocol: the transport points file descriptor 1 at standard error before
anything heavy is imported.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Protocol

import anyio
import mcp_types as types
from anyio import from_thread
from anyio.to_thread import run_sync
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from recollect.doors import memory_tool
from recollect.doors.memory_tool import Answer
from recollect.errors import RecollectError
from recollect.ports import App

log = logging.getLogger(__name__)

INSTRUCTIONS = (
    "Recollect keeps memories across sessions. At the start of a task recall what is known about it; "
    "when you learn something lasting, remember it."
)


class Backend(Protocol):
    """Whoever runs the tool's calls; `said` hears what a call is waiting for."""

    def begin(self) -> None:
        """Get ready in the background."""

    def tool(self, arguments: dict[str, Any], said: Callable[[str], None]) -> Answer:
        """Run one call of the tool."""

    def close(self) -> None:
        """Let go of whatever was opened."""


class InProcess:
    """A store of this very process, opened in the background; whoever needs it first waits for it."""

    def __init__(self, open_store: Callable[[], App]) -> None:
        self._open = open_store
        self._lock = threading.Lock()
        self._app: App | None = None

    def begin(self) -> None:
        """Open the store in a thread of its own; a failure shows when the store is asked for."""
        threading.Thread(target=self._quietly, name="recollect-opening", daemon=True).start()

    def tool(self, arguments: dict[str, Any], _: Callable[[str], None]) -> Answer:
        """Run one call of the tool, opening the store when nobody has or when it failed before."""
        return memory_tool.call(self._opened(), arguments)

    def close(self) -> None:
        """Close the store if it is open."""
        with self._lock:
            app, self._app = self._app, None
        if app is not None:
            app.close()

    def _opened(self) -> App:
        with self._lock:
            if self._app is None:
                self._app = self._open()
            return self._app

    def _quietly(self) -> None:
        try:
            self._opened()
        except RecollectError as error:
            log.warning("%s", error)


def tool() -> types.Tool:
    """Return the tool as MCP lists it."""
    return types.Tool(
        name=memory_tool.NAME,
        title=memory_tool.TITLE,
        description=memory_tool.DESCRIPTION,
        input_schema=memory_tool.INPUT_SCHEMA,
        output_schema=memory_tool.OUTPUT_SCHEMA,
        annotations=types.ToolAnnotations(
            read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
        ),
    )


def build(backend: Backend) -> Server[Any]:
    """Return the MCP server of the tool over `backend`."""

    async def list_tools(_: object, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool()])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name != memory_tool.NAME:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: `{params.name}`. Allowed: `{memory_tool.NAME}`")

        def said(what: str) -> None:
            from_thread.run(context.session.report_progress, 0.0, None, what)

        return _result(await run_sync(_call, backend, params.arguments or {}, said))

    return Server(
        "recollect",
        version=version("recollect"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve(backend: Backend) -> None:
    """Serve the tool over stdin and stdout until the client goes."""

    async def run() -> None:
        async with stdio_server() as (reading, writing):
            server = build(backend)
            backend.begin()
            await server.run(reading, writing, server.create_initialization_options())

    try:
        anyio.run(run)
    finally:
        backend.close()


def _call(backend: Backend, arguments: dict[str, Any], said: Callable[[str], None]) -> Answer:
    try:
        return backend.tool(arguments, said)
    except RecollectError as error:
        return memory_tool.failure(error)


def _result(answer: Answer) -> types.CallToolResult:
    content = [types.TextContent(type="text", text=text) for text in answer.texts]
    return types.CallToolResult(content=list(content), structured_content=answer.structured, is_error=answer.failed)
