"""What surrounds whoever is served: this process, or a client whose command the daemon runs.

The address of a team's server, as `RECOLLECT_URL` says it. It imports next to nothing, as each hook waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from recollect import process

PREFIX: Final = process.PREFIX
IN_FILE: Final = process.IN_FILE
LOCALE: Final = ("LC_ALL", "LC_TIME", "LANG")
"""What tells a program how dates are written; what is set first counts."""
_TERMINAL: Final = frozenset(
    (
        *("COLORTERM", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "TERM", "TZ", "TTY_COMPATIBLE"),
        *("TTY_INTERACTIVE", *LOCALE),
    )
)
"""What tells a program how to print, by which clock, and how dates are written."""


class Surroundings(NamedTuple):
    """What surrounds a client whose command the daemon runs: its variables of ours, working folder and user."""

    variables: Mapping[str, str]
    folder: Path
    user: str


_client: ContextVar[Surroundings | None] = ContextVar("surroundings", default=None)


@contextmanager
def surrounded(client: Surroundings) -> Iterator[None]:
    """Let what runs here see a client's surroundings in place of this process's own."""
    token = _client.set(client)
    try:
        yield
    finally:
        _client.reset(token)


def working_folder() -> Path:
    """Return the working folder; raise `OSError` when it is gone."""
    client = _client.get()
    return Path.cwd() if client is None else client.folder


def system_user() -> str:
    """Return the system's name of the user."""
    client = _client.get()
    return process.user() if client is None else client.user


def variables() -> Mapping[str, str]:
    """Return the variables of ours that are set, those in files too; an empty one counts as absent."""
    client = _client.get()
    return process.variables() if client is None else client.variables


def named(name: str) -> str:
    """Return the variable of another program, or an empty text."""
    return process.named(name)


def of_terminal() -> dict[str, str]:
    """Return the variables by which a program prints for a terminal."""
    return process.of(_TERMINAL)


def store(given: Mapping[str, str]) -> Path:
    """Return the folder of the store's files as the settings would find it, without checking it."""
    return Path(process.store(given, variables()))


def server() -> str:
    """Return the address of the team's server that is set, else an empty text."""
    return variables().get(f"{PREFIX}URL", "")


def daemon_wanted() -> bool:
    """Return whether clients share a daemon, as the settings would read it."""
    return process.daemon_wanted(variables())


_PORTS = {"http": 80, "https": 443}


class ServerUrl(NamedTuple):
    """Where a server is: whether by TLS, its host, its port, and what stands before each of its paths."""

    secure: bool
    host: str
    port: int
    path: str

    @property
    def name(self) -> str:
        """Return the address as people read it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "https" if self.secure else "http"
        port = "" if self.port == _PORTS[scheme] else f":{self.port}"
        return f"{scheme}://{host}{port}{self.path}"


def parse(text: str, *, insecure: bool = False) -> ServerUrl:
    """Return what an address says; raise `ValueError` for one that cannot be used, without repeating it.

    Plain http to another machine would show the token to the network: it needs `insecure`.
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("is no address of a server") from None
    if parts.scheme not in _PORTS or not host or not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError("must begin with https:// or http:// and name a host")
    if "@" in parts.netloc:
        raise ValueError("must name no user and no password: the token stands in RECOLLECT_TOKEN")
    if "?" in text or "#" in text:
        raise ValueError("must have no `?` and no `#`: RECOLLECT_TEAM and RECOLLECT_PROJECT narrow what is seen")
    secure = parts.scheme == "https"
    if not (secure or insecure or is_loopback(host)):
        raise ValueError("must begin with https://: plain http shows the token to others, unless RECOLLECT_INSECURE=1")
    return ServerUrl(secure, host, _PORTS[parts.scheme] if port is None else port, parts.path.rstrip("/"))


def check_token(text: str) -> str:
    """Return a token; raise `ValueError` for what cannot be one, without repeating it."""
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError("must be a token as `recollect token` prints it")
    return text


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach a host name."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
