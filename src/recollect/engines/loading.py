"""Loading models: at the first need or in the background, and from a folder that is checked first.

Loading of models: once, at the first need or in the background, by whichever thread comes first.

Of an embedding model also who uses it next: somebody waits for a query, and nobody for the rest of a long document.

Opens model folders with sentence-transformers: the one room that imports it, which takes seconds.

Weights of every other kind than safetensors can carry code and are left alone.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Condition, Event, Lock
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from safetensors import SafetensorError

from recollect.errors import ModelUnusable, RecollectError

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder as CrossEncoder
    from sentence_transformers import SentenceTransformer as SentenceTransformer

T = TypeVar("T")

_LONGEST: Final = 0.1  # seconds: documents go on beside queries that never end


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


class EmbeddingModel(LazyModel[T]):
    """What embedding models have in common: between two batches of a document, queries go first."""

    kind = "embedding model"

    def __init__(self) -> None:
        super().__init__()
        self._changed = Condition()
        self._queries = 0

    @contextmanager
    def queries_first(self) -> Iterator[None]:
        """Let no further batch of a document begin until the block ends, or for a moment."""
        with self._changed:
            self._queries += 1
        try:
            yield
        finally:
            with self._changed:
                self._queries -= 1
                self._changed.notify_all()

    def _give_way(self) -> None:
        """Wait, before a batch of a document, until no query is under way."""
        with self._changed:
            self._changed.wait_for(lambda: not self._queries, _LONGEST)


WRONG: Final = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SafetensorError,
    TypeError,
    ValueError,
)
"""What the library raises when a model cannot be loaded or fails at its work."""
_MOST_THREADS: Final = 4
_INSTALL: Final = "pip install 'recollect[models]'"
_KIND: Final = "config_sentence_transformers.json"


def need_library(model: str) -> None:
    """Raise `ModelUnusable` with the command that installs sentence-transformers where it is absent."""
    if find_spec("sentence_transformers") is None:
        raise ModelUnusable(f"The model `{model}` needs sentence-transformers, which is not installed: {_INSTALL}")


def open_embedding(folder: Path) -> SentenceTransformer:
    """Return the embedding model in `folder`; raises `ModelUnusable` when there is none, or it cannot be loaded."""
    _check_model(folder)
    from sentence_transformers import SentenceTransformer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # the error stream is for what went wrong
    try:
        return SentenceTransformer(str(folder), local_files_only=True)
    except WRONG as error:
        raise _unusable(folder, error) from error


def open_cross_encoder(folder: Path) -> CrossEncoder:
    """Return the cross-encoder in `folder`, which gives one score to a pair of texts.

    Raises `ModelUnusable` when there is none, when it cannot be loaded, and for an embedding model, which the library
    would turn into a cross-encoder of random answers.
    """
    _check_model(folder)
    if not _declared_cross_encoder(folder):
        raise ModelUnusable(f"The model in {folder} cannot rerank: it is no cross-encoder.")
    import torch
    from sentence_transformers import CrossEncoder
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # the error stream is for what went wrong
    # Threads that wait for each other spin: on two busy cores a recall took nine times as long with two as with one.
    torch.set_num_threads(max(1, min(_MOST_THREADS, (os.cpu_count() or 1) // 2)))
    try:
        model: CrossEncoder = CrossEncoder(str(folder), local_files_only=True)
    except WRONG as error:
        raise _unusable(folder, error) from error
    if model.num_labels != 1:
        raise ModelUnusable(f"The model in {folder} cannot rerank: it gives a pair {model.num_labels} scores, not one.")
    return model


def _check_model(folder: Path) -> None:
    if not ((folder / "modules.json").is_file() or (folder / "config.json").is_file()):
        raise ModelUnusable(f"The folder {folder} holds no model: it has neither modules.json nor config.json.")


def _declared_cross_encoder(folder: Path) -> bool:
    kind = _read(folder / _KIND).get("model_type")
    architectures = _read(folder / "config.json").get("architectures") or [""]
    return kind == "CrossEncoder" or (kind is None and str(architectures[0]).endswith("ForSequenceClassification"))


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}
    except (OSError, ValueError, TypeError) as error:
        raise ModelUnusable(f"The model file {path} cannot be read: {error}.") from error


def _unusable(folder: Path, error: Exception) -> ModelUnusable:
    return ModelUnusable(f"sentence-transformers cannot load the model in {folder}: {first_line(error)}")


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, or its kind where it has none."""
    return next(iter(str(error).splitlines()), type(error).__name__)
