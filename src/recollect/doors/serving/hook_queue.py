"""The events of coding agents' sessions that wait in the daemon, so that no agent waits for them.

One thread works them off in the order in which they came. They are in memory alone: a graceful stop works them off, a
kill loses them.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from recollect.doors.serving.errors import to_recollect_error

log = logging.getLogger(__name__)

MOST: Final = 1_000
"""Events that wait at most."""
LARGEST: Final = 2**26
"""Characters of their texts in all."""

Work = Callable[[], object]


class HookQueue:
    """Takes events at once and works them off in one thread, which ends when nothing is left."""

    def __init__(self, most: int = MOST, largest: int = LARGEST) -> None:
        self._most = most
        self._largest = largest
        self._waiting: deque[tuple[Work, int]] = deque()
        self._size = 0
        self._known: deque[str] = deque(maxlen=most)
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self.lost = 0
        """Events that did not fit, or whose work failed, since the daemon started."""

    @property
    def waiting(self) -> int:
        """Return how many events are not done, with the one that is worked on."""
        with self._changed:
            return len(self._waiting)

    def put(self, work: Work, size: int, event_id: str = "") -> bool:
        """Take an event whose texts have `size` characters; return whether there was room for it.

        One that comes again, as its id tells, is taken once: whoever sent it had no answer in time.
        """
        with self._changed:
            if event_id and event_id in self._known:
                return True
            if len(self._waiting) >= self._most or (self._waiting and self._size + size > self._largest):
                self.lost += 1
                return False
            self._known.append(event_id)
            self._waiting.append((work, size))
            self._size += size
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="recollect-hooks", daemon=True)
                self._thread.start()
            return True

    def finish(self, seconds: float) -> bool:
        """Wait until everything is done, so many seconds at most; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._thread = None
                    return
                work, size = self._waiting[0]
            try:
                work()
            except Exception as error:  # noqa: BLE001 - the next event is worked on whatever became of this one
                log.warning("an event of a session was lost: %s", type(to_recollect_error(error)).__name__)
                with self._changed:
                    self.lost += 1
            with self._changed:
                self._waiting.popleft()
                self._size -= size
                self._changed.notify_all()
