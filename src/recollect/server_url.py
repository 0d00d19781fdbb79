"""The address of a team's server, as `RECOLLECT_URL` says it. It imports next to nothing, as each hook waits for it."""

from __future__ import annotations

from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

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
    """Return the parts of an address; raise `ValueError` for an unusable address, without repeating it.

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
    """Return a token; raise `ValueError` for a text that cannot be a token, without repeating it."""
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
