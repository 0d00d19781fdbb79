"""The command line and the daemon: who starts it, who finds it, who ends it, and what it leaves in its log."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from daemon_place import Place, alive, until, zombies
from recollect import open_app
from recollect.client import launch
from recollect.doors.cli.opening import opened
from recollect.doors.http.local import Activity
from recollect.store import store_lock


def test_the_first_call_starts_it_and_the_second_finds_it(place: Place) -> None:
    """The first command starts one daemon, which outlives it and serves the next command too."""
    assert place.json("status") == {"running": False}
    place.cli("remember", "the build server is called Otto")
    first = place.json("status")
    assert "Otto" in place.cli("recall", "what is the build server called?", "--json")
    assert place.json("status")["pid"] == first["pid"]
    assert [one.pid for one in place.daemons()] == [first["pid"]]


def test_one_command_forgets_several(shared: Place) -> None:
    """Each operation of a command counts for itself: none is taken for a repetition of the one before."""
    said = [shared.cli("remember", f"the tile from {town} is blue", "--tag", "tile") for town in ("Porto", "Delft")]
    first, second = (one.partition("ID: ")[2].split()[0] for one in said)
    told = shared.execute("forget", first, second, "7001", code=4)
    assert f"Memory {first} deleted." in told
    assert f"Memory {second} deleted." in told
    assert "Memory 7001 not found." in told


def test_a_daemon_that_begins_meanwhile_is_asked(shared: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that saw no daemon, and then finds the store taken by one, asks that one."""
    shared.remember("the ferry leaves at noon")
    monkeypatch.setattr(launch, "running", lambda _: None)
    monkeypatch.setattr(store_lock, "_PATIENCE", 0.0)
    with opened(shared.settings, model=False) as run:
        assert "the ferry leaves at noon" in [one.content for one in run("list_memories").memories]


def test_status_says_who_since_when_and_with_how_much(place: Place) -> None:
    """The status names process, version, time, memory, model and index, and never the token."""
    before = datetime.now(UTC).replace(microsecond=0)
    place.remember("one thing")
    status = place.json("status")
    assert status["running"]
    assert alive(status["pid"])
    assert before <= datetime.fromisoformat(status["since"]) <= before + timedelta(minutes=3)
    daemon = psutil.Process(status["pid"])
    least, memory, most = daemon.memory_info().rss, place.json("status")["memory_bytes"], daemon.memory_info().rss
    assert least - 100_000_000 < memory < most + 100_000_000  # it grows while the model is loaded
    assert status["requests"] >= 2
    assert "token" not in status
    assert place.published()["token"] not in place.cli("status")


def test_stop_ends_it(place: Place) -> None:
    """After `recollect stop` no process, runtime file or socket is left, and the next call starts a new one."""
    first = place.pid()
    assert place.json("stop") == {"stopped": True}
    until(lambda: not alive(first))
    assert not place.runtime_file.exists()
    assert not (place.home / "daemon.sock").exists()
    assert place.json("stop") == {"stopped": False}
    assert place.pid() != first


@pytest.mark.full
def test_a_polite_signal_ends_it_in_order(place: Place) -> None:
    """A terminated daemon takes its runtime file and its socket away."""
    psutil.Process(place.pid()).terminate()
    until(lambda: not place.daemons())
    assert not place.runtime_file.exists()
    assert "stopped" in place.logs()


def test_one_who_wants_it_alone_is_told_who_owns_it(shared: Place) -> None:
    """With a daemon running, `--in-process` ends with exit code 5 and names the owner."""
    pid = shared.pid()
    said = shared.cli("--in-process", "recall", "anything", code=5)
    assert f"process {pid} (recollect serve" in " ".join(said.split())


@pytest.mark.full
def test_an_owner_that_is_no_daemon_is_named(place: Place) -> None:
    """While another process has the store open for itself, clients of the daemon are told which one."""
    with open_app(place.settings, wait=False, role="a notebook"):
        said = place.cli("remember", "anything", code=5)
        assert "(a notebook, since" in " ".join(said.split())
        assert "a notebook" in place.cli("status")
    place.cli("remember", "anything")


@pytest.mark.full
def test_nobody_comes_and_it_ends(make_place: Callable[..., Place]) -> None:
    """A daemon nobody asks for anything ends by itself and leaves no zombie with a client that lives on."""
    place = make_place(idle_minutes=0.02)
    pid = place.pid()
    until(lambda: not alive(pid))
    until(lambda: pid not in zombies())
    assert not place.runtime_file.exists()
    assert place.pid() != pid


def test_idleness_ignores_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """However the clock jumps, only time that has really passed counts as idle."""
    activity = Activity()
    monkeypatch.setattr(time, "time", lambda: 9e9)
    assert 0 <= activity.idle_seconds < 60
    passed = time.monotonic() + 100
    monkeypatch.setattr(time, "monotonic", lambda: passed)
    assert activity.idle_seconds >= 100


@pytest.mark.full
def test_its_home_is_taken_away_and_it_ends(place: Place) -> None:
    """A daemon that nobody could find any more ends, so that it is no orphan and another one can come."""
    pid = place.pid()
    place.runtime_file.unlink()
    until(lambda: not alive(pid))
    assert place.pid() != pid


def test_the_log_holds_no_memory_and_no_token(place: Place) -> None:
    """Logs lie in the data folder and hold neither what was remembered, asked or refused, nor the token."""
    secret = "ghp_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))
    memory_id = place.remember("Zerline the quokka lives in the logroom")
    place.recall("xylophone quokka")
    place.cli("remember", f"the token is {secret}", code=3)
    place.link().operation("forget", {"id": memory_id})
    token = place.published()["token"]
    place.cli("stop")
    logs = place.logs()
    assert "serving as process" in logs
    assert launch.log_file(place.settings).is_relative_to(place.home)
    assert not [word for word in ("Zerline", "quokka", "xylophone", secret, token) if word in logs]


@pytest.mark.full
def test_settings_reach_a_daemon_that_works_elsewhere(make_place: Callable[..., Place], tmp_path: Path) -> None:
    """A data folder given relative to the client's working folder is the same one for the daemon."""
    place, folder = make_place(tmp_path / "home"), tmp_path
    command = ["--home", "relative", "remember", "where am I"]
    place.cli(*command, cwd=folder)
    there = place.changed(home=folder / "relative")
    try:
        assert there.recall("where am I") == ["where am I"]
        assert sorted(one.name for one in folder.iterdir()) == ["relative"]
    finally:
        there.clear()


def test_a_client_that_leaves_early_waits_for_nothing(place: Place) -> None:
    """A server whose client goes right after the start ends at once and in order, though the daemon is starting."""
    server = place.begin("mcp")
    _, said = server.communicate("", timeout=60)
    assert server.returncode == 0
    assert "Traceback" not in said


@pytest.mark.full
def test_no_descriptor_is_leaked(shared: Place) -> None:
    """A client that looks, connects and disconnects often holds no more open files than before."""
    shared.pid()
    before = psutil.Process().num_fds()
    for _ in range(20):
        with shared.wire() as wire:
            wire.post("/status", {})
    assert psutil.Process().num_fds() == before


@pytest.mark.full
def test_many_threads_share_a_link(shared: Place) -> None:
    """Threads of one client use one link at once, and each gets its own answer."""
    link = shared.link()
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda n: link.operation("remember", {"content": f"thread fact {n}"})["id"], range(16)))
    assert len(set(found)) == 16
