"""The networks of the fusion: what they learn, how they are averaged and written, and what copies of questions are."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recollect.domain.search import QuerySignals, Signals
from recollect.engines.fusion import Network, Part, columns
from recollect.engines.signal_columns import SignalColumns
from training import silence
from training.evidence import Example
from training.fusion import DEFAULT
from training.network import (
    FUSED,
    SMALL,
    Net,
    Scale,
    averaged,
    compiled,
    fit,
    further,
    nothing,
    otherwise,
    plain,
    smaller,
)

QUERY = QuerySignals(words=3, rarest=3.0, unknown=0.0, semantic=True, weight=9.0, size=30)


def a_part(seed: int, units: int = 3) -> Part:
    """Return a part of two features with some weights."""
    dice = np.random.default_rng(seed)
    some = lambda *shape: dice.normal(size=shape).astype(np.float32)  # noqa: E731
    mean, scale = np.array([0.2, 0.3], dtype=np.float32), np.array([0.5, 2.0], dtype=np.float32)
    hidden, hidden_bias, out = some(2, units), some(units), some(units)
    return Part(("bm25", "held"), mean, scale, some(2), float(dice.normal()), hidden, hidden_bias, out)


def some_columns() -> dict[str, np.ndarray]:
    """Return fifty values of two features."""
    rows = np.random.default_rng(4).normal(size=(50, 2)).astype(np.float32)
    return {"bm25": rows[:, 0], "held": rows[:, 1]}


def an_example(size: int, answers: set[int], **fields: Any) -> Any:
    """Return a question whose answers are the candidates of highest cosine."""
    found = tuple(
        Signals(cosine=0.6 if number in answers else 0.01 * number, bm25=float(number % 5 + 1), length=number)
        for number in range(size)
    )
    relevant = tuple(number in answers for number in range(size))
    given = {"set": "s", "group": "g", "category": "all", "answers": len(answers)} | fields
    return Example(query=QUERY, found=found, relevant=relevant, **given)


def test_averaged_gives_the_mean_of_the_sums() -> None:
    """One part stands for several: its sum for any candidate is the mean of theirs."""
    parts = [a_part(seed, units) for seed, units in ((1, 3), (2, 3), (3, 5))]
    together = averaged(parts)
    assert together.hidden.shape == (2, 11)
    expected = np.mean([one(some_columns()) for one in parts], axis=0)
    assert together(some_columns()) == pytest.approx(expected, abs=1e-5)


def test_a_network_is_written_as_it_is_read() -> None:
    """What JSON holds of a network sums as the network does, but for the digits left out."""
    network = Network(a_part(2), a_part(3, 2), a_part(4, 1), 1.25)
    again = Network.read(json.loads(json.dumps(plain(network))))
    assert again.stretch == network.stretch
    for part in ("own", "talk", "query"):
        first, second = getattr(network, part), getattr(again, part)
        assert first.names == second.names
        assert second(some_columns()) == pytest.approx(first(some_columns()), abs=1e-3)


def test_fit_learns_what_answers() -> None:
    """After a few rounds the answers score highest, one seed gives one network, and another another."""
    sets = [compiled([an_example(8, {number % 8}) for number in range(12)], True, False) for _ in range(2)]
    (own, talk), (same, _), (other, _) = (fit(sets, FUSED, seed, 60) for seed in (1, 1, 2))
    network = Network(own, talk, nothing(), 1.0)
    for one in (question for some in sets for question in some):
        assert one.relevant[int(network.order(one.known).argmax())]
    assert np.array_equal(own.linear, same.linear)
    assert not np.array_equal(own.linear, other.linear)


@pytest.mark.parametrize("wanted", [True, False], ids=["the speaker is named", "another speaker is named"])
def test_fitted_further_only_the_part_for_conversations_moves(*, wanted: bool) -> None:
    """It begins as it was, and then puts the answers, told by who speaks alone, a little higher than before."""
    shipped = Network.read(json.loads(DEFAULT.read_text(encoding="utf-8"))["fused"])
    own, talk = shipped.own, shipped.talk
    found = tuple(Signals(cosine=0.4, bm25=2.0, speaker_named=one % 2 == 0, in_session=True) for one in range(8))
    relevant = tuple((one % 2 == 0) == wanted for one in range(8))
    asked = Example("s", "g", "all", QUERY, found, relevant, 4)
    questions = compiled([asked] * 8, True, False)
    moved = further((own, talk), [questions], FUSED)
    assert moved.names == talk.names
    known, right = questions[0].known, np.array(relevant)

    def ahead(part: Part) -> float:
        scores = Network(own, part, nothing(), 1.0).order(known)
        return float(scores[right].mean() - scores[~right].mean())

    assert ahead(moved) > ahead(talk) + 0.1


def test_a_part_that_was_fitted_before_gives_the_same_sums() -> None:
    """What a fit begins with is what ships: each part sums as before, but for weights of nothing."""
    network = Network.read(json.loads(DEFAULT.read_text(encoding="utf-8"))["fused"])
    for name in ("own", "talk"):
        part = getattr(network, name)
        scale = Scale([*part.names], part.mean, part.scale, np.ones(len(part.names), dtype=bool))
        net = Net(len(FUSED.rising[name]), scale, part.hidden.shape[1])
        net.begin_with(part)
        known = dict.fromkeys(part.names, np.linspace(-1, 1, 9, dtype=np.float32))
        assert net.part(scale)(known) == pytest.approx(part(known), abs=1e-2)


def test_what_must_not_lower_a_score_has_no_negative_weight() -> None:
    """Whatever the answers look like, no rising feature gets a negative weight; one without spread gets none."""
    against = [an_example(8, {0, 1, 2}) for _ in range(12)]
    against = [replace(one, relevant=tuple(not answer for answer in one.relevant)) for one in against]
    own, _ = fit([compiled(against, True, False)], FUSED, 2, 60)
    rising = [own.names.index(name) for name in FUSED.rising["own"]]
    assert (own.linear[rising] >= 0).all()
    assert (own.hidden[rising] >= 0).all()
    assert (own.out >= 0).all()
    flat = own.names.index("passage")
    assert own.linear[flat] == 0
    assert not own.hidden[flat].any()


def test_a_smaller_store_holds_some_of_the_candidates() -> None:
    """A smaller store holds a few candidates in their order, never none, and an answer in about half of the cases."""
    whole = an_example(30, {7, 20})
    dice = random.Random(1)
    made = [smaller(whole, dice) for _ in range(300)]
    for one in made:
        numbers = [found.length for found in one.found]
        assert numbers == sorted({*numbers})
        assert 1 <= len(numbers) <= max(SMALL) + 1
        assert one.relevant == tuple(whole.relevant[number] for number in numbers)
        assert (one.answers, one.category) == (2, "all")
    assert 0.4 < np.mean([any(one.relevant) for one in made]) < 0.6
    alone = an_example(1, {0})
    assert {len(smaller(alone, dice).found) for _ in range(20)} == {1}


def test_a_smaller_store_knows_fewer_words() -> None:
    """Words count for less there, all by one factor; in half of the cases none is shared, and less of the meaning."""
    dice = random.Random(2)
    shared = {"coverage": 0.5, "fuzzy": 0.5, "passage": 0.4, "phrase": 0.3, "around": 0.6, "late": 0.5, "rare": 0.5}
    whole = an_example(20, {3})
    whole = replace(whole, found=tuple(replace(one, **shared) for one in whole.found))
    made = [smaller(whole, dice) for _ in range(300)]
    strange = [one for one in made if one.query == replace(QUERY, rarest=0.0, unknown=1.0)]
    usual = [one for one in made if one.query == QUERY]
    assert len(strange) + len(usual) == 300
    assert 100 < len(strange) < 200
    for one in usual:
        shares = [found.bm25 / whole.found[found.length].bm25 for found in one.found]
        assert shares == pytest.approx([shares[0]] * len(shares))
        assert 0.0 <= shares[0] <= 1.0
        assert all(found == replace(whole.found[found.length], bm25=found.bm25) for found in one.found)
    for found in (found for one in strange for found in one.found):
        assert {getattr(found, name) for name in ("bm25", "coverage", "fuzzy", "passage", "phrase", "around")} == {0.0}
        assert 0.0 <= found.cosine <= whole.found[found.length].cosine
        assert found.late == found.rare <= 0.5


def test_other_words_leave_the_meaning() -> None:
    """In other words no answer shares one, in half of the cases no candidate does, and every cosine stays."""
    dice = random.Random(3)
    whole = an_example(10, {3, 4})
    whole = replace(whole, found=tuple(replace(one, coverage=0.5) for one in whole.found))
    made = [otherwise(whole, dice) for _ in range(100)]
    every = [one for one in made if one.query.unknown == 1.0]
    assert 30 < len(every) < 70
    assert {found.coverage for one in every for found in one.found} == {0.0}
    for one in made:
        assert [found.cosine for found in one.found] == [found.cosine for found in whole.found]
        assert one.relevant == whole.relevant
        assert all(found.coverage == 0.0 for found, right in zip(one.found, one.relevant, strict=True) if right)
    rest = [one for one in made if one not in every]
    assert {found.coverage for one in rest for place, found in enumerate(one.found) if place not in (3, 4)} == {0.5}


def test_silence_tells_whether_anything_answers() -> None:
    """Queries whose best evidence is better get better odds, by weights of which none is negative."""
    known = [an_example(8, {number % 8}) for number in range(20)]
    foreign = [replace(one, found=one.found[:1], relevant=(False,), answers=0) for one in known]
    questions = compiled([*known, *foreign], True, False)
    orders = [question.known["cosine"] for question in questions]
    judged = [silence.judged(question, order) for question, order in zip(questions, orders, strict=True)]
    part, stretch = silence.fit([judged], FUSED, 1)
    odds = [stretch * one.orders[0] + part(one.known)[0] for one in judged]
    assert stretch > 0
    assert (part.linear >= 0).all()
    assert min(odds[:20]) > max(odds[21:])


def test_each_set_counts_alike() -> None:
    """The questions of a set and their copies weigh one together, however many they are; an empty one is left out."""
    one = an_example(6, {0})
    for some in ([one] * 3, [one] * 30, [one, replace(one, found=(), relevant=())]):
        questions = compiled(some, True, True)
        assert sum(question.weight for question in questions) == pytest.approx(1.0)
        assert len(questions) == 3 * len([each for each in some if each.found])
    blind = compiled([one], False, True)
    assert not any("cosine" in question.known for question in blind)
    assert columns(SignalColumns.of(one.found), one.query).keys() > blind[0].known.keys()
