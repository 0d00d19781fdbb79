"""A request to a process of ours and its answer in JSON, and the rule for asking again."""

from __future__ import annotations

import _socket
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import urlencode

from recollect.client.http import Response, send
from recollect.errors import RecollectError, TooManyRequests

SILENCE = 20.0  # seconds in which one that works says something
KEY = "Idempotency-Key"
"""The header under which a request takes effect once, however often it is sent."""
_EVENTS = "text/event-stream"
_DATA = b"data:"
_ATTEMPTS: Final = 6
_PAUSE: Final = 0.1  # seconds, once more of them before each further attempt
_LONGEST_PAUSE: Final = 20.0

Headers = Mapping[str, str]
Socket: TypeAlias = _socket.socket

Answer = TypeVar("Answer")


class Lost(RecollectError):
    """The other side did not answer: what was asked may be asked again under the same id.

    `sent` says whether it may have taken the request, `pause` in how many seconds it wants to be asked again.
    """

    sent = True
    pause = 0.0

    def lasting(self) -> RecollectError:
        """Return the error to raise after this side was lost in every attempt."""
        return self


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

    host = "localhost"
    """The name by which the other side is asked."""

    def stream(
        self, path: str, message: dict[str, Any], headers: Headers, started: Callable[[Callable[[], None]], None]
    ) -> Iterator[dict[str, Any]]:
        """Send one message of MCP and yield the messages of its answer as they come; raise as `post` does.

        `started` is given what breaks it off from another thread. One that works sends signs of life meanwhile.
        """
        with self._translating_errors(), closing(self._open_connection(SILENCE)) as link:
            started(lambda: _break_off(link))
            self._send_request(link, path, message, {"Accept": f"application/json, {_EVENTS}"} | dict(headers))
            response = Response(link)
            if response.media_type == _EVENTS:
                for line in response.lines():
                    if line.startswith(_DATA) and line[len(_DATA) :].strip():
                        yield dict(read_json(line[len(_DATA) :]))
                return
            payload = self._read_payload(response)
            if not (isinstance(payload, dict) and "jsonrpc" in payload):
                self._raise_reported_error(response, payload)
                raise ValueError("the answer is no message of MCP")
            yield payload

    def _exchange(
        self,
        path: str,
        body: dict[str, Any] | None,
        timeout: float,
        headers: Headers,
        wait: Callable[[Socket], None] = lambda _: None,
    ) -> Any:
        """Send one request and return the answer, a JSON object or array; without a body it is a GET."""
        with self._translating_errors(), closing(self._open_connection(timeout)) as link:
            self._send_request(link, path, body, headers)
            wait(link)
            response = Response(link)
            payload = self._read_payload(response)
        self._raise_reported_error(response, payload)
        return payload

    def _send_request(self, link: Socket, path: str, body: dict[str, Any] | None, headers: Headers) -> None:
        """Send the request; `_exchange` reads the answer even where the other side closed before the body."""
        all_headers = self._request_headers() | {"Content-Type": "application/json"} | dict(headers)
        content = None if body is None else json.dumps(body).encode()
        with suppress(ConnectionError):  # it may have refused the head, answered and closed before the body
            send(link, "GET" if body is None else "POST", self._request_target(path), self.host, all_headers, content)

    def _request_target(self, path: str) -> str:
        """Return the path that the request line names."""
        return path

    def _read_payload(self, response: Response) -> Any:
        """Return the JSON in the body of the response."""
        return read_json(response.read())

    @abstractmethod
    def _request_headers(self) -> dict[str, str]:
        """Return the headers that every request carries."""

    @abstractmethod
    def _open_connection(self, timeout: float) -> Socket:
        """Return a connection on which each read and write takes at most `timeout` seconds."""

    @abstractmethod
    def _translating_errors(self) -> AbstractContextManager[None]:
        """Raise every error of the connection as an error that is `Lost`."""

    @abstractmethod
    def _raise_reported_error(self, response: Response, payload: Any) -> None:
        """Raise the error that a response reports; do nothing for a success."""


def at(path: str, **asked: str | Sequence[str]) -> str:
    """Return a path with these parameters behind `?`; an empty parameter is left out."""
    words = urlencode({name: value for name, value in asked.items() if value}, doseq=True)
    return f"{path}?{words}" if words else path


def read_json(text: bytes) -> Any:
    """Return a JSON object or array; raise `ValueError` for anything else."""
    payload = json.loads(text)
    if not isinstance(payload, dict | list):
        raise ValueError("the answer is neither an object nor an array")
    return payload


def _break_off(link: Socket) -> None:
    with suppress(OSError):  # it has ended by itself
        link.shutdown(_socket.SHUT_RDWR)
