"""Runs the doctor behind the answers of the page, and keeps what its last look at the whole store found."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

from recollect.app import App
from recollect.domain.requests import Inspect
from recollect.domain.results import Check
from recollect.doors.http.messages import to_recollect_error
from recollect.memory.reports import checks


class Checkup:
    """The doctor's last look at the whole store: it takes seconds in a large one, so no screen waits for it."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._beginning = threading.Lock()
        self._began_at: datetime | None = None
        self._ended_at: datetime | None = None
        self._checks: list[Check] = []

    def begin(self) -> Callable[[], None] | None:
        """Return the function that checks every part, to be run once; None while a check is running."""
        with self._beginning:
            if self._began_at is not None and self._ended_at is None:
                return None
            self._began_at, self._ended_at, self._checks = self._app.clock(), None, []
            return self._run_checks

    def state(self) -> dict[str, Any]:
        """Return whether a check is running, its start or end, and the checks so far."""
        running = self._began_at is not None and self._ended_at is None
        at = {"began_at": self._began_at, "ended_at": self._ended_at}
        return {"running": running, **at, "checks": list(self._checks)}

    def _run_checks(self) -> None:
        """Run every check and keep its outcome; an error becomes a failed check."""
        try:
            for check in checks(self._app, Inspect()):
                self._checks.append(check)
        except Exception as error:  # noqa: BLE001 - a person must get a message for any error
            self._checks.append(Check("doctor", False, str(to_recollect_error(error)), "Run `recollect doctor`."))
        finally:
            self._ended_at = self._app.clock()
