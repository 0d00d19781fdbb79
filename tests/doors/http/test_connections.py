"""Connections to the daemon: silent ones end, too many over TCP are refused, too large a request is answered."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import re
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from local_access import local_access
from recollect import Settings
from recollect.client import runtime
from recollect.client.daemon import Client, TokenRejected
from recollect.doors.http import connections, local
from recollect.doors.http.entrance import Entrance

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token\r\n"
Talk = Callable[[int], Awaitable[None]]


async def _length(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


def talk(talking: Talk) -> None:
    """Serve on a free port while `talking` runs."""

    async def run() -> None:
        routes = [Route("/", _length, methods=["POST"])]
        application = Entrance(Starlette(routes=routes), local_access(None, Settings()), {})
        server = uvicorn.Server(
            uvicorn.Config(application, http=connections.BoundedProtocol, log_config=None, lifespan="off")
        )
        with socket.create_server(("127.0.0.1", 0)) as listener:
            serving = asyncio.create_task(server.serve([listener]))
            await talking(listener.getsockname()[1])
            server.should_exit = True
            await serving

    asyncio.run(run())


async def asked(port: int, request: bytes) -> bytes:
    """Return the answer to a request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        return head + await reader.readexactly(int(length[1]) if length else 0)
    finally:
        writer.close()


async def body(reader: asyncio.StreamReader) -> bytes:
    """Return the body of an answer, one digit, from a connection that stays open."""
    await reader.readuntil(b"\r\n\r\n")
    return await reader.readexactly(1)


def test_a_silent_connection_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection on which half a request came is closed; one that asked in time stays open."""
    monkeypatch.setattr(connections, "HEAD", 0.2)

    async def talking(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD + b"Content-Length: 2\r\n\r\nab")
        assert await body(reader) == b"2"
        silent, half = await asyncio.open_connection("127.0.0.1", port)
        half.write(HEAD)
        with pytest.raises((ConnectionError, EOFError)):
            await silent.readexactly(1)
        half.close()
        writer.write(HEAD + b"Content-Length: 3\r\n\r\nabc")
        assert await body(reader) == b"3"
        writer.close()

    talk(talking)


def test_too_many_connections_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beyond the bound are closed at once while all others are at work; when these end there is room again."""
    monkeypatch.setattr(connections, "MOST_OVER_TCP", 3)

    async def talking(port: int) -> None:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for reader, writer in held:
            writer.write(HEAD + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\n")
            assert b"100" in await reader.read(100)
        late, refused = await asyncio.open_connection("127.0.0.1", port)
        with pytest.raises((ConnectionError, EOFError)):
            await late.readexactly(1)
        refused.close()
        for _, writer in held:
            writer.close()
        answer = b""
        while not answer:
            try:
                answer = await asked(port, HEAD + b"Content-Length: 1\r\n\r\nx")
            except (ConnectionError, EOFError):
                await asyncio.sleep(0.01)
        assert answer.startswith(b"HTTP/1.1 200")

    talk(talking)


def test_idle_connections_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked once and holds the connection is closed, the longest idle first, where others need the room."""
    monkeypatch.setattr(connections, "MOST_OVER_TCP", 3)

    async def talking(port: int) -> None:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for reader, writer in held:
            writer.write(HEAD + b"Content-Length: 1\r\n\r\nx")
            assert await body(reader) == b"1"
        assert (await asked(port, HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nxy")).endswith(b"2")
        with pytest.raises((ConnectionError, EOFError)):
            await held[0][0].readexactly(1)
        held[2][1].write(HEAD + b"Content-Length: 3\r\n\r\nxyz")
        assert await body(held[2][0]) == b"3"
        for _, writer in held:
            writer.close()

    talk(talking)


@pytest.mark.parametrize("used", [False, True])
def test_a_head_has_its_length_and_its_time(monkeypatch: pytest.MonkeyPatch, used: bool) -> None:
    """A head of a megabyte is refused, and half of one is not waited for, on a connection that was used too."""
    monkeypatch.setattr(connections, "HEAD", 0.3)

    async def opened(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if used:
            writer.write(HEAD + b"Content-Length: 1\r\n\r\nx")
            assert await body(reader) == b"1"
        return reader, writer

    async def talking(port: int) -> None:
        reader, writer = await opened(port)
        told = b""
        with contextlib.suppress(ConnectionError):
            writer.write(b"GET / HTTP/1.1\r\nX: ")
            for _ in range(2**20 // 1_000):
                writer.write(b"y" * 1_000)
                await writer.drain()
            told = await reader.read(2_000)
        assert told == b"" or told.startswith(b"HTTP/1.1 400")
        writer.close()
        reader, writer = await opened(port)
        writer.write(HEAD)
        with pytest.raises((ConnectionError, EOFError)):
            await reader.readexactly(1)
        writer.close()

    talk(talking)


def test_too_large_a_request_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that says that it is too large is refused before it is read, one that does not while it is read."""
    monkeypatch.setattr(local, "MOST", 100)

    async def talking(port: int) -> None:
        said = await asked(port, HEAD + b"Content-Length: 101\r\n\r\n" + b"x" * 101)
        assert said.startswith(b"HTTP/1.1 413")
        unsaid = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"3c\r\n" + b"x" * 60 + b"\r\n"
        found = await asked(port, unsaid + b"3c\r\n" + b"x" * 60 + b"\r\n0\r\n\r\n")
        assert b"At most 100 bytes" in found
        assert (await asked(port, HEAD + b"Content-Length: 100\r\n\r\n" + b"x" * 100)).endswith(b"100")

    talk(talking)


def test_a_file_that_cannot_be_read_just_now_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a free file descriptor the daemon does not take its runtime file for removed."""
    assert not runtime.published_by(tmp_path, 1)

    def full(*_: object) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("builtins.open", full)
    assert runtime.published_by(tmp_path, 1)


def test_an_answer_may_come_before_the_whole_request_is_sent(tmp_path: Path) -> None:
    """A daemon that rejects the token after the head and closes is understood, however much is still to be sent."""
    address = str(tmp_path / "socket")

    def reject() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(2_000)
            connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

    found = runtime.Runtime(pid=1, version="1", protocol=1, token="other", socket=address, port=0, since="today")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        rejecting = threading.Thread(target=reject)
        rejecting.start()
        with pytest.raises(TokenRejected, match="no longer process 1"):
            Client(found).post("/v1/remember", {"content": "x" * 5_000_000})
        rejecting.join()
