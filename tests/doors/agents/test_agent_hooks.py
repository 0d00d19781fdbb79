"""The hooks that `install` writes: among those of others, once, by a command that works, and out again whole."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from file_transfer import contents
from recollect import Settings
from recollect.doors.agents import files, json_text
from recollect.doors.agents.agents import Level, agents
from recollect.doors.agents.hooks import found_hooks, hook_commands, recollect_program_in, with_hooks, without_hooks
from recollect.doors.agents.registrations import checks

Typed = Callable[..., Any]
PROGRAM = str(Path(sys.executable).with_name("recollect"))
WITH_HOOKS = [name for name, one in agents().items() if one.hooks]
IN_TABLES = [name for name in WITH_HOOKS if name != "opencode"]  # whose hooks are a program
BOTH = [(name, level) for name in IN_TABLES for level in Level]
OTHERS = {
    True: (
        '// mine\n{\n  "theme": "dark", // keep\n  "hooks": {\n    // what I log\n    "NAME": [\n'
        '      { "matcher": "Bash", "hooks": [{ "type": "command", "command": "log.sh" }] }, // all\n    ],\n'
        '    "Notification": [{"hooks": [{"type": "command", "command": "say done"}]}]\n  },\n}\n'
    ),
    False: '{\n  "version": 1,\n  "hooks": {\n    "NAME": [\n      {"command": "log.sh"}\n    ],\n    "x": []}\n}\n',
}


def hook_file(name: str, level: Level, root: Path) -> Path:
    """Return the file of an agent's hooks, with its folder."""
    file = agents()[name].hook_file(level, root)
    assert file is not None
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize(("name", "level"), BOTH)
def test_hooks_come_among_others_and_go(typed_at: Typed, checkout: Path, name: str, level: Level) -> None:
    """Hooks of others, comments and settings stay; a second time changes nothing; out again it is as it was."""
    agent = agents()[name]
    assert agent.hooks is not None
    file = hook_file(name, level, checkout)
    before = OTHERS[agent.hooks.grouped].replace("NAME", agent.hooks.events[1]).encode()
    file.write_bytes(before)
    assert typed_at("install", name, level).code == 0
    text = file.read_text(encoding="utf-8")
    assert set(found_hooks(text)) == set(agent.hooks.events)
    lines = iter(text.splitlines())
    assert all(any(line.rstrip(",") in one for one in lines) for line in before.decode().splitlines())
    assert files.backup_of(file).read_bytes() == before
    after = file.read_bytes()
    assert "Nothing to do" in typed_at("install", name, level).out
    assert file.read_bytes() == after
    assert typed_at("uninstall", name, level).code == 0
    assert file.read_bytes() == before


@pytest.fixture
def typed_at(typing: Typed) -> Typed:
    """Return a function that types a command on an agent at a level."""
    return lambda command, name, level, *more: typing(command, name, "--level", str(level), "--yes", *more)


@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize(("name", "level"), BOTH)
def test_only_ours_goes_when_others_have_written_since(
    typed_at: Typed, checkout: Path, name: str, level: Level
) -> None:
    """What somebody added after the installation stays, also beside ours in one list and in one group."""
    form = agents()[name].hooks
    assert form is not None
    file = hook_file(name, level, checkout)
    typed_at("install", name, level)
    data = json.loads(file.read_text())
    theirs: dict[str, Any] = {"type": "command", "command": "theirs.sh"} if form.grouped else {"command": "theirs.sh"}
    data["hooks"][form.events[0]].insert(0, {"hooks": [theirs]} if form.grouped else theirs)
    if form.grouped:
        data["hooks"][form.events[1]][0]["hooks"].append(theirs)
    data["hooks"]["Other"] = []
    file.write_text(json.dumps(data, indent=4))
    assert typed_at("uninstall", name, level).code == 0
    left = json.loads(file.read_text())["hooks"]
    expected: dict[str, Any] = {form.events[0]: [{"hooks": [theirs]} if form.grouped else theirs], "Other": []}
    if form.grouped:
        expected[form.events[1]] = [{"hooks": [theirs]}]
    assert left == expected


@pytest.mark.parametrize("name", IN_TABLES)
def test_an_older_command_is_brought_up_to_date(name: str) -> None:
    """A hook of another installation is not doubled: it starts this one, and keeps what somebody put beside it."""
    agent = agents()[name]
    assert agent.hooks is not None
    event = agent.hooks.events[1]
    old = {"command": f"/old/bin/recollect hook {event}", "timeout": 9}
    element = {"matcher": "*", "hooks": [old]} if agent.hooks.grouped else old
    again = json.loads(json.dumps(element))
    text = json.dumps({"hooks": {event: [element, again], "Gone": [element]}})
    commands = hook_commands(agent, Settings())
    [found] = json_text.parse(with_hooks(text, agent.hooks, commands))["hooks"][event]
    assert found == (
        element | {"hooks": [old | {"command": commands[event]}]}
        if agent.hooks.grouped
        else old | {"command": commands[event]}
    )
    assert set(found_hooks(with_hooks(text, agent.hooks, commands))) == set(agent.hooks.events)


def test_without_hooks_they_are_left_out_and_go(typing: Typed, home: Path, checkout: Path) -> None:
    """`--no-hooks` writes none, and takes out those that an earlier installation wrote."""
    for name in ("claude-code", "gemini-cli"):
        typing("install", name, "--yes", "--no-hooks")
        assert b" hook " not in b"".join(contents(home).values())
        before = contents(home)
        typing("install", name, "--yes")
        file = home / (".claude" if name == "claude-code" else ".gemini") / "settings.json"
        assert found_hooks(file.read_text())
        assert typing("install", name, "--yes", "--no-hooks").code == 0
        assert contents(home) == before
        typing("uninstall", name, "--yes")
        assert contents(home) == {}


def test_one_file_for_entry_and_hooks_is_one_change(typing: Typed, home: Path) -> None:
    """Gemini CLI keeps both in one file: it is shown and backed up once, and comes back whole."""
    (home / ".gemini").mkdir()
    file = home / ".gemini" / "settings.json"
    file.write_text('{"theme": "dark"}')
    body = typing("install", "gemini-cli", "--yes", "--json").json
    assert [(one["what"], one["change"]) for one in body["changes"]] == [
        ("entry and hooks", "changed"),
        ("passage", "created"),
    ]
    assert set(json.loads(file.read_text())) == {"theme", "mcpServers", "hooks"}
    typing("uninstall", "gemini-cli", "--yes")
    assert file.read_text() == '{"theme": "dark"}'


@pytest.mark.parametrize("name", WITH_HOOKS)
def test_the_command_works_from_a_shell(typing: Typed, home: Path, name: str) -> None:
    """The command starts this very program with the settings that were given, however they are spelt, and ends well."""
    folder = str(home / "data of 'ada' $HOME")
    shown = typing("--home", folder, "--team", "crew", "install", name, "--yes", RECOLLECT_DAEMON="0")
    assert shown.code == 0
    file = agents()[name].places[Level.USER].hooks.rpartition("/")[2]
    [text] = [content.decode() for path, content in contents(home).items() if Path(path).name == file]
    for commands in found_hooks(text).values():
        [command] = commands
        assert recollect_program_in(command) == PROGRAM
        assert shlex.split(command)[:4] == [
            "env",
            "RECOLLECT_DAEMON=0",
            f"RECOLLECT_HOME={folder}",
            "RECOLLECT_TEAM=crew",
        ]
        done = subprocess.run(["sh", "-c", command], input=b"{}", capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("/opt/recollect hook Stop", "/opt/recollect"),
        ("env A=b C='d e' '/a b/recollect' hook Stop --agent codex", "/a b/recollect"),
        ("/opt/recollect recall hook", "/opt/recollect"),
        ("recollect status", ""),
        ("/opt/recollect-notes hook", ""),
        ("echo recollect hook", ""),
        ("recollect 'hook", ""),
        ("env", ""),
        ("", ""),
        (7, ""),
        (None, ""),
    ],
)
def test_a_command_of_ours_is_known_by_its_program(command: object, program: str) -> None:
    """What starts `recollect` with `hook` is ours; anything else is somebody's own."""
    assert recollect_program_in(command) == program


@pytest.mark.parametrize(
    "text",
    [
        '{"hooks": []}',
        '{"hooks": {"SessionStart": {}}}',
        '{"hooks": {"Stop": []}, "hooks": {}}',
        "[]",
        "{",
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_left_alone(typing: Typed, home: Path, text: str) -> None:
    """A file whose hooks cannot be read, or stand in another form, is named, and nothing at all is written."""
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text(text)
    before = contents(home)
    ended = typing("install", "claude-code", "--yes")
    assert ended.code == 2
    assert str(home / ".claude" / "settings.json") in ended.err
    assert contents(home) == before


@pytest.mark.parametrize(
    "text", ['{"hooks": {"Stop": ["x", 7, {"hooks": "y"}, {"hooks": [3]}, {}]}}', '{"hooks": null}', ""]
)
def test_strange_hooks_of_others_stay(text: str) -> None:
    """Elements that no agent would take are not ours, and stay what they are."""
    form = agents()["claude-code"].hooks
    assert form is not None
    if "null" in text:
        with pytest.raises(ValueError, match="no object"):
            with_hooks(text, form, {"Stop": "recollect hook Stop"})
        return
    added = with_hooks(text, form, {"Stop": "recollect hook Stop"})
    assert json_text.parse(without_hooks(added, form)) == json_text.parse(text)


@pytest.mark.usefixtures("at_home")
def test_the_doctor_tells_of_hooks(typing: Typed, home: Path, checkout: Path) -> None:
    """It names level, file, program and how many events; a program that is gone, and missing events, are no good."""
    typing("install", "claude-code", "--yes")
    file = home / ".claude" / "settings.json"

    def line() -> Any:
        [found] = [one for one in checks(checkout) if one.name == "claude-code hooks"]
        return found

    assert line().well
    assert line().seen == f"hooks (user level, {file}): {PROGRAM}, 8 events"
    text = file.read_text()
    file.write_text(text.replace("PreCompact", "Other"))
    assert "but none for PreCompact" in line().seen
    file.write_text(text.replace(PROGRAM, "/gone/recollect"))
    assert not line().well
    assert line().seen.endswith("but /gone/recollect is not there")
    assert line().advice == "Run `recollect install claude-code`."
    file.write_text("{")
    assert "cannot be read" in line().seen
    file.unlink()
    assert not [one for one in checks(checkout) if "hooks" in one.name]


def test_print_shows_the_hooks(typing: Typed, home: Path) -> None:
    """`--print` shows what goes into which file, unless hooks are left out, and writes nothing."""
    body = typing("install", "cursor", "--print", "--json").json
    assert body["hook_file"] == str(home / ".cursor" / "hooks.json")
    assert json.loads(body["hooks"])["version"] == 1
    assert "hook beforeSubmitPrompt --agent cursor" in typing("install", "cursor", "--print").out
    assert "hook_file" not in typing("install", "cursor", "--print", "--no-hooks", "--json").json
    assert "hook_file" not in typing("install", "zed", "--print", "--json").json
    assert contents(home) == {}


def test_agents_with_conditions_say_them(typing: Typed) -> None:
    """Codex asks for trust, and Cursor takes no memories before a prompt: whoever installs is told."""
    assert "type `/hooks` there" in typing("install", "codex", "--yes").out
    assert "Cursor takes no memories before a prompt" in typing("install", "cursor", "--yes").out
    assert "report its sessions; `--no-hooks` leaves them out" in typing("install", "claude-code", "--yes").out
