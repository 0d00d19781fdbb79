"""The learned fusion: its features by hand, its networks, and what its fitted coefficients must never do."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect import Settings
from recollect.domain.search import ModelCard, NeighbourSignals, QuerySignals, Signals
from recollect.engines.fusion import MOST_SURE, LearnedFusion, Network, Part, best_features, columns
from recollect.engines.signal_columns import SignalColumns
from second_model import NAME, second_model
from stores import open_app

if TYPE_CHECKING:
    from recollect.engines.fusion import LearnedFusion

QUESTION = QuerySignals(words=5, rarest=4.2, unknown=0.1, semantic=True, weight=15.0, size=200, asks=1.5)
UNEMBEDDED = replace(QUESTION, semantic=False)
ALL = Signals(
    cosine=0.6,
    bm25=20.0,
    coverage=0.5,
    fuzzy=0.75,
    speaker_named=True,
    late=0.5,
    rare=0.55,
    passage=0.45,
    phrase=0.3,
    around=0.8,
    before=NeighbourSignals(bm25=5.0, cosine=0.3, late=0.2),
    after=NeighbourSignals(bm25=20.0, cosine=0.4, late=0.45),
    in_session=True,
    questions=0.5,
    questions_before=1.0,
    length=147,
    rarest=0.8,
    identifier=0.9,
)
STRANGE = Signals(cosine=-0.2, before=NeighbourSignals(cosine=-0.1))
SOME = Signals(cosine=0.3, bm25=5.0, coverage=0.25, late=0.35, passage=0.25, phrase=0.2, around=0.2)
LEXICAL = {
    "bm25": [20 / 33, 0, 5 / 33],
    "bm25_of_best": [1, 0, 0.25],
    "held": [0.75, 0, 0.25],
    "held_to_best": [0, -0.75, -0.5],
    "passage": [0.45, 0, 0.25],
    "phrase": [0.3, 0, 0.2],
    "rarest": [0.8, 0, 0],
    "identifier": [0.9, 0, 0],
    "words": [5 / 12] * 3,
    "unknown": [0.1] * 3,
    "length": [(math.log(148) - 5) / 3, -5 / 3, -5 / 3],
    "in_talk": [1, 1, 1],
    "speaker_named": [1, 0, 0],
    "speaker_not_named": [0, 1, 1],
    "bm25_before": [5 / 33, 0, 0],
    "bm25_after": [20 / 33, 0, 0],
    "around": [0.8, 0, 0.25],
    "questions": [0.5, 0, 0],
    "questions_before": [1, 0, 0],
    "turn_length": [(math.log(148) - 5) / 3, -5 / 3, -5 / 3],
    "turn_held": [0.75, 0, 0.25],
}
USUAL, USUAL_LATE = (0.3 + 47 * 0.1) / 49, (0.35 + 0.1 + 47 * 0.1) / 49
SEMANTIC = {
    "cosine": [0.6, 0, 0.3],
    "cosine_outstanding": [0.6 - USUAL, -USUAL, 0.3 - USUAL],
    "cosine_to_best": [0, -0.6, -0.3],
    "late": [0.5, 0.1, 0.35],
    "late_rare": [0.55, 0.1, 0.283],
    "late_outstanding": [0.5 - USUAL_LATE, 0.1 - USUAL_LATE, 0.35 - USUAL_LATE],
    "late_to_best": [0, -0.4, -0.15],
    "late_rare_to_best": [0, -0.45, -0.267],
    "cosine_before": [0.3, 0, 0],
    "cosine_after": [0.4, 0, 0],
    "late_near": [0.45, 0, 0],
}
EVIDENCE = {
    "best": 2.0,
    "sum": math.log(math.exp(2) + math.exp(1) + 1),
    "bm25": 20 / 33,
    "held": 0.75,
    "passage": 0.45,
    "rarest": 0.8,
    "unknown": -0.1,
    "words": 5 / 12,
    "top_held": 0.25,
    "cosine": 0.6,
    "late": 0.5,
    "late_rare": 0.55,
    "outstanding": 0.6 - USUAL,
    "top_cosine": 0.3,
    "top_late_rare": 0.283,
    "asks": 1.5,
}
PARTS = ("own", "talk", "query")

unit = st.floats(0.0, 1.0, width=32)
near = st.builds(NeighbourSignals, bm25=st.floats(0.0, 100.0), cosine=st.floats(-1.0, 1.0), late=unit)
signals = st.builds(
    Signals,
    cosine=st.floats(-1.0, 1.0),
    bm25=st.floats(0.0, 100.0),
    coverage=unit,
    fuzzy=unit,
    speaker_named=st.booleans(),
    late=st.none() | unit,
    rare=st.none() | unit,
    passage=unit,
    phrase=unit,
    around=unit,
    before=near,
    after=near,
    in_session=st.booleans(),
    questions=unit,
    questions_before=unit,
    length=st.integers(0, 200_000),
    rarest=unit,
    identifier=unit,
)
candidates = st.dictionaries(st.integers(1, 50), signals, max_size=12)
questions = st.builds(
    QuerySignals,
    words=st.integers(0, 40),
    rarest=st.floats(0.0, 15.0),
    unknown=unit,
    semantic=st.booleans(),
    weight=st.floats(0.0, 100.0),
    size=st.integers(0, 1_000_000),
)
quick = hypothesis_settings(deadline=None, database=None)


@pytest.fixture(scope="module")
def fusion() -> LearnedFusion:
    """Return the fusion with the coefficients that are shipped."""
    return LearnedFusion()


def matches_of(fusion: LearnedFusion, found: Mapping[int, Signals], query: QuerySignals) -> dict[int, float]:
    """Return the match of each memory of these signals."""
    return dict(zip(found, fusion.matches(SignalColumns.of(list(found.values())), query).tolist(), strict=True))


def shipped() -> dict[str, Any]:
    """Return the coefficients as the file holds them."""
    found: dict[str, Any] = json.loads((files("recollect.engines") / "fusion.json").read_text(encoding="utf-8"))
    return found


def near_by(cosine: float, **fields: Any) -> Signals:
    """Return a memory of this cosine whose late interaction agrees with it, as it mostly does."""
    late = 0.1 + 0.61 * cosine
    return Signals(**{"cosine": cosine, "late": late, "rare": late, "length": 120} | fields)


def holding(share: float, bm25: float, cosine: float = 0.0) -> Signals:
    """Return a memory that holds this share of the query's words, and so the tokens of these words."""
    late = max(0.1 + 0.61 * cosine, 0.1 + 0.3 * share)
    words = {"coverage": share, "passage": share, "phrase": share, "around": share}
    return near_by(cosine, **words, bm25=bm25, late=late, rare=late)


def crowd(size: int, cosine: float = 0.12) -> dict[int, Signals]:
    """Return memories that have nothing to do with the query, as near to it as unrelated texts are."""
    dice = random.Random(7)
    return {number: near_by(max(dice.gauss(cosine, 0.05), 0.0)) for number in range(1, size + 1)}


def value(found: Mapping[int, Signals], name: str, number: int = 0) -> float:
    """Return one feature of one candidate, the first unless told."""
    return float(columns(SignalColumns.of(list(found.values())), QUESTION)[name][number])


def test_the_fusion_is_what_the_port_promises(fusion: LearnedFusion) -> None:
    """Wiring hands the learned fusion out as the port, with everything the port names."""
    port: LearnedFusion = fusion
    assert {name for name in vars(LearnedFusion) if not name.startswith("_")} == {"asks", "matches"}
    assert matches_of(port, {}, QUESTION) == {}


@pytest.mark.parametrize("name", LEXICAL | SEMANTIC)
def test_each_feature_as_by_hand(name: str) -> None:
    """For three candidates, one of which only meaning found, each feature is what its name says."""
    column = columns(SignalColumns.of([ALL, STRANGE, SOME]), QUESTION)[name]
    assert column.tolist() == pytest.approx((LEXICAL | SEMANTIC)[name], abs=1e-6)


@pytest.mark.parametrize("name", EVIDENCE)
def test_a_query_has_the_best_of_its_candidates(name: str) -> None:
    """What is known of a query is the best that any candidate has, and what the first in order has."""
    known = columns(SignalColumns.of([ALL, STRANGE, SOME]), QUESTION)
    found = best_features(known, np.array([1.0, 0.0, 2.0], dtype=np.float32), QUESTION)
    assert found.keys() == EVIDENCE.keys()
    assert found[name].tolist() == pytest.approx([EVIDENCE[name]], abs=1e-6)


def test_what_asks_for_nothing_remembered_is_told_by_its_text(fusion: LearnedFusion) -> None:
    """A text is judged by its vector alone, within bounds; that of another model says nothing."""
    given = shipped()["asking"]
    weights = np.array(given["weights"], dtype=np.float32)
    direction = weights / np.linalg.norm(weights)
    likely, unlikely = (fusion.asks(sign * direction, given["model"]) for sign in (np.float32(1), np.float32(-1)))
    assert -MOST_SURE <= unlikely < given["bias"] < likely <= MOST_SURE
    assert fusion.asks(direction, "another/model") == 0.0


def test_features_come_in_the_order_of_the_candidates() -> None:
    """Each feature has a value for each candidate, float32, in their order."""
    forth, back = columns(SignalColumns.of([ALL, SOME]), QUESTION), columns(SignalColumns.of([SOME, ALL]), QUESTION)
    assert forth.keys() == LEXICAL.keys() | SEMANTIC.keys()
    for name, column in forth.items():
        assert (column.shape, column.dtype) == ((2,), np.float32)
        assert column.tolist() == pytest.approx(back[name][::-1].tolist())


def test_words_alone_have_no_meaning() -> None:
    """Where meaning was not searched there are no semantic features, so that none can be mistaken for a nought."""
    assert columns(SignalColumns.of([ALL, SOME]), UNEMBEDDED).keys() == LEXICAL.keys()


def test_features_mean_the_same_in_stores_of_any_size() -> None:
    """The bm25 of the whole query counts 1 however rare the words of a store are, and none counts more."""
    for weight in (3.0, 15.0, 60.0):
        query = replace(QUESTION, weight=weight)
        assert columns(SignalColumns.of([Signals(bm25=2.2 * weight)]), query)["bm25"].tolist() == pytest.approx([1.0])
        assert columns(SignalColumns.of([Signals(bm25=9.9 * weight)]), query)["bm25"].tolist() == pytest.approx([1.0])
    assert columns(SignalColumns.of([Signals(bm25=20.0)]), replace(QUESTION, weight=0.0))[
        "bm25"
    ].tolist() == pytest.approx([0.5])


def test_without_a_conversation_nothing_of_one_counts(fusion: LearnedFusion) -> None:
    """Where no candidate stands in a session and no speaker is named, neighbours and questions change no match."""
    found = crowd(20) | {99: replace(holding(0.5, 12.0, 0.4), in_session=False)}
    noise = {"questions": 0.9, "questions_before": 0.8, "before": ALL.before, "after": ALL.after, "around": 1.0}
    talking = {number: replace(one, **noise) for number, one in found.items()}
    assert matches_of(fusion, talking, QUESTION) == pytest.approx(matches_of(fusion, found, QUESTION))


def test_a_better_candidate_changes_what_is_relative() -> None:
    """Beside a better one, a candidate falls behind the best and stands out less, and keeps its own values."""
    alone, beaten = {1: SOME}, {1: SOME, 2: replace(ALL, cosine=0.9, late=0.8, rare=0.8)}
    for name in ("bm25", "cosine", "late", "held", "length"):
        assert value(alone, name) == value(beaten, name)
    for name in ("bm25_of_best", "cosine_to_best", "late_to_best", "late_rare_to_best", "held_to_best"):
        assert value(beaten, name) < value(alone, name)
    assert value(alone, "speaker_not_named") == 0.0 < value(beaten, "speaker_not_named")


def test_a_lone_memory_stands_out_as_from_unrelated_text() -> None:
    """Whoever is missing from a crowd counts as unrelated; the best one itself never counts as usual."""
    assert value({1: near_by(0.7)}, "cosine_outstanding") == pytest.approx(0.6)
    two = {1: near_by(0.7), 2: near_by(0.7)}
    assert value(two, "cosine_outstanding") == pytest.approx(0.7 - (0.7 + 48 * 0.1) / 49)


def test_a_near_crowd_is_not_all_noise() -> None:
    """What is usual rises with a crowd up to a limit, and the crowd is the nearest fifty only."""
    near_ones = {number: near_by(0.8) for number in range(60)}
    assert value(near_ones, "cosine_outstanding") == pytest.approx(0.8 - 0.45)
    some = {number: near_by(0.3) for number in range(50)}
    far = {number: near_by(0.0) for number in range(50, 200)}
    assert value(some | far, "cosine_outstanding") == pytest.approx(0.0, abs=1e-6)
    assert value(some, "cosine_outstanding") == pytest.approx(0.0, abs=1e-6)


def test_a_missing_late_interaction_is_guessed_from_the_cosine() -> None:
    """A memory whose tokens are not stored yet is neither best nor worst for that."""
    missing = Signals(cosine=0.5)
    assert value({1: missing}, "late") == value({1: missing}, "late_rare") == pytest.approx(0.405)
    assert value({1: replace(missing, late=0.1)}, "late") == pytest.approx(0.1)
    assert value({1: Signals(cosine=-0.4)}, "late") == pytest.approx(0.1)
    assert value({1: replace(missing, late=0.0)}, "late") == 0.0


def test_a_part_as_by_hand() -> None:
    """A part of two features and two units is the sum of its linear part, its units and its bias, inputs clipped."""
    given = {
        "names": ["bm25", "held"],
        "mean": [0.5, 0.0],
        "scale": [0.5, 0.2],
        "linear": [1.0, -3.0],
        "bias": 0.25,
        "hidden": [[1.0, 0.0], [0.5, 2.0]],
        "hidden_bias": [0.0, -1.0],
        "out": [2.0, -1.0],
    }
    some = {"bm25": np.array([0.5, 1.0, 1.0], np.float32), "held": np.array([0.0, 0.2, 2.0], np.float32)}
    first = 0.25 - math.tanh(-1.0)
    second = 0.25 + 1.0 - 3.0 + 2 * math.tanh(1.5) - math.tanh(1.0)
    third = 0.25 + 1.0 - 9.0 + 2 * math.tanh(2.5) - math.tanh(5.0)
    assert Part.read(given)(some).tolist() == pytest.approx([first, second, third], abs=1e-6)


@pytest.mark.parametrize(("name", "known"), [("fused", LEXICAL | SEMANTIC), ("words", LEXICAL)])
def test_the_shipped_coefficients_are_whole(name: str, known: dict[str, list[float]]) -> None:
    """Both networks name features that exist, each once, their sizes agree, and every number is finite."""
    given = shipped()
    assert set(given) == {"fused", "words", "asking"}
    network = Network.read(given[name])
    assert network.stretch > 0
    for part in PARTS:
        one = getattr(network, part)
        width, units = len(one.names), len(one.out)
        assert width == len(set(one.names)) > 0
        assert set(one.names) <= set(EVIDENCE if part == "query" else known)
        assert one.mean.shape == one.scale.shape == one.linear.shape == (width,)
        assert one.hidden.shape == (width, units)
        assert one.hidden_bias.shape == (units,)
        arrays = (one.mean, one.scale, one.linear, one.hidden, one.hidden_bias, one.out)
        assert all(np.isfinite(each).all() for each in (*arrays, np.array(one.bias)))
        assert (one.scale > 0).all()
        assert (one.out >= 0).all()


def test_coefficients_beside_a_card_count_for_its_model_alone(tmp_path: Path, settings: Settings) -> None:
    """A model whose card has coefficients beside it is matched by these; what they leave out is everybody's."""
    folder = second_model(tmp_path / "models") / NAME
    own = shipped()["fused"] | {"stretch": 0.0}
    (folder / "fusion.json").write_text(json.dumps({"fused": own}), encoding="utf-8")
    found = {1: Signals(cosine=0.7, bm25=9.0, coverage=1.0, late=0.6, rare=0.5, length=80), 2: Signals(cosine=0.1)}
    query = QuerySignals(words=8, rarest=3.0, unknown=0.0, semantic=True, weight=9.0, size=30)
    with open_app(settings.model_copy(update={"model": NAME, "models_dir": tmp_path / "models"})) as app:
        flat, usual = matches_of(app.fusion, found, query), matches_of(LearnedFusion(), found, query)
        without = replace(query, semantic=False)
        assert matches_of(app.fusion, found, without) == matches_of(LearnedFusion(), found, without)
    assert flat[1] == pytest.approx(flat[2], abs=0.1)
    assert usual[1] > usual[2] + 0.3


@quick
@given(candidates, questions)
def test_a_match_is_between_nought_and_one(found: dict[int, Signals], query: QuerySignals) -> None:
    """Every candidate gets a match of 0–1, whatever was found, and the same one when asked again."""
    fusion = LearnedFusion()
    matched = matches_of(fusion, found, query)
    assert matched.keys() == found.keys()
    assert all(type(one) is float and 0.0 <= one <= 1.0 for one in matched.values())
    assert matches_of(fusion, found, query) == matched


@quick
@given(candidates, questions, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_count(found: dict[int, Signals], query: QuerySignals, dice: Any) -> None:
    """However the candidates are dealt, each keeps its match."""
    shuffled = list(found.items())
    dice.shuffle(shuffled)
    fusion = LearnedFusion()
    assert matches_of(fusion, dict(shuffled), query) == pytest.approx(matches_of(fusion, found, query), abs=1e-4)


@quick
@given(candidates, st.integers(0, 40))
def test_without_meaning_no_cosine_counts(found: dict[int, Signals], words: int) -> None:
    """Where meaning was not searched, whatever stands in the semantic signals changes no match."""
    query = QuerySignals(words=words, rarest=3.0, unknown=0.0, semantic=False)
    blind = {}
    for number, one in found.items():
        before, after = replace(one.before, cosine=0.5), replace(one.after, late=0.9)
        blind[number] = replace(one, cosine=0.9, late=None, rare=0.1, before=before, after=after)
    fusion = LearnedFusion()
    assert matches_of(fusion, blind, query) == matches_of(fusion, found, query)


@pytest.mark.parametrize("size", [1, 20, 60])
def test_a_memory_that_waits_for_its_vectors_is_judged_by_words(fusion: LearnedFusion, size: int) -> None:
    """Where a memory has no vectors yet, its match is the one that words alone give."""
    waiting = replace(holding(0.9, 25.0), cosine=0.0, late=None, rare=None)
    found = crowd(size) | {99: waiting}
    alone = matches_of(fusion, found, replace(QUESTION, semantic=False))
    assert matches_of(fusion, found, QUESTION)[99] >= alone[99] * 0.999


def test_a_name_with_digits_is_never_irrelevant(fusion: LearnedFusion, card: ModelCard) -> None:
    """A memory that holds a rare name of the query as it is written is shown, however little else it shares."""
    query = replace(QUESTION, words=9, unknown=0.8)
    plain, named = near_by(0.1), near_by(0.1, identifier=0.9)
    assert matches_of(fusion, crowd(30) | {99: plain}, query)[99] < card.floor
    assert matches_of(fusion, crowd(30) | {99: named}, query)[99] >= card.floor


@quick
@given(candidates, signals, st.booleans(), questions, st.integers(1, 2))
def test_a_name_that_is_held_is_never_irrelevant(
    others: dict[int, Signals], one: Signals, guessed: bool, query: QuerySignals, words: int
) -> None:
    """A memory that holds a query of one or two words matches by half at least, whatever else is found."""
    named = replace(one, **{"fuzzy" if guessed else "coverage": 1.0})
    assert matches_of(LearnedFusion(), others | {99: named}, replace(query, words=words))[99] >= 0.5


def test_a_word_of_many_is_no_name(fusion: LearnedFusion) -> None:
    """In a longer query the same weak evidence stays below a half, and half a name counts for little."""
    named = near_by(0.01, coverage=1.0, passage=1.0, phrase=1.0, around=1.0, bm25=0.5)
    others = {number: near_by(0.4) for number in range(1, 30)}
    assert matches_of(fusion, others | {99: named}, replace(QUESTION, words=2))[99] >= 0.5
    assert matches_of(fusion, others | {99: named}, replace(QUESTION, words=6))[99] < 0.5
    half = replace(named, coverage=0.5, passage=0.5, phrase=0.5, around=0.5)
    assert matches_of(fusion, others | {99: half}, replace(QUESTION, words=2))[99] < 0.5


@pytest.mark.parametrize("size", [1, 2, 5, 20, 50, 150])
def test_unrelated_candidates_stay_below_the_floor(fusion: LearnedFusion, card: ModelCard, size: int) -> None:
    """Where nothing is nearer than unrelated texts are and no word is shared, every match is below the floor."""
    query = replace(QUESTION, rarest=0.0, unknown=1.0)
    assert max(matches_of(fusion, crowd(size), query).values()) < card.floor


@pytest.mark.parametrize("size", [0, 3, 20, 100])
def test_a_memory_found_by_both_is_far_above_the_floor(fusion: LearnedFusion, card: ModelCard, size: int) -> None:
    """What is near in meaning and holds most words is more likely the answer than not, alone or in a crowd."""
    matched = matches_of(fusion, crowd(size) | {999: holding(0.8, 25.0, cosine=0.65)}, replace(QUESTION, unknown=0.0))
    assert matched[999] > max(0.5, card.floor)
    assert max(matched, key=lambda one: matched[one]) == 999


@pytest.mark.parametrize("size", [1, 4, 30])
def test_meaning_alone_and_words_alone_reach_the_floor(fusion: LearnedFusion, card: ModelCard, size: int) -> None:
    """A memory that shares no word but is much nearer than the rest is found, and so is one that holds the words."""
    query = replace(QUESTION, unknown=0.0)
    for one in (near_by(0.5), holding(0.9, 25.0, cosine=0.12)):
        assert matches_of(fusion, crowd(size) | {999: one}, query)[999] >= card.floor
    assert (
        matches_of(fusion, crowd(size) | {999: holding(0.9, 25.0)}, replace(query, semantic=False))[999] >= card.floor
    )


@pytest.mark.parametrize("size", [2, 10, 60])
def test_both_searchers_beat_one(fusion: LearnedFusion, size: int) -> None:
    """What words and meaning both found comes before what only one of them found as well."""
    found = {
        901: holding(0.6, 15.0, cosine=0.5),
        902: near_by(0.5),
        903: holding(0.6, 15.0, cosine=0.12),
    }
    matched = matches_of(fusion, crowd(size) | found, replace(QUESTION, unknown=0.0))
    assert matched[901] > max(matched[902], matched[903])
    assert min(matched[902], matched[903]) > max(one for number, one in matched.items() if number <= size)


@pytest.mark.parametrize("size", [5, 20, 49, 120])
@pytest.mark.parametrize(("share", "bm25"), [(0.0, 0.0), (0.3, 8.0), (0.7, 20.0)])
def test_more_meaning_never_lowers_a_match(fusion: LearnedFusion, size: int, share: float, bm25: float) -> None:
    """In a crowd, an otherwise equal candidate of higher cosine and late interaction has no lower match."""
    steps = [0.1 + 0.05 * step for step in range(15)]
    matched = [matches_of(fusion, crowd(size) | {999: holding(share, bm25, one)}, QUESTION)[999] for one in steps]
    assert matched == sorted(matched)
    assert matched[-1] > matched[0]


@pytest.mark.parametrize("size", [5, 20, 49, 120])
@pytest.mark.parametrize("cosine", [0.15, 0.35, 0.55])
def test_more_words_never_lower_a_match(fusion: LearnedFusion, size: int, cosine: float) -> None:
    """In a crowd, an otherwise equal candidate that holds more of the query has no lower match."""
    steps = [(0.1 * step, 3.0 * step) for step in range(1, 11)]
    matched = [matches_of(fusion, crowd(size) | {999: holding(*one, cosine)}, QUESTION)[999] for one in steps]
    assert matched == sorted(matched)
    assert matched[-1] > matched[0]


@pytest.mark.parametrize("size", [0, 5, 49])
def test_words_alone_grow_with_what_is_held(fusion: LearnedFusion, size: int) -> None:
    """Where meaning was not searched, holding more of the query never counts less."""
    steps = [(0.1 * step, 3.0 * step) for step in range(1, 11)]
    matched = [matches_of(fusion, crowd(size) | {999: holding(*one)}, UNEMBEDDED)[999] for one in steps]
    assert matched == sorted(matched)
    assert matched[-1] > matched[0]
