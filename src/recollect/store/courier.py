"""The courier: one background thread that does what a write need not wait for, and tries again what failed."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

from sqlalchemy.exc import SQLAlchemyError

from recollect.errors import RecollectError

log = logging.getLogger(__name__)

_PAUSE = 30.0  # seconds until what failed is tried again
_GATHER = 0.1  # seconds: the index takes a batch for little more than one


class Courier:
    """Runs the standing `rounds` whenever it is told to, and each errand handed to it once."""

    def __init__(self, rounds: Sequence[Callable[[], None]]) -> None:
        self._rounds = rounds
        self._errands: deque[Callable[[], None]] = deque()
        self._call = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recollect-courier", daemon=True)

    def start(self) -> None:
        """Begin, with a first round at once."""
        self._call.set()
        self._thread.start()

    def tell(self) -> None:
        """Ask for a round soon."""
        self._call.set()

    def later(self, errand: Callable[[], None]) -> None:
        """Run `errand` once, soon; when the process dies first it is lost, so nothing canonical belongs here."""
        self._errands.append(errand)
        self._call.set()

    def stop(self) -> None:
        """Finish what is waiting and end."""
        self._stopping.set()
        self._call.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._call.wait(_PAUSE)
            self._stopping.wait(_GATHER)
            self._call.clear()
            self._round()
        self._round()

    def _round(self) -> None:
        while self._errands:
            self._try(self._errands.popleft())
        for one in self._rounds:
            self._try(one)

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (SQLAlchemyError, RecollectError, OSError) as error:
            log.warning("background work failed and is tried again: %s: %s", type(error).__name__, error)
