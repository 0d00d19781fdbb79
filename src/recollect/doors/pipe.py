"""`recollect mcp` as a pipe between an MCP client and the daemon, with nothing but the standard library.

How a session begins is answered from what was written down; every other message goes to the daemon's MCP server, each
in a thread of its own. A daemon that was killed is started again and asked again: each message carries an id, so that
none takes effect twice. Standard output belongs to the protocol.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from recollect.client.daemon import Client, DaemonGone, DaemonSilent, published, running_at
from recollect.client.server import client_here
from recollect.client.transport import KEY, Link, Lost, at, persistently
from recollect.doors.json_lines import Message, Refused, is_answer, read_line
from recollect.doors.mcp_record import META_VERSION, OPENINGS, Record
from recollect.errors import DaemonUnreachable, RecollectError, relayed
from recollect.setting_texts import SettingTexts, variables

_PATH: Final = "/mcp"
_HERE: Final = 20.0  # seconds between two signs that the session is open
_GRACE: Final = 1.0  # seconds in which calls may still be answered when the client has said all
_PING: Final = {"jsonrpc": "2.0", "id": "prepare", "method": "ping"}
_INTERNAL: Final = -32603


class OwnPrograms:
    """The short-lived processes of our own program that read settings and start the daemon."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(self, module: str, given: Message, said: Callable[[Message], None]) -> int:
        """Run a module to its end, pass on each JSON object that it prints on a line, and return its exit code."""
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-P", "-m", module, json.dumps(given)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        self._running.add(process)
        try:
            with process:
                for line in process.stdout or ():
                    said(json.loads(line))
        finally:
            self._running.discard(process)
        return process.returncode

    def end(self) -> None:
        """End the processes that still run."""
        for one in tuple(self._running):
            one.kill()


class DaemonLink:
    """The way to the daemon, which a helper finds or starts."""

    def __init__(self, given: Message, programs: OwnPrograms, sets: Sequence[str]) -> None:
        self._given = given
        self._sets = sets
        self._programs = programs
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._home: Path | None = None
        self._failed: tuple[float, RecollectError] | None = None
        self._who: dict[str, str] = {}

    @property
    def path(self) -> str:
        """Return the address to which the daemon takes messages of this session."""
        return at(_PATH, **self._who, toolset=self._sets)

    def connected(self, report: Callable[[str], None]) -> Client:
        """Return a client of the daemon, which is started when absent; raise the reason where it cannot be."""
        if (client := self._client) is not None:
            return client
        asked = time.monotonic()
        report("Waiting for the memory daemon.")
        with self._lock:
            if self._client is None:
                if self._failed is not None and self._failed[0] > asked:  # while this one waited for it
                    raise self._failed[1]
                answering = running_at(self._home) if self._home is not None else None
                try:
                    self._client = answering or self._find_or_start_daemon(report)
                except RecollectError as error:
                    self._failed = (time.monotonic(), error)
                    raise
            return self._client

    def prepare(self) -> None:
        """Start the daemon and let it load the SDK, so that the first call does not wait for it."""
        tuple(self.connected(lambda _: None).stream(self.path, _PING, {}, lambda _: None))

    def keep_alive(self) -> None:
        """Ping the daemon now and then, so that it stays as long as this process lives."""
        while True:
            time.sleep(_HERE)
            if (client := self._client) is not None:
                with suppress(RecollectError):
                    client.ping()

    def drop(self, client: Link | None) -> None:
        """Forget a daemon that has gone."""
        with self._lock:
            if self._client is client:
                self._client = None

    def _find_or_start_daemon(self, report: Callable[[str], None]) -> Client:
        """Return a client of the daemon that a helper process finds or starts; `report` gets its progress."""
        ended: Message = {}

        def said(what: Message) -> None:
            if "who" in what:
                self._given, self._who, self._home = what["settings"], what["who"], Path(what["home"])
            elif "report" in what:
                report(what["report"])
            else:
                ended.update(what)

        code = self._programs.run("recollect.client.launch", self._given, said)
        if "error" in ended:
            raise relayed(ended["error"], ended["message"])
        found = published(self._home) if self._home is not None and "ready" in ended else None
        if found is None:
            raise DaemonGone(f"The memory daemon could not be prepared (exit status {code}).")
        return Client(found)


class ServerLink:
    """The way to the server of a team, which runs already; who asks, its token says."""

    def __init__(self, given: Message, sets: Sequence[str]) -> None:
        self._given = given
        self._sets = sets
        self._lock = threading.Lock()
        self._client: Link | None = None
        self.path = _PATH

    def connected(self, _: Callable[[str], None]) -> Link:
        """Return a client of the server; raise `InvalidInput` for settings that cannot be used."""
        with self._lock:
            if self._client is None:
                found = client_here(SettingTexts(self._given, variables()))
                self._client, self.path = found, found.narrowed(_PATH, self._sets)
            return self._client

    def prepare(self) -> None:
        """Let the server load the SDK, so that the first call does not wait for it."""
        tuple(self.connected(lambda _: None).stream(self.path, _PING, {}, lambda _: None))

    def keep_alive(self) -> None:
        """Leave the server alone: it does not end by itself."""

    def drop(self, _: Link | None) -> None:
        """Keep what is known: the next request has a connection of its own anyway."""


class _Call:
    """A request under way."""

    def __init__(self) -> None:
        self.cancelled = False
        self.break_off: Callable[[], None] = lambda: None

    def started(self, break_off: Callable[[], None]) -> None:
        self.break_off = break_off
        if self.cancelled:
            break_off()

    def cancel(self) -> None:
        self.cancelled = True
        self.break_off()


AnyLink = DaemonLink | ServerLink


class Pipe:
    """One session between a client, which reads `out`, and the daemon."""

    def __init__(self, link: AnyLink, programs: OwnPrograms, sets: Sequence[str], home: Path, out: BinaryIO) -> None:
        self._link = link
        self._programs = programs
        self._home = home
        self._record = Record(sets)
        self._out = out
        self._writing = threading.Lock()
        self._calls: dict[str, _Call] = {}
        self._threads: list[threading.Thread] = []
        self._opening: Message | None = None

    def serve(self, lines: Iterable[bytes]) -> None:
        """Take messages, each a line, until the input ends; then wait a moment for the running calls."""
        self._start_thread(self._prepare_link)
        for line in lines:
            if line.strip():
                self._take_line(line)
        end = time.monotonic() + _GRACE
        for thread in self._threads[1:]:
            thread.join(max(0.0, end - time.monotonic()))
        self._programs.end()

    def _prepare_link(self) -> None:
        with suppress(RecollectError, OSError):  # the first call meets it again
            self._link.prepare()

    def _take_line(self, line: bytes) -> None:
        """Read a message and answer it, start its work, or cancel a running call."""
        message = read_line(line)
        if isinstance(message, Refused):
            self._write_message(message.answer())
        elif is_answer(message):
            return  # to a request, and we make none
        elif "id" in message:
            self._answer_request(message)
        elif message["method"] == "notifications/cancelled":
            call = self._calls.get(str((message.get("params") or {}).get("requestId")))
            if call is not None:
                call.cancel()

    def _answer_request(self, message: Message) -> None:
        """Answer a request: at once if the result is recorded, else in a thread."""
        method, modern = message["method"], _is_modern(message)
        if method == "initialize":
            self._opening = message
        if method == "ping" and not modern:
            self._write_message({"jsonrpc": "2.0", "id": message["id"], "result": {}})
        elif (known := self._recorded_result(message)) is not None:
            self._write_message({"jsonrpc": "2.0", "id": message["id"], "result": known})
        else:
            call = self._calls[str(message["id"])] = _Call()
            self._start_thread(lambda: self._run_request(message, call))

    def _recorded_result(self, message: Message) -> Any:
        """Return the recorded result for this message, None where none is recorded."""
        if message["method"] not in (*OPENINGS, "tools/list") or "cursor" in message.get("params", {}):
            return None
        return self._record.result(message["method"], self._version_of(message))

    def _version_of(self, message: Message) -> str:
        """Return the protocol version of a message, its own or that of its session; empty where it names none."""
        asked = message if message["method"] in OPENINGS or _is_modern(message) else self._opening
        return self._record.version_of(asked or {})

    def _start_thread(self, work: Callable[[], None]) -> None:
        self._threads = [one for number, one in enumerate(self._threads) if number == 0 or one.is_alive()]
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run_request(self, message: Message, call: _Call) -> None:
        """Pass a request on, and answer with its error where it fails."""
        try:
            self._pass_on(message, call)
        except (RecollectError, OSError, ValueError) as error:
            if not call.cancelled:
                self._write_message(_error_answer(message, error))
        finally:
            self._calls.pop(str(message["id"]), None)

    def _pass_on(self, message: Message, call: _Call) -> None:
        """Ask the daemon, again when it is lost meanwhile, and pass on each line of its answer."""
        headers = {KEY: os.urandom(16).hex()} | _routing_headers(message, self._version_of(message))

        def report(what: str) -> None:
            token = (message.get("params") or {}).get("_meta", {}).get("progressToken")
            if token is not None and not call.cancelled:
                params = {"progressToken": token, "progress": 0.0, "message": what}
                self._write_message({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

        persistently(lambda: self._ask_once(message, call, headers, report))

    def _ask_once(self, message: Message, call: _Call, headers: dict[str, str], report: Callable[[str], None]) -> None:
        """Ask the daemon once and pass on each line of its answer; raise `Lost` when it is gone before the last."""
        client: Link | None = None
        try:
            client = self._link.connected(report)
            for answer in client.stream(self._link.path, message, headers, call.started):
                if not call.cancelled:
                    self._write_message(answer if "method" in answer else answer | {"id": message["id"]})
                if "method" not in answer:
                    return
            raise DaemonGone("The answer broke off.")
        except Lost as lost:
            if call.cancelled:
                return
            if isinstance(lost, DaemonSilent) and running_at(self._home) is None:
                raise DaemonUnreachable(f"{lost} End that process, or see its log.") from None
            self._link.drop(client)
            raise

    def _write_message(self, message: Message) -> None:
        """Write a message to the client, or end this process where the client is gone."""
        with self._writing:
            try:
                self._out.write(json.dumps(message).encode() + b"\n")
                self._out.flush()
            except (OSError, ValueError):  # the client is gone
                self._programs.end()
                os._exit(0)


def serve(given: dict[str, str], home: Path, sets: Sequence[str], *, remote: bool = False) -> None:
    """Pass messages between the client on standard input and output and the daemon, until the input ends.

    With `remote` the server of a team, which the environment names, takes the daemon's place.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    programs = OwnPrograms()
    link = ServerLink(dict(given), sets) if remote else DaemonLink(dict(given), programs, sets)
    pipe = Pipe(link, programs, sets, home, sys.stdout.buffer)
    threading.Thread(target=link.keep_alive, daemon=True).start()
    pipe.serve(sys.stdin.buffer)


def _routing_headers(message: Message, version: str) -> dict[str, str]:
    """Return the headers that repeat parts of the message: its protocol version, its method, and the tool it names."""
    name = message.get("params", {}).get("name")
    headers = {"MCP-Protocol-Version": version} if version else {}
    if _is_modern(message):
        headers["Mcp-Method"] = message["method"]
        if isinstance(name, str):
            headers["Mcp-Name"] = f"=?base64?{b64encode(name.encode('utf-8', 'replace')).decode()}?="
    return {key: value for key, value in headers.items() if value.isascii() and value.isprintable()}


def _is_modern(message: Message) -> bool:
    """Return whether a request names its protocol version itself."""
    return META_VERSION in message.get("params", {}).get("_meta", {})


def _error_answer(message: Message, error: Exception) -> Message:
    """Return the answer to a message that did not reach the daemon: for a tool call, text that a model can read."""
    head = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] != "tools/call":
        return head | {"error": {"code": _INTERNAL, "message": str(error)}}
    body = {"message": str(error), "error": type(error).__name__}
    answer = {"content": [{"type": "text", "text": str(error)}], "structuredContent": body, "isError": True}
    return head | {"result": answer | ({"resultType": "complete"} if _is_modern(message) else {})}
