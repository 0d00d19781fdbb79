"""HTTP as all clients speak it: what is sent, and every way in which a response may come or break off."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from recollect.client.http import Response, send

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Type: Application/JSON; charset=utf-8\r\n\r\n[1,2]\n\nrest"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;name=value\r\n[1,\r\n4\r\n2]\n\n\r\n0\r\nTrailer: x\r\n\r\n"
)
TO_THE_END = b"HTTP/1.0 200 OK\n\n[1,2]\n\n"
AFTER_ANOTHER = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + PLAIN

Answered = Callable[[bytes, int], Response]


@pytest.fixture
def answered() -> Iterator[Answered]:
    """Return what makes a response of bytes that come in pieces of some length."""
    open_sockets: list[socket.socket] = []

    def answer(content: bytes, length: int) -> Response:
        ours, theirs = socket.socketpair()
        open_sockets.extend((ours, theirs))
        ours.settimeout(10)

        def write() -> None:
            with suppress(OSError):  # nobody has to read all of it
                for start in range(0, len(content), length):
                    theirs.sendall(content[start : start + length])
                theirs.shutdown(socket.SHUT_WR)

        threading.Thread(target=write, daemon=True).start()
        return Response(ours)

    yield answer
    for one in open_sockets:
        one.close()


@pytest.mark.parametrize("length", [1, 7, 10_000])
@pytest.mark.parametrize("content", [PLAIN, CHUNKED, TO_THE_END, AFTER_ANOTHER])
def test_a_content_comes_whole_in_every_way(answered: Answered, content: bytes, length: int) -> None:
    """By its length, in chunks or to the end of the connection, and however the network cuts it."""
    assert answered(content, length).status == 200
    assert answered(content, length).read() == b"[1,2]\n\n"
    assert list(answered(content, length).lines()) == [b"[1,2]", b"", b""]


def test_fields_are_found_by_their_names_in_small_letters(answered: Answered) -> None:
    """A media type is known however it is spelt, and by its first part."""
    response = answered(PLAIN, 10_000)
    assert response.headers["content-length"] == "7"
    assert response.media_type == "application/json"
    assert answered(TO_THE_END, 10_000).media_type == ""


@pytest.mark.parametrize("content", [b"", b"HTTP/1.1 200 OK\r\nContent-Le", PLAIN[:-10], CHUNKED[:-20], CHUNKED[:-4]])
def test_what_breaks_off_is_no_answer(answered: Answered, content: bytes) -> None:
    """A connection that ends too early is an error, never half of an answer."""
    with pytest.raises(ConnectionError):
        answered(content, 10_000).read()


@pytest.mark.parametrize(
    "content",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 perhaps\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        CHUNKED.replace(b"4\r\n", b"four\r\n"),
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1_000,
        b"HTTP/1.1 200 " + b"x" * 200_000,
    ],
)
def test_what_is_no_http_is_an_error(answered: Answered, content: bytes) -> None:
    """Another protocol, lengths that are no numbers, and heads without end."""
    with pytest.raises(ValueError, match=r"answer|invalid literal"):
        answered(content, 10_000).read()


def test_more_than_is_wanted_is_an_error(answered: Answered) -> None:
    """Who can wait for so much only reads no more."""
    assert answered(PLAIN, 10_000).read(7) == b"[1,2]\n\n"
    with pytest.raises(ValueError, match="too large"):
        answered(PLAIN, 10_000).read(6)


def test_a_request_is_what_a_server_expects() -> None:
    """A server of the standard library reads method, path, host, fields and content as they were meant."""
    seen: list[tuple[str, str, str | None, str | None, bytes]] = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.command, self.path, self.headers["Host"], self.headers["X-Name"], content))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with socket.create_connection(("127.0.0.1", server.server_port), 10) as link:
            send(link, "POST", "/v1/recall?user=ada", "example.org:1", {"X-Name": "Zoë"}, b"{}")
            response = Response(link)
            assert (response.status, response.read()) == (204, b"")
        server.shutdown()
    assert seen == [("POST", "/v1/recall?user=ada", "example.org:1", "Zoë", b"{}")]


@pytest.mark.parametrize(("target", "value"), [("/x HTTP/1.1\r\nX: y", "z"), ("/x", "z\r\nX: y"), ("/x", "z\n")])
def test_no_field_brings_another_one(target: str, value: str) -> None:
    """A line end in a path or a field is refused before anything is sent."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with pytest.raises(ValueError, match="line of its own"):
            send(ours, "GET", target, "localhost", {"Z": value})
        ours.shutdown(socket.SHUT_WR)
        assert theirs.recv(1) == b""
