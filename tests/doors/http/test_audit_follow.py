"""An export of the audit log that follows: what was written a moment ago arrives, over a server that listens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import EXECUTABLE
from team_server import TeamServer, listening

pytestmark = pytest.mark.slow


def test_new_lines_are_followed(team: TeamServer, tmp_path: Path) -> None:
    """A run that follows sends a line soon after it was written, over the server; Ctrl-C ends it in order."""
    file = tmp_path / "audit.jsonl"
    with listening(team) as served:
        kept = {name: text for name, text in os.environ.items() if not name.startswith("RECOLLECT_")}
        ours = {"RECOLLECT_URL": served.url, "RECOLLECT_TOKEN": team.tokens["root"], "HOME": str(tmp_path)}
        words = [EXECUTABLE, "audit", "export", "--to", str(file), "--follow"]
        with subprocess.Popen(words, env=kept | ours, cwd=tmp_path, stderr=subprocess.PIPE) as following:
            _wait(lambda: file.exists() and len(lines(file.read_bytes())) > 3)
            team.administer("add_team", team="dock")
            _wait(lambda: any(one["namespace"] == "team:dock" for one in lines(file.read_bytes())))
            following.send_signal(signal.SIGINT)
            _, said = following.communicate()
        assert (following.returncode, said) == (0, b"")
    assert len({one["number"] for one in lines(file.read_bytes())}) == len(lines(file.read_bytes()))
    assert all(one["hash"] for one in lines(file.read_bytes()))


def lines(text: bytes) -> list[Any]:
    """Return the whole records in JSON lines of which the last may be on its way."""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith(b"\n")]


def _wait(done: Callable[[], bool]) -> None:
    while not done():
        time.sleep(0.02)
