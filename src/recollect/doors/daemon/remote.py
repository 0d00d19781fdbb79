"""The connection of one client process to the daemon: finds it, starts it, and repeats a request when it was killed."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.doors.daemon.client import Client, DaemonGone
from recollect.doors.daemon.launch import ensure
from recollect.doors.link import at
from recollect.doors.operations import Connection
from recollect.errors import DaemonUnreachable, RecollectError
from recollect.settings import Settings

if TYPE_CHECKING:
    from recollect.doors.server_connection import ServerConnection

log = logging.getLogger(__name__)

_ATTEMPTS = 6
_PAUSE = 0.1


class DaemonConnection(Connection):
    """Calls that are repeated when the daemon ends; each carries an id, so that none takes effect twice."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client: Client | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> DaemonConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the daemon in the background, before the first call."""
        in_background(self._connected)

    def close(self) -> None:
        """Forget the daemon, without waiting for a thread that still starts it; a later call looks for it again."""
        self._client = None

    def operation(self, name: str, fields: dict[str, Any]) -> Any:
        """Run one operation of the table and return its answer as JSON."""
        path, key = at(f"/v1/{name}", **about_caller(self._settings)), uuid.uuid4().hex
        for attempt in range(_ATTEMPTS):
            client = self._connected()
            try:
                return client.post(path, fields, key)
            except DaemonGone:
                self._drop(client)
                time.sleep(_PAUSE * attempt)
        raise DaemonUnreachable("The connection to the memory daemon was lost several times; see `recollect status`.")

    def _connected(self) -> Client:
        with self._lock:
            if self._client is None:
                self._client = ensure(self._settings)
            return self._client

    def _drop(self, client: Client) -> None:
        with self._lock:
            if self._client is client:
                self._client = None


def about_caller(settings: Settings) -> dict[str, str]:
    """Return what the address of a request says of its caller and of the settings that apply to it."""
    caller = settings.caller
    return {
        "user": caller.user,
        "team": caller.team,
        "project": caller.project,
        "on_secret": str(settings.on_secret),
        "model": settings.model,
    }


def in_background(prepare: Callable[[], object]) -> None:
    """Run `prepare` in a thread; its error is only logged, since the first call meets it again."""

    def run() -> None:
        try:
            prepare()
        except RecollectError as error:
            log.warning("%s", error)

    threading.Thread(target=run, name="recollect-prepare", daemon=True).start()


def connect(
    settings: Settings | None = None,
    *,
    home: Path | None = None,
    user: str | None = None,
    team: str | None = None,
    project: str | None = None,
) -> DaemonConnection | ServerConnection:
    """Return a connection to the server of `RECOLLECT_URL`, else to the store's daemon; usable in a `with`.

    What is not given is as the environment has it. The daemon is started by the first call if needed.
    """
    given: dict[str, Any] = {"home": home, "user": user, "team": team, "project": project}
    given = {name: value for name, value in given.items() if value is not None}
    known = Settings(**((settings.model_dump(exclude_unset=True) if settings else {}) | given))
    if known.url:
        found: ServerConnection = import_module("recollect.doors.server_connection").ServerConnection(known)
        return found
    return DaemonConnection(known)
