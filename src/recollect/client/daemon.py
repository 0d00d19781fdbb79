"""The daemon of a data folder: where it listens, and a client that speaks to it.

The thin client: one HTTP request over the daemon's socket with nothing but the standard library.

The runtime file: the address of a store's daemon and its token, readable by its owner only.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import selectors
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from recollect.client.server import KEY, SILENCE, Link, Lost
from recollect.errors import DaemonUnreachable, RecollectError, relayed
from recollect.process import read_private

NAME = "daemon.json"
_OF_STORE = "daemon.token"
ROLE = "recollect serve"
"""The role under which a daemon owns a store."""
PROTOCOL = 3
"""Changes when older clients cannot talk to the daemon any more."""
_PORTS: Final = range(65536)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What a client must know: a Unix socket or a loopback port, the token, and the process and its start.

    A daemon in the `foreground` was started by a person; any other gives way to one.
    """

    pid: int
    version: str
    protocol: int
    token: str
    socket: str
    port: int
    since: str
    foreground: bool = False

    @property
    def public(self) -> dict[str, Any]:
        """Return everything but the token."""
        return {name: value for name, value in asdict(self).items() if name != "token"}

    def write(self, folder: Path) -> None:
        """Write the file atomically, readable by its owner only from the first byte."""
        write_private(folder / NAME, json.dumps(asdict(self)))


def read(folder: Path) -> Runtime | None:
    """Return the runtime file's content if valid; raise `DaemonUnreachable` when other users could read its token."""
    path = folder / NAME
    try:
        content = read_private(str(path))
    except PermissionError as error:
        from recollect.store.ownership import problem

        if reason := problem(folder, error):
            raise DaemonUnreachable(reason) from None
        if error.errno is not None:
            raise DaemonUnreachable(f"{path} cannot be read: {error.strerror}.") from None
        raise DaemonUnreachable(
            f"{path} is not safe: other users can read or write it, or it belongs to another user. "
            "Stop the daemon with its owner's `recollect stop` and delete the file."
        ) from None
    except OSError as error:
        raise DaemonUnreachable(f"{path} cannot be read: {error.strerror or error}.") from None
    return None if content is None else _parsed(content)


def token_of(folder: Path) -> str:
    """Return the token of a store, which is made once: what clients were told holds after every start.

    Who deletes the file, or lets others touch it, gets another one at the next start.
    """
    path = folder / _OF_STORE
    with suppress(OSError, ValueError):
        if token := (read_private(str(path)) or b"").decode("ascii").strip():
            return token
    token = secrets.token_urlsafe(32)
    write_private(path, token)
    return token


def write_private(path: Path, text: str) -> None:
    """Write a file atomically, readable by its owner only from the first byte."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)


def published_by(folder: Path, pid: int) -> bool:
    """Return whether the file exists and was written by `pid`; one that cannot be read just now has not gone."""
    try:
        found = _parsed((folder / NAME).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # such as too many open files
        return True
    return found is not None and found.pid == pid


def remove(folder: Path, pid: int) -> None:
    """Remove the file if it was written by `pid`."""
    if published_by(folder, pid):
        with suppress(OSError):  # the folder became read-only: clients find no process behind the file
            (folder / NAME).unlink()


def _parsed(content: bytes) -> Runtime | None:
    try:
        said = json.loads(content)
    except ValueError:
        return None
    if not isinstance(said, dict):
        return None
    known: dict[str, Any] = {one.name: said.get(one.name, one.default) for one in fields(Runtime)}
    if not all(type(known[one.name]).__name__ == one.type for one in fields(Runtime)) or known["port"] not in _PORTS:
        return None
    found = Runtime(**known)
    return found if found.socket or found.port else None


_TRANSFER = 30.0  # seconds for connecting, and for any one piece of a request or of its answer
_PING = 5.0  # seconds in which a healthy daemon answers a ping


class DaemonGone(Lost, DaemonUnreachable):
    """The daemon did not answer: it has ended, ended during the request, or is blocked."""

    def lasting(self) -> DaemonUnreachable:
        """Return the error of a daemon that was lost again and again."""
        return DaemonUnreachable("The connection to the memory daemon was lost several times; see `recollect status`.")


class DaemonSilent(DaemonGone):
    """The daemon said nothing for longer than one that works."""


class TokenRejected(DaemonGone):
    """The process that listens there rejects the token: another daemon has replaced this one."""


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client(Link):
    """Requests to one daemon."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def ping(self) -> dict[str, Any]:
        """Return the daemon's process and version; raise `DaemonGone` without an answer within a few seconds.

        Another daemon of the same store knows the token too, and may not have told of itself yet.
        """
        said = dict(self._exchange("/ping", {}, _PING, {}, lambda connection: self._await(connection, busy=False)))
        if said.get("pid", self.runtime.pid) != self.runtime.pid:
            raise TokenRejected(f"The memory daemon is no longer process {self.runtime.pid}.")
        return said

    def post(self, path: str, body: dict[str, Any], key: str = "") -> Any:
        """Send one request and wait for the answer; raise the error that the daemon reports, or `DaemonGone`.

        Under a `key` it takes effect once, however often it is sent.
        """
        headers = {KEY: key} if key else {}
        return self._exchange(path, body, _TRANSFER, headers, lambda connection: self._await(connection, busy=True))

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.runtime.token}"}

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except RecollectError:
            raise
        except (OSError, http.client.HTTPException, ValueError, TypeError) as error:
            kind = DaemonSilent if isinstance(error, TimeoutError) else DaemonGone
            reason = f"{type(error).__name__}: {error}"
            raise kind(f"The memory daemon (process {self.runtime.pid}) did not answer ({reason}).") from None

    def _check(self, response: http.client.HTTPResponse, payload: dict[str, Any]) -> None:
        if response.status == http.client.UNAUTHORIZED:
            raise TokenRejected(f"The memory daemon is no longer process {self.runtime.pid}.")
        if response.status >= http.client.BAD_REQUEST:
            raise relayed(str(payload.get("error")), str(payload.get("message")), payload)

    def _await(self, connection: http.client.HTTPConnection, *, busy: bool) -> None:
        """Wait for the first byte of the answer; a `busy` daemon may take any time as long as it answers pings."""
        with selectors.DefaultSelector() as selector:
            selector.register(connection.sock, selectors.EVENT_READ)
            while not selector.select(SILENCE if busy else _PING):
                if not busy:
                    raise TimeoutError(f"No response within {_PING:.0f} s.")
                self.ping()

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        if self.runtime.socket:
            return _SocketConnection(self.runtime.socket, timeout)
        return http.client.HTTPConnection("127.0.0.1", self.runtime.port, timeout=timeout)


def running_at(folder: Path) -> Client | None:
    """Return a client of the daemon that answers at the address in a data folder, None without one; starts nothing."""
    found = read(folder)
    if found is None or not found.socket:  # another program may use the port of a daemon that has ended
        return None
    client = Client(found)
    try:
        client.ping()
    except RecollectError:
        return None
    return client
