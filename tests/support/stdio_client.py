"""A real MCP client that talks to a real `recollect mcp` over stdio, for tests that are not async."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, Tool

from recollect.doors.memory_tool import DATA

SERVER = str(Path(sys.executable).with_name("recollect"))
PATIENCE = 300.0  # seconds, on a machine that is busy with other things too


class Talk:
    """One conversation with one server process."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client

    def tools(self) -> list[Tool]:
        """List the tools."""
        return self._portal.call(self._client.list_tools).tools

    def use(self, tool: str, **arguments: Any) -> CallToolResult:
        """Call any tool."""
        return self._portal.call(self._client.call_tool, tool, arguments)

    def call(self, **arguments: Any) -> CallToolResult:
        """Call the `memory` tool."""
        return self.use("memory", **arguments)

    def reply(self, **arguments: Any) -> str:
        """Return the one text of a call that went well."""
        result = self.call(**arguments)
        assert not result.is_error, result.content
        return str(result.content[0].text)

    def refused(self, **arguments: Any) -> str:
        """Return the one text of a call that was refused."""
        result = self.call(**arguments)
        assert result.is_error, result.content
        [content] = result.content
        return str(content.text)

    def remember(self, content: str, **fields: Any) -> str:
        """Remember and return the id."""
        result = self.call(action="remember", content=content, **fields)
        assert not result.is_error, result.content
        return str(result.structured_content["id"])

    def recall(self, query: str, **fields: Any) -> list[dict[str, Any]]:
        """Recall and return the JSON array that the text holds."""
        return list(json.loads(self.reply(action="recall", query=query, **fields)))

    def warm(self) -> None:
        """Wait until meaning is searched everywhere."""
        until(lambda: is_warm(self.call(action="recall", query="anything").structured_content))


def is_warm(answer: dict[str, Any]) -> bool:
    """Return whether an answer tells of nothing that could not be searched."""
    return {*answer.get("notes", ())} <= {DATA}


@contextmanager
def talking(
    environment: dict[str, str],
    mode: Literal["auto", "legacy"] = "auto",
    toolsets: Sequence[str] = (),
) -> Iterator[Talk]:
    """Start a server of these toolsets and talk to it until the block ends."""
    options = [word for name in toolsets for word in ("--toolset", name)]
    server = StdioServerParameters(command=SERVER, args=["mcp", *options], env=environment)
    made = Client(server, mode=mode)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(made) as client:
        yield Talk(portal, client)


def environment_of(home: Path, **changes: str) -> dict[str, str]:
    """Return the environment of a server that opens the store in `home` itself, unless `DAEMON` says otherwise."""
    theirs = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    ours = {"HOME": str(home), "USER": "ada", "TEAM": "crew", "PROJECT": "engine"}
    return theirs | {f"RECOLLECT_{name}": value for name, value in (ours | {"DAEMON": "0"} | changes).items()}


def memories_in(home: Path) -> list[tuple[int, str, str]]:
    """Look into the store from outside: id, content and time of the last change of every memory."""
    with closing(sqlite3.connect(home / "memory.db")) as database:
        return database.execute("SELECT id, content, updated_at FROM memory ORDER BY id").fetchall()


def until(condition: Callable[[], object]) -> None:
    """Ask again until the condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)
