"""The doctor's lines on agents: who is registered, where, and which program and version that starts."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest

from command_line import EXECUTABLE
from recollect.domain.results import Check
from recollect.doors.agents.registrations import checks, found_agents, program_version, project_folder


@pytest.fixture(autouse=True)
def at_home(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process take the temporary home for its own, with no program on its path."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Return the program of another installation, whose version is to be read beside it."""
    (tmp_path / "old" / "bin").mkdir(parents=True)
    (tmp_path / "old" / "lib" / "python3.12" / "site-packages" / "recollect-0.0.7.dist-info").mkdir(parents=True)
    program = tmp_path / "old" / "bin" / "recollect"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    return program


def only(root: Path) -> Check:
    """Return the one line that there is."""
    [found] = checks(root)
    return found


def test_nobody_and_somebody_without_an_entry(home: Path, checkout: Path) -> None:
    """Without any agent one line says so; one that is used here, but not registered, is named with the command."""
    assert only(checkout) == Check("agents", True, "none is registered; `recollect install AGENT` registers one")
    (home / ".gemini").mkdir()
    (checkout / ".vscode").mkdir()
    assert [one.name for one in found_agents(checkout)] == ["vscode", "gemini-cli"]
    assert only(checkout).seen == "not registered: vscode, gemini-cli; `recollect install vscode` registers one"


def test_an_entry_with_its_program(checkout: Path, other: Path) -> None:
    """Level, file, program and version are told; another version, and a program that is gone, are no good."""
    file = checkout / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"recollect": {"command": str(other), "args": ["mcp"]}}}))
    found = only(checkout)
    assert not found.well
    assert found.name == "claude-code"
    assert f"registered (project level, {file}): {other}, recollect 0.0.7, not {version('recollect')}" in found.seen
    assert "`recollect install claude-code --level project`" in found.advice
    other.unlink()
    assert only(checkout).seen.endswith(f"but {other} is not there")


def test_this_program_is_well(checkout: Path) -> None:
    """The program of this very installation has this version, and one by an address is taken as it is."""
    (checkout / ".cursor").mkdir()
    file = checkout / ".cursor" / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"mine": {"command": EXECUTABLE}}}))
    assert program_version(Path(EXECUTABLE)) == version("recollect")
    assert only(checkout).well
    assert only(checkout).seen.endswith(f"{EXECUTABLE}, recollect {version('recollect')}")
    file.write_text(json.dumps({"mcpServers": {"recollect": {"url": "http://127.0.0.1:8/mcp"}}}))
    assert only(checkout).seen.endswith("http://127.0.0.1:8/mcp")


def test_an_entry_of_one_project_in_the_users_file(home: Path, checkout: Path, other: Path) -> None:
    """What `claude mcp add` writes for one project counts there, and nowhere else."""
    entry = {"mcpServers": {"recollect": {"command": str(other)}}}
    (home / ".claude.json").write_text(json.dumps({"projects": {str(checkout): entry}}))
    assert "registered (user, this project level" in only(checkout).seen
    assert only(home).seen.startswith("not registered: claude-code")


@pytest.mark.parametrize(
    "content",
    [b"{", b"\xff", b'{"mcpServers": "x"}', b"[" * 100_000, b'{"mcpServers": {"recollect": 1}}'],
    ids=range(5),
)
def test_a_damaged_file_is_a_line(checkout: Path, content: bytes) -> None:
    """A configuration that cannot be read is a line with advice, and one without an entry is none."""
    (checkout / ".mcp.json").write_bytes(content)
    found = only(checkout)
    assert found.well == (b"mcpServers" in content)
    assert found.well or (str(checkout / ".mcp.json") in found.seen and found.advice)


def test_the_project_of_a_folder_that_is_gone(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the working folder is gone, nothing but the home is looked at."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert project_folder() == home
