"""README tells the truth: its commands, its tool calls, its Python and its settings are all tried here."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import recollect
from callers import ADA
from places import ROOT
from recollect import App, Settings
from recollect.domain.lifecycle import LifecycleSettings
from recollect.doors import toolsets
from recollect.settings import variable
from run_operations import call_tool

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = str(Path(sys.executable).with_name("recollect"))


def blocks(language: str) -> list[str]:
    """Return the code blocks of README that are marked with `language`."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def plain(text: str) -> str:
    """Leave out what changes from run to run: figures and the width of a line."""
    return re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?", "0", text)).strip()


@pytest.fixture
def shell(environment: dict[str, str]) -> Any:
    """Return the environment of a terminal of eighty columns and a new store, whose daemon is ended afterwards."""
    ours = environment | {
        "RECOLLECT_DAEMON": "1",
        "COLUMNS": "80",
        "TERM": "dumb",
        "FORCE_COLOR": "1",
        "PATH": f"{Path(COMMAND).parent}{os.pathsep}/usr/bin",
    }
    yield ours
    subprocess.run([COMMAND, "stop"], env=ours, check=True, capture_output=True)


def test_readme_has_every_setting() -> None:
    """The tables of settings, here and on two further pages, list each with its help, and nothing else."""
    pages = README + (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    pages += (ROOT / "docs" / "language-model.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(RECOLLECT_\w+)` \|.*?\| (.+) \|$", pages, re.MULTILINE))
    elsewhere = LifecycleSettings.model_fields
    told = {name: field for name, field in Settings.model_fields.items() if name not in elsewhere}
    assert rows == {variable(name): field.description for name, field in told.items()}


def test_every_setting_of_sessions_is_told() -> None:
    """The page on sessions lists each of their settings with its default and its help, and nothing else."""
    page = (ROOT / "docs" / "sessions.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(\w+)` \| `(.*?)` \| (.+) \|$", page, re.MULTILINE))
    fields = LifecycleSettings.model_fields
    wanted = {(name, str(field.default).lower() or "none", field.description) for name, field in fields.items()}
    assert rows == wanted


def test_readme_commands_answer_as_shown(shell: dict[str, str]) -> None:
    """Each command of the console block prints what README shows, figures aside."""
    for step in re.split(r"^\$ ", blocks("console")[0], flags=re.MULTILINE)[1:]:
        command, _, shown = step.partition("\n")
        done = subprocess.run(shlex.split(command), env=shell, capture_output=True, text=True, check=True)
        assert plain(done.stdout) == plain(shown), command


def test_readme_tool_calls_answer_as_shown(app: App) -> None:
    """The two calls of the tool give the answers that README shows."""
    config, remember, recall, shown = (json.loads(block) for block in blocks("json"))
    first = call_tool(app, "memory", remember["arguments"], ADA)
    assert first.texts[0] in README
    assert call_tool(app, "memory", remember["arguments"], ADA).texts[0] in README
    found = json.loads(call_tool(app, "memory", recall["arguments"], ADA).texts[0])
    assert [list(one) for one in found] == [list(one) for one in shown]
    assert found[0]["content"] == shown[0]["content"]
    assert config["mcpServers"]["recollect"]["args"] == ["mcp"]


def test_readme_shell_lines_run(shell: dict[str, str], tmp_path: Path) -> None:
    """Each command on installing, connecting and importing ends well in an empty home, with a note to import."""
    home = tmp_path / "newcomer"
    home.mkdir()
    (home / "CLAUDE.md").write_text("## Style\n\nUse tabs in Makefiles.\n", encoding="utf-8")
    lines = [line.partition("#")[0].strip() for line in "".join(blocks("sh")).splitlines()]
    ours = [shlex.split(line) for line in lines if line.startswith("recollect ")]
    assert {words[1] for words in ours} == {"model", "init", "install", "uninstall", "import"}
    for words in ours:
        done = subprocess.run(words, env=shell | {"HOME": str(home)}, cwd=home, capture_output=True, text=True)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    assert "Memories: 1 new." in done.stdout


def test_readme_python_runs(environment: dict[str, str]) -> None:
    """The Python block runs as it stands and finds what it stored."""
    done = subprocess.run(
        [sys.executable, "-c", blocks("python")[0]], env=environment, capture_output=True, text=True, check=True
    )
    assert "The staging database is reset every night" in done.stdout
    assert "Memory 1 deleted." in done.stdout


def test_readme_python_talks_to_the_daemon(shell: dict[str, str]) -> None:
    """The second Python block starts the daemon and finds what it stored."""
    done = subprocess.run(
        [sys.executable, "-c", blocks("python")[1]], env=shell, capture_output=True, text=True, check=True
    )
    assert done.stdout == "Releases are cut from the main branch\n"


@pytest.mark.full
def test_readme_python_passes_a_type_checker_without_a_plugin(tmp_path: Path) -> None:
    """A user's mypy, strict and without pydantic's plugin, has nothing to say to the Python blocks."""
    files = [tmp_path / f"block{number}.py" for number in range(len(blocks("python")))]
    for file, block in zip(files, blocks("python"), strict=True):
        file.write_text(block, encoding="utf-8")
    words = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", str(tmp_path), *map(str, files)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_type_checkers_see_every_default() -> None:
    """A default is named in `Field(default=…)`, since type checkers take a field with an unnamed one for required."""
    sources = [*(ROOT / "src" / "recollect" / "domain").glob("*.py"), ROOT / "src" / "recollect" / "settings.py"]
    nodes = [node for file in sources for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "Field"]
    assert len(calls) > 100
    assert [ast.unparse(one) for one in calls if one.args] == []


def test_readme_names_every_command() -> None:
    """Each command of the command line stands in README."""
    listed = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, check=True, env={"COLUMNS": "200"})
    names = re.findall(r"^  ([a-z-]+)  ", listed.stdout.partition("Every day:")[2], re.MULTILINE)
    assert "recall" in names
    for name in names:
        assert re.search(rf"`[^`]*\b{name}\b[^`]*`", README), name


def test_readme_names_every_toolset_and_tool() -> None:
    """The table of toolsets lists each set with exactly its tools."""
    rows = dict(re.findall(r"^\| `(\w+)`(?: \(default\))? \| (`.*) \|$", README, re.MULTILINE))
    for name in toolsets.TOOLSETS:
        named = [tool for tool in re.findall(r"`(\w+)`", rows[name]) if tool in toolsets.NAMES]
        assert tuple(named) == toolsets.tool_names([name])


def test_readme_names_every_export() -> None:
    """What `from recollect import` offers is exactly what the table of names lists, each once."""
    section = README.partition("## Python")[2].partition("## How")[0]
    named = [name for row in re.findall(r"^\| [a-z ]+ \| (`.*) \|$", section, re.MULTILINE) for name in row.split(", ")]
    assert sorted(name.strip("`") for name in named) == sorted(recollect.__all__)
