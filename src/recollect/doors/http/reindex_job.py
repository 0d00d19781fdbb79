"""A reindex inside the daemon, in its own thread; a daemon that moved its store to another model ends afterwards."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recollect.app import App
from recollect.doors.http.messages import to_recollect_error
from recollect.errors import InvalidInput, RecollectError
from recollect.memory.reindex import reindex

log = logging.getLogger(__name__)

_REPORT_TIMEOUT = 5.0  # seconds in which the client may ask for the result
_STOP_TIMEOUT = 10.0


class _Stopped(RecollectError):
    """The daemon ends before the reindex has; the next one continues it."""


@dataclass(slots=True)
class _Progress:
    """How far a reindex is: `state` is `idle`, `running`, `done` or `failed`."""

    state: str = "idle"
    done: int = 0
    total: int = 0
    error: str = ""
    message: str = ""


class ReindexJob:
    """At most one reindex at a time, over the daemon's open store; `end` ends the daemon."""

    def __init__(self, app: App, end: Callable[[], None]) -> None:
        self._app = app
        self._end = end
        self._target: tuple[str, bool] | None = None
        self._progress = _Progress()
        self._starting = threading.Lock()
        self._stopping = threading.Event()
        self._reported = threading.Event()
        self._loaded = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Return whether a reindex is running."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, model: str, models_dir: Path | None, *, everything: bool) -> None:
        """Start or join a reindex and wait for its model; raise `InvalidInput` while one to another model runs."""
        with self._starting:
            if self.running and self._target != (model, everything):
                raise InvalidInput("model", "Another reindex is running; wait for it, or run `recollect stop`.")
            if not self.running:
                self._target, self._progress = (model, everything), _Progress("running")
                self._reported.clear()
                self._loaded.clear()
                arguments = (model, models_dir, everything)
                self._thread = threading.Thread(
                    target=self._run_reindex, args=arguments, name="recollect-reindex", daemon=True
                )
                self._thread.start()
        self._loaded.wait()

    def progress(self) -> dict[str, Any]:
        """Return the progress of the reindex, and its outcome once it has ended."""
        progress = asdict(self._progress)
        if progress["state"] != "running":
            self._reported.set()
        return progress

    def stop(self) -> None:
        """Let the reindex stop soon; its embeddings so far are kept for the next reindex."""
        self._stopping.set()
        self._reported.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(_STOP_TIMEOUT)

    def _run_reindex(self, model: str, models_dir: Path | None, everything: bool) -> None:
        """Reindex to the end and keep the outcome; after a move to another model end the daemon."""
        try:
            total = reindex(self._app, self._note_progress, model=model, models_dir=models_dir, everything=everything)
            self._progress = _Progress("done", total, total)
        except Exception as error:  # noqa: BLE001 - the client must get a message for any error
            known = to_recollect_error(error)
            self._progress = _Progress("failed", error=type(known).__name__, message=str(known))
        self._loaded.set()
        if self._app.vectors.state == "moved":
            log.info("the store has moved to %s; stopping", model)
            self._reported.wait(_REPORT_TIMEOUT)
            self._end()

    def _note_progress(self, done: int, total: int) -> None:
        if self._stopping.is_set():
            raise _Stopped("The memory daemon ended during the reindex; run it again to continue.")
        self._progress = _Progress("running", done, total)
        self._loaded.set()
