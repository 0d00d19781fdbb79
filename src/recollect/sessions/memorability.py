"""Memorability: whether a text is worth a memory, and why.

The score is a logistic one: each structural feature adds its weight to the log-odds, what the text means adds the
product of its embedding with fitted weights, and the sum is a number of 0–1. What a person said and what a tool told
have weights of their own. Without the model that the weights belong to the structure alone decides, and more strictly.
Features are of three parts (how much is said, how much it matters, what it is); the fourth is how distinct the text is
from what is stored. `memorability.toml` has the weights, which `scripts/fit-capture` fits so that the gate is at 0.30.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from recollect.errors import RecollectError
from recollect.sessions.observations.features import SUBSTANCE, TYPE_FEATURES, Feature, forms

if TYPE_CHECKING:
    from recollect.engines.embedder import Embedder, Vector
    from recollect.sessions.observations.observe import Part

GATE: Final = 0.30
"""Score from which something is kept."""

KNOWN: Final = -4.0
"""What is added to the log-odds of a text that is stored already."""

_FAR, _SAME = 0.90, 0.98  # cosines up to which a memory is fully distinct, and from which it is not at all
_LEAST: Final = 1e-6
_NAMED: Final = 5  # features that an explanation names
_MEANING: Final = "its meaning"
_ALONE: Final = "without the embedding model"


class Dimension(StrEnum):
    """What a score is made of."""

    SUBSTANCE = "substance"
    SALIENCE = "salience"
    DISTINCTIVENESS = "distinctiveness"
    TYPE = "type weight"


class Meaning(NamedTuple):
    """What a text means, and what a tool was used for where it is known: float32[d] each.

    `forms` are places of the words and endings of a person's sentence, each with its share.
    """

    text: Vector
    about: Vector | None = None
    forms: tuple[tuple[int, float], ...] = ()

    def weighed(self, weights: Sequence[float]) -> float:
        """Return the product with d weights, and with those behind them of what a tool was used for or of the forms."""
        size = len(self.text)
        about = 0.0 if self.about is None else self.about @ weights[size:]
        return float(self.text @ weights[:size] + about + sum(weights[size + at] * share for at, share in self.forms))


@dataclass(frozen=True)
class Weights:
    """What a text has without any feature, what each adds and what its meaning does; `alone` is added without that.

    `crossed` is what features add besides, by what an occurrence is.
    """

    bias: float
    features: Mapping[Feature, float]
    crossed: Mapping[Feature, Mapping[Feature, float]]
    meaning: tuple[float, ...]
    alone: float


def _weights(given: Mapping[str, Any]) -> Weights:
    return Weights(
        float(given["bias"]),
        MappingProxyType(_table(given["weights"])),
        MappingProxyType({Feature(kind): _table(crossed) for kind, crossed in given.get("crossed", {}).items()}),
        tuple(given["meaning"]),
        float(given["alone"]),
    )


def _table(given: Mapping[str, float]) -> dict[Feature, float]:
    return {one: float(given.get(one, 0.0)) for one in Feature}


_FITTED: Final = tomllib.loads(Path(__file__).with_name("memorability.toml").read_text(encoding="utf-8"))
MODEL: Final = str(_FITTED["model"])
"""The embedding model that the weights of meaning belong to."""
PERSON: Final = _weights(_FITTED["person"])
TOOL: Final = _weights(_FITTED["tool"])


@dataclass(frozen=True, slots=True)
class Memorability:
    """What each feature adds to the log-odds of a text, beside its bias, and how distinct it is (0–1)."""

    added: Mapping[str, float]
    bias: float
    distinct: float = 1.0

    @property
    def parts(self) -> Mapping[Dimension, float]:
        """Return what each part adds to the log-odds."""
        sums = dict.fromkeys(Dimension, 0.0)
        for feature, value in self.added.items():
            sums[part_of(feature)] += value
        sums[Dimension.DISTINCTIVENESS] = KNOWN * (1 - self.distinct)
        return MappingProxyType(sums)

    @property
    def score(self) -> float:
        """Return how memorable the text is, 0–1."""
        return 1 / (1 + exp(-(self.bias + sum(self.parts.values()))))

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


def memorability(
    features: Mapping[Feature, float], meaning: Meaning | None = None, cosines: Iterable[float] = ()
) -> Memorability:
    """Score a text by its features (0–1), its meaning where that is known, and its cosines to the nearest memories."""
    weights = PERSON if Feature.PROMPT in features else TOOL
    crossed = [weights.crossed[one] for one in features if one in weights.crossed]
    added: dict[str, float] = {
        one: (weights.features[one] + sum(each[one] for each in crossed)) * value for one, value in features.items()
    }
    added |= {_ALONE: weights.alone} if meaning is None else {_MEANING: meaning.weighed(weights.meaning)}
    return Memorability(MappingProxyType(added), weights.bias, distinctiveness(cosines))


def with_meaning(score: float, meaning: Meaning | None) -> Memorability:
    """Return what a score (0–1) of what a tool told becomes that was made without the embedding model."""
    before = log(max(score, _LEAST) / max(1 - score, _LEAST)) - TOOL.alone
    added = {_ALONE: TOOL.alone} if meaning is None else {_MEANING: meaning.weighed(TOOL.meaning)}
    return Memorability(MappingProxyType(added), before)


def distinctiveness(cosines: Iterable[float]) -> float:
    """Return how new a text is (0–1): 1 up to a cosine of 0.90 to the nearest memory, and 0 from 0.98 on."""
    nearest = max(cosines, default=-1.0)
    return min(max((_SAME - nearest) / (_SAME - _FAR), 0.0), 1.0)


def part_of(feature: str) -> Dimension:
    """Return the part of the score that a feature belongs to."""
    if feature in SUBSTANCE:
        return Dimension.SUBSTANCE
    return Dimension.TYPE if feature in TYPE_FEATURES else Dimension.SALIENCE


def meanings(embedder: Embedder, parts: Sequence[Part]) -> list[Meaning] | None:
    """Return what each part means, for `memorability`; None where the weights' model is not there, or not yet."""
    if embedder.card.id != MODEL or not embedder.ready:
        return None
    texts = [text for part in parts for text in (part.text, part.about) if text]
    try:
        read = dict(zip(texts, embedder.read(texts), strict=True))
    except RecollectError:
        return None
    return [
        Meaning(read[one.text].vector, read[one.about].vector)
        if one.about
        else Meaning(read[one.text].vector, forms=forms(one.text))
        for one in parts
    ]


def cosine(one: Meaning, other: Meaning) -> float:
    """Return how near two texts are by what they mean (-1–1)."""
    return float(one.text @ other.text)


def awaited(embedder: Embedder) -> bool:
    """Say whether the weights' model is this one and is only not loaded yet."""
    return embedder.card.id == MODEL and not embedder.ready
