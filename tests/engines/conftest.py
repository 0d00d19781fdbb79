"""What tests of the embedding room share: the card, the cache and the warm model."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.domain import ModelCard
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
    """Return the cache folder that all tests share, so that the default model is exported once."""
    return cache_dir


@pytest.fixture(scope="session")
def embedder(cache: Path) -> OnnxEmbedder:
    """Open the default model and warm it."""
    opened = open_embedder(NAME, None, cache)
    assert isinstance(opened, OnnxEmbedder)
    opened.warm()
    return opened
