"""Opens models with sentence-transformers: the one module that imports it, which takes seconds.

A model is a folder, or an id of the Hugging Face hub, which the library fetches once and keeps in the hub's own cache.
Weights of every other kind than safetensors can carry code and are refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from recollect.engines.embedding.cards import known_models
from recollect.errors import ModelUnusable

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder as CrossEncoder
    from sentence_transformers import SentenceTransformer as SentenceTransformer

T = TypeVar("T")

LIBRARY_ERRORS: Final = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What the library raises when a model cannot be loaded or fails at its work."""
_MAX_THREADS: Final = 4
_HUB_TIMEOUT: Final = 10.0  # seconds
_INSTALL: Final = "pip install 'recollect[models]'"
_KIND_FILE: Final = "config_sentence_transformers.json"


class ModelSource(NamedTuple):
    """Where a model comes from: the path of a folder, or an id of the hub with the commit that is wanted."""

    name: str
    revision: str | None = None

    @property
    def folder(self) -> Path | None:
        """Return the folder, or None for a model of the hub."""
        path = Path(self.name)
        return path if path.is_absolute() else None


def model_source(model: str) -> ModelSource:
    """Return the source that a setting names: a path, or `OWNER/NAME` or `OWNER/NAME@COMMIT` of the hub.

    Raises `ModelUnusable` for a path where no folder is, and for a name that can be no id.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return ModelSource(str(folder.absolute()))
    if folder.is_absolute() or model.startswith((".", "~")):
        raise ModelUnusable(f"There is no model folder {folder}.")
    name, _, revision = model.partition("@")
    if "/" not in name:
        known = ", ".join(f"`{name}`" for name in known_models())
        raise ModelUnusable(
            f"`{model}` is neither a model folder nor a model id of the Hugging Face hub (OWNER/NAME). "
            f"Recollect knows {known}."
        )
    return ModelSource(name, revision or None)


def open_embedding(source: ModelSource) -> SentenceTransformer:
    """Return the embedding model; raises `ModelUnusable` when there is none, or it cannot be loaded."""
    _require_library(source)
    from sentence_transformers import SentenceTransformer

    return _load_model(SentenceTransformer, source)


def open_cross_encoder(source: ModelSource) -> CrossEncoder:
    """Return the cross-encoder, which gives one score to a pair of texts.

    Raises `ModelUnusable` when there is none, when it cannot be loaded, and for an embedding model, which the library
    would turn into a cross-encoder of random answers.
    """
    _require_library(source)
    import torch
    from sentence_transformers import CrossEncoder

    # Threads that wait for each other spin: on two busy cores a recall took nine times as long with two as with one.
    torch.set_num_threads(max(1, min(_MAX_THREADS, (os.cpu_count() or 1) // 2)))
    model: CrossEncoder = _load_model(CrossEncoder, source)
    if not _is_cross_encoder(source):
        raise ModelUnusable(f"The model `{source.name}` cannot rerank: it is no cross-encoder.")
    if model.num_labels != 1:
        raise ModelUnusable(f"The model `{source.name}` cannot rerank: a pair gets {model.num_labels} scores, not 1.")
    return model


def commit_of(source: ModelSource) -> str:
    """Return the commit of a loaded model of the hub, as the hub's cache names it."""
    from huggingface_hub import try_to_load_from_cache

    for name in ("modules.json", "config.json"):
        found = try_to_load_from_cache(source.name, name, revision=source.revision)
        if isinstance(found, str):
            return Path(found).parent.name
    return source.revision or "unknown"


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, or its kind where it has none."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def _require_library(source: ModelSource) -> None:
    """Raise `ModelUnusable` where sentence-transformers is not installed."""
    if find_spec("sentence_transformers") is None:
        why = f"The model `{source.name}` needs sentence-transformers, which is not installed: {_INSTALL}"
        raise ModelUnusable(why)


def _load_model(kind: Callable[..., T], source: ModelSource) -> T:
    """Return the model from its folder or from the hub's cache; the hub is asked only for missing files."""
    from safetensors import SafetensorError
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # the error stream is for what went wrong
    options: dict[str, Any] = {"revision": source.revision, "model_kwargs": {"use_safetensors": True}}
    if source.folder is not None:
        _check_folder(source.folder)
    try:
        try:
            return kind(source.name, local_files_only=True, **options)
        except OSError:
            if source.folder is not None:
                raise
            _check_hub(source)
            return kind(source.name, **options)
    except ModelUnusable:
        raise
    except (*LIBRARY_ERRORS, SafetensorError) as error:
        why = f"sentence-transformers cannot load the model `{source.name}`: {first_line(error)}"
        raise ModelUnusable(why) from error


def _check_folder(folder: Path) -> None:
    if not ((folder / "modules.json").is_file() or (folder / "config.json").is_file()):
        raise ModelUnusable(f"The folder {folder} holds no model: it has neither modules.json nor config.json.")


def _check_hub(source: ModelSource) -> None:
    """Raise `ModelUnusable` unless the hub answers and has the model; the library itself would try for a minute."""
    from huggingface_hub import model_info
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    # Connections fail with an error of the hub's HTTP client, and which client that is differs among its releases.
    client_error: type[Exception] = HfHubHTTPError.__bases__[0]
    try:
        model_info(source.name, revision=source.revision, timeout=_HUB_TIMEOUT)
    except HFValidationError as error:
        raise ModelUnusable(f"`{source.name}` is neither a model folder nor a model id of the hub.") from error
    except GatedRepoError as error:
        raise ModelUnusable(f"The model `{source.name}` asks for a licence to be accepted on the hub first.") from error
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        wanted = f"`{source.name}`" + (f" at revision {source.revision}" if source.revision else "")
        raise ModelUnusable(f"The Hugging Face hub has no public model {wanted}.") from error
    except (OSError, client_error) as error:
        raise ModelUnusable(
            f"The model `{source.name}` is not in the hub's cache and the Hugging Face hub cannot be reached "
            "(or HF_HUB_OFFLINE is set)."
        ) from error


def _is_cross_encoder(source: ModelSource) -> bool:
    """Return whether the files of a model declare a cross-encoder."""
    kind = _read_json(source, _KIND_FILE).get("model_type")
    architectures = _read_json(source, "config.json").get("architectures") or [""]
    return kind == "CrossEncoder" or (kind is None and str(architectures[0]).endswith("ForSequenceClassification"))


def _read_json(source: ModelSource, name: str) -> dict[str, Any]:
    """Return a JSON file of a model; empty where the model has none."""
    from sentence_transformers.util import load_file_path

    found = load_file_path(source.name, name, revision=source.revision, local_files_only=True)
    try:
        return dict(json.loads(Path(found).read_text(encoding="utf-8"))) if found else {}
    except (OSError, ValueError, TypeError) as error:
        raise ModelUnusable(f"The model file {found} cannot be read: {error}.") from error
