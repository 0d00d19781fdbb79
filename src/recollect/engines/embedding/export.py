"""The cache of ONNX exports: one folder per content hash of the weights, built once and only then read.

The manifest is written last, so that a folder with a manifest is whole; this room never loads a model.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from recollect.domain.search import ModelCard
from recollect.engines.embedding.graph import draw
from recollect.engines.embedding.weights import file_hash, find_weights
from recollect.errors import ModelUnusable

MODEL: Final = "model.onnx"
TOKENIZER: Final = "tokenizer.json"
MANIFEST: Final = "manifest.json"
_FORMAT: Final = 1  # raise it when the graph changes, and every export is built anew
_PATIENCE: Final = 900.0  # seconds to wait for another process that downloads and builds


def open_export(card: ModelCard, models_dir: Path | None, cache_dir: Path) -> Path:
    """Return the folder with model.onnx and tokenizer.json of the card's model, building it when it is not there.

    A whole export is used without looking at the weights. Safe in many processes at once: one builds, the rest wait.
    Raises `ModelUnusable` when the weights are absent or altered, or the cache cannot be written.
    """
    if not card.sha256:
        raise ModelUnusable(f"The model card of `{card.id}` needs the sha256 of its weights for the ONNX runtime.")
    folder = cache_dir / "onnx" / card.sha256
    if _usable(folder, card):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock"), timeout=_PATIENCE):
            if not _usable(folder, card):
                _build(card, find_weights(card, models_dir, cache_dir), folder)
    except Timeout as error:
        raise ModelUnusable(
            f"Another process has been building {folder} for too long; stop it and try again."
        ) from error
    except ModelUnusable:
        raise
    except OSError as error:
        raise ModelUnusable(f"The model cache {folder.parent} cannot be written: {error.strerror}.") from error
    return folder


def find_export(card: ModelCard, cache_dir: Path) -> Path | None:
    """Return the folder of the card's export when it is there and whole; builds nothing."""
    folder = cache_dir / "onnx" / card.sha256
    return folder if card.sha256 and _usable(folder, card) else None


def verify_export(folder: Path) -> bool:
    """Say whether every file of an export still has the SHA-256 of its manifest (reads it all: a tenth of a second)."""
    manifest = _read_manifest(folder)
    if manifest is None or manifest.get("weights") != folder.name or not _whole(folder, manifest):
        return False
    return all(file_hash(folder / name) == entry["sha256"] for name, entry in manifest["files"].items())


def _build(card: ModelCard, weights: Path, folder: Path) -> None:
    for leftover in folder.parent.glob(f"{folder.name}.*.tmp"):  # of a killed process: the lock is ours
        shutil.rmtree(leftover)
    workshop = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".tmp", dir=folder.parent))
    try:
        _write(workshop / MODEL, draw(weights, card.pooling).SerializeToString())
        _write(workshop / TOKENIZER, _read_tokenizer(weights / TOKENIZER))
        _write(workshop / MANIFEST, json.dumps(_manifest(workshop, card), indent=1).encode())
        if folder.exists():  # damaged, or of an older format
            shutil.rmtree(folder)
        workshop.rename(folder)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _read_tokenizer(path: Path) -> bytes:
    data = path.read_bytes()
    try:
        whole = "model" in json.loads(data)
    except ValueError:
        whole = False
    if not whole:
        raise ModelUnusable(f"{path} is not a tokenizer definition.")
    return data


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _manifest(folder: Path, card: ModelCard) -> dict[str, Any]:
    files = {name: folder / name for name in (MODEL, TOKENIZER)}
    return {
        "format": _FORMAT,
        "weights": card.sha256,
        "pooling": card.pooling,
        "files": {name: {"bytes": path.stat().st_size, "sha256": file_hash(path)} for name, path in files.items()},
    }


def _usable(folder: Path, card: ModelCard) -> bool:
    manifest = _read_manifest(folder)
    asked = {"format": _FORMAT, "weights": card.sha256, "pooling": card.pooling}
    return manifest is not None and asked.items() <= manifest.items() and _whole(folder, manifest)


def _whole(folder: Path, manifest: dict[str, Any]) -> bool:
    files = manifest.get("files", {})
    return {MODEL, TOKENIZER} <= files.keys() and all(
        (folder / name).is_file() and (folder / name).stat().st_size == entry["bytes"] for name, entry in files.items()
    )


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None
