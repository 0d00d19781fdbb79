"""Hooks where the system neither forks nor has alarms, Unix sockets and Unix locks, as Windows: by a real daemon.

No Windows is here: `sitecustomize` takes from each Python what Windows lacks, and locks by a module that stands in for
its own. The daemon's folder is too long for a Unix socket, so that it listens on a port, as it does on Windows.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from command_line import EXECUTABLE
from daemon_place import Place, open_place, until
from recollect.doors import hook_spool

pytestmark = pytest.mark.slow

WITHOUT_UNIX = """
import sys

if {"hook", "recollect.doors.hook"} & set(sys.orig_argv):  # the daemon and its start lock by a library
    import _socket, os, signal, types
    import subprocess  # before msvcrt is there, by which it knows Windows
    from fcntl import LOCK_EX, LOCK_NB, flock
    from recollect import process

    windows = types.ModuleType("msvcrt")
    windows.LK_NBLCK = LOCK_EX | LOCK_NB
    windows.locking = lambda handle, mode, _: flock(handle, mode)
    sys.modules |= {"msvcrt": windows, "fcntl": None}
    process.POSIX = False
    process.detached = lambda: {"start_new_session": True}
    del os.fork, os.setsid, signal.SIGALRM, signal.setitimer, _socket.AF_UNIX
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Return a place whose daemon has no Unix socket, and knows one thing."""
    with ExitStack() as undo:
        made = open_place(tmp_path_factory.mktemp("windows") / ("long" * 25), undo)
        made.remember("We ship on Fridays, because the support team is at work then")
        yield made


@pytest.fixture
def without(place: Place, tmp_path: Path) -> dict[str, str]:
    """Return an environment in which every Python lacks what Windows lacks."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_UNIX, encoding="utf-8")
    before = place.environment.get("PYTHONPATH", "")
    return place.environment | {"PYTHONPATH": f"{tmp_path}:{before}"}


def hook(environment: dict[str, str], name: str, *words: str, **fields: Any) -> str:
    """Run a hook as an agent does, which ends well, and return what it answered."""
    said = {"session_id": f"live-{time.monotonic_ns()}", "hook_event_name": name} | fields
    done = subprocess.run(
        [EXECUTABLE, "hook", name, "--agent", "claude-code", *words],
        input=json.dumps(said).encode(),
        env=environment,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_a_prompt_gets_its_memories_over_the_port(place: Place, without: dict[str, str]) -> None:
    """The daemon listens on loopback, and a hook without sockets of Unix asks it there."""
    assert (place.published()["socket"], place.published()["port"] > 0) == ("", True)
    asked = {"prompt": "On which day do we ship?", "cwd": str(place.folder)}
    until(lambda: "support team" in hook(without, "UserPromptSubmit", **asked))  # once the model is warm


def test_an_event_that_finds_no_daemon_is_delivered_later(place: Place, without: dict[str, str]) -> None:
    """A process that outlives the hook hands it over once the daemon is up, and nothing is lost."""
    home = str(place.home)
    place.cli("stop")
    hook(without, "SessionStart", source="startup", cwd=str(place.folder))
    until(lambda: not hook_spool.waits(home))
    assert hook_spool.lost(home) == 0
    until(lambda: place.json("session", "list")["sessions"] != [])


def test_a_hook_ends_in_time_without_alarms(place: Place, without: dict[str, str]) -> None:
    """Beside a daemon that does not answer, a thread ends the process, and the event is kept."""
    place.pid()
    for one in place.daemons():
        one.suspend()
    assert hook(without, "UserPromptSubmit", prompt="On which day do we ship?", cwd=str(place.folder)) == ""
    assert hook_spool.waits(str(place.home))
    for one in place.daemons():
        one.resume()


def test_settings_come_with_the_command(place: Place, without: dict[str, str]) -> None:
    """Where no `env` stands before a command, `--set` names the variables; those of others are left alone."""
    names = [name for name in without if name.startswith("RECOLLECT_")]
    given = [word for name in names for word in ("--set", f"{name}={without[name]}")]
    bare = {name: text for name, text in without.items() if name not in names}
    assert hook(bare | {"RECOLLECT_DAEMON": "0"}, "UserPromptSubmit", prompt="On which day do we ship?") == ""
    words = ["UserPromptSubmit", *given, "--set", "PATH=/nowhere"]
    until(lambda: "support team" in hook(bare, *words, prompt="On which day do we ship?"))
