"""docs/agents.md tells the truth: its commands are run, and its table is that of the contracts."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from places import DOCS
from recollect.doors.agents import agents as agents_module
from recollect.doors.agents.agents import Level, agents
from recollect.doors.hook_contracts import BEFORE, CONTRACTS, OURS, PROMPT, START, TOOL
from recollect.doors.hook_texts import LONGEST

PAGE = (DOCS / "agents.md").read_text(encoding="utf-8")
REPORTED = PAGE.partition("## Events")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
INJECTED = {
    "memories before a prompt": PROMPT,
    "at the start of a session, after a compaction": START,
    "after a command that failed": TOOL,
}
MOMENT = "before a command or an edit"
TITLES = {one.title: name for name, one in agents().items()}


def rows() -> dict[str, dict[str, str]]:
    """Return the table: what each row says of each agent."""
    lines = [line.strip("| \n").split(" | ") for line in REPORTED.splitlines() if line.startswith("| ")]
    head, *table = lines
    return {row[0].strip("`"): dict(zip((TITLES[one] for one in head[1:]), row[1:], strict=True)) for row in table}


def test_the_table_is_that_of_the_contracts() -> None:
    """Each event, each file and where memories come before a prompt stand there for each agent, and nothing else."""
    told = rows()
    assert set(told) == {*OURS, *INJECTED, MOMENT, "file for all projects", "file of one project"}
    for name, contract in CONTRACTS.items():
        agent = agents()[name]
        assert agent.hooks is not None
        for event in OURS:
            names = [one for one in agent.hooks.events if contract.rules[one].event == event]
            assert told[event][name] == (", ".join(f"`{one}`" for one in names) or "none")
        takes = {contract.rules[one].event for one in contract.injects}
        for row, event in INJECTED.items():
            assert (told[row][name] != "no") is (event in takes)
        assert told[MOMENT][name] == ("yes" if BEFORE in takes else "after it")
        user = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", agent.places[Level.USER].hooks)
        assert told["file for all projects"][name] == f"`{user}`"
        assert told["file of one project"][name] == f"`{agent.places[Level.PROJECT].hooks}`"


def test_the_files_that_install_writes_are_those_of_the_table() -> None:
    """For each agent the page names the files of the entry, the passage and the permission, each in its column."""
    table = PAGE.partition("| agent | 1. the entry | 2. the passage | 4. the permission |\n")[2].partition("\n\n")[0]
    told = {line.split("`")[1]: [one.strip() for one in line.split("|")[2:5]] for line in table.splitlines()[1:]}
    assert told.keys() == agents().keys()
    for name, agent in agents().items():
        place = agent.places[Level.USER]
        key = next(iter(agent.allow.get("tools", {}).get("memory", agent.allow)), "")
        permission = f"`{key}` in the entry" if key else ""
        if agent.permission:
            permission = f"`{agent.permission}` in {_on_linux(name, place.hooks)}"
        assert told[name] == [_on_linux(name, place.config), _on_linux(name, place.new), permission], name
        assert agent.asks is bool(permission)


def _on_linux(name: str, file: str) -> str:
    """Return a file's name as the page shows it: on Linux, in a home where no variable names another folder."""
    table = tomllib.loads(Path(agents_module.__file__).with_name("agents.toml").read_text(encoding="utf-8"))
    whole = file.replace("{folder}", table[name].get("folder", {}).get("linux", ""))
    plain = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", whole)
    return f"`{plain}`" if plain else ""


def test_its_figures_are_those_of_the_code() -> None:
    """How much of a text is sent is what the page says."""
    assert f"more than {LONGEST:,} characters" in PAGE


@pytest.mark.full_cases("1", "2")
@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_its_commands_run(block: str, environment: dict[str, str], tmp_path: Path) -> None:
    """Each block ends well in a home of its own, and leaves no daemon."""
    (tmp_path / "user").mkdir()
    ours = environment | {"HOME": str(tmp_path / "user"), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    ours.pop("CLAUDE_CONFIG_DIR", None)
    try:
        done = subprocess.run(
            ["sh", "-e", "-c", block], env=ours, cwd=tmp_path / "user", capture_output=True, text=True, check=False
        )
    finally:
        subprocess.run(["recollect", "stop"], env=ours, check=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
