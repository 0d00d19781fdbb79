"""Memorability: whether an observation is worth a memory, and why.

Four parts of 0–1 are weighed into one score. Nothing here reads a store or embeds: the caller brings how near the
nearest stored memories are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from recollect.domain.enums import Observation
from recollect.policy.text.normalization import fold
from recollect.policy.text.terms import STOP_WORDS
from recollect.policy.text.topics import topic_words

GATE: Final = 0.30
"""Score from which an observation is kept."""


class Part(StrEnum):
    """What a score is made of."""

    SUBSTANCE = "substance"
    SALIENCE = "salience"
    DISTINCTIVENESS = "distinctiveness"
    TYPE = "type weight"


WEIGHTS: Final[Mapping[Part, float]] = MappingProxyType(
    {Part.SUBSTANCE: 0.35, Part.SALIENCE: 0.30, Part.DISTINCTIVENESS: 0.15, Part.TYPE: 0.20}
)
"""Share of each part in the score; 1 in all."""

TYPE_WEIGHTS: Final[Mapping[Observation | None, float]] = MappingProxyType(
    {
        Observation.DECISION: 1.0,
        Observation.DISCOVERY: 0.9,
        Observation.BUGFIX: 0.9,
        Observation.SESSION_SUMMARY: 0.9,
        Observation.COMPRESSED_SUMMARY: 0.9,
        Observation.FEATURE: 0.7,
        Observation.CHECKPOINT: 0.6,
        Observation.REFACTOR: 0.5,
        Observation.CHANGE: 0.3,
        None: 0.1,
    }
)

_FULL: Final = 30  # topic words in prose that are full substance
_ENOUGH: Final = 2  # different signs that are full salience
_FAR, _SAME = 0.5, 0.95  # cosines up to which a memory is fully distinct, and from which it is not at all
_SIGNS: Final = tuple(
    re.compile(rf"\b(?:{words})\b")
    for words in (
        r"decid\w+|decision|chose|chosen|agreed|instead of|rather than|trade-?offs?",
        r"because|root cause|caused by|reason|due to|turns? out|turned out",
        r"fix(?:ed|es)?|resolved?|solved?|solution|workaround|regression",
        r"must|never|always|important|careful|beware|gotcha|warning|do not|don't",
        r"error|exception|fail(?:s|ed|ure)?|crash\w*|traceback|deadlock|race condition|leak\w*",
        r"discovered|found that|learn(?:ed|t)|noticed|realised|realized|prefers?|convention",
    )
)


@dataclass(frozen=True, slots=True)
class Memorability:
    """The parts of a score, each 0–1 before it is weighed."""

    parts: Mapping[Part, float]

    @property
    def score(self) -> float:
        """Return the weighed sum of the parts, 0–1."""
        return sum(WEIGHTS[part] * value for part, value in self.parts.items())

    def passes(self, gate: float = GATE) -> bool:
        """Return whether the score reaches the gate."""
        return self.score >= gate

    def explained(self) -> str:
        """Return the score and each of its parts with its weight, in one line."""
        parts = " + ".join(f"{part} {WEIGHTS[part]:.2f} × {value:.2f}" for part, value in self.parts.items())
        return f"{self.score:.2f} = {parts}"


def memorability(text: str, kind: Observation | None, cosines: Iterable[float] = ()) -> Memorability:
    """Score an observation, given its type and its cosines (−1 to 1) to the nearest stored memories (none: all new)."""
    values = (substance(text), salience(text), distinctiveness(cosines), TYPE_WEIGHTS[kind])
    return Memorability(MappingProxyType(dict(zip(Part, values, strict=True))))


def substance(text: str) -> float:
    """Return how much a text says (0–1): its different topic words in prose, up to 30. A list of names says nothing."""
    prose = "\n".join(line for line in text.splitlines() if _is_prose(line))
    return min(len(topic_words(prose)) / _FULL, 1.0)


def salience(text: str) -> float:
    """Return how much of a text tells of choices, causes, cures, rules, failures or findings (0–1), in English."""
    folded = fold(text)
    return min(sum(bool(sign.search(folded)) for sign in _SIGNS) / _ENOUGH, 1.0)


def distinctiveness(cosines: Iterable[float]) -> float:
    """Return how new a text is (0–1): 1 up to a cosine of 0.5 to the nearest memory, and 0 from 0.95 on."""
    nearest = max(cosines, default=-1.0)
    return min(max((_SAME - nearest) / (_SAME - _FAR), 0.0), 1.0)


def _is_prose(line: str) -> bool:
    """Return whether a line has a stop word of English, or a word with letters that English does not have."""
    foreign = any(letter.isalpha() and not letter.isascii() for letter in line)
    return foreign or not STOP_WORDS.isdisjoint(fold(line).split())
