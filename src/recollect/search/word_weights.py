"""How much the words of a query weigh, and how much of it a memory holds."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.engines.signal_columns import Numbers


def saturated(bm25: Numbers) -> Numbers:
    """Bring bm25 (≥ 0, unbounded) to 0–1."""
    return bm25 / (bm25 + 20.0)


def rarity(uses: int, size: int) -> float:
    """Return the inverse document frequency of a word that stands in `uses` of `size` memories (> 0)."""
    return math.log(1.0 + (size - min(uses, size) + 0.5) / (min(uses, size) + 0.5))


def coverage(weights: Mapping[str, float], held: Collection[str]) -> float:
    """Return the share (0–1) of the query's weight whose words (stems) a memory holds."""
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in held) / total if total else 0.0
