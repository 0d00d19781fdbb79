"""Each line on standard input that is no message of MCP gets one answer, in one process and through the daemon."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon_place import Place
from raw_lines import NO_MESSAGES
from stdio_client import SERVER, environment_of, memories_in
from stores import lay

_OPENING = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


class Lines:
    """A server that is written to, and read, line by line."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [SERVER, "mcp"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, line: bytes | dict[str, Any]) -> dict[str, Any]:
        """Write one line and return the next one that comes back."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the input, and with it the server."""
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module", params=["in one process", "through the daemon"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, migrated: Path
) -> Iterator[tuple[Lines, Path]]:
    """Return a server that has begun a session, and its data folder."""
    if request.param == "in one process":
        home = tmp_path_factory.mktemp("lines") / "home"
        lay(migrated, home)
        environment = environment_of(home)
    else:
        place: Place = request.getfixturevalue("common")
        home, environment = place.home, place.environment
    lines = Lines(environment)
    assert lines.ask(_OPENING)["id"] == 0
    yield lines, home
    lines.close()


@pytest.mark.parametrize(("line", "number", "code"), NO_MESSAGES.values(), ids=NO_MESSAGES)
def test_what_is_no_message_gets_one_answer(
    server: tuple[Lines, Path], line: bytes, number: int | None, code: int
) -> None:
    """The answer names the request where its id can be read, and the next one is answered as ever."""
    lines, _ = server
    wrong = lines.ask(line)
    assert (wrong["id"], wrong["error"]["code"]) == (number, code)
    assert lines.ask({"jsonrpc": "2.0", "id": 8, "method": "ping"}) == {"jsonrpc": "2.0", "id": 8, "result": {}}


def test_what_is_not_utf8_is_not_stored(server: tuple[Lines, Path]) -> None:
    """A byte of another encoding is named with its place, and nothing is stored in its stead."""
    lines, home = server
    call = b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"memory","arguments":{"action":"remember",'
    wrong = lines.ask(call + b'"content":"The caf\xe9 opens at six"}}}')
    at = len(call) + len('"content":"The caf')
    assert wrong["error"]["message"] == f"Parse error: The input is not UTF-8: byte 0xE9 at position {at}"
    assert memories_in(home) == []
