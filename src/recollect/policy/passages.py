"""Passages: which stretch of a long memory answers a query, by its vectors and by its words."""

from __future__ import annotations

import re
from typing import Final

from recollect.policy.proximity import Proximity
from recollect.text.chunk import chunk

LONG: Final = 1_000
"""Characters: what is longer is quoted."""

_PIECE = re.compile(r"\w{1,8}|[^\w\s]")
_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_SIZE = 128  # pieces: about what one chunk of the embedding model holds
_MORE = 0.25  # of the query's weight: so much more in its words outweighs what the vectors say
_READ = 50_000  # characters of a book that are compared by words


def best_passage(content: str, proximity: Proximity, nearest: tuple[int, int] | None) -> str:
    """Return the stretch whose vector is `nearest`, unless another holds clearly more of the query's words.

    An identifier that was asked for is seen so, which vectors hardly know. Without vectors, words alone decide.
    """
    return _from_its_sentence(_best(content, proximity, content[slice(*nearest)] if nearest else ""), content)


def _best(content: str, proximity: Proximity, text: str) -> str:
    held = proximity.held(text) + _MORE if text else -1.0
    if held >= 1.0 or (text and proximity.held(content[:_READ]) < held):
        return text
    read = content[:_READ]
    spans = chunk(read, [piece.span() for piece in _PIECE.finditer(read)], _SIZE, 0)
    shares = {span: proximity.held(content[slice(*span)]) for span in spans}
    best = max(spans, key=lambda span: shares[span])
    return content[slice(*best)] if shares[best] > held else text


def _from_its_sentence(text: str, content: str) -> str:
    """Leave out the end of a sentence with which a stretch inside a memory may begin."""
    end = None if content.startswith(text) else _BREAK.search(text, 0, len(text) // 4)
    return text[end.end() :] if end else text
