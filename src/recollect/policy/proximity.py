"""Proximity: whether a query's words stand close together in a text, which says more than that they stand in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recollect.text.normalization import fold

_PASSAGE = 250  # characters: a few sentences
_PHRASE = 80  # characters: a clause


class Proximity:
    """Measures texts against the stems of one query's folded words, weighted by how rare each is."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = [weight for stem, weight in weights.items() if stem]
        self._total = sum(weights.values()) or 1.0
        starts: dict[str, int] = {}
        for number, stem in enumerate(filter(None, weights)):
            starts.setdefault(_start(stem), number)
        self._starts = sorted(starts.items(), key=lambda one: len(one[0]))

    def shares(self, text: str) -> tuple[float, float]:
        """Return the greatest shares (0–1) of the query's weight within one passage and within one clause."""
        places = self._places(fold(text))
        return (self._densest(places, _PASSAGE), self._densest(places, _PHRASE)) if places else (0.0, 0.0)

    def held(self, text: str) -> float:
        """Return the share (0–1) of the query's weight whose words stand anywhere in a text."""
        words = {word for _, word in self._places(fold(text))}
        return min(sum(self._weights[word] for word in words) / self._total, 1.0)

    def _places(self, text: str) -> list[tuple[int, int]]:
        """Return where words of the query stand and which; where several begin at one place, the longest."""
        found: dict[int, int] = {}
        for start, number in self._starts:
            place = text.find(start)
            while place >= 0:
                if _begins(text, place, start):
                    found[place] = number
                place = text.find(start, place + len(start))
        return sorted(found.items())

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
