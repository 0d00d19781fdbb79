"""Where a team's server listens, and what protects the tokens that its clients send."""

from __future__ import annotations

import socket
from contextlib import ExitStack
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
        """Raise `InvalidInput` where tokens would cross a network unencrypted without consent to that."""
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
        """Return the seconds for which the server still answers after a signal to end, so that a proxy can notice."""
        return _LEAVING if self.behind_proxy else 0.0

    @property
    def url(self) -> str:
        """Return the address for clients of this machine."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls_cert else 'http'}://{host}:{self.port}"

    def reserved(self) -> list[socket.socket]:
        """Return sockets that reserve the addresses of the host for processes of this user, and accept no connection.

        Raises `InvalidInput` for an address that cannot be had, or that another server listens on.
        """
        for taken in self._bind_sockets() if self.port else ():
            taken.close()
        return self.shared()

    def shared(self) -> list[socket.socket]:
        """Return a socket for each address of the host, among which the kernel shares out the connections."""
        return self._bind_sockets(socket.SO_REUSEPORT)

    def _bind_sockets(self, *options: int) -> list[socket.socket]:
        """Return a bound socket for each address of the host; raise `InvalidInput` where it cannot be had."""
        bound: list[socket.socket] = []
        with ExitStack() as undo:
            try:
                found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
                for family, kind, protocol, _, address in found:
                    bound.append(undo.enter_context(socket.socket(family, kind, protocol)))
                    for option in (socket.SO_REUSEADDR, *options):
                        bound[-1].setsockopt(socket.SOL_SOCKET, option, 1)
                    if family == socket.AF_INET6:
                        bound[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                    bound[-1].bind(address)
            except OSError as error:
                why = error.strerror or error
                raise InvalidInput("port", f"Cannot listen on {self.host}, port {self.port}: {why}.") from None
            undo.pop_all()
        return bound
