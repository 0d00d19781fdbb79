"""The embedding models: text in, unit vectors out. Importing this room loads none of the heavy libraries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recollect.engines.embedding.cards import ModelFolder, find_model
from recollect.engines.embedding.onnx import MODEL_FILE, OnnxEmbedder
from recollect.engines.embedding.sentence import SentenceTransformersEmbedder
from recollect.engines.embedding_service import ServedEmbedder
from recollect.engines.sentence_models import ModelSource, model_source
from recollect.errors import ModelUnusable

if TYPE_CHECKING:
    from recollect.engines.embedder import Embedder

__all__ = [
    "ModelFolder",
    "OnnxEmbedder",
    "SentenceTransformersEmbedder",
    "find_model",
    "open_embedder",
    "open_service",
]


def open_service(model: str, models_dir: Path | None, url: str, key: str = "") -> ServedEmbedder:
    """Return the embedder that asks the server at `url`; nothing is asked yet.

    Raises `ModelUnusable` for a model without a card: its dimensions and limits would not be known.
    """
    found = find_model(model, models_dir)
    if found is None:
        raise ModelUnusable(
            f"The model `{model}` has no card: for an embedding server put its card.toml into a folder below "
            "RECOLLECT_MODELS_DIR, as `models/README.md` shows."
        )
    return ServedEmbedder(found.card, url, key)


def open_embedder(model: str, models_dir: Path | None) -> Embedder:
    """Return the embedder of a card's folder name, a hub id or a local folder; nothing is loaded yet.

    onnxruntime serves a model whose `model.onnx` lies beside its card, or must lie there as the card states its hash;
    sentence-transformers serves any other.
    Raises `ModelUnusable` when there is a card that cannot be read, or a path where no folder is.
    """
    found = find_model(model, models_dir)
    if found is None:
        return SentenceTransformersEmbedder(model_source(model))
    if found.card.sha256 or found.file(MODEL_FILE):
        return OnnxEmbedder(found)
    beside = found.file("config.json") or found.file("modules.json")
    source = ModelSource(str(found.path.absolute())) if beside else ModelSource(found.card.id, found.card.revision)
    return SentenceTransformersEmbedder(source, found.card)
