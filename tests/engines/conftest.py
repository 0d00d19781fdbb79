"""What tests of the embedding room share: the card, the cache and the warm model."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from recollect.domain.search import ModelCard
from recollect.engines.embedding import OnnxEmbedder, find_card, open_embedder

NAME = "all-MiniLM-L6-v2"


@pytest.fixture(scope="session")
def card() -> ModelCard:
    """Return the card of the default model."""
    found = find_card(NAME)
    assert found is not None
    return found


@pytest.fixture(scope="session")
def cache(cache_dir: Path) -> Path:
    """Return the cache folder that all tests share, where nothing is kept of a model that a package holds."""
    return cache_dir


@pytest.fixture(scope="session")
def embedder(cache: Path) -> OnnxEmbedder:
    """Open the default model and warm it."""
    opened = open_embedder(NAME, None, cache)
    assert isinstance(opened, OnnxEmbedder)
    opened.warm()
    return opened


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run code in a fresh interpreter whose hub cache is empty."""

    def run(code: str, *args: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, args)],
            env={**os.environ, "HF_HOME": str(tmp_path / "hub"), **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run
