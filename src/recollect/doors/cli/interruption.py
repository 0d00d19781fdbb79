"""How a command that runs on and on ends in order: by Ctrl-C, or by the SIGTERM of whoever looks after it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def setting_on_signals(stop: threading.Event) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM set the event, where this is the main thread, which gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
