"""The server as a process: how it begins, what it refuses to listen on, and that nothing is lost when it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from command_line import EXECUTABLE
from recollect import Settings


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@contextmanager
def serving(environment: dict[str, str], *options: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Run a server until the block ends; give its process, its address, and the token that it printed if it did."""
    port = free_port()
    command = [EXECUTABLE, "--user", "root", "serve", "--host", "127.0.0.1", "--port", str(port), *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment | {"PYTHONUNBUFFERED": "1"}, text=True, **pipes) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if line.startswith("Serving "):
                    break
            else:
                pytest.fail("the server did not begin")
            token = process.stdout.readline().strip() if "--init" in options else ""
            yield process, f"http://127.0.0.1:{port}", token
        finally:
            process.kill()


@pytest.mark.full
def test_sigterm_answers_what_runs_and_ends_with_0(environment: dict[str, str], settings: Settings) -> None:
    """Requests under way are answered, events that were taken are worked off, and open streams hold nobody up."""
    with serving(environment, "--init") as (process, url, token):
        headers = {"Authorization": f"Bearer {token}"}
        done: list[tuple[int, str]] = []
        refused = threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
                while not refused.is_set():
                    body = {"content": f"Note {len(done)} of {threading.get_ident()}", "scope": "personal"}
                    try:
                        answer = client.post("/v1/remember", json=body)
                    except (httpx.ConnectError, httpx.RemoteProtocolError, httpx.ReadError):
                        refused.set()  # the server is gone, or closed a connection on which no answer had begun
                        return
                    done.append((answer.status_code, answer.json()["id"]))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for one in threads:
            one.start()
        with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
            asked = {"fields": {"session_id": "s1", "prompt": "We always deploy on Fridays, never on Mondays."}}
            assert client.post("/v1/hooks/prompt:submit", json=asked).json()["taken"]
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        for one in threads:
            one.join()
    assert done
    assert {status for status, _ in done} == {200}
    with serving(environment) as (_, url, _), httpx.Client(base_url=url, headers=headers, timeout=60) as client:
        for _, found in done:
            assert client.post("/v1/get_memory", json={"id": found}).status_code == 200
        assert client.post("/v1/show_session", json={"session_id": "s1"}).json()["session"]["session_id"] == "s1"


def test_only_what_is_protected_is_listened_on(environment: dict[str, str]) -> None:
    """Beyond loopback tokens are not sent in the clear, unless somebody says that they may be."""
    command = [EXECUTABLE, "serve", "--host", "0.0.0.0", "--port", "0"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "--behind-proxy" in ended.stderr
    command = [EXECUTABLE, "serve", "--insecure"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, "--host" in ended.stderr) == (2, True)


def test_the_first_admin_is_made_once(environment: dict[str, str]) -> None:
    """`--init` prints a token alone to standard output, and the second time says that there is an admin."""
    command = [EXECUTABLE, "--user", "root", "serve", "--init"]
    first, second = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=False) for _ in range(2)
    )
    assert re.fullmatch(r"rec_\w{8}_[\w-]{43}\n", first.stdout), first.stderr
    assert (second.returncode, second.stdout) == (11, "")


def test_without_the_extra_a_sentence_says_so(environment: dict[str, str], tmp_path: Path) -> None:
    """Where the packages of the server are not installed, one line says what installs them."""
    (tmp_path / "limits.py").write_text("raise ModuleNotFoundError(name='limits')\n")
    command = [sys.executable, "-c", "from recollect.doors.entry import main; main()", "serve", "--host", "127.0.0.1"]
    path = os.pathsep.join(filter(None, (str(tmp_path), environment.get("PYTHONPATH", ""))))
    ours = environment | {"PYTHONPATH": path}
    ended = subprocess.run(command, env=ours, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "recollect[server]" in ended.stderr
