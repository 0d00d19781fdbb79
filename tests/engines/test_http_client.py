"""Servers on this machine are asked directly whatever proxy the environment names; others through that proxy."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import numpy as np
import pytest
from pydantic import BaseModel

from chat_server import chat_server
from chroma_process import ChromaProcess
from clock import Clock
from embedding_server import serving
from recollect.engines.chat import open_chat
from recollect.engines.embedder import Embedder
from recollect.engines.embedding_service import ServedEmbedder
from recollect.engines.http_client import client_for
from recollect.errors import ModelUnusable
from recollect.server_url import is_loopback
from recollect.store.sql.database import open_file
from recollect.store.sql.migrations import migrate
from recollect.store.sql.token_ledger import SqlTokenLedger
from recollect.store.vectors.chroma import ChromaServer
from recollect.store.vectors.index import IndexAway

_DEAD = "http://127.0.0.1:9"
_VARIABLES = [change(f"{kind}_proxy") for kind in ("http", "https", "all", "no") for change in (str.upper, str.lower)]


class Colour(BaseModel):
    """What the language model is asked for."""

    name: str


@pytest.fixture(
    params=[("HTTP_PROXY", _DEAD), ("http_proxy", _DEAD), ("ALL_PROXY", _DEAD), ("all_proxy", "socks5h://127.0.0.1:9")],
    ids=lambda one: f"{one[0]}={one[1].partition(':')[0]}",
)
def dead_proxy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the environment name a proxy that nobody answers at."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(*request.param)


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Run a proxy that the environment names, and return the addresses that it is asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.send_error(502)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{server.server_port}")
    yield asked
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.usefixtures("dead_proxy")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_embeddings_are_asked_for_directly(embedder: Embedder, host: str) -> None:
    """An embedding server on this machine is reached by its name and by its number."""
    with serving(embedder) as server:
        asking = ServedEmbedder(embedder.card, server.url.replace("127.0.0.1", host))
        assert len(asking.read(["the harbour"])) == 1
        asking.close()


@pytest.mark.usefixtures("dead_proxy")
def test_a_language_model_is_asked_directly(tmp_path: Path, clock: Clock) -> None:
    """A language model on this machine is reached."""
    file = open_file(tmp_path / "memory.db")
    migrate(file)
    with chat_server() as server:
        chat = open_chat("tiny", server.url, "", SqlTokenLedger(file, clock, 9_000, 9_000), seconds=20.0)
        assert chat is not None
        server.says({"name": "red"})
        assert chat.ask("Name the colour.", "The sky.", Colour, most=50) == Colour(name="red")
    file.close()


@pytest.mark.usefixtures("dead_proxy")
def test_chroma_is_asked_directly(chroma_process: ChromaProcess) -> None:
    """A Chroma server on this machine is reached, by all of chromadb's connections."""
    index = ChromaServer(chroma_process.url, "g1", "proxied")
    vector = np.eye(4, dtype=np.float32)[0]
    index.put("user:ada", ["1.0"], [vector])
    assert index.query("user:ada", vector, 1) == {1: pytest.approx(1.0)}
    index.discard()
    index.close()


def test_another_machine_is_asked_through_the_proxy(proxy: list[str], embedder: Embedder) -> None:
    """What is not on this machine is asked for through the proxy that the environment names."""
    asking = ServedEmbedder(embedder.card, "http://embeddings.example:8080")
    with pytest.raises(ModelUnusable):
        asking.read(["the harbour"])
    index = ChromaServer("http://chroma.example:8000", "g1", "proxied")
    with pytest.raises(IndexAway):
        index.open()
    assert {one.split("/")[2] for one in proxy} == {"embeddings.example:8080", "chroma.example:8000"}


@pytest.mark.parametrize("named", ["socks5://127.0.0.1:9", "http://proxy:port", "ftp://127.0.0.1:9"])
def test_a_proxy_that_cannot_be_used_is_named(
    named: str, monkeypatch: pytest.MonkeyPatch, proxy: list[str], embedder: Embedder
) -> None:
    """An address of a proxy that no client can use is one sentence, for what needs the proxy."""
    monkeypatch.setenv("ALL_PROXY", named)
    with pytest.raises(ConnectionError, match="the proxy that the environment names cannot be used: "):
        client_for("http://embeddings.example", httpx.Client)
    with pytest.raises(ModelUnusable, match="the proxy that the environment names"):
        ServedEmbedder(embedder.card, "http://embeddings.example").warm()
    client_for("http://[::1]:8000", httpx.Client).close()


@pytest.mark.parametrize(
    ("host", "here"),
    [
        *(("localhost", True), ("LOCALHOST", True), ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True)),
        *(("0:0:0:0:0:0:0:1", True), ("localhost.example", False), ("10.0.0.1", False), ("", False)),
    ],
)
def test_only_loopback_is_this_machine(host: str, here: bool) -> None:
    """A name or a number counts as this machine only where no other can be behind it."""
    assert is_loopback(host) is here
