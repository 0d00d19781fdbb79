"""Memorability: whether an occurrence is worth a memory, and why.

The score is a logistic one: each feature adds its weight to the log-odds, and the sum is a number of 0–1. Features are
of three parts (how much is said, how much it matters, what it is); the fourth is how distinct it is from what is
stored. `memorability.toml` has the weights, which `scripts/fit-capture` fits so that the gate is at 0.30. Nothing here
reads a store or embeds: the caller brings how near the nearest stored memories are.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import exp
from pathlib import Path
from types import MappingProxyType
from typing import Final

from recollect.sessions.observations.features import SUBSTANCE, TYPE_FEATURES, Feature

GATE: Final = 0.30
"""Score from which an occurrence is kept."""


class Part(StrEnum):
    """What a score is made of."""

    SUBSTANCE = "substance"
    SALIENCE = "salience"
    DISTINCTIVENESS = "distinctiveness"
    TYPE = "type weight"


_FITTED: Final = tomllib.loads(Path(__file__).with_name("memorability.toml").read_text(encoding="utf-8"))
BIAS: Final = float(_FITTED["bias"])
"""Log-odds of an occurrence without any feature."""

WEIGHTS: Final[Mapping[Feature, float]] = MappingProxyType({one: float(_FITTED["weights"][one]) for one in Feature})
"""What each feature adds to the log-odds where it is 1."""

KNOWN: Final = -4.0
"""What is added to the log-odds of an occurrence that is stored already."""

_FAR, _SAME = 0.90, 0.98  # cosines up to which a memory is fully distinct, and from which it is not at all
_NAMED: Final = 5  # features that an explanation names


@dataclass(frozen=True, slots=True)
class Memorability:
    """What each feature adds to the log-odds of an occurrence, and how distinct it is (0–1)."""

    added: Mapping[Feature, float]
    distinct: float

    @property
    def parts(self) -> Mapping[Part, float]:
        """Return what each part adds to the log-odds."""
        sums = dict.fromkeys(Part, 0.0)
        for feature, value in self.added.items():
            sums[part_of(feature)] += value
        sums[Part.DISTINCTIVENESS] = KNOWN * (1 - self.distinct)
        return MappingProxyType(sums)

    @property
    def score(self) -> float:
        """Return how memorable the occurrence is, 0–1."""
        return 1 / (1 + exp(-(BIAS + sum(self.parts.values()))))

    def passes(self, gate: float = GATE) -> bool:
        """Return whether the score reaches the gate."""
        return self.score >= gate

    def explained(self) -> str:
        """Return the score, the features that weigh most and the sum of each part, in one line."""
        heaviest = sorted(self.added.items(), key=lambda one: -abs(one[1]))[:_NAMED]
        named = [f"{feature} {value:+.1f}" for feature, value in heaviest if abs(value) >= 0.05]
        if self.distinct < 1:
            named.append(f"near a stored memory {KNOWN * (1 - self.distinct):+.1f}")
        parts = ", ".join(f"{part} {value:+.1f}" for part, value in self.parts.items())
        return f"{self.score:.2f}: {', '.join(named) or 'nothing speaks for it'} ({parts})"


def memorability(features: Mapping[Feature, float], cosines: Iterable[float] = ()) -> Memorability:
    """Score an occurrence, given its features (0–1) and its cosines (−1 to 1) to the nearest stored memories."""
    added = {feature: WEIGHTS[feature] * value for feature, value in features.items()}
    return Memorability(MappingProxyType(added), distinctiveness(cosines))


def distinctiveness(cosines: Iterable[float]) -> float:
    """Return how new a text is (0–1): 1 up to a cosine of 0.90 to the nearest memory, and 0 from 0.98 on."""
    nearest = max(cosines, default=-1.0)
    return min(max((_SAME - nearest) / (_SAME - _FAR), 0.0), 1.0)


def part_of(feature: Feature) -> Part:
    """Return the part of the score that a feature belongs to."""
    if feature in SUBSTANCE:
        return Part.SUBSTANCE
    return Part.TYPE if feature in TYPE_FEATURES else Part.SALIENCE
