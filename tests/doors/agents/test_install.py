"""`recollect install` and `uninstall`: each agent's files, what stands in them already, and what is left alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import Ended
from file_transfer import contents
from recollect import Settings
from recollect.doors.agents import files, passage
from recollect.doors.agents.agents import Agent, Level, agents
from recollect.doors.agents.entry import new_entry
from recollect.doors.agents.hooks import found_hooks
from recollect.doors.agents.installation import FORMATS, Change, apply, plan_install, plan_uninstall
from recollect.doors.cli import setup
from recollect.errors import RecollectError

pytestmark = pytest.mark.slow

Typed = Callable[..., Any]
PROGRAM = str(Path(sys.executable).with_name("recollect"))
BOTH = [(name, level) for name in agents() for level in Level]
BEFORE = {
    "json": '// mine\n{\n  // look\n  "theme": "dark",\n  "SERVERS": {\n    "hub": { "command": "x" }, //\n  },\n}\n',
    "toml": '# mine\nmodel = "o3" # big\n\n[SERVERS.hub]\ncommand = "npx"\n# the end',
}


def put_in(agent: Agent, level: Level, root: Path) -> list[Change]:
    """Install for an agent, as the command does after the question."""
    entry = new_entry(Settings(), agent)
    changes = plan_install(agent, level, root, entry)
    apply(changes, level)
    return changes


def take_out(agent: Agent, level: Level, root: Path) -> None:
    """Uninstall for an agent, as the command does after the question."""
    apply(plan_uninstall(agent, level, root)[0], level)


@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize(("name", "level"), BOTH)
def test_install_again_and_uninstall(home: Path, checkout: Path, name: str, level: Level) -> None:
    """With nothing there: the entry names this program, a second run changes no byte, and uninstall leaves nothing."""
    agent = agents()[name]
    first = put_in(agent, level, checkout)
    assert {one.kind for one in first} == {"created"}
    [config] = [one.file for one in first if one.what == "entry"]
    assert config.is_relative_to(home if level is Level.USER else checkout)
    entry = FORMATS[agent.format].parse(config.read_text(encoding="utf-8"))[agent.servers[0]]["recollect"]
    assert (
        entry["command"] == [PROGRAM, "mcp"]
        if agent.joined
        else (entry["command"], entry["args"]) == (PROGRAM, ["mcp"])
    )
    passages = [one.file for one in first if one.what == "passage"]
    assert all(one.read_text(encoding="utf-8").endswith(passage.BLOCK) for one in passages)
    assert passages or (name, level) == ("cursor", Level.USER)
    after = contents(home) | contents(checkout)
    assert {one.kind for one in put_in(agent, level, checkout)} == {"unchanged"}
    assert contents(home) | contents(checkout) == after
    take_out(agent, level, checkout)
    assert contents(home) | contents(checkout) == {}
    assert {one.kind for one in plan_uninstall(agent, level, checkout)[0]} == {"unchanged"}


@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize(("name", "level"), BOTH)
def test_what_stands_there_stays(home: Path, checkout: Path, name: str, level: Level) -> None:
    """Settings, comments and instructions of others stay byte for byte, with a backup, and come back whole."""
    agent = agents()[name]
    config, reads = agent.config(level, checkout), agent.instructions(level, checkout)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_bytes(BEFORE[agent.format].replace("SERVERS", agent.servers[0]).encode())
    config.chmod(0o640)
    if reads is not None:
        reads.parent.mkdir(parents=True, exist_ok=True)
        reads.write_bytes(b"# Rules\r\n\r\nBe brief. \xe2\x9c\x93")
    before = contents(home) | contents(checkout)
    put_in(agent, level, checkout)
    now = contents(home) | contents(checkout)
    for file, content in before.items():
        assert now[f"{file}.recollect-backup"] == content
        kept = iter(now[file].splitlines())
        assert all(line in kept for line in content.splitlines())  # each line is there, in its order
    assert config.stat().st_mode & 0o777 == 0o640
    assert files.backup_of(config).stat().st_mode & 0o777 == 0o640
    take_out(agent, level, checkout)
    assert contents(home) | contents(checkout) == before
    assert config.stat().st_mode & 0o777 == 0o640


def test_the_command_says_what_it_did(typing: Typed, home: Path) -> None:
    """It names file and backup, says that nothing is to do the second time, and what went."""
    (home / ".claude.json").write_text("{}")
    first = typing("install", "claude-code", "--yes").out
    told = "Claude Code is registered for all projects in ~/.claude.json, and told about memory in ~/.claude/CLAUDE.md."
    assert told in first
    assert "Backups: ~/.claude.json.recollect-backup." in first
    assert typing("install", "claude-code").out.startswith("Nothing to do: Claude Code is registered")
    body = typing("uninstall", "claude-code", "--yes", "--json").json
    assert [one["change"] for one in body["changes"]] == ["changed", "deleted", "deleted"]
    assert contents(home) == {".claude.json": b"{}"}
    assert typing("uninstall", "claude-code").out.startswith("Nothing to do: Claude Code is not registered")


def test_only_ours_goes_when_others_have_written_since(typing: Typed, checkout: Path) -> None:
    """What somebody added after the installation stays, and what was there before too."""
    config = checkout / ".mcp.json"
    config.write_text('{\n  "mcpServers": {\n    "hub": {}\n  }\n}\n', encoding="utf-8")
    typing("install", "claude-code", "--level", "project", "--yes")
    (checkout / "CLAUDE.md").write_text((checkout / "CLAUDE.md").read_text() + "\nNew.\n", encoding="utf-8")
    config.write_text(config.read_text().replace('"hub": {}', '"hub": {},\n    "new": {}'), encoding="utf-8")
    assert typing("uninstall", "claude-code", "--level", "project", "--yes").code == 0
    assert config.read_text() == '{\n  "mcpServers": {\n    "hub": {},\n    "new": {}\n  }\n}\n'
    assert (checkout / "CLAUDE.md").read_text().strip() == "New."


def test_an_entry_of_before_is_brought_up_to_date(typing: Typed, home: Path) -> None:
    """An entry under another name, of another program, is not doubled: it names this one and keeps what else it has."""
    config = home / ".cursor" / "mcp.json"
    config.parent.mkdir()
    old = {"command": "/old/bin/recollect", "args": ["mcp", "--toolset", "store"], "disabled": False, "env": {"A": "1"}}
    config.write_text(json.dumps({"mcpServers": {"notes": old}}), encoding="utf-8")
    assert typing("install", "cursor", "--yes", RECOLLECT_TEAM="crew").code == 0
    new = old | {"command": PROGRAM, "env": {"A": "1", "RECOLLECT_TEAM": "crew"}}
    assert json.loads(config.read_text()) == {"mcpServers": {"notes": new}}


def test_an_entry_by_address_stays(typing: Typed, checkout: Path) -> None:
    """Who connects to a running server by its address has registered it already."""
    config = checkout / ".mcp.json"
    config.write_text('{"mcpServers": {"recollect": {"type": "http", "url": "http://127.0.0.1:8/mcp"}}}')
    before = config.read_bytes()
    assert typing("install", "claude-code", "--level", "project", "--yes").code == 0
    assert config.read_bytes() == before


def test_the_settings_that_were_given_go_along(typing: Typed, home: Path) -> None:
    """A client of the desktop knows no variables of the shell, so the entry names them; the project is its own."""
    shown = typing("--home", "/data/memories", "--project", "x", "install", "codex", "--yes", RECOLLECT_DAEMON="0")
    assert shown.code == 0
    text = (home / ".codex" / "config.toml").read_text()
    assert 'RECOLLECT_HOME = "/data/memories"' in text
    assert 'RECOLLECT_DAEMON = "0"' in text
    assert "RECOLLECT_PROJECT =" not in text
    handed = text.partition("env_vars")[2]  # else what is set for Codex reaches hooks alone
    assert [name for name in ("HOME", "MEMORY_DB", "USER", "PROJECT") if f'"RECOLLECT_{name}"' not in handed] == []


@pytest.mark.parametrize("agent", agents())
def test_files_that_others_share_name_nothing_of_this_machine(
    typing: Typed, home: Path, checkout: Path, agent: str
) -> None:
    """In a project's files stand no path and no setting of whoever installed it, and hooks are quiet without us."""
    typing("--home", "/data/memories", "install", agent, "--level", "project", "--yes", RECOLLECT_TEAM="crew")
    text = b"".join(contents(checkout).values()).decode()
    assert '"recollect"' in text
    assert not [own for own in (PROGRAM, str(home), str(checkout), "/data/memories", "crew") if own in text]
    hooked = [found_hooks(one.decode()) for name, one in contents(checkout).items() if b"hook Ses" in one]
    for command in {one for found in hooked for commands in found.values() for one in commands}:
        ended = subprocess.run(["/bin/sh", "-c", command], env={"PATH": "/bin"}, capture_output=True, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    assert bool(hooked) == (agent in ("claude-code", "codex", "gemini-cli", "opencode"))


@pytest.mark.parametrize(
    ("agent", "file", "shown"),
    [
        ("claude-code", ".claude/settings.json", "mcp__recollect__memory"),
        ("codex", ".codex/config.toml", 'approval_mode = "approve"'),
        ("gemini-cli", ".gemini/settings.json", '"trust": true'),
    ],
)
def test_the_tool_may_be_called_without_asking(typing: Typed, home: Path, agent: str, file: str, shown: str) -> None:
    """With the person's yes the agent's own rule lets it call the tool; `--ask-tool` leaves that out; it goes again."""
    typing("install", agent, "--yes", "--ask-tool")
    assert shown not in (home / file).read_text()
    typing("uninstall", agent, "--yes")
    told = typing("install", agent, "--yes")
    assert "without asking each time" in told.out
    assert shown in (home / file).read_text()
    typing("uninstall", agent, "--yes")
    assert contents(home) == {}


def test_a_reader_that_leaves_stops_nothing(home: Path, checkout: Path) -> None:
    """With a yes all is written although nobody reads what is shown to its end."""
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "USER": "ada"}
    words = [PROGRAM, "install", "claude-code", "--yes"]
    with subprocess.Popen(words, env=environment, cwd=checkout, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.close()
    assert (home / ".claude" / "settings.json").exists()
    assert (home / ".claude.json").exists()


def test_nothing_changes_without_a_yes(typing: Typed, home: Path) -> None:
    """Without a terminal the diff is shown, nothing is written, and the way on is told; so with `--dry-run`."""
    for options in ((), ("--dry-run",), ("--json",)):
        ended = typing("install", "gemini-cli", *options)
        assert ended.code == (0 if options == ("--dry-run",) else 2)
        assert "Nothing was changed" in ended.out + ended.err
        assert options == ("--json",) or "+++ " in ended.out
        assert contents(home) == {}
    assert "--yes" in ended.out


@pytest.mark.parametrize("answer", [True, False])
def test_a_terminal_is_asked(typing: Typed, home: Path, answer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the diff comes first, then the question; a no changes nothing."""
    monkeypatch.setattr(setup, "interactive", lambda: True)
    ended = typing("install", "zed", stdin=b"y\n" if answer else b"n\n")
    assert "+++ " in ended.out
    assert ended.code == (0 if answer else 1)
    assert bool(contents(home)) is answer


@pytest.mark.parametrize(
    ("content", "why"),
    [(b'{"mcpServers": {', "cannot be edited"), (b"\xff\xfe{\x00}\x00", "not UTF-8"), (b"[]", "no object")],
)
def test_a_damaged_file_is_left_alone(typing: Typed, checkout: Path, content: bytes, why: str) -> None:
    """A configuration that cannot be read is named, and neither it nor the instruction file is touched."""
    (checkout / ".mcp.json").write_bytes(content)
    ended = typing("install", "claude-code", "--level", "project", "--yes")
    assert ended.code == 2
    assert why in ended.err
    assert str(checkout / ".mcp.json") in ended.err
    assert contents(checkout) == {".mcp.json": content}


def test_links_lead_nowhere_else(typing: Typed, home: Path, checkout: Path, tmp_path: Path) -> None:
    """A link inside the home is followed and stays a link; one that leads out of home and project is refused."""
    (home / "dotfiles").mkdir()
    (home / "dotfiles" / "claude.json").write_text("{}")
    (home / ".claude.json").symlink_to(home / "dotfiles" / "claude.json")
    assert typing("install", "claude-code", "--yes").code == 0
    assert (home / ".claude.json").is_symlink()
    assert "recollect" in (home / "dotfiles" / "claude.json").read_text()
    (tmp_path / "elsewhere.json").write_text("{}")
    (checkout / ".mcp.json").symlink_to(tmp_path / "elsewhere.json")
    ended = typing("install", "claude-code", "--level", "project", "--yes")
    assert ended.code == 2
    assert "outside of the home and project folders" in ended.err
    assert (tmp_path / "elsewhere.json").read_text() == "{}"


def test_what_cannot_be_written_changes_nothing(typing: Typed, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the second file is refused, the first one is as it was, and no backup or temporary file is left."""
    (home / ".claude.json").write_text('{"theme": "dark"}')
    before, replace = contents(home), files._replace_file

    def refusing(file: Path, *rest: Any, **more: Any) -> None:
        if file.name == "CLAUDE.md":
            raise PermissionError(13, "Permission denied")
        replace(file, *rest, **more)

    monkeypatch.setattr(files, "_replace_file", refusing)
    ended = typing("install", "claude-code", "--yes")
    assert ended.code == RecollectError.exit_code
    assert "CLAUDE.md cannot be written: Permission denied." in ended.err
    assert contents(home) == before


def test_a_passage_that_others_need_stays(typing: Typed, checkout: Path) -> None:
    """Codex and Zed read one file: its passage goes with the last of them."""
    typing("install", "codex", "--level", "project", "--yes")
    typing("install", "zed", "--level", "project", "--yes")
    ended = typing("uninstall", "zed", "--level", "project", "--yes")
    assert "stays, as Codex reads it too" in ended.out
    assert passage.find((checkout / "AGENTS.md").read_text())
    typing("uninstall", "codex", "--level", "project", "--yes")
    assert contents(checkout) == {}


def test_the_file_that_an_agent_reads_first(typing: Typed, checkout: Path) -> None:
    """Where an agent reads one of many files, the passage goes into the one that it reads."""
    (checkout / "CLAUDE.md").write_text("# Rules\n")
    typing("install", "zed", "--level", "project", "--yes")
    assert passage.find((checkout / "CLAUDE.md").read_text())
    assert not (checkout / "AGENTS.md").exists()


def test_folders_of_variables(typing: Typed, tmp_path: Path) -> None:
    """Where an agent's own variable names its folder, that is the one."""
    typing("install", "codex", "--yes", CODEX_HOME=str(tmp_path / "codex"))
    typing("install", "claude-code", "--yes", CLAUDE_CONFIG_DIR=str(tmp_path / "claude"))
    assert set(contents(tmp_path / "codex")) == {"config.toml", "AGENTS.md", "hooks.json"}
    assert set(contents(tmp_path / "claude")) == {".claude.json", "CLAUDE.md", "settings.json"}


def test_print_is_for_any_agent(typing: Typed, home: Path) -> None:
    """`--print` shows entry and passage, in the form of a known agent, else in the common one, and writes nothing."""
    common = typing("install", "--print")
    assert '"mcpServers"' in common.out
    assert passage.TEXT in common.out
    assert "[mcp_servers.recollect]" in typing("install", "codex", "--print").out
    body = typing("install", "another", "--print", "--json").json
    assert json.loads(body["entry"])["mcpServers"]["recollect"]["command"] == PROGRAM
    assert contents(home) == {}


def test_an_unknown_agent_is_told_the_known_ones(typing: Typed) -> None:
    """A name that is none, and a missing one, end with the list."""
    for arguments in (("install", "emacs"), ("install",), ("uninstall", "emacs")):
        ended = typing(*arguments)
        assert ended.code == 2
        assert "claude-code, codex, cursor, vscode, gemini-cli, zed, opencode" in ended.err


@pytest.mark.parametrize(
    ("name", "url", "advice"),
    [
        ("DATABASE_URL", "postgresql://ada:hush-hush@db.example/recollect", "~/.pgpass"),
        ("DATABASE_URL", "postgresql://db.example/recollect?sslmode=require&password=hush-hush", "~/.pgpass"),
        ("CHROMA_URL", "http://chroma.example/?key=hush-hush", "a proxy of yours"),
        ("EMBEDDING_URL", "http://embedding.example/v1?key=hush-hush", "RECOLLECT_EMBEDDING_KEY"),
    ],
)
def test_no_password_goes_into_the_files_of_others(
    typing: Callable[..., Ended], home: Path, name: str, url: str, advice: str
) -> None:
    """An address with a password is refused in a sentence that does not repeat it, and nothing is written."""
    done = typing("install", "claude-code", "--yes", **{f"RECOLLECT_{name}": url})
    assert done.code == 2
    assert (advice in done.err, "hush-hush" in done.out + done.err) == (True, False)
    assert list(home.rglob("*.json")) == []


@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize("level", list(Level))
def test_a_folder_that_was_empty_is_there_afterwards(checkout: Path, level: Level) -> None:
    """Who had an empty folder for an agent, by which it is recognised, has it after `uninstall` too."""
    agent = agents()["cursor"]
    folder = agent.config(level, checkout).parent
    folder.mkdir(parents=True)
    put_in(agent, level, checkout)
    take_out(agent, level, checkout)
    assert folder.is_dir()
    assert not [one for one in folder.rglob("*") if one.is_file()]
