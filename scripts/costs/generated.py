"""An embedding model without weights, for stores of a size that a real one would embed for hours."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from recollect.domain.search import ModelCard
from recollect.engines.embedder import TokenEmbeddings
from recollect.engines.late_interaction import make_reading
from recollect.engines.loading import EmbeddingModel

if TYPE_CHECKING:
    from recollect.engines.embedder import Matrix

_WORD = re.compile(r"\w+|[^\w\s]")
_DIMENSIONS = 384
_WORDS = 65_536  # rows of the table; two words that meet in one row are one word to this model


class GeneratedEmbedder(EmbeddingModel["Matrix"]):
    """Gives each word a seeded random direction and each text the sum of its words': texts with equal words are near.

    It costs a tenth of a millisecond per text, so that what is measured is the store and not the model.
    """

    @property
    def card(self) -> ModelCard:
        """Return the card of this model."""
        return ModelCard(
            id="generated",
            revision="1",
            dimensions=_DIMENSIONS,
            max_tokens=256,
            pooling="sum",
            licence="Apache-2.0",
            multilingual=False,
        )

    def read(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> list[TokenEmbeddings]:
        """Return for each text a unit vector, float32[384], and one direction a word."""
        del kind  # a query is read as a document is
        return [self._read(text) for text in texts]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the words and marks of `text` stand."""
        return [found.span() for found in _WORD.finditer(text)]

    def counter(self) -> Callable[[str], int]:
        """Return what counts words and marks."""
        return lambda text: len(self.spans(text))

    def _load(self) -> Matrix:
        return np.random.default_rng(11).standard_normal((_WORDS, _DIMENSIONS), dtype=np.float32)

    def _read(self, text: str) -> TokenEmbeddings:
        spans = self.spans(text)
        rows = [int.from_bytes(text[start:end].lower().encode()[:8]) * 2654435761 % _WORDS for start, end in spans]
        states = self._model()[rows]
        total = states.sum(axis=0) if len(rows) else self._model()[0]
        return make_reading(total / np.linalg.norm(total), states, spans)
