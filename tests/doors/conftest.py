"""The command line as somebody types it, in a terminal that is wide enough."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from command_line import Ended, call, execute


@pytest.fixture
def alone(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Return the environment of commands that open the store themselves."""
    nobody = {"HOME": str(tmp_path / "user")}  # with no agent registered: the doctor looks for them
    return environment | nobody | {"RECOLLECT_DAEMON": "0", "COLUMNS": "200", "NO_COLOR": "1"}


@pytest.fixture
def typed(alone: dict[str, str], tmp_path: Path) -> Callable[..., Ended]:
    """Return a function that runs a command in this process and makes sure that nobody ever sees a traceback."""
    return partial(_run, call, alone, tmp_path)


@pytest.fixture
def executed(alone: dict[str, str], tmp_path: Path) -> Callable[..., Ended]:
    """Return what `typed` does, but with the real executable, which takes a second."""
    return partial(_run, execute, alone, tmp_path)


def _run(
    how: Callable[..., Ended], alone: dict[str, str], folder: Path, *arguments: str, stdin: bytes = b"", **changes: str
) -> Ended:
    return how(arguments, alone | changes, folder, stdin)
