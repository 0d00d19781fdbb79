"""Background work: one executor that runs what no caller waits for, in daemon threads that start when there is work.

The standard library's pool cannot serve: it keeps a process alive until a model has been downloaded.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

from sqlalchemy.exc import SQLAlchemyError

from recollect.engines.embedder import Loadable
from recollect.errors import RecollectError

log = logging.getLogger(__name__)

_RETRY_SECONDS = 30.0  # seconds until what failed is tried again
_GATHER_SECONDS = 0.1  # seconds: the vector index takes a batch for little more than one memory
_GRACE_SECONDS = 5.0  # seconds: a thread inside a library cannot be ended
_MAX_WAITING_QUESTIONS = 200  # that wait: nobody waits for their answers, and each holds a text


class _Lane:
    """Tasks that run one after another in one thread; a task that breaks ends its thread, and the next gets another."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: deque[Callable[[], object]] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def submit(self, task: Callable[[], object]) -> None:
        """Run a task after those submitted before, and start a thread where none runs."""
        with self._lock:
            self._tasks.append(task)
            if self._thread is None:
                self._start()

    @property
    def waiting(self) -> int:
        return len(self._tasks)

    def join(self, seconds: float | None) -> None:
        """Wait for the thread to end, at most `seconds`; with None, wait for every thread that follows it too."""
        while (thread := self._thread) is not None:
            thread.join(seconds)
            if seconds is not None:
                return

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"recollect-{self._name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        """Run the tasks until none is left; where a task breaks, start another thread for the rest."""
        try:
            while (task := self._next_task()) is not None:
                task()
        finally:
            with self._lock:
                if self._thread is threading.current_thread():  # a task broke
                    self._thread = None
                    if self._tasks:
                        self._start()

    def _next_task(self) -> Callable[[], object] | None:
        """Return the next task; None where there is none, which ends the thread."""
        with self._lock:
            if self._tasks:
                return self._tasks.popleft()
            self._thread = None
            return None


class BackgroundExecutor:
    """Runs the `recurring` tasks whenever that is requested, each submitted task once, and loads models.

    Models load one after another in a thread of their own, and questions to a language model are asked in another, so
    that the other tasks do not wait for them. Recurring tasks that fail in a known way run again after 30 seconds, and
    those that return a number after so many seconds.
    """

    def __init__(self, recurring: Sequence[Callable[[], float | None]]) -> None:
        self._recurring = recurring
        self._work, self._models, self._questions = _Lane("background"), _Lane("models"), _Lane("questions")
        self._requested = threading.Event()
        self._stopping = threading.Event()
        self._started = False
        self._again: threading.Timer | None = None

    def start(self) -> None:
        """Start the threads, and run the recurring tasks at once."""
        self._started = True
        self.request()

    def request(self) -> None:
        """Run the recurring tasks soon; several requests before the run count as one request."""
        if self._running and not self._requested.is_set():
            self._requested.set()
            self._work.submit(self._run_recurring)

    def submit(self, task: Callable[[], None]) -> None:
        """Run `task` once, soon; it is lost when the process dies first, so canonical data never depends on it."""
        if self._running:
            self._work.submit(lambda: self._run(task))

    def submit_after(self, seconds: float, task: Callable[[], None]) -> None:
        """Run `task` once, after so many seconds; what has not begun when the executor stops is dropped."""
        if self._running:
            timer = threading.Timer(seconds, self.submit, [task])
            timer.daemon = True
            timer.start()

    def ask(self, task: Callable[[], None]) -> None:
        """Run a task that asks a language model, unless too many wait; what waits at the end is dropped."""
        if self._running and self._questions.waiting < _MAX_WAITING_QUESTIONS:
            self._questions.submit(lambda: self._run(task) if self._running else None)

    def load(self, model: Loadable, then: Callable[[], None] = lambda: None) -> None:
        """Load a model, then call `then`."""
        self._models.submit(model.begin(then, lambda: not self._stopping.is_set()))

    def stop(self) -> None:
        """Finish what is waiting, run the recurring tasks a last time, and end.

        No further model is loaded or asked. A question that was asked is waited for, as its answer is written.
        """
        if not self._running:
            return
        self._stopping.set()
        self._questions.join(_GRACE_SECONDS)
        self._work.submit(self._run_recurring)
        self._work.join(None)
        self._questions.join(None)  # nothing may be written to a store that is closed
        self._models.join(_GRACE_SECONDS)

    @property
    def _running(self) -> bool:
        return self._started and not self._stopping.is_set()

    def _run_recurring(self) -> None:
        """Run all recurring tasks after a moment, and schedule the next run where a task asks for it."""
        self._stopping.wait(_GATHER_SECONDS)
        self._requested.clear()
        pauses = [pause for task in self._recurring if (pause := self._run(task))]
        if self._again is not None:
            self._again.cancel()
        if pauses and self._running:
            self._again = threading.Timer(min(pauses), self.request)
            self._again.daemon = True
            self._again.start()

    def _run(self, task: Callable[[], float | None]) -> float | None:
        """Run one task; log a failure that can happen to any store. Return after how many seconds to run it again."""
        try:
            return task()
        except (SQLAlchemyError, RecollectError, OSError) as error:
            why = str(error).partition("\n")[0]  # further lines of PostgreSQL's errors hold the values
            log.warning("background work failed and is tried again: %s: %s", type(error).__name__, why)
            return _RETRY_SECONDS
