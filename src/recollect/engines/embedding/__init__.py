"""The embedding models: text in, unit vectors out. Importing this room loads none of the heavy libraries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recollect.engines.embedding.fetch import fetch_model
from recollect.engines.embedding.onnx import OnnxEmbedder
from recollect.engines.embedding.sentence import SentenceTransformersEmbedder
from recollect.engines.embedding.weights import beside_card, find_card
from recollect.engines.embedding_service import ServedEmbedder
from recollect.errors import ModelUnusable

if TYPE_CHECKING:
    from recollect.engines.embedder import Embedder

__all__ = [
    "OnnxEmbedder",
    "SentenceTransformersEmbedder",
    "beside_card",
    "fetch_model",
    "find_card",
    "open_embedder",
    "open_service",
]


def open_service(model: str, models_dir: Path | None, url: str, key: str = "") -> ServedEmbedder:
    """Return the embedder that asks the server at `url`; nothing is asked yet.

    Raises `ModelUnusable` for a model without a card: its dimensions and limits would not be known.
    """
    card = find_card(model, models_dir)
    if card is None:
        raise ModelUnusable(
            f"The model `{model}` has no card: for an embedding server put its card.toml into a folder below "
            "RECOLLECT_MODELS_DIR, as `models/README.md` shows."
        )
    return ServedEmbedder(card, url, key)


def open_embedder(model: str, models_dir: Path | None, cache_dir: Path) -> Embedder:
    """Return the embedder of a card's folder name, a hub id or a local folder; nothing is loaded yet.

    A card with `runtime = "onnx"` is served by onnxruntime, everything else by sentence-transformers.
    Raises `ModelUnusable` when a card is there but cannot be read.
    """
    card = find_card(model, models_dir)
    if card is not None and card.runtime == "onnx" and not Path(model).expanduser().is_dir():
        return OnnxEmbedder(card, models_dir, cache_dir)
    return SentenceTransformersEmbedder(model, models_dir)
