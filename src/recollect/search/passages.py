"""Passages: how close together a query's words stand in a text, and which stretch of a long memory answers it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from recollect.text.chunk import chunk
from recollect.text.normalization import fold

LONG: Final = 1_000
"""Characters: a passage is quoted of longer texts."""

_TOKEN = re.compile(r"\w{1,8}|[^\w\s]")
_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_SIZE = 128  # pieces: about what one chunk of the embedding model holds
_MORE = 0.25  # of the query's weight: so much more in its words outweighs what the vectors say
_READ = 50_000  # characters of a book that are compared by words
_PASSAGE = 250  # characters: a few sentences
_PHRASE = 80  # characters: a clause


class Proximity:
    """Measures texts against the stems of a query's folded words, weighted by how rare each is."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = [weight for stem, weight in weights.items() if stem]
        self._total = sum(weights.values()) or 1.0
        starts: dict[str, int] = {}
        for number, stem in enumerate(filter(None, weights)):
            starts.setdefault(_word_start(stem), number)
        by_length = sorted(starts.items(), key=lambda one: len(one[0]))
        self._starts = [(start, len(start), not start.isascii(), number) for start, number in by_length]

    def shares(self, text: str) -> tuple[float, float]:
        """Return the greatest shares (0–1) of the query's weight within one passage and within one clause."""
        places = self._word_places(fold(text))
        return (self._densest_share(places, _PASSAGE), self._densest_share(places, _PHRASE)) if places else (0.0, 0.0)

    def held(self, text: str) -> float:
        """Return the share (0–1) of the query's weight whose words stand anywhere in a text."""
        words = {word for _, word in self._word_places(fold(text))}
        return min(sum(self._weights[word] for word in words) / self._total, 1.0)

    def _word_places(self, text: str) -> list[tuple[int, int]]:
        """Return the place of each word of the query in a text and its number; at one place only the longest.

        Scripts without spaces have words anywhere.
        """
        found: dict[int, int] = {}
        for start, length, anywhere, number in self._starts:
            place = text.find(start) if start in text else -1
            while place >= 0:
                if anywhere or place == 0 or text[place - 1] == " " or not _is_inside_word(text[place - 1]):
                    found[place] = number
                place = text.find(start, place + length)
        return sorted(found.items())

    def _densest_share(self, places: Sequence[tuple[int, int]], size: int) -> float:
        """Return the greatest share (0–1) of the query's weight whose words stand within `size` characters."""
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
            best = held if held > best else best
        return min(best / self._total, 1.0)


def _word_start(stem: str) -> str:
    """Return how every word of this stem begins: with the stem, less the i that Porter makes of y."""
    return stem[:-1] if stem.endswith("i") and len(stem) > 3 and stem.isascii() else stem


def _is_inside_word(sign: str) -> bool:
    """Say whether a word goes on after this sign."""
    return sign.isalnum() or sign == "_"


def best_passage(content: str, proximity: Proximity, nearest: tuple[int, int] | None) -> str:
    """Return the passage whose vector is `nearest`, unless another holds clearly more of the query's words.

    So an identifier that was asked for is shown, which vectors hardly know. Without vectors, words alone decide.
    """
    return _from_its_sentence(_best_by_words(content, proximity, content[slice(*nearest)] if nearest else ""), content)


def _best_by_words(content: str, proximity: Proximity, text: str) -> str:
    """Return the passage that holds most of the query's words, or `text` where none holds clearly more than it."""
    held = proximity.held(text) + _MORE if text else -1.0
    if held >= 1.0 or (text and proximity.held(content[:_READ]) < held):
        return text
    read = content[:_READ]
    spans = chunk(read, [piece.span() for piece in _TOKEN.finditer(read)], _SIZE, 0)
    shares = {span: proximity.held(content[slice(*span)]) for span in spans}
    best = max(spans, key=lambda span: shares[span])
    return content[slice(*best)] if shares[best] > held else text


def _from_its_sentence(text: str, content: str) -> str:
    """Return the passage without the end of a sentence with which it may begin."""
    end = None if content.startswith(text) else _BREAK.search(text, 0, len(text) // 4)
    return text[end.end() :] if end else text
