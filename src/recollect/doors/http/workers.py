"""The workers of a replica: processes that share a port, so that a replica uses several cores.

The process that a person starts only looks after them: a signal ends all, and a worker that dies is started again.
"""

from __future__ import annotations

import logging
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from recollect.doors.http import server
from recollect.doors.http.listening import Listening
from recollect.doors.http.logs import log_to_stderr
from recollect.errors import InvalidInput, RecollectError, relayed
from recollect.setting_texts import variable
from recollect.settings import Settings

log = logging.getLogger(__name__)

_SPAWN: Final = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
_STEADY: Final = 10.0  # seconds that a worker has served, after which it is started again at once
_PAUSE: Final = 1.0  # seconds before another start of a worker that ended sooner, doubled each time
_LONGEST_PAUSE: Final = 30.0


def serve(settings: Settings, listening: Listening, count: int, ready: Callable[[str], object]) -> None:
    """Serve the store with so many workers until SIGTERM or SIGINT; `ready` gets the address once they answer.

    The requests that a replica works on at once are shared out among them. Raises `InvalidInput` for a store in a
    folder or an address that cannot be had, and whatever keeps the first worker from serving. Exits with 1 where a
    worker did not end in order.
    """
    check(settings)
    listening.check()
    each = settings.model_copy(update={"concurrent_requests": math.ceil(settings.concurrent_requests / count)})
    without_mirror = each.model_copy(update={"journal_mirror": None})  # a single process writes that file
    with ExitStack() as undo:
        folder = Path(undo.enter_context(TemporaryDirectory(prefix="recollect-")))
        reserved = [undo.enter_context(bound) for bound in listening.reserved()]
        address = replace(listening, port=reserved[0].getsockname()[1])
        log_to_stderr()

        def start(number: int, messages: Connection) -> BaseProcess:
            known = each if number == 1 else without_mirror
            process = _SPAWN.Process(target=_run_worker, args=(known, address, server.Place(number, folder), messages))
            process.start()
            return process

        workers = Workers(count, start, lambda: ready(address.url))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda name, _: workers.signal(name))
        failed = workers.run()
    if failed:
        sys.exit(1)


def check(settings: Settings) -> None:
    """Raise `InvalidInput` for a store in a folder, which a single process owns."""
    on_server = {"database_url": bool(settings.database_url), "chroma_url": settings.shares_vectors}
    if absent := [variable(name) for name, found in on_server.items() if not found]:
        raise InvalidInput(
            "workers",
            f"Invalid workers: Several of them need a store on servers, so set {' and '.join(absent)}. "
            "A store in a folder is owned by one process.",
        )


@dataclass
class _Worker:
    """One worker: its process while that runs, and when it may be started again; moments are of the monotonic clock."""

    number: int
    process: BaseProcess | None = None
    messages: Connection | None = None
    error: RecollectError | None = None
    serving_at: float | None = None
    start_at: float = 0.0
    pause: float = 0.0

    def hear(self) -> bool:
        """Read a message of the process; return whether it says that requests are answered now."""
        if self.messages is None or not self.messages.poll():
            return False
        with suppress(EOFError):
            if error := self.messages.recv():
                self.error = relayed(error.pop("error"), error.pop("message"), error)
            else:
                self.serving_at = time.monotonic()
        self.messages.close()
        self.messages = None
        return self.serving_at is not None

    def postpone(self) -> None:
        """Forget the ended process, and set the time of the next start: at once after a long service."""
        now = time.monotonic()
        steady = self.serving_at is not None and now - self.serving_at >= _STEADY
        self.pause = 0.0 if steady else min(max(2 * self.pause, _PAUSE), _LONGEST_PAUSE)
        self.start_at = now + self.pause
        self.process = self.serving_at = None


class Workers:
    """Keeps so many workers running until a signal ends all; `start` makes the process of a worker by its number.

    The first begins alone: what keeps it from serving keeps the replica from it. `ready` is called when it serves.
    """

    def __init__(
        self, count: int, start: Callable[[int, Connection], BaseProcess], ready: Callable[[], object]
    ) -> None:
        self._workers = [_Worker(number) for number in range(1, count + 1)]
        self._start = start
        self._ready = ready
        self._begun = self._ending = self._failed = False
        self._signals, self._sent = os.pipe()

    def signal(self, number: int) -> None:
        """Note a signal; it is passed on once nothing is being started."""
        os.write(self._sent, bytes([number]))

    def run(self) -> bool:
        """Run until a signal has come and all have ended; return whether a worker did not end in order.

        Raises the error of the first worker, or exits with its code.
        """
        try:
            while not self._ending or any(worker.process for worker in self._workers):
                self._start_due()
                if self._signals in connection.wait(self._wait_targets(), self._seconds_to_start()):
                    self._pass_on(os.read(self._signals, 64))
                for worker in self._workers:
                    self._look_at(worker)
        finally:
            os.close(self._signals)
            os.close(self._sent)
        return self._failed

    def _start_due(self) -> None:
        for worker in () if self._ending else self._workers if self._begun else self._workers[:1]:
            if worker.process is None and time.monotonic() >= worker.start_at:
                worker.messages, theirs = _SPAWN.Pipe(duplex=False)
                worker.process = self._start(worker.number, theirs)
                theirs.close()

    def _wait_targets(self) -> list[Any]:
        """Return the objects to wait on: signals, messages, and the ends of processes."""
        ends = [worker.process.sentinel for worker in self._workers if worker.process is not None]
        return [self._signals, *ends, *(worker.messages for worker in self._workers if worker.messages is not None)]

    def _seconds_to_start(self) -> float | None:
        """Return the seconds until the next worker is started, None while every worker runs."""
        if self._ending or not self._begun:
            return None
        due = [worker.start_at for worker in self._workers if worker.process is None]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _pass_on(self, signals: Iterable[int]) -> None:
        """Let all workers finish; a second SIGINT ends them without."""
        for number in signals:
            again = self._ending and number == signal.SIGINT
            self._ending = True
            for pid in [worker.process.pid for worker in self._workers if worker.process is not None]:
                with suppress(ProcessLookupError):
                    os.kill(pid or 0, signal.SIGINT if again else signal.SIGTERM)

    def _look_at(self, worker: _Worker) -> None:
        """Log a worker that serves now, and set the next start of a worker that has ended."""
        if worker.hear():
            log.info("worker %d of %d serves (process %d)", worker.number, len(self._workers), _pid_of(worker))
            if not self._begun:
                self._begun = True
                self._ready()
        if worker.process is None or worker.process.is_alive():
            return
        code = worker.process.exitcode
        if self._ending:
            self._failed |= bool(code) and worker.serving_at is not None
        elif not self._begun:
            raise worker.error or SystemExit(code or 1)
        worker.postpone()
        if not self._ending:
            log.error("worker %d ended with %s; it is started again in %g s", worker.number, code, worker.pause)


def _pid_of(worker: _Worker) -> int:
    return (worker.process and worker.process.pid) or 0


def _run_worker(settings: Settings, listening: Listening, place: server.Place, messages: Connection) -> None:
    """Serve as a worker until a signal comes, or until the process that starts the workers is gone."""
    os.setpgid(0, 0)  # Ctrl-C goes to that process alone, which passes it on
    threading.Thread(target=_end_with_parent, name="recollect-parent", daemon=True).start()
    try:
        server.serve(settings, listening, ready=lambda: messages.send({}), place=place)
    except RecollectError as error:
        messages.send(error.public())
        sys.exit(error.exit_code)


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
