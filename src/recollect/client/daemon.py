"""Requests to the daemon of a store."""

from __future__ import annotations

from _socket import MSG_PEEK
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recollect.client.http import Response
from recollect.client.runtime import NAME, Runtime, read
from recollect.client.transport import KEY, SILENCE, Link, Lost, Socket
from recollect.errors import DaemonUnreachable, RecollectError, relayed

_TRANSFER = 30.0  # seconds for connecting, and for any one piece of a request or of its answer
_PING = 5.0  # seconds in which a healthy daemon answers a ping
_BAD_REQUEST, _UNAUTHORIZED = 400, 401


class DaemonGone(Lost, DaemonUnreachable):
    """The daemon did not answer: it has ended, ended during the request, or is blocked."""

    def lasting(self) -> DaemonUnreachable:
        """Return the error to raise after the daemon was lost in every attempt."""
        return DaemonUnreachable("The connection to the memory daemon was lost several times; see `recollect status`.")


class DaemonSilent(DaemonGone):
    """The daemon sent nothing for longer than a working daemon does."""


class TokenRejected(DaemonGone):
    """The process that listens there rejects the token: another daemon has replaced this one."""


class Client(Link):
    """Requests to one daemon."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def ping(self) -> dict[str, Any]:
        """Return the daemon's process and version; raise `DaemonGone` without an answer within a few seconds.

        Another daemon of the same store knows the token too, and may not have written the runtime file yet.
        """
        said = dict(self._exchange("/ping", {}, _PING, {}))
        if said.get("pid", self.runtime.pid) != self.runtime.pid:
            raise TokenRejected(f"The memory daemon is no longer process {self.runtime.pid}.")
        return said

    def post(self, path: str, body: dict[str, Any], key: str = "") -> Any:
        """Send one request and wait for the answer; raise the error that the daemon reports, or `DaemonGone`.

        Under a `key` it takes effect once, however often it is sent.
        """
        headers = {KEY: key} if key else {}
        return self._exchange(path, body, _TRANSFER, headers, self._wait_for_answer)

    def _request_headers(self) -> dict[str, str]:
        return self.runtime.headers

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Raise `DaemonSilent` after a timeout, and `DaemonGone` for every other error of the connection."""
        try:
            yield
        except RecollectError:
            raise
        except (OSError, ValueError, TypeError) as error:
            kind = DaemonSilent if isinstance(error, TimeoutError) else DaemonGone
            reason = f"{type(error).__name__}: {error}"
            raise kind(f"The memory daemon (process {self.runtime.pid}) did not answer ({reason}).") from None

    def _raise_reported_error(self, response: Response, payload: dict[str, Any]) -> None:
        if response.status == _UNAUTHORIZED:
            raise TokenRejected(f"The memory daemon is no longer process {self.runtime.pid}.")
        if response.status >= _BAD_REQUEST:
            raise relayed(str(payload.get("error")), str(payload.get("message")), payload)

    def _wait_for_answer(self, link: Socket) -> None:
        """Wait until the answer begins: a busy daemon may take any time as long as it answers pings."""
        link.settimeout(SILENCE)
        while True:
            try:
                link.recv(1, MSG_PEEK)
            except TimeoutError:
                self.ping()
            else:
                break
        link.settimeout(_TRANSFER)

    def _open_connection(self, timeout: float) -> Socket:
        return self.runtime.connect(timeout)


def published(folder: Path) -> Runtime | None:
    """Return the content of the runtime file, None without a file.

    Raises `DaemonUnreachable` where the file cannot be read, or other users could read it.
    """
    path = folder / NAME
    try:
        return read(folder)
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


def running_at(folder: Path) -> Client | None:
    """Return a client of the daemon that answers at the address in a data folder, None without it; starts nothing."""
    found = published(folder)
    if found is None or not found.socket:  # another program may use the port of a daemon that has ended
        return None
    client = Client(found)
    try:
        client.ping()
    except RecollectError:
        return None
    return client
