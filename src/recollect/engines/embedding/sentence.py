"""Embeds with sentence-transformers: any model of the Hugging Face hub or of a folder, at the price of torch."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from recollect.domain.search import ModelCard
from recollect.engines.embedding.tokens import Tokenized, Tokens, same_length_text
from recollect.engines.late_interaction import make_reading
from recollect.engines.loading import EmbeddingModel
from recollect.engines.sentence_models import ModelSource, commit_of, open_embedding
from recollect.errors import ModelUnusable

if TYPE_CHECKING:
    from recollect.engines.embedder import Matrix, TokenEmbeddings
    from recollect.engines.sentence_models import SentenceTransformer

_BATCH_TEXTS: Final = 32
_MIN_NORM: Final = 1e-12
_DEFAULT_LIMIT: Final = 512  # tokens; texts are chunked by it when a model names none


class _Loaded(NamedTuple):
    model: SentenceTransformer
    tokens: Tokens
    card: ModelCard


class SentenceTransformersEmbedder(EmbeddingModel[_Loaded]):
    """Embeds with any model of the library; loads at the first need and may be used by many threads at once."""

    def __init__(self, source: ModelSource, card: ModelCard | None = None) -> None:
        super().__init__()
        self._source = source
        self._card = card
        self._encoding = Lock()  # the library truncates by changing the tokenizer's state

    @property
    def card(self) -> ModelCard:
        """Return the written card; a model without one is loaded to learn its card, which takes seconds."""
        return self._card or self._model().card

    def read(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> list[TokenEmbeddings]:
        """Return each text, in order, as the model reads it: its unit vector, and its tokens.

        A text is cut at the card's `max_tokens`. A model without token embeddings, or one that cuts words otherwise
        than its own tokenizer definition says, gives readings without tokens.
        """
        loaded = self._model()
        encode = loaded.model.encode_query if kind == "query" else loaded.model.encode_document
        prompt = loaded.card.query_prompt if kind == "query" else loaded.card.document_prompt
        tokenized = loaded.tokens.tokenized(texts, loaded.card.max_tokens, prompt)
        by_length = sorted(range(len(texts)), key=lambda index: len(tokenized[index].ids))
        found: dict[int, TokenEmbeddings] = {}
        for start in range(0, len(by_length), _BATCH_TEXTS):
            batch = by_length[start : start + _BATCH_TEXTS]
            if kind == "document":
                self._give_way()
            with self._encoding:
                features = encode(
                    [same_length_text(texts[index]) for index in batch],
                    prompt=prompt,
                    batch_size=_BATCH_TEXTS,
                    output_value=None,
                    show_progress_bar=False,
                )
            found |= {
                index: _token_embeddings(feature, tokenized[index])
                for index, feature in zip(batch, features, strict=True)
            }
        return [found[index] for index in range(len(texts))]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character offsets (start, end) of every token of `text`, uncut and without special tokens."""
        return self._model().tokens.spans(text)

    def counter(self) -> Callable[[str], int] | None:
        """Return a function that counts the tokens of a text, or None while the model is not loaded."""
        return self._model().tokens.count if self.ready else None

    def _load(self) -> _Loaded:
        model = open_embedding(self._source)
        card = self._card or _derive_card(self._source, model)
        if self._card is not None:
            model.max_seq_length = card.max_tokens
        return _Loaded(model, _tokenizer_of(self._source.name, model), card)


def _token_embeddings(features: dict[str, Any], tokenized: Tokenized) -> TokenEmbeddings:
    """Return the unit vector and the token embeddings of a text; no tokens where the model cuts words its own way."""
    sentence = _as_array(features["sentence_embedding"])
    vector = sentence / max(float(np.linalg.norm(sentence)), _MIN_NORM)
    if not {"token_embeddings", "attention_mask", "input_ids"} <= features.keys():
        return make_reading(vector, np.zeros((0, len(vector)), dtype=np.float32), ())
    real = features["attention_mask"].cpu().numpy().astype(bool)
    states = _as_array(features["token_embeddings"])[real]
    if features["input_ids"].cpu().numpy()[real].tolist() != tokenized.ids:
        return make_reading(vector, states[:0], ())
    return make_reading(vector, states[tokenized.places], tokenized.spans)


def _as_array(tensor: Any) -> Matrix:
    return np.asarray(tensor.float().cpu().numpy(), dtype=np.float32)


def _derive_card(source: ModelSource, model: SentenceTransformer) -> ModelCard:
    """Return the card of a model that has none: id, hash, dimensions, limit and prompts as the model states them."""
    folder = source.folder
    return ModelCard(
        # A store that moves with its models keeps its stamp: never the path.
        id=folder.resolve().name if folder else source.name,
        revision=_weights_digest(folder) if folder else commit_of(source),
        dimensions=len(model.encode_document("")),  # the method that says it has two names among the releases
        max_tokens=_token_limit(model.max_seq_length),
        pooling=next((str(mode) for module in model if (mode := getattr(module, "pooling_mode", None))), "unknown"),
        licence=str(model.model_card_data.license or "unknown"),
        query_prompt=model.prompts.get("query") or "",
        document_prompt=model.prompts.get("document") or "",
    )


def _token_limit(tokens: float | None) -> int:
    return int(tokens) if tokens and math.isfinite(tokens) else _DEFAULT_LIMIT


def _weights_digest(folder: Path) -> str:
    """Return the SHA-256 of a folder's weights, of several files that of their hashes."""
    paths = sorted(path for pattern in ("*.safetensors", "*.bin") for path in folder.rglob(pattern))
    if not paths:
        raise ModelUnusable(f"The folder {folder} holds no weights (*.safetensors or *.bin).")
    hashes = [_file_hash(path) for path in paths]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def _file_hash(path: Path) -> str:
    """Return the SHA-256 of a file; raise `ModelUnusable` where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelUnusable(f"The model file {path} cannot be read: {error.strerror}.") from error


def _tokenizer_of(name: str, model: SentenceTransformer) -> Tokens:
    """Return the tokenizer of a model; raise `ModelUnusable` where it has no fast tokenizer."""
    tokenizer = getattr(model.tokenizer, "backend_tokenizer", model.tokenizer)
    to_str = getattr(tokenizer, "to_str", None)
    if to_str is None:
        raise ModelUnusable(f"The model `{name}` has no fast tokenizer, so its texts cannot be chunked.")
    return Tokens(to_str())
