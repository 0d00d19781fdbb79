"""The thin client: one HTTP request over the daemon's socket with nothing but the standard library."""

from __future__ import annotations

import http.client
import json
import selectors
import socket
from collections import deque
from typing import Any

from recollect.doors.daemon.runtime import Runtime
from recollect.errors import DaemonUnreachable, relayed

_TRANSFER = 30.0  # seconds for connecting, and for any one piece of a request or of its answer
_HELLO = 5.0  # seconds in which a daemon that is well says who it is
_DOUBT = 20.0  # seconds without an answer after which it is asked whether it is still well
_UNAUTHORIZED = 401


class Gone(DaemonUnreachable):
    """The daemon did not answer: it is not there any more, went while it was asked, or hangs."""


class Refused(Gone):
    """Whoever listens there does not know the token: another daemon has taken this one's place."""


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """Connections to one daemon, kept open between requests and shared by threads."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._idle: deque[http.client.HTTPConnection] = deque()
        self._closed = False

    def hello(self) -> dict[str, Any]:
        """Ask who is there; raise `Gone` when nobody says so within a few seconds."""
        return self._exchange("/hello", {}, _HELLO, busy=False)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send one request and return the answer, however long the daemon works on it.

        Raises the error that the daemon reports, or `Gone` when it is not there to answer.
        """
        return self._exchange(path, body, _TRANSFER, busy=True)

    def close(self) -> None:
        """Close every connection that is idle, and each other one as soon as its request is over."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _exchange(self, path: str, body: dict[str, Any], timeout: float, *, busy: bool) -> dict[str, Any]:
        connection = self._take(timeout)
        try:
            headers = {"Authorization": f"Bearer {self.runtime.token}", "Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body), headers)
            self._await(connection, busy=busy)
            response = connection.getresponse()
            payload = json.loads(response.read())
            if not isinstance(payload, dict):
                raise ValueError("the answer is no object")
        except (OSError, http.client.HTTPException, ValueError, TypeError) as error:
            connection.close()
            said = f"{type(error).__name__}: {error}"
            raise Gone(f"The memory daemon (process {self.runtime.pid}) did not answer ({said}).") from None
        self._keep(connection)
        if response.status == _UNAUTHORIZED:
            raise Refused(f"The memory daemon that listens there now is not process {self.runtime.pid}.")
        if response.status >= http.client.BAD_REQUEST:
            raise relayed(str(payload.get("error")), str(payload.get("message")))
        return payload

    def _await(self, connection: http.client.HTTPConnection, *, busy: bool) -> None:
        """Wait for the first byte of the answer: a daemon that is busy may take its time, one that hangs may not."""
        with selectors.DefaultSelector() as selector:
            selector.register(connection.sock, selectors.EVENT_READ)
            while not selector.select(_DOUBT if busy else _HELLO):
                if not busy:
                    raise TimeoutError("it hangs")
                asking = Client(self.runtime)
                try:
                    asking.hello()
                finally:
                    asking.close()

    def _take(self, timeout: float) -> http.client.HTTPConnection:
        try:
            connection = self._idle.pop()
        except IndexError:
            return self._connection(timeout)
        connection.sock.settimeout(timeout)
        return connection

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        if self._closed or connection.sock is None:
            connection.close()
        else:
            self._idle.append(connection)

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        if self.runtime.socket:
            return _SocketConnection(self.runtime.socket, timeout)
        return http.client.HTTPConnection("127.0.0.1", self.runtime.port, timeout=timeout)
