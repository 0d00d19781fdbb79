"""Topics: the words that say what a text is about, and how far two texts are about the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from recollect.policy.text.normalization import fold
from recollect.policy.text.terms import STOP_WORDS, stem, vocabulary

_WORD: Final = re.compile(r"\w+")


def topic_words(text: str) -> frozenset[str]:
    """Return the stems of the words that carry meaning: no stop words and no bare numbers."""
    return frozenset(stem(word) for word in vocabulary([text]) if word not in STOP_WORDS and not word.isdigit())


def jaccard(one: AbstractSet[str], other: AbstractSet[str]) -> float:
    """Return the share (0–1) of the words of either set that are in both; 0 where there are none."""
    return len(one & other) / len(one | other) if one and other else 0.0


def spellings(texts: Iterable[str]) -> dict[str, str]:
    """Return for each stem the first word of the texts that has it, folded."""
    spelt: dict[str, str] = {}
    for text in texts:
        for word in _WORD.findall(fold(text)):
            spelt.setdefault(stem(word), word)
    return spelt
