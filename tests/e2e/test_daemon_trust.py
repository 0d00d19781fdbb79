"""Whom a client trusts and which daemon it uses: the runtime file's guard, other versions, other ways to listen."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daemon_place import Place, alive, until
from recollect.client import runtime
from recollect.doors.http import daemon as main
from recollect.errors import DaemonUnreachable


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o620, 0o602])
def test_others_can_read_the_runtime_file(shared: Place, mode: int) -> None:
    """A runtime file that others can read or write is not trusted; the message says what to do."""
    pid = shared.pid()
    shared.runtime_file.chmod(mode)
    for command in (["recall", "anything"], ["status"], ["stop"]):
        assert "is not safe" in " ".join(shared.cli(*command, code=9).split())
    shared.runtime_file.chmod(0o600)
    assert shared.pid() == pid


def test_it_belongs_to_another_user(shared: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime file of another user is not trusted, whatever its mode."""
    shared.pid()
    other = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: other)
    with pytest.raises(DaemonUnreachable, match="belongs to another user"):
        shared.remember("anything")


def test_what_it_publishes_is_its_owners_alone(place: Place) -> None:
    """Runtime file, socket and logs can be opened by their owner only, whatever the umask of whoever started it."""
    before = os.umask(0)
    try:
        place.pid()
    finally:
        os.umask(before)
    owned = [place.home / name for name in ("daemon.token", "owner.lock", "starting.lock")]
    for one in (*owned, place.runtime_file, place.home / "daemon.sock", place.home / "logs", place.home):
        assert one.stat().st_mode & 0o077 == 0, one


def test_a_wrong_token(shared: Place) -> None:
    """A client with a wrong token gets a sentence that names the process, and the daemon goes on."""
    pid = shared.pid()
    token = shared.published()["token"]
    shared.publish(token="wrong")
    said = " ".join(shared.cli("recall", "anything", code=9).split())
    assert f"process {pid}" in said
    assert "rejects the token" in said
    shared.publish(token=token)
    assert shared.pid() == pid


@pytest.mark.full
def test_the_token_lives_as_long_as_the_store(place: Place) -> None:
    """A daemon that replaces another takes the same token, so that whoever was told it goes on; a file keeps it."""
    link = place.link()
    link.operation("remember", {"content": "one"})
    before = place.published()["token"]
    place.kill()
    place.cli("remember", "two")
    assert place.published()["token"] == before == (place.home / "daemon.token").read_text()
    assert link.operation("remember", {"content": "three"})["id"] == "3"


@pytest.mark.full
def test_the_path_is_too_long_for_a_socket(make_place: Callable[..., Place], tmp_path: Path) -> None:
    """Where the data folder's path is too long for a Unix socket the daemon listens on a loopback port."""
    place = make_place(tmp_path / ("long" * 20) / ("longer" * 10))
    place.cli("remember", "far down")
    status = place.json("status")
    assert status["socket"] == ""
    assert status["port"] > 0
    assert place.recall("far down") == ["far down"]
    place.kill()
    assert place.recall("far down") == ["far down"]


@pytest.mark.full
def test_something_is_in_the_sockets_place(place: Place) -> None:
    """Where something else stands in the socket's place the daemon listens on a loopback port."""
    (place.home / "daemon.sock" / "within").mkdir(parents=True)
    assert place.remember("all the same")
    assert place.published()["socket"] == ""
    place.cli("stop")
    assert (place.home / "daemon.sock" / "within").is_dir()


@pytest.mark.full_cases("older1")
@pytest.mark.parametrize("older", [{"version": "0.0.1"}, {"protocol": runtime.PROTOCOL - 1}])
def test_an_older_daemon_makes_way(place: Place, older: dict[str, Any]) -> None:
    """One of an older version, or that speaks as an older one did, finishes, and one of this version takes over."""
    place.remember("kept")
    old = place.pid()
    place.publish(**older)
    assert "kept" in place.cli("recall", "kept")
    until(lambda: not alive(old))
    assert place.logs().count("stopped") == 1
    assert [one.pid for one in place.daemons()] == [place.pid()]


@pytest.mark.full
def test_clients_of_an_older_daemon_race_to_replace_it(place: Place) -> None:
    """Many clients that find an older daemon at once replace it once."""
    place.pid()
    place.publish(version="0.0.1")
    racing = [place.begin("remember", f"racer {number}") for number in range(4)]
    said = [one.communicate()[1] for one in racing]
    assert [one.returncode for one in racing] == [0] * 4, said
    assert place.logs().count("serving as process") == 2
    assert place.rows("SELECT count(*) FROM memory") == [(4,)]


def test_a_newer_daemon(shared: Place) -> None:
    """A newer daemon is used when it speaks our protocol; else the client says which of the two to upgrade."""
    pid = shared.pid()
    before = shared.published()
    shared.publish(version="99.1")
    assert shared.pid() == pid
    shared.publish(version="99.1", protocol=runtime.PROTOCOL + 1)
    said = " ".join(shared.cli("recall", "anything", code=9).split())
    assert "newer version (99.1)" in said
    assert "upgrade" in said
    assert alive(pid)
    shared.publish(**before)


@pytest.mark.full
def test_a_port_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loopback listener can be had on a free port, and where no Unix socket can be none is made."""
    monkeypatch.setattr(main, "_LONGEST_SOCKET", 3)
    [listener] = main._open_listeners(Path("/nowhere"), None)
    with listener:
        assert listener.getsockname()[0] == "127.0.0.1"
