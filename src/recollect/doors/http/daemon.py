"""The daemon process: open the store, listen, publish the address, serve until idle or stopped, clean up."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import version
from logging.handlers import RotatingFileHandler
from pathlib import Path

import anyio
from sqlalchemy.exc import SQLAlchemyError

import recollect
from recollect.client import runtime
from recollect.client.launch import log_file
from recollect.client.runtime import Runtime
from recollect.doors.http.application import Application
from recollect.doors.http.connections import Process
from recollect.doors.http.local import Command, LocalAccess
from recollect.doors.http.messages import to_recollect_error
from recollect.errors import DaemonUnreachable
from recollect.settings import Settings
from recollect.store.ownership import unwritable
from recollect.store_owner import DAEMON

log = logging.getLogger(__name__)

_SOCKET = "daemon.sock"
_LONGEST_SOCKET = 100  # bytes: sockaddr_un holds 104 on macOS, 108 on Linux
_CHECKS_WHILE_IDLE = 40
_CHECK = 1.0  # seconds
_START_PAUSE = 0.02
_BACKLOG = 128
_CLOSE_TIMEOUT = 15.0  # seconds
_KEEP_ALIVE = 3600
_GRACE = 10  # seconds for the requests that run when it ends
_FINISH = 30.0  # seconds for the events that wait then


def serve(
    settings: Settings,
    command: Command,
    port: int | None = None,
    ready: Callable[[], None] = lambda: None,
    *,
    foreground: bool = False,
) -> None:
    """Own the store and serve it until no request has come for `idle_minutes`, or until stopped.

    `command` runs the command line of clients. With a `port` it also listens there on loopback, for MCP clients that
    speak HTTP; `ready` is called once it owns the store and listens. Raises `StoreOwned`, `StoreUnusable`,
    `ModelMismatch`, `ModelUnusable`, or `DaemonUnreachable` when the port is taken.
    """
    with ExitStack() as cleanup:
        try:
            app = cleanup.enter_context(recollect.open_app(settings, wait=False, role=DAEMON))
            listeners = _open_listeners(settings.folder, port)
            published = _runtime_for(settings.folder, listeners, foreground=foreground)
            cleanup.callback(_unpublish_runtime, settings.folder, published)
            published.write(settings.folder)
        except (OSError, SQLAlchemyError) as error:
            raise to_recollect_error(error) from None
        access = LocalAccess(app, published, settings, lambda: setattr(server, "should_exit", True), command)
        server = Process(Application(access), timeout_keep_alive=_KEEP_ALIVE, timeout_graceful_shutdown=_GRACE)
        access.loopback_port = _LoopbackPort(server, published.port)
        for one in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again afterwards, for these handlers
            signal.signal(one, lambda *_: setattr(server, "should_exit", True))
        log.info("serving as process %d", published.pid)
        cleanup.callback(access.close)
        ready()
        anyio.run(_serve_until_idle, server, listeners, access, settings)
        _unpublish_runtime(settings.folder, published)
        if not access.events.finish(_FINISH):
            log.warning("%d events of sessions were lost, as the daemon had to end", access.events.waiting)
        timer = threading.Timer(_CLOSE_TIMEOUT, _force_exit)
        timer.daemon = True
        timer.start()
    timer.cancel()
    log.info("stopped")


async def _serve_until_idle(
    server: Process, listeners: list[socket.socket], access: LocalAccess, settings: Settings
) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_when_unused, server, access, settings)
        await server.serve(listeners)
        tasks.cancel_scope.cancel()


async def _stop_when_unused(server: Process, access: LocalAccess, settings: Settings) -> None:
    """Stop the server after `idle_minutes` without a request, or when clients cannot find it any more."""
    while not (server.started or server.should_exit):
        await anyio.sleep(_START_PAUSE)
    access.activity.reset()
    idle = settings.idle_minutes * 60
    while access.idle_seconds < idle:
        socket_file = access.runtime.socket
        published = runtime.published_by(settings.folder, access.runtime.pid)
        if not published or (socket_file and not Path(socket_file).exists()):
            log.warning("the runtime file or the socket was removed; stopping, so that another daemon can start")
            break
        await anyio.sleep(min(max(idle / _CHECKS_WHILE_IDLE, 0.05), _CHECK))
    else:
        log.info("no request for %.0f seconds", idle)
    server.should_exit = True


def _unpublish_runtime(folder: Path, published: Runtime) -> None:
    """Remove the socket and the runtime file, unless another daemon has written its own already."""
    if published.socket and runtime.published_by(folder, published.pid):
        Path(published.socket).unlink(missing_ok=True)
    runtime.remove_runtime_file(folder, published.pid)


def _force_exit() -> None:
    """End the process at once; work that still runs, such as preparing a model, can be interrupted without loss."""
    log.warning("closing the store took more than %.0f seconds; process ended", _CLOSE_TIMEOUT)
    logging.shutdown()
    os._exit(0)


def _open_listeners(folder: Path, port: int | None) -> list[socket.socket]:
    """Listen on a Unix socket in the data folder, else on a free loopback port; and on `port` if it is set."""
    unix = _listen_on_socket(folder / _SOCKET)
    loopback = [_listen_on_loopback(port or 0)] if unix is None or port is not None else []
    return [unix, *loopback] if unix else loopback


class _LoopbackPort:
    """Returns the port at which a browser reaches the process; where there is none yet, it listens on a free one."""

    def __init__(self, server: Process, port: int) -> None:
        self._server = server
        self._port = port
        self._opening: asyncio.Task[None] | None = None

    def __call__(self) -> int:
        if not self._port:
            listener = _listen_on_loopback(0)
            self._port = listener.getsockname()[1]
            self._opening = asyncio.get_running_loop().create_task(self._server.listen(listener))
        return self._port


def _listen_on_socket(path: Path) -> socket.socket | None:
    """Return a listening Unix socket at this path; None where the path is too long or cannot hold a socket."""
    if len(os.fsencode(path)) > _LONGEST_SOCKET:
        return None
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)  # this process owns the store, so no other listens on it
        listener.bind(str(path))
        path.chmod(0o600)  # before clients can connect
        listener.listen(_BACKLOG)
    except OSError as error:  # a file system without sockets, or something in the way
        log.warning("no Unix socket at %s: %s", path, error)
        listener.close()
        return None
    return listener


def _listen_on_loopback(port: int) -> socket.socket:
    """Return a socket that listens on this loopback port; raise `DaemonUnreachable` where it is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else asyncio leaves Nagle on
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise DaemonUnreachable(f"Port {port} on loopback cannot be used: {reason}.") from None
    return listener


def _runtime_for(folder: Path, listeners: list[socket.socket], *, foreground: bool) -> Runtime:
    """Return the content of the runtime file for a daemon with these listeners."""
    unix = [one for one in listeners if one.family != socket.AF_INET]
    ports = [one.getsockname()[1] for one in listeners if one.family == socket.AF_INET]
    return Runtime(
        pid=os.getpid(),
        version=version("recollect"),
        protocol=runtime.PROTOCOL,
        token=runtime.token_of(folder),
        socket=str(folder / _SOCKET) if unix else "",
        port=ports[0] if ports else 0,
        since=datetime.now(UTC).isoformat(timespec="seconds"),
        foreground=foreground,
    )


def log_to_file(settings: Settings) -> None:
    """Write the log to a file that is rotated; it never holds the text of a memory. Raises `StoreUnusable`."""
    path = log_file(settings)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = RotatingFileHandler(path, maxBytes=1_000_000, backupCount=3, encoding="utf-8")
    except OSError as error:
        raise unwritable(settings.folder, error) from None
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(handlers=[handler], level=logging.INFO, format=form)
    logging.raiseExceptions = False  # on a full disk
    for chatty in ("alembic", "httpx", "uvicorn.error", "mcp", "sse_starlette"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
