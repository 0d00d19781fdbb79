"""A module of a package below `scripts`, started as its launcher starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from places import SCRIPTS, TESTS


def run_module(
    name: str, *arguments: object, environment: Mapping[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `python -m NAME` where it finds what lies below `scripts` and `tests/support`."""
    found = (str(SCRIPTS), str(TESTS / "support"), environment.get("PYTHONPATH", ""))
    path = {"PYTHONPATH": os.pathsep.join(filter(None, found))}
    command = [sys.executable, "-m", name, *map(str, arguments)]
    return subprocess.run(command, env={**environment, **path}, cwd=cwd, capture_output=True, text=True, check=False)
