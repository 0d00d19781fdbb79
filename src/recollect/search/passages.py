"""Passages: how close together a query's words stand in a text, and which stretch of a long memory answers it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from recollect.text.chunk import chunk
from recollect.text.normalization import fold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.engines.signal_columns import Numbers
else:
    from recollect.engines import arrays as np

LONG: Final = 1_000
"""Characters: a passage is quoted of longer texts."""

_TOKEN = re.compile(r"\w{1,8}|[^\w\s]")
_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_SIZE = 128  # pieces: about what one chunk of the embedding model holds
_MORE = 0.25  # of the query's weight: so much more in its words outweighs what the vectors say
_READ = 50_000  # characters of a book that are compared by words
_PASSAGE = 250  # characters: a few sentences
_PHRASE = 80  # characters: a clause
_GAPS = " \n"


class Proximity:
    """Measures texts against the stems of a query's folded words, weighted by how rare each is."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = np.array([weight for stem, weight in weights.items() if stem])
        self._total = sum(weights.values()) or 1.0
        starts: dict[str, int] = {}
        for number, stem in enumerate(filter(None, weights)):
            starts.setdefault(_word_start(stem), number)
        by_length = sorted(starts.items(), key=lambda one: len(one[0]))
        self._starts = [(start, len(start), not start.isascii(), number) for start, number in by_length]

    def shares(self, texts: Sequence[str]) -> Numbers:
        """Return, for each text, the greatest shares (0–1) of the query's weight within one passage and one clause.

        The result is float64[n, 2].
        """
        folded = list(map(fold, texts))
        places, words = self._word_places("\n".join(folded))
        ends = np.cumsum(list(map(len, folded))) + np.arange(len(folded))
        texts_of_places = np.searchsorted(ends, places)
        apart = places + texts_of_places * (_PASSAGE + 1)  # so no stretch reaches into another text
        last = np.full((len(self._weights), len(places)), np.iinfo(np.intp).min // 2)
        last[words, np.arange(len(places))] = apart
        np.maximum.accumulate(last, axis=1, out=last)
        found = np.zeros((len(folded), 2))
        for column, size in enumerate((_PASSAGE, _PHRASE)):
            held = (self._weights[:, None] * (last >= apart - size)).sum(axis=0)
            np.maximum.at(found[:, column], texts_of_places, held)
        shares: Numbers = np.minimum(found / self._total, 1.0)
        return shares

    def held(self, text: str) -> float:
        """Return the share (0–1) of the query's weight whose words stand anywhere in a text."""
        _, words = self._word_places(fold(text))
        return min(float(self._weights[np.unique(words)].sum()) / self._total, 1.0)

    def _word_places(self, text: str) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the places of the query's words in a folded text, and which word each is: intp[m] and intp[m].

        At one place only the longest counts. Scripts without spaces have words anywhere.
        """
        found: dict[int, int] = {}
        for start, length, anywhere, number in self._starts:
            place = text.find(start)
            while place >= 0:
                if anywhere or place == 0 or text[place - 1] in _GAPS or not _is_inside_word(text[place - 1]):
                    found[place] = number
                place = text.find(start, place + length)
        places = sorted(found)
        return np.array(places, dtype=np.intp), np.array([found[place] for place in places], dtype=np.intp)


def _word_start(stem: str) -> str:
    """Return how every word of this stem begins: with the stem, less the i that Porter makes of y."""
    return stem[:-1] if stem.endswith("i") and len(stem) > 3 and stem.isascii() else stem


def _is_inside_word(sign: str) -> bool:
    """Return whether a word goes on after this sign."""
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
