"""HTTP connections with bounds: whoever holds many of them, or says nothing on them, keeps nobody else out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from uvicorn.protocols.http.auto import AutoHTTPProtocol

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as HttpProtocol
else:
    HttpProtocol = AutoHTTPProtocol

FIRST_REQUEST = 10.0  # seconds until the head of a connection's first request must have come
MOST_OVER_TCP = 256  # connections; a process may open about 1,000 files, and the store needs some


class BoundedProtocol(HttpProtocol):
    """HTTP on one connection, closed where its first request does not come, or where too many came over TCP.

    Any user of the machine can reach a port; the Unix socket is its owner's alone.
    """

    most: Callable[[], int] = staticmethod(lambda: MOST_OVER_TCP)
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, unless there are too many."""
        super().connection_made(transport)
        if isinstance(transport.get_extra_info("sockname"), tuple) and len(self.connections) > self.most():
            transport.abort()
            return
        self._timer = self.loop.call_later(FIRST_REQUEST, self._end_if_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _end_if_silent(self) -> None:
        if self.cycle is None:
            self.transport.abort()
