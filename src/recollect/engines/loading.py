"""Loading of models: once, at the first need or in the background, by whichever thread comes first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from threading import Event, Lock
from typing import Generic, TypeVar

from recollect.errors import RecollectError

T = TypeVar("T")


class LazyModel(ABC, Generic[T]):
    """The `Loadable` part of every model: `_load` is called once and `_model` gives its result.

    `kind` is what messages call it, such as "embedding model".
    """

    kind = "model"

    def __init__(self) -> None:
        self._kept: T | None = None
        self._loading = Lock()
        self._settled = Event()
        self._settled.set()
        self._failure = ""

    @abstractmethod
    def _load(self) -> T:
        """Load the model and return what `_model` gives from then on; raises `ModelUnusable`."""

    @property
    def ready(self) -> bool:
        """Say whether the model is loaded, so that using it does not wait."""
        return self._kept is not None

    @property
    def failure(self) -> str:
        """Return why the last attempt in the background failed, or an empty string."""
        return self._failure if self._settled.is_set() else ""

    def warm(self) -> None:
        """Load the model and wait for it; does nothing when it is loaded.

        Raises `ModelUnusable` when it is absent, altered or cannot be loaded; the next call tries again.
        """
        self._model()

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for an attempt in the background to end; return whether none is under way."""
        return self._settled.wait(seconds)

    def begin(
        self, then: Callable[[], None] = lambda: None, wanted: Callable[[], bool] = lambda: True
    ) -> Callable[[], None]:
        """Announce an attempt in the background, for which `wait` waits, and return the work to be done.

        `then` is part of it: what had to wait for the model is done before `wait` returns. The work only ends the
        waiting where nobody wants the model any more when its turn comes.
        """
        self._settled.clear()
        return partial(self._attempt, then, wanted)

    def _attempt(self, then: Callable[[], None], wanted: Callable[[], bool]) -> None:
        try:
            if wanted():
                self._failure = f"the {self.kind} cannot be loaded; the log says why."
                self.warm()
                self._failure = ""
                then()
        except RecollectError as error:
            self._failure = str(error)
        finally:
            self._settled.set()

    def _model(self) -> T:
        if self._kept is None:
            with self._loading:
                if self._kept is None:
                    self._kept = self._load()
        return self._kept
