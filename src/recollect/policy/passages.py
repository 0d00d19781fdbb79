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
        folded = fold(text)
        found = ((word.start(), word[0]) for word in self._words.finditer(folded))
        places = [(place, self._numbers[word]) for place, word in found if _begins(folded, place, word)]
        if not places:
            return 0.0, 0.0
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


def _begins(text: str, place: int, word: str) -> bool:
    """Say whether a word begins at `place`; scripts without spaces have words anywhere."""
    return place == 0 or not word.isascii() or not (text[place - 1].isalnum() or text[place - 1] == "_")


def _any(starts: Iterable[str]) -> re.Pattern[str] | None:
    """Return what finds the longest of `starts`, inside words too: so the search goes by first letters only."""
    longest = sorted(starts, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest))) if longest else None
