"""The command line as somebody types it: the real executable, in a terminal that is wide enough."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

EXECUTABLE = str(Path(sys.executable).with_name("recollect"))


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Read what it said as JSON."""
        return json.loads(self.out)


@pytest.fixture
def alone(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment of commands that open the store themselves."""
    return environment | {"RECOLLECT_DAEMON": "0", "COLUMNS": "200", "NO_COLOR": "1"}


@pytest.fixture
def typed(alone: dict[str, str], tmp_path: Path) -> Callable[..., Ended]:
    """Return a function that runs a command and makes sure that nobody ever sees a traceback."""

    def run(*arguments: str, stdin: bytes = b"", cwd: Path = tmp_path, **changes: str) -> Ended:
        done = subprocess.run(
            [EXECUTABLE, *arguments], input=stdin, capture_output=True, env=alone | changes, check=False, cwd=cwd
        )
        ended = Ended(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "Traceback" not in ended.out + ended.err, ended.err
        return ended

    return run
