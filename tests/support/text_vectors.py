"""The vectors that an embedder reads texts as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from recollect.engines.embedder import Embedder, Matrix


def vectors(embedder: Embedder, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> Matrix:
    """Return one unit row per text, in order: float32[n, d]."""
    rows = [one.vector for one in embedder.read(texts, kind)]
    return np.vstack(rows) if rows else np.zeros((0, embedder.card.dimensions), dtype=np.float32)
