"""The daemon's life: own the store, listen, publish where, serve until idle or told to stop, leave nothing behind."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import version
from logging.handlers import RotatingFileHandler
from pathlib import Path

import anyio
import uvicorn
from sqlalchemy.exc import SQLAlchemyError

import recollect
from recollect.doors.daemon import runtime
from recollect.doors.daemon.guard import plain
from recollect.doors.daemon.launch import log_file, report_failure
from recollect.doors.daemon.runtime import Runtime
from recollect.doors.daemon.server import Daemon
from recollect.errors import DaemonUnreachable, RecollectError, StoreUnusable
from recollect.settings import Settings

log = logging.getLogger(__name__)

_SOCKET = "daemon.sock"
_LONGEST_SOCKET = 100  # bytes: sockaddr_un holds 104 on macOS, 108 on Linux
_LOOKS = 40
_LOOK = 1.0  # seconds
_SOON = 0.02
_BACKLOG = 128
_LAST = 15.0  # seconds for closing the store
_KEEP_ALIVE = 3600


def serve(settings: Settings, port: int | None = None, said: Callable[[], None] = lambda: None) -> None:
    """Own the store and serve it until nobody has wanted anything for `idle_minutes`, or until stopped.

    With a `port` it also listens there on loopback, for MCP clients that speak HTTP; `said` is called once it owns the
    store and listens. Raises `StoreOwned`, `StoreUnusable`, `ModelMismatch`, `ModelUnusable`, or `DaemonUnreachable`
    when the port is taken.
    """
    with ExitStack() as undo:
        try:
            app = undo.enter_context(recollect.open_app(settings, wait=False, role=runtime.ROLE))
            listeners = _listeners(settings.folder, port)
            about = _about(settings.folder, listeners)
            undo.callback(_withdraw, settings.folder, about)
            about.write(settings.folder)
        except (OSError, SQLAlchemyError) as error:
            raise plain(error) from None
        server = uvicorn.Server(_configuration())
        _end_on_signals(server)
        daemon = Daemon(app, about, settings.model, lambda: setattr(server, "should_exit", True))
        server.config.app = daemon.application()
        log.info("serving as process %d", about.pid)
        undo.callback(daemon.close)
        said()
        anyio.run(_serve, server, listeners, daemon, settings)
        _withdraw(settings.folder, about)
        last = threading.Timer(_LAST, _break_off)
        last.daemon = True
        last.start()
    last.cancel()
    log.info("gone")


async def _serve(server: uvicorn.Server, listeners: list[socket.socket], daemon: Daemon, settings: Settings) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_watch, server, daemon, settings)
        await server.serve(listeners)
        tasks.cancel_scope.cancel()


async def _watch(server: uvicorn.Server, daemon: Daemon, settings: Settings) -> None:
    """End the server when nobody has wanted anything for a while, or when nobody could find it any more."""
    while not (server.started or server.should_exit):
        await anyio.sleep(_SOON)
    daemon.activity.begin()
    idle = settings.idle_minutes * 60
    while daemon.idle_seconds < idle:
        if not _findable(settings.folder, daemon.runtime):
            log.warning("the runtime file or the socket was taken away; ending, so that another daemon can come")
            break
        await anyio.sleep(min(max(idle / _LOOKS, 0.05), _LOOK))
    else:
        log.info("nobody came for %.0f seconds", idle)
    server.should_exit = True


def _findable(folder: Path, about: Runtime) -> bool:
    return runtime.published_by(folder, about.pid) and (not about.socket or Path(about.socket).exists())


def _withdraw(folder: Path, about: Runtime) -> None:
    """Leave nothing behind that points here, unless another daemon has put its own there already."""
    if about.socket and runtime.published_by(folder, about.pid):
        Path(about.socket).unlink(missing_ok=True)
    runtime.remove(folder, about.pid)


def _break_off() -> None:
    """End at once: whatever still goes on, such as preparing a model, may be cut off anywhere without loss."""
    log.warning("closing the store took more than %.0f seconds; broken off", _LAST)
    logging.shutdown()
    os._exit(0)


def _end_on_signals(server: uvicorn.Server) -> None:
    """Make a polite signal an orderly end: uvicorn raises it again afterwards, and must find it harmless then."""

    def finish(*_: object) -> None:
        server.should_exit = True

    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, finish)


def _configuration() -> uvicorn.Config:
    return uvicorn.Config(
        app=_unset,
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=10,
        server_header=False,
    )


async def _unset(*_: object) -> None:
    """Stand in for the application until it is built around the server that it can stop."""


def _listeners(folder: Path, port: int | None) -> list[socket.socket]:
    """Listen on a Unix socket in the data folder, or on a free loopback port where that cannot be; and on `port`."""
    unix = _unix(folder / _SOCKET)
    if unix is not None:
        return [unix, *([_loopback(port)] if port is not None else [])]
    return [_loopback(port or 0)]


def _unix(path: Path) -> socket.socket | None:
    if sys.platform == "win32" or len(os.fsencode(path)) > _LONGEST_SOCKET:
        return None
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)  # only the owner of the store comes here, so nobody can be listening on it
        listener.bind(str(path))
        path.chmod(0o600)  # before anybody can connect
        listener.listen(_BACKLOG)
    except OSError as error:  # a file system without sockets, or something in the way
        log.warning("no Unix socket at %s: %s", path, error)
        listener.close()
        return None
    return listener


def _loopback(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if sys.platform == "win32":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise DaemonUnreachable(f"Port {port} on loopback cannot be used: {reason}.") from None
    return listener


def _about(folder: Path, listeners: list[socket.socket]) -> Runtime:
    unix = [one for one in listeners if one.family != socket.AF_INET]
    ports = [one.getsockname()[1] for one in listeners if one.family == socket.AF_INET]
    return Runtime(
        pid=os.getpid(),
        version=version("recollect"),
        protocol=runtime.PROTOCOL,
        token=secrets.token_urlsafe(32),
        socket=str(folder / _SOCKET) if unix else "",
        port=ports[0] if ports else 0,
        since=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def log_to_file(settings: Settings) -> None:
    """Write the log to a file that is rotated; it never holds the text of a memory. Raises `StoreUnusable`."""
    path = log_file(settings)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = RotatingFileHandler(path, maxBytes=1_000_000, backupCount=3, encoding="utf-8")
    except OSError as error:
        raise plain(error) from None
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(handlers=[handler], level=logging.INFO, format=form)
    logging.raiseExceptions = False  # a full disk shall not fill the error stream as well
    for chatty in ("alembic", "uvicorn.error", "mcp", "sse_starlette"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def main() -> None:
    """Run as a process of its own, with the settings of whoever started it as the one argument."""
    settings = Settings.model_validate_json(sys.argv[1])
    try:
        log_to_file(settings)
        serve(settings)
    except RecollectError as error:
        _tell(report_failure(error))
        sys.exit(error.exit_code)


def _tell(why: str) -> None:
    try:
        sys.stderr.write(why + "\n")
        sys.stderr.flush()
    except OSError:  # the disk is full; the exit code still tells
        os._exit(StoreUnusable.exit_code)


if __name__ == "__main__":
    main()
