"""Where a team's server listens, and what protects the tokens that its clients send."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from recollect.errors import InvalidInput
from recollect.server_url import is_loopback

_LEAVING: Final = 2.0  # seconds in which a proxy learns by /readyz that this server goes, before it stops listening


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Where the server listens, and what protects the requests on their way."""

    host: str
    port: int
    tls_cert: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False
    insecure: bool = False

    def check(self) -> None:
        """Raise `InvalidInput` where tokens would cross a network in the clear and nobody said so."""
        if bool(self.tls_cert) != bool(self.tls_key):
            raise InvalidInput("tls", "Invalid TLS: --tls-cert and --tls-key are given together.")
        if not (self.tls_cert or self.behind_proxy or self.insecure or is_loopback(self.host)):
            raise InvalidInput(
                "host",
                f"Refused to listen on {self.host} without encryption: give --tls-cert and --tls-key, or "
                "--behind-proxy where a proxy in front terminates TLS, or --insecure to send tokens in the clear.",
            )

    @property
    def leaving(self) -> float:
        """Return for how many seconds it answers after a signal to end: a proxy sends nothing more meanwhile."""
        return _LEAVING if self.behind_proxy else 0.0

    @property
    def url(self) -> str:
        """Return the address for clients of this machine."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls_cert else 'http'}://{host}:{self.port}"

    def sockets(self) -> list[socket.socket]:
        """Return a socket for each address of the host, bound and not listening yet, which processes may share.

        Raises `InvalidInput` for an address that cannot be had.
        """
        bound: list[socket.socket] = []
        try:
            for family, _, _, _, address in socket.getaddrinfo(
                self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            ):
                bound.append(socket.socket(family, socket.SOCK_STREAM))
                bound[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    bound[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                bound[-1].bind(address)
        except OSError as error:
            for opened in bound:
                opened.close()
            why = error.strerror or error
            raise InvalidInput("port", f"Cannot listen on {self.host}, port {self.port}: {why}.") from None
        return bound
