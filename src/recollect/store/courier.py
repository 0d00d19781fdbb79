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
    """Runs the standing `rounds` whenever it is told to, and each errand handed to it once.

    Work that breaks in a way nobody foresaw ends the thread, with its traceback in the log; the next call begins
    another one.
    """

    def __init__(self, rounds: Sequence[Callable[[], None]]) -> None:
        self._rounds = rounds
        self._errands: deque[Callable[[], None]] = deque()
        self._call = threading.Event()
        self._told = threading.Event()
        self._stopping = threading.Event()
        self._thread = self._new_thread()

    def start(self) -> None:
        """Begin, with a first round at once."""
        self._thread.start()
        self.tell()

    def tell(self) -> None:
        """Ask for a round soon."""
        self._told.set()
        self._wake()

    def later(self, errand: Callable[[], None]) -> None:
        """Run `errand` once, soon; when the process dies first it is lost, so nothing canonical belongs here."""
        self._errands.append(errand)
        self._wake()

    def stop(self) -> None:
        """Finish what is waiting and end."""
        self._stopping.set()
        self._call.set()
        if self._thread.is_alive():
            self._thread.join()

    def _new_thread(self) -> threading.Thread:
        return threading.Thread(target=self._run, name="recollect-courier", daemon=True)

    def _wake(self) -> None:
        if self._thread.ident is not None and not self._thread.is_alive() and not self._stopping.is_set():
            self._thread = self._new_thread()
            self._thread.start()
        self._call.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            if not self._call.wait(_PAUSE):
                self._told.set()
            self._stopping.wait(_GATHER)
            self._call.clear()
            self._round()
        self._told.set()
        self._round()

    def _round(self) -> None:
        while self._errands:
            self._try(self._errands.popleft())
        if self._told.is_set():
            self._told.clear()
            for one in self._rounds:
                self._try(one)

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (SQLAlchemyError, RecollectError, OSError) as error:
            why = str(error).partition("\n")[0]  # behind it PostgreSQL tells the values
            log.warning("background work failed and is tried again: %s: %s", type(error).__name__, why)
