"""Stores as tests open them: every one shares one loaded embedding model and begins as a copy of one migrated file."""

from __future__ import annotations

import shutil
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import recollect
from places import DEFAULT_MODEL
from recollect import App, Settings
from recollect.engines.embedder import Embedder
from recollect.engines.embedding import open_embedder
from recollect.store.sql.database import open_file
from recollect.store.sql.migrations import migrate


def open_app(settings: Settings, **options: Any) -> App:
    """Open a store as `recollect.open_app` does, with the embedding model that this process shares and no threads."""
    return recollect.open_app(settings, **with_model(settings, {"background": False} | options))


def with_model(settings: Settings, options: dict[str, Any]) -> dict[str, Any]:
    """Add the configured embedding model to the options of `open_app`, unless it is one of a test's own.

    What is shared is loaded but once; the object around it is new, so that a test may change it.
    """
    if settings.models_dir or "embedder" in options:
        return options
    shared = _embedder(settings.model)
    if options.get("wait", True):
        shared.warm()
    return options | {"embedder": copy(shared)}


@lru_cache
def _embedder(model: str) -> Embedder:
    return open_embedder(model, None)


def make_migrated(file: Path) -> Path:
    """Make an empty database at the newest revision in one file, for `lay` to copy."""
    database = open_file(file)
    migrate(database)
    database.checkpoint()
    database.close()
    return file


def lay(migrated: Path, home: Path) -> None:
    """Lay a copy of the migrated database where a store opened in `home` finds it, unless there is one."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (home / "memory.db").exists():
        shutil.copy(migrated, home / "memory.db")


def altered_model(models: Path) -> Path:
    """Lay the default model into a models folder, with files that are not those of its card; return that folder."""
    folder = models / DEFAULT_MODEL.name
    folder.mkdir(parents=True)
    shutil.copy(DEFAULT_MODEL / "card.toml", folder)
    for name in ("model.onnx", "tokenizer.json"):
        (folder / name).write_text("{}", encoding="utf-8")
    return models
