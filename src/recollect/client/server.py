"""Requests to the server of a team, by a token."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from recollect import process
from recollect.client.http import Response
from recollect.client.transport import KEY, Link, Lost, Socket, at, persistently, read_json
from recollect.errors import RecollectError, ServerUnreachable, TooManyRequests, Unauthorized, invalid_setting, relayed
from recollect.projects import find_project
from recollect.server_url import ServerUrl, check_token, parse
from recollect.setting_texts import SettingTexts, means_yes, variable

_CONNECT: Final = 10.0  # seconds for connecting
_ANSWER: Final = 300.0  # seconds for an answer: an import of many memories takes minutes
_OK, _UNAUTHORIZED, _TOO_MANY, _AWAY = 200, 401, 429, (502, 503, 504)


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

    @property
    def host(self) -> str:  # type: ignore[override]
        """Return host and port, as each request names them."""
        return self.url.name.partition("://")[2].partition("/")[0]

    def _open_connection(self, timeout: float) -> Socket:
        """Return a connection to the server with this timeout; raise `ServerGone` where it cannot be reached."""
        try:
            link = socket.create_connection((self.url.host, self.url.port), _CONNECT)
            if self.url.secure:
                link = self._wrap_in_tls(link)
        except (OSError, ValueError) as error:
            if isinstance(error, RecollectError):
                raise
            raise ServerGone(
                f"The server {self.url.name} cannot be reached: {_reason_of(error)}.", sent=False
            ) from None
        link.settimeout(timeout)
        return link

    def _wrap_in_tls(self, link: socket.socket) -> socket.socket:
        """Return the connection wrapped in TLS; raise `ServerUnreachable` where the certificate is not trusted."""
        import ssl  # it takes as long to import as all else here

        try:
            return ssl.create_default_context().wrap_socket(link, server_hostname=self.url.host)
        except ssl.SSLCertVerificationError as error:
            link.close()
            why = error.verify_message.rstrip(".")
            raise ServerUnreachable(
                f"The server {self.url.name} is not trusted: {why}. SSL_CERT_FILE names a file of further authorities."
            ) from None
        except (OSError, ValueError):
            link.close()
            raise

    def _request_target(self, path: str) -> str:
        return self.url.path + path

    def _read_payload(self, response: Response) -> Any:
        """Return the JSON of a response; an empty object where a proxy answers in the server's place."""
        raw = response.read()
        return read_json(raw) if response.status == _OK or response.media_type == "application/json" else {}

    def _request_headers(self) -> dict[str, str]:
        return {"Accept": "application/json", **({"Authorization": f"Bearer {self._token}"} if self._token else {})}

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Raise `ServerGone` for errors of the connection, `ServerUnreachable` for an answer that cannot be read."""
        try:
            yield
        except RecollectError:
            raise
        except ValueError:
            raise ServerUnreachable(f"What answers at {self.url.name} is no server of Recollect.") from None
        except OSError as error:
            raise ServerGone(f"The server {self.url.name} did not answer: {_reason_of(error)}.", sent=True) from None

    def _raise_reported_error(self, response: Response, payload: Any) -> None:
        """Raise the error that the server, or a proxy in front of it, reports by status and body."""
        if response.status == _OK:
            return
        told = payload if isinstance(payload, dict) else {}
        status, kind, message = response.status, told.get("error"), str(told.get("message"))
        pause = _seconds_in(response.headers.get("retry-after"))
        if status == _TOO_MANY:
            busy = relayed(TooManyRequests.__name__, message) if isinstance(kind, str) else None
            if isinstance(busy, TooManyRequests):
                busy.retry_after = pause or 1.0
                raise busy
            raise TooManyRequests(pause or 1.0)
        if status in _AWAY and (pause or not isinstance(kind, str)):
            raise ServerGone(f"The server {self.url.name} is away (status {status}).", sent=True, pause=pause)
        if not isinstance(kind, str):
            raise ServerUnreachable(f"What answers at {self.url.name} is no server of Recollect (status {status}).")
        if status == _UNAUTHORIZED:
            raise Unauthorized(message if self._token else f"{message} RECOLLECT_TOKEN is not set.")
        raise relayed(kind, message, told)


def _reason_of(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).rstrip(".")


def _seconds_in(text: str | None) -> float:
    """Return the seconds in a `Retry-After` header, 0 where it holds no whole number."""
    return float(text) if text and text.isdecimal() else 0.0


def client_here(texts: SettingTexts, folder: str = "") -> ServerClient:
    """Return a client of the server in these settings. The settings as a whole are not checked, as that imports slowly.

    Its requests name the project of a folder, by default the working folder. Raises `InvalidInput` for a setting that
    cannot be used.
    """
    try:
        url = parse(texts.text("url"), insecure=means_yes(texts.text("insecure")))
    except ValueError as error:
        raise invalid_setting("url", variable("url"), error) from None
    try:
        token = check_token(texts.text("token"))
    except ValueError as error:
        raise invalid_setting("token", variable("token"), error) from None
    here = process.time_zone()  # whether there is such a zone would take an import to know
    zone = texts.text("time_zone") or (here if "/" in here else "")
    project = texts.text("project") or _project_of_folder(folder, Path(texts.home))
    return ServerClient(url, token, texts.text("team"), project, zone)


def _project_of_folder(folder: str, home: Path) -> str:
    """Return the name of the project of a folder, by default the working folder."""
    try:
        return find_project(Path(folder) if folder else Path.cwd(), home).name
    except OSError:  # the working folder is gone, or may not be looked at
        return "default"
