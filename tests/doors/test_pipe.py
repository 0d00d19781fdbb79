"""The pipe that `recollect mcp` is: what it answers itself, what it hands on, and what it does when the daemon goes."""

from __future__ import annotations

import io
import json
import runpy
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from places import SCRIPTS
from raw_lines import NO_MESSAGES
from recollect.client import transport
from recollect.client.daemon import DaemonGone, DaemonSilent
from recollect.doors import mcp_record, pipe
from recollect.errors import StoreUnusable

WRITER = runpy.run_path(str(SCRIPTS / "mcp_openings.py"))
answer = WRITER["answer"]
ABOUT = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def asking(number: int | str, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def opening(version: str) -> dict[str, Any]:
    return asking(0, "initialize", protocolVersion=version, **ABOUT)


def calling(number: int | str, **params: Any) -> dict[str, Any]:
    return asking(number, "tools/call", name="memory", arguments={}, **params)


class Daemon:
    """Stands for the daemon and the way to it: keeps what it is sent, and answers as `answer` says."""

    def __init__(self, answer: Callable[[dict[str, Any]], Iterator[dict[str, Any]]]) -> None:
        self.path = "/mcp?user=ada"
        self.sent: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.dropped = 0
        self.broken_off = threading.Event()
        self._answer = answer

    def connected(self, _: Callable[[str], None]) -> Daemon:
        return self

    def prepare(self) -> None:
        return None

    def drop(self, _: object) -> None:
        self.dropped += 1

    def stream(
        self, _: str, message: dict[str, Any], headers: dict[str, str], started: Callable[[Callable[[], None]], None]
    ) -> Any:
        self.sent.append(message)
        self.headers.append(headers)
        started(self.broken_off.set)
        yield from self._answer(message)


def done(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Answer as a daemon that has nothing to say."""
    yield {"jsonrpc": "2.0", "id": message["id"], "result": {}}


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Return a function that runs a session over these lines and returns what the client reads."""
    monkeypatch.setattr(transport, "_PAUSE", 0.0)

    def saying(
        lines: Sequence[dict[str, Any] | bytes], daemon: Any = None, sets: Sequence[str] = ("memory",)
    ) -> list[Any]:
        out = io.BytesIO()
        session = pipe.Pipe(daemon or Daemon(done), pipe.OwnPrograms(), sets, Path("none"), out)
        session.serve([one if isinstance(one, bytes) else json.dumps(one).encode() for one in lines])
        return [json.loads(line) for line in out.getvalue().splitlines()]

    return saying


@pytest.mark.parametrize(
    ("asked", "negotiated"), [("2025-06-18", "2025-06-18"), ("2026-07-28", "2025-11-25"), ("1999-01-01", "2025-11-25")]
)
def test_a_session_begins_without_the_daemon(said: Callable[..., list[Any]], asked: str, negotiated: str) -> None:
    """The handshake negotiates as the SDK does, and it, `ping` and the tools are what the SDK itself would answer."""
    daemon = Daemon(done)
    begun, pong, tools = said([opening(asked), asking(1, "ping"), asking(2, "tools/list")], daemon)
    assert begun["result"] == answer(opening(asked), None, ["memory"])["result"]
    assert begun["result"]["protocolVersion"] == negotiated
    assert pong == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert tools == answer(asking(2, "tools/list"), opening(asked), ["memory"])
    assert not daemon.sent


def test_what_is_written_down_is_what_the_sdk_answers(
    said: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of this version is up to date, in each version of the protocol; any toolsets are listed from it."""
    assert json.loads(mcp_record.FILE.read_text(encoding="utf-8")) == WRITER["record"](), "run scripts/mcp_openings.py"
    monkeypatch.setattr(pipe.OwnPrograms, "run", lambda *_: pytest.fail("a program was started"))
    sets = ["more", "memory", "dual"]
    _, tools = said([opening("2025-06-18"), asking(1, "tools/list")], sets=sets)
    assert tools == answer(asking(1, "tools/list"), opening("2025-06-18"), sets)


def test_a_session_of_the_newer_protocol_begins_without_the_daemon(said: Callable[..., list[Any]]) -> None:
    """A client that says its version in each message is answered as the SDK would, or by the daemon's SDK."""
    messages = [asking(1, "server/discover", _meta=META), asking(2, "tools/list", _meta=META)]
    assert said(messages) == [answer(one, None, ["memory"]) for one in messages]
    daemon = Daemon(done)
    said([asking(1, "ping", _meta=META), asking(2, "tools/list", _meta={next(iter(META)): "2026-07-28"})], daemon)
    assert {headers["Mcp-Method"] for headers in daemon.headers} == {"ping", "tools/list"}
    assert [one["MCP-Protocol-Version"] for one in daemon.headers if one["Mcp-Method"] == "ping"] == ["2026-07-28"]


@pytest.mark.parametrize(("line", "number", "code"), NO_MESSAGES.values(), ids=NO_MESSAGES)
def test_what_is_no_message_is_refused(
    said: Callable[..., list[Any]], line: bytes, number: int | None, code: int
) -> None:
    """What is not JSON, and JSON that is no message, gets the error of JSON-RPC for it; the session goes on."""
    wrong, after = said([line, b"", asking(8, "ping")])
    assert (wrong["id"], wrong["error"]["code"]) == (number, code)
    assert after["id"] == 8


def test_notifications_and_answers_are_not_answered(said: Callable[..., list[Any]]) -> None:
    """What asks nothing gets no answer, and an unknown method goes to the daemon's server."""
    silent = [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        {"jsonrpc": "2.0", "id": 5, "result": {}},
    ]
    daemon = Daemon(done)
    assert said([*silent, asking(6, "nonsense")], daemon) == [{"jsonrpc": "2.0", "id": 6, "result": {}}]
    assert [message["method"] for message in daemon.sent] == ["nonsense"]


def test_a_call_is_repeated_when_the_daemon_goes(said: Callable[..., list[Any]]) -> None:
    """A call whose daemon goes is sent again under the same key, in the protocol that the session began with."""

    def answer(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if len(daemon.sent) == 1:
            raise DaemonGone("killed")
        if len(daemon.sent) > 2:
            yield {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
            yield from done(message)

    daemon = Daemon(answer)
    begun, progress, answered = said([opening("2025-06-18"), calling("a")], daemon)
    assert (begun["id"], progress["method"], answered["id"]) == (0, "notifications/progress", "a")
    assert len({headers["Idempotency-Key"] for headers in daemon.headers}) == 1
    assert daemon.headers[-1]["MCP-Protocol-Version"] == "2025-06-18"
    assert (len(daemon.sent), daemon.dropped) == (3, 2)


@pytest.mark.parametrize("meta", [{}, META], ids=["legacy", "modern"])
def test_a_daemon_that_cannot_start_is_told_in_the_answer(said: Callable[..., list[Any]], meta: dict[str, Any]) -> None:
    """A call says in one sentence why there is no daemon, as the model reads it; other requests get an error."""

    class Broken(Daemon):
        def connected(self, _: Callable[[str], None]) -> Daemon:
            raise StoreUnusable("The disk is full.")

    answers = {one["id"]: one for one in said([calling(1, _meta=meta), asking(2, "prompts/list")], Broken(done))}
    result = answers[1]["result"]
    assert (result["isError"], result["content"][0]["text"]) == (True, "The disk is full.")
    assert result["structuredContent"] == {"message": "The disk is full.", "error": "StoreUnusable"}
    assert ("resultType" in result) == bool(meta)
    assert answers[2]["error"]["message"] == "The disk is full."


def test_a_daemon_that_hangs_is_not_asked_again(said: Callable[..., list[Any]]) -> None:
    """A call that heard nothing for longer than a daemon works in silence ends at once, and names the process."""

    def silent(_: dict[str, Any]) -> Iterator[dict[str, Any]]:
        raise DaemonSilent("The memory daemon (process 7) did not answer (TimeoutError: timed out).")
        yield {}

    daemon = Daemon(silent)
    (answer,) = said([calling(1)], daemon)
    assert "process 7" in answer["result"]["content"][0]["text"]
    assert len([one for one in daemon.sent if one["id"] == 1]) == 1


def test_a_daemon_that_cannot_be_prepared_is_waited_for_once() -> None:
    """A call that waited while another found no daemon fails with it, and does not wait as long again."""
    begun, go, ran = threading.Event(), threading.Event(), list[str]()

    class Failing(pipe.OwnPrograms):
        def run(self, module: str, _: Any, said: Callable[[dict[str, Any]], None]) -> int:
            ran.append(module)
            begun.set()
            assert go.wait(60)
            said({"error": "StoreUnusable", "message": "The disk is full."})
            return 0

    def wait_in_vain() -> None:
        with pytest.raises(StoreUnusable):
            link.connected(lambda _: None)

    link = pipe.DaemonLink({}, Failing(), ["memory"])
    first = threading.Thread(target=wait_in_vain)
    first.start()
    assert begun.wait(60)
    with pytest.raises(StoreUnusable, match="The disk is full"):
        link.connected(lambda _: go.set())
    first.join()
    assert len(ran) == 1
    wait_in_vain()
    assert len(ran) == 2


def test_calls_do_not_wait_for_each_other_and_can_be_cancelled(said: Callable[..., list[Any]]) -> None:
    """While one call is under way others are answered; a cancelled one is broken off and never answered."""

    def answer(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if message["id"] == "slow":
            answered.wait(60)
            assert daemon.broken_off.wait(60)
            raise DaemonGone("broken off")
        answered.set()
        yield from done(message)

    def lines() -> Iterator[dict[str, Any]]:
        yield calling("slow")
        yield calling("quick")
        assert answered.wait(60)
        yield {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}}

    answered, daemon = threading.Event(), Daemon(answer)
    out = io.BytesIO()
    session = pipe.Pipe(daemon, pipe.OwnPrograms(), ["memory"], Path("none"), out)  # type: ignore[arg-type]
    session.serve(json.dumps(one).encode() for one in lines())
    assert [json.loads(line)["id"] for line in out.getvalue().splitlines()] == ["quick"]
    assert daemon.dropped == 0
