"""Requests to a server over a socket or TCP, and when they are sent again.

Requests to the server of a team, by a token, with nothing but the standard library: every command waits for it.

One HTTP request to a process of ours with nothing but the standard library, and the one rule for asking again.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from recollect import process
from recollect.errors import InvalidInput, RecollectError, ServerUnreachable, TooManyRequests, Unauthorized, relayed
from recollect.projects import find_project
from recollect.server_url import ServerUrl, check_token, parse

SILENCE = 20.0  # seconds in which one that works says something
KEY = "Idempotency-Key"
"""The header under which a request takes effect once, however often it is sent."""
_EVENTS = "text/event-stream"
_DATA = b"data:"
_ATTEMPTS: Final = 6
_PAUSE: Final = 0.1  # seconds, once more of them before each further attempt
_LONGEST_PAUSE: Final = 20.0

Headers = Mapping[str, str]


class Lost(RecollectError):
    """The other side did not answer: what was asked may be asked again under the same id.

    `sent` says whether it may have taken the request, `pause` in how many seconds it wants to be asked again.
    """

    sent = True
    pause = 0.0

    def lasting(self) -> RecollectError:
        """Return the error of a side that was lost again and again."""
        return self


Answer = TypeVar("Answer")


def persistently(ask: Callable[[], Answer], *, keyed: bool = True) -> Answer:
    """Return what `ask` returns, which is asked again when the other side is lost or wants no more just now.

    What carries no key is asked again only where it did not arrive. Raises the last error.
    """
    last: RecollectError
    for attempt in range(_ATTEMPTS):
        try:
            return ask()
        except Lost as lost:
            pause, last = max(lost.pause, _PAUSE * attempt), lost.lasting()
            if pause > _LONGEST_PAUSE or (lost.sent and not keyed):
                raise
        except TooManyRequests as busy:
            pause, last = busy.retry_after, busy
            if pause > _LONGEST_PAUSE:
                raise
        if attempt + 1 < _ATTEMPTS:
            time.sleep(pause)
    raise last


class Link(ABC):
    """Requests to one other side. Each has a connection of its own, so that threads share nothing."""

    def stream(
        self, path: str, message: dict[str, Any], headers: Headers, started: Callable[[Callable[[], None]], None]
    ) -> Iterator[dict[str, Any]]:
        """Send one message of MCP and yield the messages of its answer as they come; raise as `post` does.

        `started` is given what breaks it off from another thread. One that works sends signs of life meanwhile.
        """
        with self._answering(), closing(self._connection(SILENCE)) as connection:
            self._connect(connection)
            link = connection.sock
            started(lambda: _break_off(link))
            self._send(connection, path, message, {"Accept": f"application/json, {_EVENTS}"} | dict(headers))
            response = connection.getresponse()
            if response.headers.get_content_type() == _EVENTS:
                for line in response:
                    if line.startswith(_DATA) and line[len(_DATA) :].strip():
                        yield dict(read_json(line[len(_DATA) :]))
                return
            payload = self._payload(response)
            if not (isinstance(payload, dict) and "jsonrpc" in payload):
                self._check(response, payload)
                raise ValueError("the answer is no message of MCP")
            yield payload

    def _exchange(
        self,
        path: str,
        body: dict[str, Any] | None,
        timeout: float,
        headers: Headers,
        wait: Callable[[http.client.HTTPConnection], None] = lambda _: None,
    ) -> Any:
        """Send one request and return the answer, a JSON object or array; without a body it is a GET."""
        with self._answering(), closing(self._connection(timeout)) as connection:
            self._connect(connection)
            self._send(connection, path, body, headers)
            wait(connection)
            response = connection.getresponse()
            payload = self._payload(response)
        self._check(response, payload)
        return payload

    def _send(
        self, connection: http.client.HTTPConnection, path: str, body: dict[str, Any] | None, headers: Headers
    ) -> None:
        all_headers = self._headers() | {"Content-Type": "application/json"} | dict(headers)
        content = None if body is None else json.dumps(body)
        with suppress(ConnectionError):  # it may have refused the head, answered and closed before the body
            connection.request("GET" if body is None else "POST", self._target(path), content, all_headers)

    def _connect(self, connection: http.client.HTTPConnection) -> None:
        connection.connect()

    def _target(self, path: str) -> str:
        return path

    def _payload(self, response: http.client.HTTPResponse) -> Any:
        return read_json(response.read())

    @abstractmethod
    def _headers(self) -> dict[str, str]:
        """Return what each request carries."""

    @abstractmethod
    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        """Return a connection that is not open yet."""

    @abstractmethod
    def _answering(self) -> AbstractContextManager[None]:
        """Raise an error that is `Lost` for whatever goes wrong with the connection."""

    @abstractmethod
    def _check(self, response: http.client.HTTPResponse, payload: Any) -> None:
        """Raise the error that an answer reports."""


def at(path: str, **asked: str | Sequence[str]) -> str:
    """Return a path with what it is asked for behind `?`; what is empty is left out."""
    words = urlencode({name: value for name, value in asked.items() if value}, doseq=True)
    return f"{path}?{words}" if words else path


def read_json(text: bytes) -> Any:
    """Return a JSON object or array; raise `ValueError` for anything else."""
    payload = json.loads(text)
    if not isinstance(payload, dict | list):
        raise ValueError("the answer is neither an object nor an array")
    return payload


def _break_off(link: socket.socket) -> None:
    with suppress(OSError):  # it has ended by itself
        link.shutdown(socket.SHUT_RDWR)


_CONNECT: Final = 10.0  # seconds for connecting
_ANSWER: Final = 300.0  # seconds for an answer: an import of many memories takes minutes
_AWAY: Final = (502, 503, 504)


class ServerGone(Lost, ServerUnreachable):
    """The server did not answer."""

    def __init__(self, message: str, *, sent: bool, pause: float = 0.0) -> None:
        super().__init__(message)
        self.sent = sent
        self.pause = pause


class ServerClient(Link):
    """Requests to one server by one token, narrowed to a team and a project where these are named, and in a zone."""

    def __init__(self, url: ServerUrl, token: str, team: str = "", project: str = "", zone: str = "") -> None:
        self.url = url
        self.project = project
        self._token = token
        self._narrowed = {"team": team, "project": project, "zone": zone}

    def post(self, path: str, body: dict[str, Any], key: str = "", *, narrowed: bool = True) -> Any:
        """Send one request, again when the server is away for a moment, and return the answer, an object or an array.

        Without a `key`, by which nothing takes effect twice, it is sent again only when it did not arrive. Raises the
        error that the server reports, or `ServerUnreachable`.
        """
        target = self.narrowed(path) if narrowed else path
        headers = {KEY: key} if key else {}
        return persistently(lambda: self._exchange(target, body, _ANSWER, headers), keyed=bool(key))

    def narrowed(self, path: str, toolset: Sequence[str] = ()) -> str:
        """Return a path narrowed to the team and the project, and to toolsets of MCP."""
        return at(path, **self._narrowed, toolset=toolset)

    def get(self, path: str) -> dict[str, Any]:
        """Return the object at a path; raise as `post` does."""
        return dict(self._exchange(path, None, _CONNECT, {}))

    def _connect(self, connection: http.client.HTTPConnection) -> None:
        limit, connection.timeout = connection.timeout, _CONNECT
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as error:
            why = error.verify_message.rstrip(".")
            raise ServerUnreachable(
                f"The server {self.url.name} is not trusted: {why}. SSL_CERT_FILE names a file of further authorities."
            ) from None
        except (OSError, ValueError) as error:
            raise ServerGone(f"The server {self.url.name} cannot be reached: {_reason(error)}.", sent=False) from None
        connection.sock.settimeout(limit)

    def _target(self, path: str) -> str:
        return self.url.path + path

    def _payload(self, response: http.client.HTTPResponse) -> Any:
        """Return what is answered, an empty object where a proxy answers in the server's place."""
        raw = response.read()
        return read_json(raw) if response.status == http.client.OK or _is_json(response) else {}

    def _headers(self) -> dict[str, str]:
        return {"Accept": "application/json", **({"Authorization": f"Bearer {self._token}"} if self._token else {})}

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        if self.url.secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self.url.host, self.url.port, timeout=timeout, context=context)
        return http.client.HTTPConnection(self.url.host, self.url.port, timeout=timeout)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except RecollectError:
            raise
        except ValueError:
            raise ServerUnreachable(f"What answers at {self.url.name} is no server of Recollect.") from None
        except (OSError, http.client.HTTPException) as error:
            raise ServerGone(f"The server {self.url.name} did not answer: {_reason(error)}.", sent=True) from None

    def _check(self, response: http.client.HTTPResponse, payload: Any) -> None:
        if response.status == http.client.OK:
            return
        told = payload if isinstance(payload, dict) else {}
        status, kind, message = response.status, told.get("error"), str(told.get("message"))
        pause = _seconds(response.headers.get("Retry-After"))
        if status == http.client.TOO_MANY_REQUESTS:
            raise TooManyRequests(pause or 1.0)
        if status in _AWAY and (pause or not isinstance(kind, str)):
            raise ServerGone(f"The server {self.url.name} is away (status {status}).", sent=True, pause=pause)
        if not isinstance(kind, str):
            raise ServerUnreachable(f"What answers at {self.url.name} is no server of Recollect (status {status}).")
        if status == http.client.UNAUTHORIZED:
            raise Unauthorized(message if self._token else f"{message} RECOLLECT_TOKEN is not set.")
        raise relayed(kind, message, told)


def _is_json(response: http.client.HTTPResponse) -> bool:
    return (response.headers.get_content_type()) == "application/json"


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).rstrip(".")


def _seconds(text: str | None) -> float:
    return float(text) if text and text.isdecimal() else 0.0


def client_here(given: Mapping[str, str], folder: str = "") -> ServerClient:
    """Return what asks the server that the environment names, without the settings, which take long to import.

    It asks for the project of a folder, by default the working folder. `given` are the settings that stood before the
    command. Raises `InvalidInput` for a setting that cannot be used.
    """
    told = process.variables()

    def setting(name: str) -> str:
        return given.get(name) or told.get(f"{process.PREFIX}{name.upper()}", "")

    try:
        insecure = process.yes(setting("insecure"))
        url = parse(setting("url"), insecure=insecure)
    except ValueError as error:
        raise InvalidInput("url", f"Invalid setting RECOLLECT_URL: {error}") from None
    try:
        token = check_token(setting("token"))
    except ValueError as error:
        raise InvalidInput("token", f"Invalid setting RECOLLECT_TOKEN: {error}") from None
    home = Path(process.home(given.get("home", ""), told))
    here = process.time_zone()  # whether there is such a zone would take an import to know
    zone = setting("time_zone") or (here if "/" in here else "")
    return ServerClient(url, token, setting("team"), setting("project") or _project(folder, home), zone)


def _project(folder: str, home: Path) -> str:
    try:
        return find_project(Path(folder) if folder else Path.cwd(), home).name
    except OSError:  # the working folder is gone, or may not be looked at
        return "default"
