"""MCP over streamable HTTP, and who may come in: over the Unix socket and over a port, with the token and without."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, Literal

import anyio
import httpx2
import pytest
from daemons import Place, until
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

PATHS = ("/hello", "/tool", "/operation", "/status", "/stop", "/mcp", "/mcp/", "/", "/nowhere")


@pytest.fixture
def served(place: Place) -> Iterator[Place]:
    """Return a place whose daemon somebody has started by hand, on a free port too."""
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with place.begin("serve", "--port", "0", **quiet) as process:
        until(place.runtime_file.exists)
        yield place
        if place.runtime_file.exists():
            process.terminate()
    assert process.returncode == 0
    assert not place.runtime_file.exists()


def http(place: Place, way: str, token: str | None = None, **headers: str) -> httpx2.AsyncClient:
    """Return an HTTP client that comes over the socket or the port, with the daemon's token or another."""
    published = place.published()
    token = published["token"] if token is None else token
    given = headers | ({"Authorization": f"Bearer {token}"} if token else {})
    if way == "port":
        return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{published['port']}", headers=given, timeout=None)
    transport = httpx2.AsyncHTTPTransport(uds=published["socket"])
    return httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=given, timeout=None)


def status_of(place: Place, way: str, path: str, token: str | None = None, **headers: str) -> int:
    async def ask() -> int:
        async with http(place, way, token, **headers) as client:
            return int((await client.post(path, json={})).status_code)

    return anyio.run(ask)


@pytest.mark.parametrize("way", ["socket", "port"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_mcp_over_http(served: Place, way: str, mode: Literal["auto", "legacy"]) -> None:
    """An MCP client that speaks HTTP has the same tool, in both eras; it speaks as the daemon's own caller."""

    async def talk() -> list[str]:
        async with http(served, way) as client:
            stream = streamable_http_client(f"{str(client.base_url).rstrip('/')}/mcp", http_client=client)
            async with Client(stream, mode=mode) as mcp:
                assert [tool.name for tool in (await mcp.list_tools()).tools] == ["memory"]
                content = {"action": "remember", "content": f"said over the {way}", "scope": "personal"}
                assert not (await mcp.call_tool("memory", content)).is_error
                refused = await mcp.call_tool("memory", {"action": "forget"})
                assert refused.is_error
                found = await mcp.call_tool("memory", {"action": "recall", "query": f"said over the {way}"})
        return [hit["content"] for hit in found.structured_content["memories"]]

    assert anyio.run(talk) == [f"said over the {way}"]
    assert served.rows("SELECT name FROM namespace JOIN memory ON namespace.id = namespace_id") == [("user:ada",)]
    assert served.recall(f"said over the {way}") == [f"said over the {way}"]


@pytest.mark.parametrize("way", ["socket", "port"])
def test_no_path_opens_without_the_token(served: Place, way: str) -> None:
    """Without a token, with a wrong one or with a longer one every path answers 401, also those that do not exist."""
    token = served.published()["token"]
    wrong = ("", "wrong", token + "x", token[:-1], "é")
    asked = {(path, one): status_of(served, way, path, one) for path in PATHS for one in wrong if one.isascii()}
    assert set(asked.values()) == {401}
    assert status_of(served, way, "/hello") == 200
    assert status_of(served, way, "/nowhere") == 404


def test_a_page_of_elsewhere_does_not_come_in(served: Place) -> None:
    """A foreign Host (DNS rebinding) or Origin is refused on every path of the port, even with the token."""
    foreign = {status_of(served, "port", path, Host="evil.example:80") for path in PATHS}
    page = {status_of(served, "port", path, Origin="https://evil.example") for path in PATHS}
    assert (foreign, page) == ({421}, {403})
    for name in ("localhost", "127.0.0.1:1234", "[::1]:80"):
        assert status_of(served, "port", "/hello", Host=name) == 200
    assert status_of(served, "port", "/hello", Origin="http://localhost:3000") == 200


def test_nonsense_is_refused_with_a_sentence(served: Place) -> None:
    """What is no request of ours gets a plain sentence, a large body and strange JSON included."""

    async def ask(content: bytes, path: str) -> tuple[int, str]:
        async with http(served, "socket") as client:
            answer = await client.post(path, content=content)
            return int(answer.status_code), str(answer.json()["message"])

    odd = (
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b"{}",
        b"[1]",
        b'{"caller": {"user": 5}}',
        b'{"arguments": 1, "caller": {}}',
    )
    for content in odd:
        for path in ("/tool", "/operation"):
            status, message = anyio.run(ask, content, path)
            assert status == 422
            assert re.match(r"The request is not of this daemon's form|Unknown operation|Invalid|Missing", message)
    long = {"name": "remember", "fields": {"content": "x" * 5_000_000}}
    with served.wire() as wire, pytest.raises(ValueError, match="Invalid content"):
        wire.post("/operation", long | {"caller": served.settings.caller.model_dump()})


def test_open_streams_do_not_keep_it(served: Place) -> None:
    """`recollect stop` ends a daemon that MCP clients are still connected to."""

    async def talk() -> None:
        async with http(served, "port") as client:
            stream = streamable_http_client(f"{str(client.base_url).rstrip(chr(47))}/mcp", http_client=client)
            async with Client(stream, mode="legacy") as mcp:
                await mcp.list_tools()
                said = await anyio.to_thread.run_sync(lambda: served.json("stop"))
                assert said == {"stopped": True}

    anyio.run(talk)


def test_a_port_that_is_taken(make_place: Callable[..., Place], served: Place) -> None:
    """`recollect serve` on a port that somebody has says so plainly, and the store is free again."""
    other = make_place(served.home.parent / "other")
    port = str(served.published()["port"])
    assert f"Port {port} on loopback cannot be used" in " ".join(other.cli("serve", "--port", port, code=9).split())
    assert "--port" in other.cli("serve", "--port", "99999", code=2)
    other.cli("--in-process", "remember", "it is free")
