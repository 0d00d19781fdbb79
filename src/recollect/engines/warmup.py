"""The loading of a model in a thread of its own, so that nobody waits who need not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from recollect.errors import RecollectError
from recollect.ports import Warmup

_GRACE = 5.0  # seconds
_HEAD_START = 10.0  # seconds: what the other does after loading may take minutes


class _Model(Protocol):
    def warm(self) -> None: ...


class BackgroundWarmup:
    """Loads `model` once started, then does what waited for it; a failure is kept as a sentence."""

    def __init__(
        self, model: _Model, then: Callable[[], None] = lambda: None, *, what: str = "embedding model"
    ) -> None:
        self._model = model
        self._then = then
        self._what = what
        self._after: Warmup | None = None
        self._over = threading.Event()
        self._over.set()
        self._stopping = threading.Event()
        self._failure = ""
        self._thread = threading.Thread(target=self._run, name="recollect-warmup", daemon=True)

    def start(self, after: Warmup | None = None) -> None:
        """Begin loading; `after` has a head start, since two models that load at once are both late."""
        self._after = after
        self._over.clear()
        self._thread.start()

    def stop(self) -> None:
        """Do nothing more after loading; wait a moment for it, since a thread inside a library cannot be ended."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_GRACE)

    def wait(self, seconds: float) -> bool:
        """Wait at most so long for the attempt under way, if any, to end; say whether it has."""
        return self._over.wait(seconds)

    @property
    def failure(self) -> str:
        """Return why the model cannot be loaded, or an empty string."""
        return self._failure if self._over.is_set() else ""

    def _run(self) -> None:
        self._failure = f"the {self._what} cannot be loaded; the log says why."
        try:
            if self._after is not None:
                self._after.wait(_HEAD_START)
            if self._stopping.is_set():
                return
            self._model.warm()
            self._failure = ""
            if not self._stopping.is_set():
                self._then()
        except RecollectError as error:
            self._failure = str(error)
        finally:
            self._over.set()
