"""The commands on the daemon: its address and token, and who gives way to whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from callers import ADA
from clock import Clock
from recollect import Settings
from recollect.client import launch
from recollect.client import runtime as running
from recollect.domain.origin import SaidBy
from recollect.doors.http import daemon as main
from recollect.errors import NotFound, StoreOwned
from run_operations import add
from stores import open_app

Typed = Callable[..., Any]
FOUND = running.Runtime(
    pid=4711, version="1", protocol=running.PROTOCOL, token="t" * 3, socket="", port=8765, since="2026-01-01"
)


@dataclass
class Daemon:
    """A daemon that only notes what is asked of it."""

    runtime: running.Runtime = FOUND
    done: list[Any] = field(default_factory=list)

    def post(self, path: str, _: dict[str, Any]) -> dict[str, Any]:
        """Answer for its state."""
        assert path == "/status"
        told = {"memory_bytes": 1, "requests": 1, "idle_seconds": 0.0, "model": "ready", "vector_index": "ready"}
        return self.runtime.public | told


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> Daemon:
    """Let a daemon be found, be stopped, and another be served in its place."""
    found = Daemon()

    def stop(_: Settings) -> bool:
        found.done.append("stopped")
        return True

    def serve(settings: Settings, _: object, port: int | None, ready: Callable[[], None], *, foreground: bool) -> None:
        found.done.append((port, foreground))
        found.runtime.write(settings.folder)
        ready()

    monkeypatch.setattr(launch, "running", lambda _: found)
    monkeypatch.setattr(launch, "stop", stop)
    monkeypatch.setattr(main, "serve", serve)
    monkeypatch.setattr(main, "log_to_file", lambda settings: settings.folder.mkdir(parents=True, exist_ok=True))
    return found


def test_the_address_is_told_and_the_token_on_request(typed: Typed, daemon: Daemon) -> None:
    """The address speaks as the caller; the token is printed alone, and only when it is asked for."""
    url = "http://127.0.0.1:8765/mcp?user=ada&project=a+b&team=red"
    caller = ("--user", "ada", "--project", "a b", "--team", "red")
    assert typed(*caller, "status", "--json").json["url"] == url
    shown = typed(*caller, "status").out
    assert url in shown
    assert FOUND.token not in shown
    assert typed("status", "--token").out == f"{FOUND.token}\n"
    daemon.runtime = running.Runtime(**vars(FOUND) | {"port": 0, "socket": "s"})
    assert "off; `recollect serve --port 8765` turns it on" in typed("status").out
    assert typed("status", "--json").json["url"] is None


@pytest.mark.usefixtures("daemon")
def test_the_status_says_what_waits(typed: Typed, settings: Settings) -> None:
    """What waits for a decision, and for too long, is said where there is any."""
    assert "inbox" not in typed("status", "--json").json
    with open_app(settings, clock=Clock()) as app:
        add(app, "The page lists the ports.", ADA.saying(SaidBy.WEB, "https://docs.example.com/a"))
    assert "1 of them for more than 7 days" in typed("status").out


def test_without_a_daemon_there_is_no_token(typed: Typed, settings: Settings) -> None:
    """That none is running is an error for who wants its token; to everybody else it is said, with what waits."""
    assert typed("status").out == "No memory daemon is running.\n"
    with open_app(settings) as app:
        add(app, "The page lists the ports.", ADA.saying(SaidBy.WEB, "https://docs.example.com/a"))
    told = typed("status", "--json").json
    assert (told["running"], told["inbox"].startswith("1 memory waits for a decision")) == (False, True)
    assert typed("status").out == f"No memory daemon is running.\n{told['inbox']}\n"
    refused = typed("status", "--token")
    assert (refused.code, refused.err) == (NotFound.exit_code, "recollect: No memory daemon is running.\n")


def test_a_daemon_of_a_command_gives_way(typed: Typed, daemon: Daemon) -> None:
    """`serve` stops what a command has started, says so, and tells the address; a person's daemon stays."""
    served = typed("serve", "--port", "8765")
    assert (served.code, daemon.done) == (0, ["stopped", (8765, True)])
    first, *rest = served.err.splitlines()
    assert first == "Stopped the daemon that an earlier command had started (process 4711)."
    assert any(line.startswith("MCP over HTTP: http://127.0.0.1:8765/mcp?user=") for line in rest)
    assert rest[-1] == "It asks for a bearer token, which `recollect status --token` prints."
    daemon.runtime = running.Runtime(**vars(FOUND) | {"foreground": True})
    refused = typed("serve")
    assert (refused.code, daemon.done[2:]) == (StoreOwned.exit_code, [])


def test_a_runtime_file_of_before_is_read(settings: Settings) -> None:
    """A file that does not say whether a person started the daemon means that none did."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    FOUND.write(settings.folder)
    path = settings.folder / running.NAME
    path.write_text(path.read_text(encoding="utf-8").replace(', "foreground": false', ""), encoding="utf-8")
    found = running.read(settings.folder)
    assert found is not None
    assert vars(found) == vars(FOUND)
