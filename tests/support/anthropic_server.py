"""A server that speaks Anthropic's messages: its model calls the memory tool as told, one call after another.

It keeps the thread of a conversation, as the tool runner of today wants: a request holds what is new.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(slots=True)
class AnthropicServer:
    """A running server: its address, and what it was asked."""

    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def results(self) -> list[tuple[str, bool]]:
        """Return what the model was told after each of its calls, and whether as an error."""
        contents = [message["content"] for body in self.asked for message in body["messages"]]
        blocks = [block for content in contents if isinstance(content, list) for block in content]
        return [(str(one["content"]), bool(one.get("is_error"))) for one in blocks if one["type"] == "tool_result"]


@contextmanager
def anthropic_server(*calls: dict[str, Any]) -> Iterator[AnthropicServer]:
    """Run a server on a free port until the block ends, whose model makes these calls of the tool `memory`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.path.partition("?")[0] == "/v1/messages"
            known.asked.append(body)
            answered = len(known.asked) - 1
            block: dict[str, Any] = {"type": "text", "text": "Done."}
            if answered < len(calls):
                block = {"type": "tool_use", "id": f"toolu_{answered}", "name": "memory", "input": calls[answered]}
            message = {
                "id": f"msg_{answered}",
                "type": "message",
                "role": "assistant",
                "model": body["model"],
                "content": [block],
            }
            ended = {"stop_reason": "end_turn" if block["type"] == "text" else "tool_use", "stop_sequence": None}
            self._send(message | ended | {"usage": {"input_tokens": 10, "output_tokens": 5}})

        def _send(self, body: dict[str, Any]) -> None:
            raw = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known = AnthropicServer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
