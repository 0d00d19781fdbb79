"""A syslog server in this process: takes messages of RFC 5424 over TCP, TLS or UDP, and keeps each as it came."""

from __future__ import annotations

import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Syslog:
    """A server that listens; `messages` are those that came whole, in their order. It ends after `most` on a stream."""

    messages: list[bytes] = field(default_factory=list)
    port: int = 0
    most: int = 0


@contextmanager
def taking(kind: str, context: ssl.SSLContext | None = None, most: int = 0) -> Iterator[Syslog]:
    """Give a server of a kind, `tcp` or `udp`, until the block ends; with `most` a connection ends after so many."""
    found = Syslog(most=most)

    class Stream(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while length := self._length():
                found.messages.append(self.rfile.read(length))
                if found.most and len(found.messages) % found.most == 0:
                    return

        def _length(self) -> int:
            digits = b""
            while (sign := self.rfile.read(1)) not in (b" ", b""):
                digits += sign
            return int(digits or b"0")

    class Datagram(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            found.messages.append(self.request[0])

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = False
        allow_reuse_address = True

        def get_request(self) -> Any:
            link, address = super().get_request()
            return (link if context is None else context.wrap_socket(link, server_side=True)), address

    made = Server(("127.0.0.1", 0), Stream) if kind == "tcp" else socketserver.UDPServer(("127.0.0.1", 0), Datagram)
    with made as server:
        found.port = server.server_address[1]
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield found
        finally:
            server.shutdown()
            serving.join()
