"""A reindex inside the daemon: a thread of its own works while the daemon goes on answering, and tells how far it is.

A daemon that has moved its store to another model ends, since the model it has loaded is no longer the store's.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recollect.doors.daemon.guard import plain
from recollect.errors import InvalidInput, RecollectError
from recollect.operations.reindex import reindex
from recollect.ports import App

log = logging.getLogger(__name__)

_LINGER = 5.0  # seconds in which whoever asked may hear how it ended
_GRACE = 10.0


class _BrokenOff(RecollectError):
    """The daemon ends before the reindex has; the next one goes on."""


@dataclass(slots=True)
class _Course:
    """How far a reindex is: `state` is `idle`, `running`, `done` or `failed`."""

    state: str = "idle"
    done: int = 0
    total: int = 0
    error: str = ""
    message: str = ""


class Moving:
    """At most one reindex at a time, over the daemon's open store; `end` ends the daemon."""

    def __init__(self, app: App, end: Callable[[], None]) -> None:
        self._app = app
        self._end = end
        self._wanted: tuple[str, bool] | None = None
        self._course = _Course()
        self._starting = threading.Lock()
        self._stopping = threading.Event()
        self._told = threading.Event()
        self._begun = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Say whether a reindex is under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, model: str, models_dir: Path | None, *, everything: bool) -> None:
        """Begin, or join the one that is under way for the same model.

        Returns when the model is loaded, or could not be. Raises `InvalidInput` when another one is under way.
        """
        with self._starting:
            if self.running and self._wanted != (model, everything):
                raise InvalidInput("model", "Another reindex is under way; wait for it, or run `recollect stop`.")
            if not self.running:
                self._wanted, self._course = (model, everything), _Course("running")
                self._told.clear()
                self._begun.clear()
                arguments = (model, models_dir, everything)
                self._thread = threading.Thread(target=self._run, args=arguments, name="recollect-reindex", daemon=True)
                self._thread.start()
        self._begun.wait()

    def progress(self) -> dict[str, Any]:
        """Say how far it is."""
        told = asdict(self._course)
        if told["state"] != "running":
            self._told.set()
        return told

    def stop(self) -> None:
        """Break off soon; what was read is kept for the next time."""
        self._stopping.set()
        self._told.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(_GRACE)

    def _run(self, model: str, models_dir: Path | None, everything: bool) -> None:
        try:
            total = reindex(self._app, self._note, model=model, models_dir=models_dir, everything=everything)
            self._course = _Course("done", total, total)
        except Exception as error:  # noqa: BLE001 - whoever asked must hear a sentence whatever broke
            said = plain(error)
            self._course = _Course("failed", error=type(said).__name__, message=str(said))
        self._begun.set()
        if self._app.vectors.state == "moved":
            log.info("the store has moved to %s; ending", model)
            self._told.wait(_LINGER)
            self._end()

    def _note(self, done: int, total: int) -> None:
        if self._stopping.is_set():
            raise _BrokenOff("The memory daemon ended before the reindex did; run it again to go on.")
        self._course = _Course("running", done, total)
        self._begun.set()
