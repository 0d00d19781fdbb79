"""A local server that speaks `/v1/embeddings` over a real embedder, with switches for what goes wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from recollect.engines.embedder import Embedder


@dataclass
class EmbeddingServer:
    """What the server does, and what it was asked."""

    embedder: Embedder
    url: str = ""
    key: str = ""
    reported: str = "served"
    status: int = 200
    failures: int = 10**9  # requests that get `status` before it is well again
    message: str = ""
    longest: int = 10**9  # characters of one text
    hold: threading.Event = field(default_factory=threading.Event)
    asked: list[list[str]] = field(default_factory=list)

    def answer(self, body: dict[str, Any], authorization: str) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of an answer."""
        self.hold.wait()
        texts = body["input"]
        self.asked.append(texts)
        if self.key and authorization != f"Bearer {self.key}":
            return 401, {"error": "no"}
        if self.status != 200 and self.failures > 0:
            self.failures -= 1
            return self.status, {"error": {"message": self.message}}
        if any(len(one) > self.longest for one in texts):
            return 400, {"error": {"message": "This model's maximum context length is less."}}
        found = [one.vector.tolist() for one in self.embedder.read(texts)]
        data = [{"object": "embedding", "index": place, "embedding": one} for place, one in enumerate(found)]
        return 200, {"object": "list", "data": data[::-1], "model": self.reported, "message": self.message}


@contextmanager
def serving(embedder: Embedder, **switches: Any) -> Iterator[EmbeddingServer]:
    """Serve until the block ends."""
    state = EmbeddingServer(embedder, **switches)
    state.hold.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = state.answer(body, self.headers.get("Authorization", ""))
            told = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            with suppress(OSError):  # nobody waits any more
                self.wfile.write(told)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        state.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()
