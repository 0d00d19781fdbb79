"""What bash completes: it runs the script that `--show-completion` prints, as after the Tab key."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from command_line import EXECUTABLE
from daemon_place import Place

_PRESSED = """
eval "$(recollect --show-completion bash)"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
$(complete -p recollect | sed 's/.*-F \\([^ ]*\\).*/\\1/') recollect
printf '%s\\n' "${COMPREPLY[@]}"
"""


def pressed(place: Place, *words: str) -> list[str]:
    """Return what bash offers for the last of these words."""
    programs = f"{Path(EXECUTABLE).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["/bin/bash", "-c", _PRESSED, "bash", "recollect", *words],
        env=place.environment | {"PATH": programs, "SHELL": "/bin/bash"},
        cwd=place.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture
def stocked(shared: Place) -> Place:
    """Return a place whose daemon runs, with a memory that has tags, a group and a project."""
    shared.cli("remember", "The lamp is green", "--tag", "lights,pier", "--category", "sea")
    return shared


def test_a_shell_completes_what_is_stored(stocked: Place) -> None:
    """Tags, groups and projects are those of the store; kinds, agents and commands those that there are."""
    assert pressed(stocked, "list", "--tag", "li") == ["lights"]
    assert pressed(stocked, "recall", "--category", "s") == ["sea"]
    project = stocked.settings.project
    assert project in pressed(stocked, "--project", project[:8])
    assert project in pressed(stocked, "project", "move", project[:8])
    assert pressed(stocked, "list", "--kind", "pre") == ["preference"]
    assert pressed(stocked, "install", "claude") == ["claude-code"]
    assert pressed(stocked, "prom") == ["prompt", "promote"]


def test_a_daemon_runs_every_command_after_a_completion(stocked: Place) -> None:
    """What is offered for the name of a command does not take the place of the command."""
    assert pressed(stocked, "prom") == ["prompt", "promote"]
    assert "RECOLLECT_HOME" in stocked.execute("settings")
    assert stocked.execute("status")


def test_nothing_is_started_for_a_completion(place: Place) -> None:
    """Where no daemon runs, nothing stored is offered and none is started."""
    assert pressed(place, "list", "--tag", "") == []
    assert place.json("status") == {"running": False}
