"""The server of a team as a process of its own, over the store of a folder or over servers, and clients that ask it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

EXECUTABLE = str(Path(sys.executable).with_name("recollect"))
PATIENCE = 300.0  # seconds, on a machine that is busy with other things too


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class TeamProcess:
    """One replica, with further `options`; `start` after `kill` serves the same store at the same address."""

    def __init__(self, environment: Mapping[str, str], log: Path, *options: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = dict(environment)
        self._log = log
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def set(self, **variables: str) -> None:
        """Set variables, from the next start on."""
        self._environment |= variables

    @property
    def pid(self) -> int:
        """Return the number of the process."""
        assert self._process is not None
        return self._process.pid

    def init(self, user: str = "root") -> str:
        """Make the first admin and return their token."""
        command = [EXECUTABLE, "--user", user, "serve", "--init"]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def start(self) -> None:
        """Start it and wait until database and model are ready."""
        command = [EXECUTABLE, "serve", "--host", "127.0.0.1", "--port", str(self.port), *self._options]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        end = time.monotonic() + PATIENCE
        while not self.ready():
            assert self._process.poll() is None, self._log.read_text()[-2_000:]
            assert time.monotonic() < end, self._log.read_text()[-2_000:]
            time.sleep(0.05)

    def ready(self) -> bool:
        """Say whether it answers and is ready."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz") as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError):
            return False

    def stop(self) -> int:
        """Ask it to end, and return its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait()

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        """Return all that it has logged."""
        return self._log.read_text()


@contextmanager
def serving_team(home: Path, log: Path, *options: str, **changes: str) -> Iterator[TeamProcess]:
    """Serve the store of `home`, or what the variables in `changes` say, until the block ends."""
    theirs = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    process = TeamProcess(theirs | {"RECOLLECT_HOME": str(home)} | changes, log, *options)
    try:
        yield process
    finally:
        process.kill()


class Asking:
    """Asks one server over REST by a token; `narrowed` stands in each address."""

    def __init__(self, url: str, token: str, **narrowed: str) -> None:
        self._url, self._narrowed = url, narrowed
        self._headers = {"Authorization": f"Bearer {token}"}

    def status(self, name: str, **fields: Any) -> int:
        """Return the status of an answer."""
        return int(self._post(name, fields).status_code)

    def __call__(self, name: str, **fields: Any) -> Any:
        """Return the answer of an operation that goes well."""
        answer = self._post(name, fields)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def _post(self, name: str, fields: dict[str, Any]) -> httpx2.Response:
        params = {} if name.startswith("admin/") else self._narrowed
        address = f"{self._url}/v1/{name}"
        return httpx2.post(address, json=fields, params=params, headers=self._headers, timeout=PATIENCE)
