"""Loading of models: once, at the first need or in the background, by whichever thread comes first.

Of an embedding model also who uses it next: somebody waits for a query, and nobody for the rest of a long document.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Condition, Event, Lock
from typing import Final, Generic, TypeVar

from recollect.errors import RecollectError

T = TypeVar("T")

_MAX_WAIT_SECONDS: Final = 0.1  # seconds: documents go on beside queries that never end


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
        """Announce a load in the background, for which `wait` waits, and return the work; `then` is called at its end.

        `wait` returns after `then`. The work loads nothing where `wanted` says no when its turn comes.
        """
        self._settled.clear()
        return partial(self._load_in_background, then, wanted)

    def _load_in_background(self, then: Callable[[], None], wanted: Callable[[], bool]) -> None:
        """Load the model where it is still wanted, call `then`, and keep the reason of a failure."""
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
        """Return the loaded model; the first call loads it, and other threads wait."""
        if self._kept is None:
            with self._loading:
                if self._kept is None:
                    self._kept = self._load()
        return self._kept


class EmbeddingModel(LazyModel[T]):
    """What embedding models have in common: between two documents, queries go first."""

    kind = "embedding model"

    def __init__(self) -> None:
        super().__init__()
        self._changed = Condition()
        self._queries = 0

    @contextmanager
    def queries_first(self) -> Iterator[None]:
        """Let no further document be read until the block ends, or for a moment."""
        with self._changed:
            self._queries += 1
        try:
            yield
        finally:
            with self._changed:
                self._queries -= 1
                self._changed.notify_all()

    def _give_way(self) -> None:
        """Wait, before a document is read, until no query is under way."""
        with self._changed:
            self._changed.wait_for(lambda: not self._queries, _MAX_WAIT_SECONDS)
