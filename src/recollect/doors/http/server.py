"""The process of a team's server: opens the store, listens, answers until it is told to end, finishes, and closes."""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit
from typing import Any, Final

from sqlalchemy.exc import SQLAlchemyError

import recollect
from recollect import process
from recollect.app import App
from recollect.doors.http.access import Measures
from recollect.doors.http.application import Application
from recollect.doors.http.connections import BoundedProtocol, Process
from recollect.doors.http.listening import Listening
from recollect.doors.http.logs import log_to_stderr
from recollect.doors.http.messages import to_recollect_error
from recollect.doors.http.shared_metrics import SharedMetrics
from recollect.doors.http.team import TeamAccess
from recollect.errors import InvalidInput
from recollect.settings import Settings

log = logging.getLogger(__name__)

ROLE: Final = "recollect serve --host"
"""The role under which a server owns a store in a folder."""
_RECEIVERS: Final = frozenset(f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT" for kind in ("", "TRACES_", "METRICS_"))
_DISABLED: Final = "OTEL_SDK_DISABLED"
_FINISH: Final = 60  # seconds for the requests that run when the server is told to end
_EVENTS: Final = 60.0  # seconds for the events that wait then
_MODEL: Final = 30.0  # seconds in which a worker loads the model before it takes requests, as others answer
_KEEP_ALIVE: Final = 75
_BACKLOG: Final = 1_024
_CONNECTIONS: Final = 4_096


class _Protocol(BoundedProtocol):
    """HTTP on a connection of many clients, which a proxy may keep open."""

    most = staticmethod(lambda: min(_CONNECTIONS, getrlimit(RLIMIT_NOFILE)[0] // 2))


@dataclass(frozen=True)
class Place:
    """The place of a worker among those that share a port: its number, and the folder for metrics."""

    number: int
    folder: Path


def serve(
    settings: Settings,
    listening: Listening,
    opened: Callable[[App], object] = lambda _: None,
    ready: Callable[[], object] = lambda: None,
    place: Place | None = None,
) -> None:
    """Serve the store until SIGTERM or SIGINT; then finish what runs, work off the events, and close the store.

    What the vector index lacks then stays queued, but for one batch; other replicas, or the next start, take it up.
    `opened` is called with the open store before anybody is let in, and `ready` once requests are answered. In a
    `place` it is a worker among several. Raises `InvalidInput` for an address that is not protected, and what opening a
    store raises.
    """
    listening.check()
    began = time.monotonic()
    telemetry = _telemetry()
    _when_told_to_end(_exit_before_serving)
    try:
        with recollect.open_app(settings, wait=False, role=ROLE) as app, telemetry as exported:
            opened(app)
            log_to_stderr()
            access = TeamAccess(app, settings, began, exported)
            if place is not None:
                app.embedder.wait(_MODEL)
                access.metrics_text = SharedMetrics(access.metrics_text, place.folder, place.number).text
            process = TeamProcess(access, listening, ready)
            _when_told_to_end(lambda: setattr(process, "should_exit", True))  # until uvicorn listens to signals itself
            process.run(listening.shared() if place else None)
            log.info("stopping")
            if not access.events.finish(_EVENTS):
                log.warning("%d events of sessions were lost, as the server had to end", access.events.waiting)
    except (OSError, SQLAlchemyError, ssl.SSLError) as error:
        raise to_recollect_error(error, "the server") from None
    log.info("stopped")


def _telemetry() -> AbstractContextManager[Measures | None]:
    """Return what sends spans and numbers where a standard variable of OpenTelemetry names a receiver, else nothing.

    Raises `InvalidInput` without the packages for that, which nothing else loads.
    """
    named = [name for name, text in process.of(_RECEIVERS).items() if text]
    if not named or process.named(_DISABLED).strip().lower() == "true":
        return nullcontext()
    try:
        from recollect.doors.http import telemetry
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("recollect"):
            raise
        raise InvalidInput(
            "telemetry", f'{min(named)} is set, which needs some packages more: `pip install "recollect[telemetry]"`.'
        ) from None
    return telemetry.exporting()


def _when_told_to_end(act: Callable[[], object]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: act())


def _exit_before_serving() -> None:
    """End the process before it serves, so that everything open by then is closed in order."""
    log.info("stopped before it served")
    sys.exit(0)


class TeamProcess(Process):
    """Listens somewhere, says when it has begun, and that it leaves for a while before it takes no more."""

    def __init__(self, access: TeamAccess, listening: Listening, ready: Callable[[], object] = lambda: None) -> None:
        super().__init__(
            Application(access),
            host=listening.host,
            port=listening.port,
            http=_Protocol,
            ssl_certfile=listening.tls_cert,
            ssl_keyfile=listening.tls_key,
            backlog=_BACKLOG,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=_FINISH,
        )
        self._access = access
        self._ready = ready
        self.leaving = listening.leaving

    async def startup(self, sockets: Any = None) -> None:
        """Listen, and report that the server is ready."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: Any = None) -> None:
        """Answer for a while as not ready, then end."""
        self._access.leaving = True
        until = self.leaving + asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() < until and not self.force_exit:
            await asyncio.sleep(0.1)
        await super().shutdown(sockets)
