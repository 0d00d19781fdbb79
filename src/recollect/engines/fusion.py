"""The learned fusion: a small network over what the searchers found, with coefficients from `fusion.json`.

`scripts/train fusion` writes that file, and another beside the card of a model that coefficients were fitted for. A
network has three parts. The first scores a memory by its own words and meaning, the second adds what its conversation
says, and is exactly 0 where there is none, and the third shifts the log-odds of all memories of one query alike, by how
good its best evidence is: it tells whether anything answers the query at all.
Inputs are standardised and clipped. More words or more meaning never lower a score. The sum is the log-odds that a
memory answers the query, calibrated on questions that the network was not fitted on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from recollect.domain.search import QuerySignals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.engines.embedder import Vector
    from recollect.engines.signal_columns import Numbers, SignalColumns

    Column = NDArray[np.float32]  # float32[n], one value for each candidate

FUSION: Final = "fusion.json"
_CROWD = 50
_UNRELATED = 0.1  # the cosine of texts that have nothing to do with each other
_UNRELATED_LATE = 0.1
_NEAR = 0.45
_MOST = 2.2  # times its idf: the bm25 that one word can reach
_HALF = 20.0  # the bm25 that counts half
_LIGHTEST = 0.01  # the weight of a query that no idf tells of
_NAMING = 3
_WORDED = 0.1  # of what words alone give
LIMIT = 3.0  # standard deviations
MOST_SURE = 4.0  # log-odds


class LearnedFusion:
    """One network where meaning was searched, another where only words were."""

    def __init__(self, own: Path | None = None) -> None:
        """Take the coefficients that were fitted for a model from the file `own`; None takes the default model's."""
        weights = json.loads((files("recollect.engines") / FUSION).read_text(encoding="utf-8"))
        if own is not None:
            weights |= json.loads(own.read_text(encoding="utf-8"))
        self._networks = {name: Network.read(weights[name]) for name in ("fused", "words")}
        self._asking = Asking.read(weights["asking"])

    def asks(self, vector: Vector, model: str) -> float:
        """Return the log-odds that a text asks for something remembered; 0 for a vector of another model."""
        return self._asking(vector) if model == self._asking.model else 0.0

    def matches(self, found: SignalColumns, query: QuerySignals) -> Numbers:
        """Return for each candidate 0–1 (float64[n]): about how often such a candidate answers such a query.

        A query of at most three words that a memory holds is never called irrelevant, nor is a memory that holds
        a name of the query, with its digits and punctuation, which few others hold.
        """
        if not len(found):
            return np.zeros(0)
        known = columns(found, query)
        by_words = self._probabilities("words", known, replace(query, semantic=False)).astype(np.float64)
        odds = self._probabilities("fused", known, query).astype(np.float64) if query.semantic else by_words
        least = np.maximum(_holds_rare_name(found, query, odds), _matched_by_words(found, by_words))
        return np.maximum(odds, least)

    def _probabilities(self, network: str, known: Mapping[str, Column], query: QuerySignals) -> Column:
        """Return the probability that each candidate answers the query: float32[n]."""
        scores = self._networks[network].scores_of(known, query)
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(scores, -30.0, 30.0))), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Asking:
    """A linear model over the vectors of one embedding model: whether a text asks for something remembered.

    "Rename this variable" and "what is the capital of Peru" do not, however near a memory happens to be.
    """

    model: str
    weights: NDArray[np.float32]
    bias: float

    @classmethod
    def read(cls, weights: Mapping[str, Any]) -> Asking:
        """Read it from its JSON object."""
        return cls(weights["model"], np.asarray(weights["weights"], dtype=np.float32), float(weights["bias"]))

    def __call__(self, vector: Vector) -> float:
        """Return the log-odds for the unit vector of a text."""
        # Not `@`: after it BLAS keeps a thread turning that waits for more to do.
        return float(np.clip(np.vecdot(self.weights, vector) + self.bias, -MOST_SURE, MOST_SURE))


@dataclass(frozen=True, slots=True)
class Part:
    """A linear model plus tanh units over standardised, clipped features: names [f], weights float32[f, h] and so on.

    `names` are those of its features. A part of no units is a linear model.
    """

    names: tuple[str, ...]
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    linear: NDArray[np.float32]
    bias: float
    hidden: NDArray[np.float32]
    hidden_bias: NDArray[np.float32]
    out: NDArray[np.float32]

    @classmethod
    def read(cls, weights: Mapping[str, Any]) -> Part:
        """Read a part from its JSON object."""
        arrays = {
            name: np.asarray(weights[name], dtype=np.float32)
            for name in ("mean", "scale", "linear", "hidden", "hidden_bias", "out")
        }
        arrays["hidden"] = arrays["hidden"].reshape(len(weights["names"]), -1)
        return cls(names=tuple(weights["names"]), bias=float(weights["bias"]), **arrays)

    def __call__(self, columns: Mapping[str, Column]) -> Column:
        """Return the sum of the part for each candidate: float32[n]."""
        standard = standardised(columns, self.names, self.mean, self.scale)
        with np.errstate(invalid="ignore"):  # BLAS also computes with what lies behind a row, and would warn of that
            units = np.tanh(standard @ self.hidden + self.hidden_bias)
            total = standard @ self.linear + units @ self.out + np.float32(self.bias)
        return np.asarray(total, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Network:
    """The three parts: of a memory, of its conversation, and of all that was found for the query."""

    own: Part
    talk: Part
    query: Part
    stretch: float

    @classmethod
    def read(cls, weights: Mapping[str, Any]) -> Network:
        """Read a network from its JSON object."""
        parts = {name: Part.read(weights[name]) for name in ("own", "talk", "query")}
        return cls(**parts, stretch=float(weights["stretch"]))

    def scores(self, found: SignalColumns, query: QuerySignals) -> Column:
        """Return the log-odds of each candidate: float32[n], calibrated."""
        return self.scores_of(columns(found, query), query)

    def scores_of(self, known: Mapping[str, Column], query: QuerySignals) -> Column:
        """Return the log-odds of candidates whose features are known: float32[n], calibrated."""
        order = self.order(known)
        shift = self.query(best_features(known, order, query))
        scores: Column = np.float32(self.stretch) * order + shift[0]
        return scores

    def order(self, known: Mapping[str, Column]) -> Column:
        """Return the scores by which a query's candidates are ordered, before they are calibrated: float32[n]."""
        scores: Column = self.own(known) + known["in_talk"] * self.talk(known)
        return scores


def standardised(
    columns: Mapping[str, Column], names: Sequence[str], mean: Column, scale: Column
) -> NDArray[np.float32]:
    """Return float32[n, f]: the columns `names` in standard deviations from their mean, at most three."""
    rows = np.stack([columns[name] for name in names], axis=1)
    standard: NDArray[np.float32] = np.clip((rows - mean) / scale, -LIMIT, LIMIT)
    return standard


def columns(found: SignalColumns, query: QuerySignals) -> dict[str, Column]:
    """Return every feature of each candidate by name, many of them relative to the other candidates."""
    known = _lexical_features(found, query) | {"length": _as_column((np.log1p(found.length) - 5) / 3)}
    known |= _conversation_features(found, query, known)
    return known | (_semantic_features(found) if query.semantic else {})


def best_features(known: Mapping[str, Column], order: Column, query: QuerySignals) -> dict[str, Column]:
    """Return the features of a query, each a single value: the best of all its candidates."""
    best = float(order.max())
    every = {
        "best": best,
        "sum": best + float(np.log(np.exp(np.clip(order - best, -30.0, 0.0)).sum())),
        "bm25": float(known["bm25"].max()),
        "held": float(known["held"].max()),
        "passage": float(known["passage"].max()),
        "rarest": float(known["rarest"].max()),
        "unknown": -query.unknown,
        "words": min(query.words, 12) / 12,
        "top_held": float(known["held"][order.argmax()]),
    }
    if query.semantic:
        top = int(order.argmax())
        every |= {
            "cosine": float(known["cosine"].max()),
            "late": float(known["late"].max()),
            "late_rare": float(known["late_rare"].max()),
            "outstanding": float(known["cosine_outstanding"].max()),
            "top_cosine": float(known["cosine"][top]),
            "top_late_rare": float(known["late_rare"][top]),
            "asks": query.asks,
        }
    return {name: np.full(1, value, dtype=np.float32) for name, value in every.items()}


def _lexical_features(found: SignalColumns, query: QuerySignals) -> dict[str, Column]:
    """Return the features of how the words of the query match each candidate, by name."""
    bm25 = _bm25_share(_as_column(found.bm25), query)
    best = float(bm25.max())
    held = _as_column(found.held)
    return {
        "bm25": bm25,
        "bm25_of_best": bm25 / np.float32(best) if best > 0 else bm25,
        "held": held,
        "held_to_best": held - held.max(),
        "passage": _as_column(found.passage),
        "phrase": _as_column(found.phrase),
        "rarest": _as_column(found.rarest),
        "identifier": _as_column(found.identifier),
        "words": _same_for_all(found, min(query.words, 12) / 12),
        "unknown": _same_for_all(found, query.unknown),
    }


def _conversation_features(found: SignalColumns, query: QuerySignals, known: Mapping[str, Column]) -> dict[str, Column]:
    """Return the features of a turn in a conversation; `in_talk` is 1 for a turn, or where a speaker is named."""
    named = _as_column(found.speaker_named)
    features = {
        "in_talk": np.maximum(_as_column(found.in_session), np.float32(named.any())),
        "speaker_named": named,
        "speaker_not_named": (1 - named) * np.float32(named.any()),
        "bm25_before": _bm25_share(_as_column(found.before_bm25), query),
        "bm25_after": _bm25_share(_as_column(found.after_bm25), query),
        "around": np.maximum(_as_column(found.around), known["held"]),
        "questions": _as_column(found.questions),
        "questions_before": _as_column(found.questions_before),
        "turn_length": known["length"],
        "turn_held": known["held"],
    }
    if query.semantic:
        features |= {
            "cosine_before": np.maximum(_as_column(found.before_cosine), 0),
            "cosine_after": np.maximum(_as_column(found.after_cosine), 0),
            "late_near": _as_column(np.maximum(found.before_late, found.after_late)),
        }
    return features


def _semantic_features(found: SignalColumns) -> dict[str, Column]:
    """Return the features of how the meaning of the query matches each candidate, by name."""
    cosine = np.maximum(_as_column(found.cosine), 0)
    estimated = _estimated_interaction(found.cosine)
    late = _as_column(np.where(np.isnan(found.late), estimated, found.late))
    rare = _as_column(np.where(np.isnan(found.rare), estimated, found.rare))
    return {
        "cosine": cosine,
        "cosine_outstanding": cosine - min(_mean_behind_best(cosine, _UNRELATED), _NEAR),
        "cosine_to_best": cosine - cosine.max(),
        "late": late,
        "late_rare": rare,
        "late_outstanding": late - _mean_behind_best(late, _UNRELATED_LATE),
        "late_to_best": late - late.max(),
        "late_rare_to_best": rare - rare.max(),
    }


def _estimated_interaction(cosine: Numbers) -> Numbers:
    """Estimate the late interaction of memories whose tokens are not stored yet: about linear in the cosine."""
    return 0.1 + 0.61 * np.maximum(cosine, 0.0)


def _mean_behind_best(values: Column, unrelated: float) -> float:
    """Return the mean of the candidates behind the best; missing candidates of a crowd count as `unrelated` text.

    Few candidates, of a small store or a narrow filter, may all be relevant.
    """
    ordered = np.sort(values)[::-1][1:_CROWD]
    return float(ordered.sum() + (_CROWD - 1 - len(ordered)) * unrelated) / (_CROWD - 1)


def _holds_rare_name(found: SignalColumns, query: QuerySignals, matches: Numbers) -> Numbers:
    names = found.held**4 * (0.5 + 0.5 * matches) if query.words <= _NAMING else np.zeros(len(found))
    return np.maximum(names, np.where(found.identifier > 0.5, found.identifier * 0.5, 0.0))


def _matched_by_words(found: SignalColumns, by_words: Numbers) -> Numbers:
    """Return the least match (0–1) by words alone: `by_words` for memories without vectors, else a tenth of it.

    A memory that holds nearly all the words is shown, however far its meaning seems to be.
    """
    return np.where(np.isnan(found.late) & (found.cosine == 0.0), by_words, _WORDED * by_words)


def _as_column(values: Numbers) -> Column:
    return values.astype(np.float32)


def _same_for_all(found: SignalColumns, value: float) -> Column:
    return np.full(len(found), value, dtype=np.float32)


def _bm25_share(bm25: Column, query: QuerySignals) -> Column:
    """Return bm25 (≥ 0) as 0–1: its share of what a memory of exactly the query's words would reach."""
    if query.weight < _LIGHTEST:
        return bm25 / (bm25 + np.float32(_HALF))
    found: Column = np.minimum(bm25 / np.float32(_MOST * query.weight), 1)
    return found
