"""The link of one client process to the daemon: finds it, starts it, and asks again when it was killed meanwhile."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter

from recollect.doors.daemon.client import Client, Gone
from recollect.doors.daemon.launch import ensure
from recollect.doors.memory_tool import Answer
from recollect.errors import DaemonUnreachable, InvalidInput, RecollectError
from recollect.operations.table import BY_NAME
from recollect.settings import Settings

log = logging.getLogger(__name__)

_ATTEMPTS = 6
_PAUSE = 0.1


def _silent(_: str) -> None:
    return None


class Link:
    """Calls that survive the daemon: each carries an id, so that asking again never does a thing twice."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client: Client | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self) -> None:
        """Start the daemon in the background, so that it is there when it is needed."""
        threading.Thread(target=self._quietly, name="recollect-link", daemon=True).start()

    def close(self) -> None:
        """Close the connections; a thread that still waits for the daemon is not waited for."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def tool(self, name: str, arguments: dict[str, Any], said: Callable[[str], None] = _silent) -> Answer:
        """Run one call of the tool of that name."""
        found = self._ask("/tool", {"name": name, "arguments": arguments}, said)
        return Answer(tuple(found["texts"]), found["structured"], found["failed"])

    def perform(self, name: str, **fields: Any) -> Any:
        """Run one operation of the table, as `perform` does in-process, and return its noun.

        Raises whatever the operation raises, or `DaemonUnreachable`.
        """
        operation = BY_NAME.get(name)
        if operation is None:
            raise InvalidInput("name", f"Unknown operation: Must be one of {', '.join(sorted(BY_NAME))}")
        plain = operation.request(**fields).model_dump(mode="json", exclude_unset=True)
        return TypeAdapter(operation.answer).validate_python(self.operation(name, plain))

    def operation(self, name: str, fields: dict[str, Any], said: Callable[[str], None] = _silent) -> Any:
        """Run one operation of the table and return its noun as JSON."""
        return self._ask("/operation", {"name": name, "fields": fields}, said)["result"]

    def _ask(self, path: str, body: dict[str, Any], said: Callable[[str], None]) -> Any:
        whole = body | {
            "caller": self._settings.caller.model_dump(),
            "on_secret": str(self._settings.on_secret),
            "model": self._settings.model,
            "request_id": uuid.uuid4().hex,
        }
        for attempt in range(_ATTEMPTS):
            client = self._connected(said)
            try:
                return client.post(path, whole)
            except Gone:
                self._lost(client)
                time.sleep(_PAUSE * attempt)
        raise DaemonUnreachable(
            "The memory daemon was lost again and again while it was asked; see `recollect status`."
        )

    def _connected(self, said: Callable[[str], None]) -> Client:
        client = self._client
        if client is not None:
            return client
        said("Waiting for the memory daemon.")
        with self._lock:
            if self._client is None:
                self._client = ensure(self._settings, said)
            return self._client

    def _lost(self, client: Client) -> None:
        with self._lock:
            if self._client is client:
                self._client = None
        client.close()

    def _quietly(self) -> None:
        try:
            self._connected(_silent)
        except RecollectError as error:
            log.warning("%s", error)


def connect(settings: Settings | None = None) -> Link:
    """Return a link to the daemon of the store, which starts at the first call when it is not there.

    Use it as a context manager, or call `close`.
    """
    return Link(settings or Settings())
