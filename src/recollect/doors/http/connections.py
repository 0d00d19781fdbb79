"""HTTP connections with bounds: whoever holds many of them, or says nothing on them, keeps nobody else out.

The parser is h11, which takes 64 KiB of a head and no more; httptools takes heads of any length.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from recollect.doors.http.application import Application

HEAD = 10.0  # seconds until the head of a request must have come
MOST_OVER_TCP = 256  # connections; a process may open about 1,000 files, and the store needs some


class BoundedProtocol(H11Protocol):
    """HTTP on one connection, closed where the head of a request does not come.

    Where too many came over TCP, the one that has been idle for the longest makes room. Any user of the machine can
    reach a port; the Unix socket is its owner's alone.
    """

    most: Callable[[], int] = staticmethod(lambda: MOST_OVER_TCP)
    _timer: asyncio.TimerHandle | None = None
    _used = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, unless there are too many that are at work."""
        super().connection_made(transport)
        self._used = self.loop.time()
        if isinstance(transport.get_extra_info("sockname"), tuple) and len(self.connections) > self.most():
            idle = [
                one for one in self.connections if isinstance(one, BoundedProtocol) and one is not self and one._is_idle
            ]
            leaving = min(idle, key=lambda one: one._used, default=self)
            self.connections.discard(leaving)
            leaving.transport.abort()
            if leaving is self:
                return
        self._timer = self.loop.call_later(HEAD, self._end_if_silent)

    def data_received(self, data: bytes) -> None:
        """Read the data; a head that has begun must end within its time limit."""
        self._used = self.loop.time()
        if self._is_idle and self._timer is None:
            self._timer = self.loop.call_later(HEAD, self._end_if_silent)
        super().data_received(data)
        if not self._is_idle:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    @property
    def _is_idle(self) -> bool:
        """Return whether no request is being read or answered."""
        return bool(self.conn.their_state is h11.IDLE and self.conn.our_state is h11.IDLE)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_if_silent(self) -> None:
        if self._is_idle:
            self.transport.abort()


class Process(uvicorn.Server):
    """Answers requests over HTTP until it is told to end; open streams of MCP do not keep it then."""

    def __init__(self, application: Application, **options: Any) -> None:
        super().__init__(
            uvicorn.Config(
                app=application,
                log_config=None,
                access_log=False,
                lifespan="on",
                ws="none",
                server_header=False,
                **({"http": BoundedProtocol} | options),
            )
        )
        self.application = application

    async def listen(self, listener: socket.socket) -> None:
        """Answer on one more socket."""
        options = {"config": self.config, "server_state": self.server_state, "app_state": self.lifespan.state}
        protocol = partial(self.config.http_protocol_class, **options)
        self.servers.append(await asyncio.get_running_loop().create_server(protocol, sock=listener))

    async def shutdown(self, sockets: Any = None) -> None:
        """End the streams, finish the requests that run, and take no more."""
        self.application.end_streams()
        await super().shutdown(sockets)
