"""A real Chroma server: the process that the installed package starts, on a port of its own, which tests may kill."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

CHROMA = str(Path(sys.executable).with_name("chroma"))


class ChromaProcess:
    """One server over one folder; `start` after `kill` serves the same folder at the same address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = [CHROMA, "run", "--path", str(self._folder), "--host", "127.0.0.1", "--port", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not self._answers():
            assert self._process.poll() is None, "the Chroma server ended at once"
            time.sleep(0.05)

    def kill(self) -> None:
        """End the server as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/api/v2/heartbeat"):
                return True
        except (urllib.error.URLError, ConnectionError):
            return False
