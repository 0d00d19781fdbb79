"""What tests of the embedding room share: the shipped model, its card, and fresh interpreters."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from places import DEFAULT_MODEL
from recollect.domain.search import ModelCard
from recollect.engines.embedding import ModelFolder, OnnxEmbedder, find_model, open_embedder


@pytest.fixture(scope="session")
def shipped() -> ModelFolder:
    """Return the folder of the default model."""
    found = find_model(DEFAULT_MODEL.name)
    assert found is not None
    return found


@pytest.fixture(scope="session")
def card(shipped: ModelFolder) -> ModelCard:
    """Return the card of the default model."""
    return shipped.card


@pytest.fixture(scope="session")
def embedder() -> OnnxEmbedder:
    """Open the default model and warm it."""
    opened = open_embedder(DEFAULT_MODEL.name, None)
    assert isinstance(opened, OnnxEmbedder)
    opened.warm()
    return opened


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run code in a fresh interpreter whose hub cache is the folder `hub` of the test."""

    def run(code: str, *args: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, args)],
            env={**os.environ, "HF_HOME": str(tmp_path / "hub"), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run
