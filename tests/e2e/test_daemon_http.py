"""MCP over streamable HTTP, and who may come in: over the Unix socket and over a port, with the token and without."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from daemon_place import Place, open_place, until
from recollect.errors import InvalidInput
from stores import lay

PATHS = ("/ping", "/v1/recall", "/v1/nothing", "/status", "/stop", "/mcp", "/mcp/", "/", "/nowhere")


@contextmanager
def serving(place: Place) -> Iterator[Place]:
    """Start the daemon of a place by hand, on a free port too."""
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with place.begin("serve", "--port", "0", **quiet) as process:
        until(place.runtime_file.exists)
        yield place
        if place.runtime_file.exists():
            process.terminate()
    assert process.returncode == 0
    assert not place.runtime_file.exists()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Iterator[Place]:
    """Return a place that is served for all tests here."""
    home = tmp_path_factory.mktemp("served") / "home"
    lay(migrated, home)
    with ExitStack() as undo:
        yield undo.enter_context(serving(open_place(home, undo)))


def http(place: Place, way: str, token: str | None = None, **headers: str) -> httpx2.AsyncClient:
    """Return an HTTP client that comes over the socket or the port, with the daemon's token or another."""
    published = place.published()
    token = published["token"] if token is None else token
    given = headers | ({"Authorization": f"Bearer {token}"} if token else {})
    if way == "port":
        return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{published['port']}", headers=given, timeout=None)
    transport = httpx2.AsyncHTTPTransport(uds=published["socket"])
    return httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=given, timeout=None)


def mcp_at(client: httpx2.AsyncClient, user: str = "ada", **more: str) -> Any:
    """Return the MCP stream of a user at the address of `client`."""
    query = urlencode({"user": user, "team": "crew", "project": "engine"} | more)
    return streamable_http_client(f"{str(client.base_url).rstrip('/')}/mcp?{query}", http_client=client)


def status_of(place: Place, way: str, path: str, token: str | None = None, **headers: str) -> int:
    async def ask() -> int:
        async with http(place, way, token, **headers) as client:
            return int((await client.post(path, json={})).status_code)

    return anyio.run(ask)


@pytest.mark.full_cases("auto-port", "legacy-socket")
@pytest.mark.parametrize("way", ["socket", "port"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_mcp_over_http(served: Place, way: str, mode: Literal["auto", "legacy"]) -> None:
    """An MCP client that speaks HTTP has the same tool, in both eras; it speaks as whom its address names."""

    async def talk() -> list[str]:
        async with http(served, way) as client, Client(mcp_at(client, f"{way}-{mode}"), mode=mode) as mcp:
            assert [tool.name for tool in (await mcp.list_tools()).tools] == ["memory"]
            content = {"action": "remember", "content": f"said over the {way} in {mode}", "scope": "personal"}
            assert not (await mcp.call_tool("memory", content)).is_error
            refused = await mcp.call_tool("memory", {"action": "forget"})
            assert refused.is_error
            found = await mcp.call_tool("memory", {"action": "recall", "query": f"said over the {way} in {mode}"})
        return [hit["content"] for hit in found.structured_content["memories"]]

    assert anyio.run(talk) == [f"said over the {way} in {mode}"]
    query = (
        f"SELECT name FROM namespace JOIN memory ON namespace.id = namespace_id WHERE content LIKE '%{way} in {mode}'"
    )
    assert served.rows(query) == [(f"user:{way}-{mode}",)]
    assert served.recall(f"said over the {way} in {mode}") == []


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("", "user"),
        ("?toolset=store", "user"),
        ("?project=engine", "user"),
        ("?user=ada", "project"),
        ("?user=%20&project=engine", "user"),
        ("?user=ada&project=", "project"),
        ("?user=ada&project=engine&team=a/b", "team"),
    ],
)
def test_an_http_client_says_who_asks(served: Place, query: str, named: str) -> None:
    """An address without a user or a project is refused on every method, with a sentence that says what is missing."""

    async def ask(method: str) -> tuple[int, str]:
        async with http(served, "port") as client:
            answer = await client.request(method, f"/mcp{query}")
            return int(answer.status_code), str(answer.json()["message"])

    for method in ("GET", "POST", "DELETE"):
        status, message = anyio.run(ask, method)
        assert status == 422
        assert named in message.partition(":")[0]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_http_clients_see_only_what_is_theirs(served: Place, mode: Literal["auto", "legacy"]) -> None:
    """Of two HTTP clients at one daemon each finds their own personal memories, and both find their project's."""

    async def talk(user: str, arguments: dict[str, str]) -> list[str]:
        async with http(served, "port") as client, Client(mcp_at(client, user, project=mode), mode=mode) as mcp:
            found = await mcp.call_tool("memory", arguments)
        assert not found.is_error
        return sorted(hit["content"] for hit in found.structured_content.get("memories", ()))

    users = (f"bob {mode}", f"Żofia 東 {mode}")
    for user in users:
        anyio.run(talk, user, {"action": "remember", "content": f"{user} likes maple syrup", "scope": "personal"})
    shared = {"action": "remember", "content": "The project likes maple syrup", "key": "syrup"}
    anyio.run(talk, users[0], shared)
    for user in users:
        found = anyio.run(talk, user, {"action": "recall", "query": "who likes maple syrup?"})
        assert found == sorted([f"{user} likes maple syrup", "The project likes maple syrup"])


def test_a_request_to_the_daemon_names_its_caller(served: Place) -> None:
    """A request of a thin client without a caller is refused by the name of that field; nobody is taken for it."""
    with served.wire() as wire:
        for path, body in (("/v1/stats", {}), ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})):
            with pytest.raises(InvalidInput, match="Missing user"):
                wire.post(path, body)
            with pytest.raises(InvalidInput, match="Missing project"):
                wire.post(f"{path}?user=ada", body)


@pytest.mark.parametrize("way", ["socket", "port"])
def test_no_path_opens_without_the_token(served: Place, way: str) -> None:
    """Without a token, with a wrong one or with a longer one every path answers 401, also those that do not exist."""
    token = served.published()["token"]
    wrong = ("", "wrong", token + "x", token[:-1], "é")
    asked = {(path, one): status_of(served, way, path, one) for path in PATHS for one in wrong if one.isascii()}
    assert set(asked.values()) == {401}
    with httpx2.Client(base_url=f"http://127.0.0.1:{served.published()['port']}") as client:
        said = client.post("/mcp", headers={"Authorization": "Bearer wrong"}).json()
    assert (said["error"], "`recollect status --token`" in said["message"]) == ("Unauthorized", True)
    assert status_of(served, way, "/ping") == 200
    assert status_of(served, way, "/nowhere") == 404


def test_a_page_of_elsewhere_does_not_come_in(served: Place) -> None:
    """A foreign Host (DNS rebinding) or Origin is refused on every path of the port, even with the token."""
    foreign = {status_of(served, "port", path, Host="evil.example:80") for path in PATHS}
    page = {status_of(served, "port", path, Origin="https://evil.example") for path in PATHS}
    assert (foreign, page) == ({421}, {403})
    for name in ("localhost", "127.0.0.1:1234", "[::1]:80"):
        assert status_of(served, "port", "/ping", Host=name) == 200
    assert status_of(served, "port", "/ping", Origin="http://localhost:3000") == 200


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
        b'{"query": 5}',
        b'{"query": "x", "caller": {}}',
    )
    known = "/v1/recall?user=ada&project=engine"
    for content in odd:
        for path in (known, f"{known}&on_secret=ask"):
            status, message = anyio.run(ask, content, path)
            assert status == 422
            assert re.match(r"Unknown|Invalid|Missing", message)
        assert anyio.run(ask, content, "/v1/nothing")[0] == 404
    with served.wire() as wire, pytest.raises(ValueError, match="Invalid content"):
        wire.post("/v1/remember?user=ada&project=engine", {"content": "x" * 5_000_000})


@pytest.mark.full
def test_open_streams_do_not_keep_it(place: Place) -> None:
    """`recollect stop` ends a daemon that MCP clients are still connected to."""

    async def talk() -> None:
        async with http(place, "port") as client, Client(mcp_at(client), mode="legacy") as mcp:
            await mcp.list_tools()
            said = await anyio.to_thread.run_sync(lambda: place.execute("stop", "--json"))
            assert json.loads(said) == {"stopped": True}

    with serving(place):
        anyio.run(talk)


@pytest.mark.full
def test_a_second_serve_is_refused(served: Place) -> None:
    """Whoever types `recollect serve` beside another's is told who serves already."""
    assert f"process {served.published()['pid']}" in served.execute("serve", code=5)


@pytest.mark.full
def test_a_port_that_is_taken(place: Place, served: Place) -> None:
    """`recollect serve` on a port that somebody has says so plainly, and the store is free again."""
    port = str(served.published()["port"])
    assert f"Port {port} on loopback cannot be used" in " ".join(place.execute("serve", "--port", port, code=9).split())
    assert "--port" in place.cli("serve", "--port", "99999", code=2)
    place.cli("--in-process", "remember", "it is free")
