"""A server that speaks OpenAI's chat completions, and answers as a script says: well, slowly, cut off or badly."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Script = Callable[[str, str], "Reply"]
"""Makes the reply to the instructions and the text of a question."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server sends: a text with its use of tokens, a status of an error, or nothing until it is let go."""

    text: str = ""
    status: int = 200
    tokens: tuple[int, int] = (100, 20)
    finish: str = "stop"
    hangs: bool = False
    raw: str = ""
    location: str = ""
    endless: bool = False


@dataclass(slots=True)
class ChatServer:
    """A running server: its address, what it was asked, and what it answers from now on."""

    url: str
    script: Script
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    sent: int = 0
    let_go: threading.Event = field(default_factory=threading.Event)

    def says(self, *replies: Reply | dict[str, Any]) -> None:
        """Answer with these, one after another, and with the last one from then on."""
        left = [one if isinstance(one, Reply) else Reply(json.dumps(one)) for one in replies]
        self.script = lambda _task, _text: left.pop(0) if len(left) > 1 else left[0]

    @property
    def texts(self) -> list[str]:
        """Return the text of each question."""
        return [said_in(one, "user") for one in self.asked]


def said_in(body: dict[str, Any], role: str) -> str:
    """Return what a request says in a role."""
    return "\n".join(str(one["content"]) for one in body["messages"] if one["role"] == role)


@contextmanager
def chat_server() -> Iterator[ChatServer]:
    """Run a server on a free port until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.path == "/v1/chat/completions"
            known.asked.append(body)
            known.keys.append(self.headers.get("Authorization", ""))
            reply = known.script(said_in(body, "system") + said_in(body, "developer"), said_in(body, "user"))
            if reply.hangs:
                known.let_go.wait()
                self.close_connection = True
                return
            if reply.endless:
                self.send_response(200)
                self.end_headers()
                with suppress(OSError):
                    while not known.let_go.is_set():
                        known.sent += self.wfile.write(reply.raw.encode() * 100_000)
                self.close_connection = True
                return
            sent = (reply.raw or json.dumps(_completion(body, reply))).encode()
            self.send_response(reply.status)
            self.send_header("Content-Type", "application/json")
            if reply.location:
                self.send_header("Location", reply.location)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    known = ChatServer(f"http://127.0.0.1:{server.server_port}/v1", lambda _task, _text: Reply("{}"))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield known
    finally:
        known.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _completion(body: dict[str, Any], reply: Reply) -> dict[str, Any]:
    if reply.status != 200:
        return {"error": {"message": "no", "type": "server_error", "code": None, "param": None}}
    message = {"role": "assistant", "content": reply.text}
    asked, said = reply.tokens
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
        "usage": {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said},
    }
