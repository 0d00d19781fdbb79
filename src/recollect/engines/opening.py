"""Opens model folders with sentence-transformers: the one room that imports it, which takes seconds.

Weights of every other kind than safetensors can carry code and are left alone.
"""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from safetensors import SafetensorError

from recollect.errors import ModelUnusable

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder as CrossEncoder
    from sentence_transformers import SentenceTransformer as SentenceTransformer

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
