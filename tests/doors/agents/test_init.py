"""`recollect init`: store, model, project and agents in one command, which may be repeated."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from recollect import Settings
from recollect.doors.agents.hooks import found_hooks
from recollect.doors.cli import setup

Typed = Callable[..., Any]


@pytest.fixture
def starting(typing: Typed, settings: Settings) -> Typed:
    """Return a function that types `init` with a store of its own and the model of the whole run."""
    ours = {"HOME": settings.home, "USER": "ada", "DAEMON": "0"}
    return partial(typing, "init", **{f"RECOLLECT_{name}": str(value) for name, value in ours.items()})


def test_all_in_one_and_again(starting: Typed, settings: Settings, home: Path, checkout: Path) -> None:
    """It makes the store, names project and agents, tells of instruction files and what to try."""
    (checkout / "CLAUDE.md").write_text("# Rules\n")
    (home / ".codex").mkdir()
    body = starting("--yes", "--json").json
    assert body["store"] == {"folder": str(settings.folder), "memories": 0}
    assert body["project"]["name"].startswith("engine-")
    assert body["agents"] == [{"agent": "claude-code", "registered": True}, {"agent": "codex", "registered": True}]
    assert (body["remembered"]["files"], body["remembered"]["state"]) == (1, "taken in")
    assert "recollect doctor" in body["next"]
    text = (home / ".codex" / "config.toml").read_text()
    again = starting("--yes")
    assert again.code == 0
    for part in (
        "Store: ",
        "Project: engine-",
        "Codex is registered already",
        "All that agents here remember is taken in.",
    ):
        assert part in again.out
    assert (home / ".codex" / "config.toml").read_text() == text
    assert found_hooks((home / ".codex" / "hooks.json").read_text())
    assert "by hooks too" not in again.out
    (home / ".codex" / "hooks.json").unlink()
    told = "Codex is registered already. `recollect install codex` lets it report its sessions by hooks too."
    assert told in starting("--yes").out


def test_without_a_terminal_agents_are_only_named(starting: Typed, home: Path) -> None:
    """Nobody is installed for without a yes; agents that are here are named with their command."""
    (home / ".cursor").mkdir()
    ended = starting()
    assert ended.code == 0
    assert "Cursor is here: `recollect install cursor` registers it." in ended.out
    refused = starting("--agent", "zed")
    assert (refused.code, refused.out) == (2, "")
    assert [one.name for one in home.rglob("*")] == [".cursor"]


def test_a_terminal_is_asked_for_each(starting: Typed, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A no leaves one agent alone and goes on with the next; a damaged file is told and keeps nobody else back."""
    monkeypatch.setattr(setup, "interactive", lambda: True)
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text("{")
    ended = starting("--agent", "codex", "--agent", "gemini-cli", "--agent", "zed", stdin=b"n\nn\nn\ny\n")
    assert ended.code == 0
    assert "Codex was left alone" in ended.out
    assert f"{home / '.gemini' / 'settings.json'} cannot be edited" in ended.out
    assert "Zed is registered for all projects" in ended.out
    assert not (home / ".codex").exists()
