"""Events of coding agents' sessions that found no daemon: kept for seconds in files of the user's own, in their order.

A process that nobody waits for, one for all events of a burst, hands them to the daemon once that has started. What it
cannot hand over in time is deleted, counted, and told by `recollect status`.
"""

from __future__ import annotations

import json
import os
import signal
import time

from recollect import process
from recollect.private_files import read_private, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PATIENCE = 60.0
"""Seconds without any progress after which the events that are left are lost: what a daemon may take to start."""
_FOLDER, _LOCK, _LOST, _EVENT = "hook-events", "lock", "lost", ".json"
_MOST, _LARGEST = 1_000, 2**26  # events, and bytes in all
_PAUSE = 0.1


def waits(home: str) -> bool:
    """Return whether events wait here: a new event must not overtake them."""
    return bool(_event_files(home))


def lost(home: str) -> int:
    """Return the number of events lost since the store was made."""
    try:
        return int(read_private(f"{home}/{_FOLDER}/{_LOST}") or 0)
    except (OSError, ValueError):
        return 0


def keep(home: str, body: dict[str, Any]) -> None:
    """Keep an event until it is delivered; nobody waits for its answer any more."""
    folder = f"{home}/{_FOLDER}"
    os.makedirs(home, mode=0o700, exist_ok=True)  # noqa: PTH103 - pathlib takes long to import
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    content = json.dumps(body | {"late": True})
    held = _event_files(home)
    if len(held) >= _MOST or sum(map(os.path.getsize, held)) + len(content) > _LARGEST:
        _count_lost(folder, 1)
        return
    write_private(f"{folder}/{time.time_ns():020}-{os.getpid()}{_EVENT}", content)


def deliver_later(home: str, deliver: Callable[[bytes, float], bool]) -> None:
    """Let a separate process deliver the kept events, unless a process does so already.

    `deliver` hands an event over before a deadline, and returns False where nobody takes it yet.
    """
    if os.fork() == 0:
        try:
            leave()
            deliver_kept(home, deliver)
        finally:
            os._exit(0)


def leave(seconds: float = 0.0) -> None:
    """Close everything that the agent may wait for, and survive its end; with `seconds` end after that time at most."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def deliver_kept(home: str, deliver: Callable[[bytes, float], bool]) -> None:
    """Deliver the kept events in order, unless another process does so."""
    folder = f"{home}/{_FOLDER}"
    while _event_files(home):
        handle = os.open(f"{folder}/{_LOCK}", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not process.take_lock(handle):
                return
            _deliver_in_order(home, deliver)
        finally:
            os.close(handle)


def _deliver_in_order(home: str, deliver: Callable[[bytes, float], bool]) -> None:
    """Deliver the kept events in order; count them as lost where nobody takes the first for too long."""
    end = time.monotonic() + PATIENCE
    while events := _event_files(home):
        if time.monotonic() > end:
            _count_lost(f"{home}/{_FOLDER}", len(events))
            for event in events:
                os.unlink(event)  # noqa: PTH108
            return
        try:
            taken = deliver(read_private(events[0]) or b"{}", end)
        except (OSError, ValueError):  # it cannot be read, or was refused
            taken = True
            _count_lost(f"{home}/{_FOLDER}", 1)
        if taken:
            os.unlink(events[0])  # noqa: PTH108
            end = time.monotonic() + PATIENCE
        else:
            time.sleep(_PAUSE)


def _event_files(home: str) -> list[str]:
    try:
        names = os.listdir(f"{home}/{_FOLDER}")  # noqa: PTH208
    except OSError:
        return []
    return sorted(f"{home}/{_FOLDER}/{name}" for name in names if name.endswith(_EVENT))


def _count_lost(folder: str, number: int) -> None:
    """Add to the number of lost events; two processes that count at once may lose an increment."""
    count = lost(os.path.dirname(folder)) + number  # noqa: PTH120
    write_private(f"{folder}/{_LOST}", str(count))
