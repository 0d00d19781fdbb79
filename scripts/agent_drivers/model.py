"""A small server in place of the agents' models: answers what a case scripts, and keeps each request as evidence.

The address of each case begins with a name of its own, so that one server serves all of them at once.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, Final, Self

from agent_drivers.protocols import DIALECTS, SEARCH, Dialect, Json, Request, Step

_MODEL: Final = {"id": "scripted", "object": "model", "type": "model", "display_name": "Scripted"}
_SECRET: Final = ("authorization", "x-api-key", "x-goog-api-key")


@dataclass
class Conversation:
    """What the model says in one case: the steps after each prompt, and every request that came, with its file."""

    folder: Path
    steps: dict[str, tuple[Step, ...]] = field(default_factory=dict)
    """By a text that the prompt contains."""
    requests: list[Request] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def step(self, request: Request) -> Step:
        """Return the next step after the latest prompt that is known: each result of a tool ends one step.

        Of two in one text, where the later quotes the other, the first counts.
        """
        found = [(at, -text.find(one), one) for at, text in request.said for one in self.steps if one in text]
        if not found:
            return Step(text="A short title")
        place, _, prompt = max(found)
        done = sum(at > place for at, _ in request.results)
        return self.steps[prompt][done] if done < len(self.steps[prompt]) else Step()

    def answer(self, request: Request) -> Any:
        """Return the call or the text that answers a request, after as many seconds as its step takes."""
        step = self.step(request)
        time.sleep(step.seconds)
        call = request.call(step)
        if call or not step.kind:
            return call or step.text
        return SEARCH if request.search else f"There is no tool to {step.kind}."

    def after(self, prompt: str) -> list[Request]:
        """Return the requests that hold a prompt, in their order."""
        return [one for one in self.requests if any(prompt in text for _, text in one.said)]


class ModelServer:
    """The server, on a free port of this machine, for as long as the block of a `with` runs."""

    def __init__(self) -> None:
        self.conversations: dict[str, Conversation] = {}
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.conversations = self.conversations
        self.port = int(self._server.server_address[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def open(self, name: str, folder: Path) -> str:
        """Begin the conversation of a case, whose requests are kept in `folder`; return its address."""
        folder.mkdir(parents=True, exist_ok=True)
        self.conversations[name] = Conversation(folder)
        return f"http://127.0.0.1:{self.port}/{name}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    conversations: dict[str, Conversation]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Write nothing: requests are kept as files."""

    def do_HEAD(self) -> None:
        self._json(200, None)

    def do_GET(self) -> None:
        known = self.path.partition("?")[0].endswith("/models")
        self._json(200, {"data": [_MODEL], "models": []}) if known else self._unknown()

    def do_POST(self) -> None:
        body = self._body()
        name, _, path = self.path.partition("?")[0].lstrip("/").partition("/")
        conversation = self.server.conversations.get(name)
        if conversation is None:
            return self._unknown()
        number = next(conversation.numbers)
        self._keep(conversation.folder / f"{number:03}.json", path, body)
        if path.endswith(("/count_tokens", ":countTokens")):
            size = len(json.dumps(body)) // 4
            return self._json(200, {"input_tokens": size, "totalTokens": size})
        dialect = next((one for end, one in DIALECTS.items() if path.endswith(end)), None)
        if dialect is None:
            return self._unknown()
        return self._answer(dialect, conversation, body, number)

    def _answer(self, dialect: Dialect, conversation: Conversation, body: Json, number: int) -> None:
        request = dialect.read(body)
        request.body = json.dumps(body, ensure_ascii=False)
        conversation.requests.append(request)
        whole = dialect.whole(conversation.answer(request), body, number)
        if not (request.stream or "stream" in self.path):
            self._json(200, whole)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event, data in dialect.events(whole):
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(((f"event: {event}\n" if event else "") + f"data: {text}\n\n").encode())
        self.close_connection = True

    def _keep(self, file: Path, path: str, body: Json) -> None:
        headers = {name: text for name, text in self.headers.items() if name.lower() not in _SECRET}
        kept = {"path": path, "headers": headers, "body": body}
        file.write_text(json.dumps(kept, indent=1, ensure_ascii=False), encoding="utf-8")

    def _body(self) -> Json:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            content = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            content = gzip.decompress(content)
        try:
            found = json.loads(content)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _unknown(self) -> None:
        self._json(404, {"type": "error", "error": {"type": "not_found_error", "message": "There is no such thing."}})

    def _json(self, status: int, data: Json | None) -> None:
        content = json.dumps(data).encode() if data is not None else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
