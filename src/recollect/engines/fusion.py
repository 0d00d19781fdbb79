"""The learned fusion: a small network over what the searchers found, with coefficients from `fusion.json`.

`scripts/fit` writes that file. The network is a linear model plus a few tanh units, so that it can weigh the
searchers by the query and by how far they agree; its output is the log-odds that a memory answers the query,
calibrated on questions it was not fitted on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.domain.search import QuerySignals, Signals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = NDArray[np.float32]  # float32[n], one value for each candidate

_CROWD = 50
_UNRELATED = 0.1  # the cosine of texts that have nothing to do with each other
_UNRELATED_LATE = 0.1
_NEAR = 0.45
_HALF = 20.0  # the bm25 that counts half
_NAMING = 3


class LearnedFusion:
    """The `Fusion` port: one network where meaning was searched, another where only words were."""

    def __init__(self) -> None:
        given = json.loads((files("recollect.engines") / "fusion.json").read_text(encoding="utf-8"))
        self._networks = {name: Network.read(given[name]) for name in ("fused", "words")}

    def matches(self, found: Mapping[int, Signals], query: QuerySignals) -> dict[int, float]:
        """Return for each candidate 0–1: about how often such a candidate answers such a query.

        A query of at most three words that a memory holds is never called irrelevant.
        """
        if not found:
            return {}
        network = self._networks["fused" if query.semantic else "words"]
        scores = network.scores(features(list(found.values()), query, network.names))
        odds = 1.0 / (1.0 + np.exp(-np.clip(scores, -30.0, 30.0)))
        return {
            number: max(float(match), _named(one, query, float(match)))
            for (number, one), match in zip(found.items(), odds, strict=True)
        }


@dataclass(frozen=True, slots=True)
class Network:
    """A linear model plus tanh units over standardised features: names [f], weights float32[f, h] and so on."""

    names: tuple[str, ...]
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    linear: NDArray[np.float32]
    bias: float
    hidden: NDArray[np.float32]
    hidden_bias: NDArray[np.float32]
    out: NDArray[np.float32]

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Network:
        """Read a network from its JSON object."""
        arrays = ("mean", "scale", "linear", "hidden", "hidden_bias", "out")
        return cls(
            names=tuple(given["names"]),
            bias=float(given["bias"]),
            **{name: np.asarray(given[name], dtype=np.float32) for name in arrays},
        )

    def scores(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the log-odds of each row of features: float32[n]."""
        standard = (rows - self.mean) / self.scale
        with np.errstate(invalid="ignore"):  # BLAS also computes with what lies behind a row, and would warn of that
            units = np.tanh(standard @ self.hidden + self.hidden_bias)
            total = standard @ self.linear + units @ self.out + np.float32(self.bias)
        return np.asarray(total, dtype=np.float32)


def features(found: Sequence[Signals], query: QuerySignals, names: Sequence[str]) -> NDArray[np.float32]:
    """Return float32[n, f]: the features `names` of each candidate, many of them relative to the other candidates."""
    columns = _lexical(found, query) | _surface(found) | (_semantic(found) if query.semantic else {})
    return np.stack([columns[name] for name in names], axis=1)


def _lexical(found: Sequence[Signals], query: QuerySignals) -> dict[str, Column]:
    bm25 = _column(found, lambda one: one.bm25)
    before, after = _column(found, lambda one: one.before.bm25), _column(found, lambda one: one.after.bm25)
    held = _column(found, lambda one: max(one.coverage, one.fuzzy))
    best = float(bm25.max())
    return {
        "bm25": _saturated(bm25),
        "bm25_of_best": bm25 / best if best > 0 else bm25,
        "bm25_before": _saturated(before),
        "bm25_after": _saturated(after),
        "bm25_near": _saturated(np.maximum(before, after)),
        "bm25_around": _saturated(before + after),
        "held": held,
        "held_around": np.maximum(held, _column(found, lambda one: one.around)),
        "passage": _column(found, lambda one: one.passage),
        "phrase": _column(found, lambda one: one.phrase),
        "best_bm25": _every(found, best / (best + _HALF)),
        "best_held": _every(found, float(held.max())),
        "words": _every(found, min(query.words, 12) / 12),
        "unknown": _every(found, query.unknown),
        "rarest": _every(found, query.rarest / 7),
    }


def _surface(found: Sequence[Signals]) -> dict[str, Column]:
    named = _column(found, lambda one: one.speaker_named)
    return {
        "speaker_named": named,
        "speaker_not_named": (1 - named) * float(named.any()),
        "date_match": _column(found, lambda one: one.date_match),
        "time_match": _column(found, lambda one: one.time_match),
        "number_match": _column(found, lambda one: one.number_match),
        "questions": _column(found, lambda one: one.questions),
        "questions_before": _column(found, lambda one: one.questions_before),
        "in_session": _column(found, lambda one: one.in_session),
        "length": (np.log1p(_column(found, lambda one: one.length)) - 5) / 3,
    }


def _semantic(found: Sequence[Signals]) -> dict[str, Column]:
    cosine = np.maximum(_column(found, lambda one: one.cosine), 0)
    before = np.maximum(_column(found, lambda one: one.before.cosine), 0)
    after = np.maximum(_column(found, lambda one: one.after.cosine), 0)
    late = _column(found, lambda one: _estimated(one) if one.late is None else one.late)
    rare = _column(found, lambda one: _estimated(one) if one.rare is None else one.rare)
    usual = min(_usual(cosine, _UNRELATED), _NEAR)
    return {
        "cosine": cosine,
        "cosine_outstanding": cosine - usual,
        "cosine_to_best": cosine - cosine.max(),
        "cosine_before": before,
        "cosine_after": after,
        "cosine_near": np.maximum(before, after),
        "late": late,
        "late_rare": rare,
        "late_outstanding": late - _usual(late, _UNRELATED_LATE),
        "late_to_best": late - late.max(),
        "late_rare_to_best": rare - rare.max(),
        "late_near": _column(found, lambda one: max(one.before.late, one.after.late)),
        "best_cosine": _every(found, float(cosine.max())),
        "best_late": _every(found, float(late.max())),
        "usual_cosine": _every(found, usual),
    }


def _estimated(one: Signals) -> float:
    """Estimate the late interaction of a memory whose tokens are not stored yet: about linear in its cosine."""
    return 0.1 + 0.61 * max(one.cosine, 0.0)


def _usual(values: Column, unrelated: float) -> float:
    """Return the mean of the candidates, the best one aside, as far as it can be noise.

    Few candidates, of a small store or a narrow filter, may all be relevant: whoever is missing from a crowd
    counts as unrelated text.
    """
    ordered = np.sort(values)[::-1][1:_CROWD]
    return float(ordered.sum() + (_CROWD - 1 - len(ordered)) * unrelated) / (_CROWD - 1)


def _named(one: Signals, query: QuerySignals, match: float) -> float:
    held = max(one.coverage, one.fuzzy)
    return held**4 * (0.5 + 0.5 * match) if query.words <= _NAMING else 0.0


def _column(found: Sequence[Signals], value: Callable[[Signals], float]) -> Column:
    return np.fromiter((value(one) for one in found), dtype=np.float32, count=len(found))


def _every(found: Sequence[Signals], value: float) -> Column:
    return np.full(len(found), value, dtype=np.float32)


def _saturated(bm25: Column) -> Column:
    """Bring bm25 (≥ 0, unbounded) to 0–1."""
    found: Column = bm25 / (bm25 + np.float32(_HALF))
    return found
