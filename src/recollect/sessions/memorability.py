"""Memorability: how much an observation deserves to be noted, 0–1, by four dimensions that a person can work out.

    score = distinctiveness × (0.35 × substance + 0.40 × salience + 0.25 × type weight)

Substance is how much a text says, salience how much of it stands out, the type weight what kind of observation it is,
and distinctiveness how new it is beside what is stored. What reaches the gate of 0.30 becomes a draft.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from recollect.domain.enums import ObservationType as Kind
from recollect.sessions.observations.lines import SIGNS
from recollect.text.terms import topic_words

GATE: Final = 0.30
"""Score from which an observation is kept."""

FULL: Final = 12
"""Topic words of a text that says as much as a note needs."""

STANDS_OUT: Final[Mapping[str, float]] = {
    "a rule": 0.9,
    "passes now": 0.8,
    "a failure": 0.5,
    "a reason": 0.4,
    "a figure": 0.3,
    "a name": 0.1,
}
"""What each sign adds to the salience of a text, which is at most 1."""

TYPE_WEIGHTS: Final[Mapping[Kind | None, float]] = {
    Kind.DECISION: 1.0,
    Kind.BUGFIX: 1.0,
    Kind.DISCOVERY: 0.5,
    Kind.FEATURE: 0.5,
    Kind.REFACTOR: 0.3,
    Kind.CHANGE: 0.3,
    None: 0.2,
}
"""How much the type of an observation counts; a sentence of a person that states no rule has none."""

_SUBSTANCE, _SALIENCE, _TYPE = 0.35, 0.40, 0.25
_NEW, _SAME = 0.90, 0.98  # cosines up to which a text is wholly new, and from which it is not new at all
_REASON: Final = re.compile(  # in English, German, French and Spanish
    r"\b(?:because|since|so that|due to|caused? by|the cause|root cause|reason|therefore|otherwise|turns out|"
    r"in order to|weil|damit|denn|wegen|sonst|ursache|grund|parce que|car|afin de|sinon|à cause de|porque|para que|"
    r"debido a|causa)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Memorability:
    """The four dimensions of a text, each 0–1."""

    substance: float
    salience: float
    type_weight: float
    distinctiveness: float = 1.0

    @property
    def score(self) -> float:
        """Return the memorability of the text, 0–1."""
        worth = _SUBSTANCE * self.substance + _SALIENCE * self.salience + _TYPE * self.type_weight
        return round(self.distinctiveness * worth, 3)

    def passes(self, gate: float = GATE) -> bool:
        """Say whether the score reaches the gate."""
        return self.score >= gate

    def on_one_line(self) -> str:
        """Return the score and its dimensions as a line of text."""
        parts = (
            f"substance {self.substance:.2f}",
            f"salience {self.salience:.2f}",
            f"type {self.type_weight:.2f}",
            f"distinctiveness {self.distinctiveness:.2f}",
        )
        return f"{self.score:.2f}: {', '.join(parts)}"


def memorability(
    text: str, kind: Kind | None, cosines: Iterable[float] = (), *, passes_now: bool = False
) -> Memorability:
    """Return the memorability of a text of a type, by its cosines to the nearest stored memories."""
    substance = min(len(topic_words(text)) / FULL, 1.0)
    salience = min(sum(STANDS_OUT[sign] for sign in signs_of(text, kind, passes_now=passes_now)), 1.0)
    return Memorability(round(substance, 3), round(salience, 3), TYPE_WEIGHTS[kind], distinctiveness(cosines))


def signs_of(text: str, kind: Kind | None, *, passes_now: bool = False) -> Collection[str]:
    """Return the signs that make a text stand out."""
    found = {
        "a rule": kind is Kind.DECISION,
        "passes now": passes_now,
        "a failure": bool(SIGNS["failure"].search(text)),
        "a reason": bool(_REASON.search(text)),
        "a figure": bool(SIGNS["measure"].search(text)),
        "a name": bool(SIGNS["name"].search(text)),
    }
    return [sign for sign, stands in found.items() if stands]


def distinctiveness(cosines: Iterable[float]) -> float:
    """Return the novelty of a text (0–1): 1 up to a cosine of 0.90 to the nearest memory, and 0 from 0.98 on."""
    nearest = max(cosines, default=-1.0)
    return round(min(max((_SAME - nearest) / (_SAME - _NEW), 0.0), 1.0), 3)
