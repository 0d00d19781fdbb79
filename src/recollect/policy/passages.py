"""Passages: whether a query's words stand close together in a text, which says more than that they stand in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from recollect.policy.letters import fold

_PASSAGE = 250  # characters: a few sentences
_PHRASE = 80  # characters: a clause


class Passages:
    """Measures texts against the stems of one query's folded words, weighted by how rare each is."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = [weight for stem, weight in weights.items() if stem]
        self._total = sum(weights.values()) or 1.0
        self._numbers: dict[str, int] = {}
        for number, stem in enumerate(filter(None, weights)):
            self._numbers.setdefault(_start(stem), number)
        self._words = _any(self._numbers)

    def shares(self, text: str) -> tuple[float, float]:
        """Return the greatest shares (0–1) of the query's weight within one passage and within one clause."""
        if self._words is None:
            return 0.0, 0.0
        places = [(word.start(), self._numbers[word[0]]) for word in self._words.finditer(fold(text))]
        return self._densest(places, _PASSAGE), self._densest(places, _PHRASE)

    def _densest(self, places: Sequence[tuple[int, int]], size: int) -> float:
        counts = [0] * len(self._weights)
        best = held = 0.0
        first = 0
        for place, word in places:
            held += 0.0 if counts[word] else self._weights[word]
            counts[word] += 1
            while places[first][0] < place - size:
                gone = places[first][1]
                counts[gone] -= 1
                held -= 0.0 if counts[gone] else self._weights[gone]
                first += 1
            best = max(best, held)
        return min(best / self._total, 1.0)


def _start(stem: str) -> str:
    """Return how every word of this stem begins: with the stem, less the i that Porter makes of y."""
    return stem[:-1] if stem.endswith("i") and len(stem) > 3 and stem.isascii() else stem


def _any(starts: Iterable[str]) -> re.Pattern[str] | None:
    """Return what finds the longest of `starts`: where a word begins, or anywhere when it is not in ASCII letters."""
    longest = sorted(starts, key=len, reverse=True)
    spaced, unspaced = ("|".join(re.escape(one) for one in longest if one.isascii() is kind) for kind in (True, False))
    kinds = [rf"\b(?:{spaced})" if spaced else "", unspaced]
    return re.compile("|".join(filter(None, kinds))) if longest else None
