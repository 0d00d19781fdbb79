"""A home and a checkout that nobody has used, and the command line in them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from command_line import Ended, call


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the home folder of somebody who has no agent yet."""
    (tmp_path / "user").mkdir()
    return tmp_path / "user"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout without any agent's files."""
    (tmp_path / "engine" / ".git").mkdir(parents=True)
    (tmp_path / "engine" / ".git" / "HEAD").touch()
    return tmp_path / "engine"


@pytest.fixture
def typing(home: Path, checkout: Path, tmp_path: Path) -> Callable[..., Ended]:
    """Return a function that types a command in the checkout, where nothing but the home is known."""
    environment = {"HOME": str(home), "PATH": str(tmp_path / "no-programs"), "COLUMNS": "200", "NO_COLOR": "1"}
    return partial(_typed, environment, checkout)


def _typed(environment: dict[str, str], folder: Path, *arguments: str, stdin: bytes = b"", **changes: str) -> Ended:
    return call(arguments, environment | changes, folder, stdin)


@pytest.fixture
def at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process take the temporary home for its own."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
