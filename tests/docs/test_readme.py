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
from places import DOCS, ROOT
from recollect import App
from run_operations import call_tool

README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = (DOCS / "python.md").read_text(encoding="utf-8")
COMMAND = str(Path(sys.executable).with_name("recollect"))


def blocks(language: str, page: str = README) -> list[str]:
    """Return the code blocks of a page that are marked with `language`."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


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


def test_readme_commands_answer_as_shown(shell: dict[str, str]) -> None:
    """Each command of the console block prints what README shows, figures aside."""
    for step in re.split(r"^\$ ", blocks("console")[0], flags=re.MULTILINE)[1:]:
        command, _, shown = step.partition("\n")
        done = subprocess.run(shlex.split(command), env=shell, capture_output=True, text=True, check=True)
        assert plain(done.stdout) == plain(shown), command


def test_readme_tool_calls_answer_as_shown(app: App) -> None:
    """The two calls of the tool give the answers that README shows."""
    remember, recall, shown = (json.loads(block) for block in blocks("json"))
    first = call_tool(app, "memory", remember["arguments"], ADA)
    again = call_tool(app, "memory", remember["arguments"], ADA)
    assert all(plain(one.texts[0]) in plain(README) for one in (first, again))
    found = json.loads(call_tool(app, "memory", recall["arguments"], ADA).texts[0])
    assert [list(one) for one in found] == [list(one) for one in shown]
    assert found[0]["content"] == shown[0]["content"]


def test_readme_shell_lines_run(shell: dict[str, str], tmp_path: Path) -> None:
    """Each command on installing and connecting ends well in an empty home."""
    home = tmp_path / "newcomer"
    home.mkdir()
    lines = [line.partition("#")[0].strip() for line in "".join(blocks("sh")).splitlines()]
    ours = [shlex.split(line) for line in lines if line.startswith("recollect ")]
    assert {words[1] for words in ours} == {"init", "install", "uninstall"}
    for words in ours:
        done = subprocess.run(words, env=shell | {"HOME": str(home)}, cwd=home, capture_output=True, text=True)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"


def test_readme_python_runs(environment: dict[str, str]) -> None:
    """The Python block runs as it stands and finds what it stored."""
    done = subprocess.run(
        [sys.executable, "-c", blocks("python")[0]], env=environment, capture_output=True, text=True, check=True
    )
    assert "The staging database is reset every night" in done.stdout
    assert "Memory 1 deleted." in done.stdout


def test_the_page_on_python_runs(shell: dict[str, str]) -> None:
    """Its blocks run one after the other, start the daemon, and find what they stored."""
    *over_daemon, in_process = blocks("python", PYTHON)
    said = [_ran(block, shell) for block in over_daemon]
    assert said[0] == "Releases are cut from the main branch\n"
    assert said[1] == "()\n"
    assert re.fullmatch(r"\d memor(y|ies) found. 2\n", said[2])
    assert said[3].startswith("Memory 404 not found.\ncontents Unknown parameter: `contents`. Did you mean `content`")
    subprocess.run([COMMAND, "stop"], env=shell, check=True, capture_output=True)
    assert _ran(in_process, shell) == "1 memory found.\n"


def _ran(block: str, environment: dict[str, str]) -> str:
    done = subprocess.run([sys.executable, "-c", block], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_type_checkers_see_every_default() -> None:
    """A default is named in `Field(default=…)`, since type checkers take a field with an unnamed one for required."""
    sources = [*(ROOT / "src" / "recollect" / "domain").glob("*.py"), ROOT / "src" / "recollect" / "settings.py"]
    nodes = [node for file in sources for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "Field"]
    assert len(calls) > 100
    assert [ast.unparse(one) for one in calls if one.args] == []


def test_every_export_is_named() -> None:
    """What `from recollect import` offers is exactly what the page on Python lists, each once."""
    named = [name for row in re.findall(r"^\| [a-z ]+ \| (`.*) \|$", PYTHON, re.MULTILINE) for name in row.split(", ")]
    assert sorted(name.strip("`") for name in named) == sorted(recollect.__all__)
