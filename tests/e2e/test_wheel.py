"""The wheel without its extras, in an empty virtual environment: the main job needs no torch."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters

from places import ROOT, SCRIPTS

WHEEL = SCRIPTS / "costs" / "wheel.py"
ABSENT = ("torch", "scipy", "transformers", "sentence_transformers", "psycopg", "nvidia", "sklearn", "triton")
Run = Callable[..., str]
WRONG = """import recollect

with recollect.connect(project="shop") as memory:
    recollect.connect(projct="shop")
    memory.remembr("a misspelt verb")
    memory.remember("a misspelt parameter", tgs=["x"])
    memory.remember("a wrong kind", fact_type="rumour")
    memory.recall(5)
    memory.recall("a misspelt field of the answer").hts
"""
"""From its fourth line on each line has an error that a type checker finds."""
CHECKERS = {
    "basedpyright": ["basedpyright", "--pythonpath", "{python}", "."],
    "mypy": ["mypy", "--strict", "--config-file=", "--cache-dir=cache", "--python-executable", "{python}", "."],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a virtual environment of the wheel and what it requires, which is linked from ours."""
    place = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, WHEEL, place], check=True)
    return place


@pytest.fixture(scope="module")
def environment(place: Path) -> dict[str, str]:
    """Return the environment of somebody new: an empty home."""
    theirs = {name: value for name, value in os.environ.items() if not name.startswith(("RECOLLECT_", "XDG_", "HF_"))}
    return theirs | {
        "HOME": str(place / "home"),
        "HF_HUB_OFFLINE": "1",
        "PYTHONDONTWRITEBYTECODE": "",
        "RECOLLECT_DAEMON": "0",
    }


@pytest.fixture(scope="module")
def run(place: Path, environment: dict[str, str]) -> Run:
    """Return a function that runs a program of that environment, checks how it ends and returns what it says."""
    (place / "home").mkdir()

    def running(*command: str, code: int = 0) -> str:
        program = [str(place / "venv/bin" / command[0]), *command[1:]]
        done = subprocess.run(program, env=environment, cwd=place / "home", capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    return running


def packages(place: Path) -> Path:
    """Return the folder of the packages that are installed there."""
    [site] = (place / "venv/lib").glob("python*/site-packages")
    return site


def test_nothing_heavy_is_installed(run: Run) -> None:
    """The wheel requires none of the libraries that only the extras bring."""
    code = "import importlib.util as u, sys; print([one for one in sys.argv[1:] if u.find_spec(one)])"
    assert run("python", "-c", code, *ABSENT).strip() == "[]"


@pytest.mark.full
def test_the_main_job(run: Run, place: Path) -> None:
    """With the model that the wheel holds remember, recall by meaning, reindex, doctor and export work."""
    run("recollect", "remember", "We ship to production on Friday afternoons")
    run("recollect", "remember", "The cafeteria serves soup at noon")
    [first, *_] = json.loads(run("recollect", "recall", "when do we deploy?", "--json"))["memories"]
    assert "Friday" in first["content"]
    assert "2 memories are indexed" in run("recollect", "reindex", "--all")
    run("recollect", "doctor")
    run("recollect", "export", str(place / "all.jsonl"))
    assert "soup at noon" in (place / "all.jsonl").read_text(encoding="utf-8")


def test_an_agent_connects(run: Run, place: Path, environment: dict[str, str]) -> None:
    """The MCP server shakes hands, offers its tool and answers a call."""
    server = StdioServerParameters(command=str(place / "venv/bin/recollect"), args=["mcp"], env=environment)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as client:
        assert [tool.name for tool in portal.call(client.list_tools).tools] == ["memory"]
        said = portal.call(client.call_tool, "memory", {"action": "remember", "content": "The printer is on floor 3"})
    assert "stored successfully" in said.content[0].text


def test_another_model_names_what_it_needs(run: Run) -> None:
    """A model that needs sentence-transformers is one sentence with the command that installs it."""
    said = run("recollect", "reindex", "--model", "acme/other-model", code=8)
    assert "pip install 'recollect[models]'" in " ".join(said.split())


@pytest.mark.full_cases("mypy")
@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checkers_take_the_pages_and_find_mistakes(
    checker: str, place: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """In a strict project of somebody new the Python blocks of the pages pass, and every mistake is found."""
    assert (packages(place) / "recollect/py.typed").exists()
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/python.md")]
    blocks = [
        block for page in pages for block in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    ]
    assert len(blocks) >= 5
    for number, block in enumerate(blocks):
        (tmp_path / f"block{number}.py").write_text(block, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    words = [word.format(python=place / "venv/bin/python") for word in CHECKERS[checker]]
    program = [str(Path(sys.executable).with_name(words[0])), *words[1:]]
    done = subprocess.run(program, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = set(re.findall(r"(\w+\.py):(\d+)(?::\d+)?(?: -|:) error", done.stdout))
    assert found == {("wrong.py", str(line)) for line in range(4, 10)}, done.stdout + done.stderr


def test_the_plugin_comes_along(run: Run) -> None:
    """The folder that Claude Code and Codex load as a plugin is in the wheel, with its files that begin with a dot."""
    plugin = Path(json.loads(run("recollect", "install", "claude-code", "--print", "--json"))["plugin"])
    found = sorted(str(one.relative_to(plugin)) for one in plugin.rglob("*") if one.is_file())
    assert found == [
        ".claude-plugin/plugin.json",
        ".codex-plugin/plugin.json",
        ".mcp.json",
        "hooks/codex.json",
        "hooks/hooks.json",
        "skills/memory/SKILL.md",
    ]
