"""Hooks where `RECOLLECT_URL` names a server: it gets the event by its token, and a prompt its memories."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from command_line import EXECUTABLE
from hook_payloads import payload

SLOW = "a prompt that takes the server long"


class Server(ThreadingHTTPServer):
    """Notes what it is sent, and answers each event with one text, some later than anybody waits."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.taken: list[tuple[str, str, dict[str, Any]]] = []

    def handle_error(self, *_: object) -> None:
        """Say nothing of a client that has left."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server

    def do_POST(self) -> None:
        """Take one event."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.taken.append((self.path, self.headers["Authorization"], body))
        if body["fields"].get("prompt") == SLOW:
            time.sleep(8.0)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"taken": True, "text": "We ship on Fridays."}).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    """Serve on a free port."""
    with Server() as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving
        serving.shutdown()


def hook(server: Server, folder: Path, event: str, **changes: Any) -> str:
    """Run a hook of Claude Code in a process of its own, which no server keeps for long, and return its answer."""
    port = server.server_address[1]
    environment = {
        "PATH": os.defpath,
        "HOME": str(folder),
        "RECOLLECT_URL": f"http://127.0.0.1:{port}",
        "RECOLLECT_TOKEN": "rec_token",
        "RECOLLECT_PROJECT": "engine",
    }
    environment |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    said = payload("claude-code", event, {"cwd": str(folder)} | changes)
    began = time.monotonic()
    done = subprocess.run(
        [EXECUTABLE, "hook", event, "--agent", "claude-code"],
        input=json.dumps(said).encode(),
        env=environment,
        cwd=folder,
        capture_output=True,
        check=True,
    )
    assert time.monotonic() - began < 6.0
    assert done.stderr == b""
    return done.stdout.decode()


def until_taken(server: Server) -> tuple[str, str, dict[str, Any]]:
    """Return the first event that comes."""
    end = time.monotonic() + 20.0
    while not server.taken and time.monotonic() < end:
        time.sleep(0.02)
    return server.taken[0]


def test_a_prompt_gets_its_memories(server: Server, tmp_path: Path) -> None:
    """The server gets the prompt by the token, narrowed to the project, and its text reaches the agent."""
    answer = hook(server, tmp_path, "UserPromptSubmit", prompt="When do we ship?")
    assert "We ship on Fridays." in answer
    [(path, token, body)] = server.taken
    assert path.startswith("/v1/hooks/prompt:submit?project=engine&zone=")
    assert token == "Bearer rec_token"
    assert body["fields"]["prompt"] == "When do we ship?"


@pytest.mark.parametrize("event", ["SessionStart", "Stop"])
def test_a_start_and_the_end_of_a_turn_are_answered(server: Server, tmp_path: Path, event: str) -> None:
    """The index of a start, and what an agent is asked at the end of a turn, come from the server too."""
    said = {"source": "startup", "last_assistant_message": "Done.", "stop_hook_active": False}
    assert "We ship on Fridays." in hook(server, tmp_path, event, **said)
    assert server.taken[0][0].startswith(f"/v1/hooks/{'session:start' if event == 'SessionStart' else 'turn:end'}?")


def test_a_project_that_only_captures_nothing_is_told_what_is_known(server: Server, tmp_path: Path) -> None:
    """Without capture a start and a prompt are still answered, and nothing else leaves the machine."""
    (tmp_path / "recollect.toml").write_text("capture = false\n", encoding="utf-8")
    assert "We ship on Fridays." in hook(server, tmp_path, "SessionStart", source="startup")
    assert "We ship on Fridays." in hook(server, tmp_path, "UserPromptSubmit", prompt="When do we ship?")
    assert hook(server, tmp_path, "Stop", last_assistant_message="Done.") == ""
    assert [path.partition("?")[0].rpartition("/")[2] for path, *_ in server.taken] == [
        "session:start",
        "prompt:submit",
    ]


def test_nobody_waits_for_another_event(server: Server, tmp_path: Path) -> None:
    """Any other event is sent by a process that stays behind, and tells the agent nothing."""
    assert hook(server, tmp_path, "SessionEnd", reason="other") == ""
    assert until_taken(server)[0].startswith("/v1/hooks/session:end?project=engine&zone=")


def test_a_late_answer_is_dropped(server: Server, tmp_path: Path) -> None:
    """An answer after the agent's second is not waited for."""
    assert hook(server, tmp_path, "UserPromptSubmit", prompt=SLOW) == ""


def test_a_project_that_captures_nothing_sends_nothing(server: Server, tmp_path: Path) -> None:
    """What a project's file turns off never leaves the machine."""
    (tmp_path / "recollect.toml").write_text("capture = false\ninject = false\n", encoding="utf-8")
    assert hook(server, tmp_path, "UserPromptSubmit", prompt="When do we ship?") == ""
    assert server.taken == []
