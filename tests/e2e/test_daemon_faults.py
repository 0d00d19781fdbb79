"""What can befall the daemon and its clients: killed, stopped in its tracks, raced for, out of space, asked twice."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from daemon_place import Place, alive, kill, until, zombies
from recollect.client import daemon as wire
from recollect.client import launch
from recollect.errors import DaemonUnreachable, StoreUnusable
from recollect.store import store_lock


def full(value: object) -> Any:
    """Return a case that only scripts/soak runs."""
    return pytest.param(value, marks=pytest.mark.full)


@pytest.mark.full
def test_killed_in_mid_write(place: Place) -> None:
    """Clients that write while the daemon is killed start it again; nothing acknowledged is lost, nothing doubled."""
    place.pid()
    texts = [f"fact {number} of the storm" for number in range(60)]
    link, done = place.link(), threading.Semaphore(0)

    def remember(content: str) -> tuple[str, str]:
        found = link.operation("remember", {"content": content})
        done.release()
        return content, str(found["id"])

    with ThreadPoolExecutor(6) as pool:
        running = [pool.submit(remember, one) for one in texts]
        for _ in range(2):
            for _ in range(15):
                done.acquire()
            until(place.runtime_file.exists)
            place.kill()
    acknowledged = dict(one.result() for one in running)
    assert dict(place.rows("SELECT content, CAST(id AS TEXT) FROM memory")) == acknowledged
    assert place.rows("SELECT count(*) FROM journal WHERE action = 'insert'") == [(60,)]
    assert place.rows("SELECT count(*) FROM journal") == [(60,)]
    assert len(place.daemons()) == 1


@pytest.mark.full
@pytest.mark.parametrize("end", ["nothing", "stop", "kill"])
def test_asked_twice(place: Place, end: str) -> None:
    """The same request under the same id gets the first answer and leaves one line, whatever befell the daemon."""
    between: dict[str, Callable[[], object]] = {
        "nothing": lambda: None,
        "stop": lambda: launch.stop(place.settings),
        "kill": place.kill,
    }
    asked = {"remember": {"content": "once only", "key": "k"}, "forget": {"id": "1"}}
    first = {name: place.ask(name, fields, f"request-{name}") for name, fields in asked.items()}
    between[end]()
    first["forget"]["said"] = ""  # nothing is kept of what was forgotten, to be said again
    assert {name: place.ask(name, fields, f"request-{name}") for name, fields in asked.items()} == first
    assert place.rows("SELECT action FROM journal ORDER BY id") == [("insert",), ("delete",)]
    assert place.rows("SELECT count(*) FROM memory") == [(0,)]


@pytest.mark.full
def test_a_client_is_killed_in_mid_call(place: Place) -> None:
    """A client that dies while it is answered harms nobody: the others are served, and what it wrote is whole."""
    place.pid()
    for number in range(4):
        client = place.begin("remember", "long text " * 5000 + str(number))
        until(lambda: place.json("status")["requests"] > 0)
        kill(client.pid)
        client.communicate()
    with place.begin("mcp") as server:
        kill(server.pid)
    place.remember("still here")
    assert "still here" in place.recall("still here")
    assert len(place.daemons()) == 1
    until(place.well)
    assert all(check["well"] for check in place.json("doctor"))


@pytest.mark.full
@pytest.mark.parametrize(
    "what",
    ["dead", "ours", "garbage", "strange", *(full(one) for one in ("binary", "list", "closed", "port", "empty"))],
)
def test_a_stale_runtime_file(common: Place, what: str) -> None:
    """Whatever an old daemon left behind, its pid dead or taken by another process, the next client starts anew."""
    common.remember(f"before {what}")
    published = common.published()
    common.kill()
    nobody = common.home / f"{what}.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(nobody))
    left: dict[str, Any] = {
        "dead": {},
        "ours": {"pid": os.getpid()},
        "closed": {"socket": str(nobody)},
        "port": {"socket": "", "port": 9},
        "strange": {"socket": 5, "port": "x"},
    }
    raw = {"garbage": b"{not json", "binary": b"\xff\xfe\x00", "list": b"[1, 2]", "empty": b""}
    if what in left:
        common.publish(**left[what])
    else:
        common.runtime_file.write_bytes(raw[what])
    assert common.json("status") == {"running": False}
    assert common.json("stop") == {"stopped": False}
    assert f"before {what}" in common.recall(f"before {what}")
    assert common.published()["pid"] != published["pid"]
    assert alive(os.getpid())


@pytest.mark.full
def test_a_stranger_on_the_old_port_hears_nothing(place: Place) -> None:
    """When a daemon is gone, whoever has taken its port since is never sent a request."""
    place.pid()
    place.kill()
    until(lambda: not store_lock.held(place.home))  # the system takes a moment to clear a killed process away
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        place.publish(socket="", port=stranger.getsockname()[1])
        place.remember("for nobody else")
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.accept()


@pytest.mark.full
def test_many_race_to_start(place: Place) -> None:
    """Many clients start at once where no daemon is: one comes up, and all of them are served by it."""
    racing = [place.begin("remember", f"racer {number}") for number in range(6)]
    servers = [place.begin("mcp") for _ in range(2)]
    said = [one.communicate()[1] for one in racing]
    assert [one.returncode for one in racing] == [0] * 6, said
    for one in servers:
        one.communicate("")
    assert [one.returncode for one in servers] == [0] * 2
    assert place.rows("SELECT count(*) FROM memory") == [(6,)]
    assert place.logs().count("serving as process") == 1
    assert len(place.processes()) == len(place.daemons()) == 1


@pytest.mark.full
def test_one_that_hangs_is_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon that is stopped in its tracks is not waited for without end: the error names the process."""
    pid = place.pid()
    psutil.Process(pid).suspend()
    for name, seconds in (("SILENCE", 0.3), ("_PING", 0.3)):
        monkeypatch.setattr(wire, name, seconds)
    for name, seconds in (("SILENCE", 1.0), ("_OWNER_TIMEOUT", 1.0)):
        monkeypatch.setattr(launch, name, seconds)
    seen = launch._find_daemon(place.home)
    assert isinstance(seen, launch._Obstacle)
    assert seen.timeout == 1.0  # not as long as for one that starts
    with pytest.raises(DaemonUnreachable, match=rf"process {pid} .*does not answer"):
        place.remember("anything")
    with pytest.raises(DaemonUnreachable, match=rf"process {pid} .*does not answer"):
        launch.stop(place.settings)
    assert len(place.daemons()) == 1


@pytest.mark.full
def test_one_that_hangs_for_a_moment_is_waited_for(place: Place) -> None:
    """A call that meets a daemon which hangs for a moment succeeds once it goes on, without another daemon."""
    pid = place.pid()
    psutil.Process(pid).suspend()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(place.remember, "patience")
        assert not waiting.done()
        psutil.Process(pid).resume()
        assert waiting.result(60)
    assert [one.pid for one in place.daemons()] == [pid]


@pytest.mark.full
def test_a_killed_daemon_is_no_zombie(place: Place) -> None:
    """A client that lives on collects the daemon it has started when that one is killed."""
    pid = place.pid()
    os.kill(pid, signal.SIGKILL)
    until(lambda: pid not in zombies() and not alive(pid))
    assert place.pid() != pid


@pytest.mark.full
@pytest.mark.parametrize("where", ["a file", "below a file", "/proc/none"])
def test_a_home_that_cannot_be_written(make_place: Callable[..., Place], tmp_path: Path, where: str) -> None:
    """Where no data folder can be made, every command says so in a sentence and ends with exit code 6."""
    (tmp_path / "file").write_text("here already")
    homes = {"a file": tmp_path / "file", "below a file": tmp_path / "file" / "home"}
    place = make_place(homes.get(where, Path("/proc/none")))
    for command in (["remember", "anything"], ["recall", "anything"], ["serve"]):
        run = place.execute if command == ["serve"] else place.cli
        said = " ".join(run(*command, code=6).split())
        assert str(place.home) in said or "cannot be" in said
    assert place.json("status") == {"running": False}
    with pytest.raises(StoreUnusable, match="cannot be written"):
        place.remember("anything")


@pytest.mark.skipif(sys.platform != "linux", reason="prlimit is Linux's")
def test_it_runs_out_of_space(place: Place) -> None:
    """When the disk fills under a daemon, writes end with exit code 6, the log holds no text, and it heals."""
    place.remember("written while there was space")
    size = max(one.stat().st_size for one in place.home.iterdir() if one.is_file())
    pid = place.pid()
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    big = " ".join(f"quokka{number}" for number in range(1500))
    said = " ".join(place.cli("remember", big * 4, code=6).split())
    assert "cannot be used" in said
    assert "written while there was space" in place.cli("recall", "written while there was space")
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    place.cli("remember", "space again")
    assert place.pid() == pid
    assert "quokka" not in place.logs()


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is set before the command starts")
@pytest.mark.parametrize("limit", [0, full(300), full(8192)])
def test_no_space_to_start(place: Place, limit: int) -> None:
    """On a full disk the daemon cannot start, and the command says so with exit code 6."""
    said = place.execute("remember", "anything", code=6, limit=limit)
    assert "cannot be" in " ".join(said.split())
    until(lambda: not place.processes())
    place.cli("remember", "anything")


@pytest.mark.full
def test_a_request_while_it_is_going(make_place: Callable[..., Place]) -> None:
    """Calls that come while the daemon is just ending are served by the next one."""
    place = make_place(idle_minutes=0.002)
    link = place.link()
    found = []
    for number in range(3):
        found.append(link.operation("remember", {"content": f"at the door {number}"})["id"])
        until(lambda: not place.runtime_file.exists())  # it is going, and may not be gone
    assert len(set(found)) == 3
    assert place.rows("SELECT count(*) FROM memory") == [(3,)]


@pytest.mark.full
def test_nothing_is_left_of_a_command(place: Place) -> None:
    """After commands and servers have come and gone, the daemon is the one process of ours."""
    place.cli("remember", "anything")
    with place.talk() as talk:
        talk.remember("anything else")
    until(lambda: len(place.processes()) == 1)
    assert place.processes() == place.daemons()
