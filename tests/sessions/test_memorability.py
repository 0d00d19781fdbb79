"""Memorability: what is worth a memory passes the gate, routine does not, and each score says why."""

from __future__ import annotations

import pytest

from recollect.sessions.capture import (
    BIAS,
    GATE,
    KNOWN,
    WEIGHTS,
    Part,
    distinctiveness,
    memorability,
    part_of,
)
from recollect.sessions.observations.features import AGAINST, TYPE_FEATURES, Feature

TOLD = {
    Feature.COMMAND: 1.0,
    Feature.MEASURES: 1.0,
    Feature.AFTER_EDIT: 1.0,
    Feature.MEASURED: 1.0,
    Feature.SENTENCES: 0.5,
    Feature.NAMES: 0.667,
}


def test_nothing_is_below_the_gate() -> None:
    """Without a feature that speaks for it nothing that a tool wrote is kept."""
    assert not memorability({}).passes()
    assert not any(memorability({one: 1.0}).passes() for one in TYPE_FEATURES - {Feature.PROMPT})
    assert memorability(TOLD).passes()


def test_the_gate_can_be_moved() -> None:
    """A lower gate keeps what the usual one of 0.30 drops."""
    routine = memorability({Feature.COMMAND: 1.0, Feature.ROUTINE: 1.0})
    assert GATE == 0.30
    assert routine.passes(routine.score)
    assert not routine.passes()


def test_every_feature_has_a_weight_and_a_part() -> None:
    """The table is whole, and what speaks against a memory never speaks for one."""
    assert set(WEIGHTS) == set(Feature)
    assert all(WEIGHTS[one] <= 0 for one in AGAINST)
    assert all(WEIGHTS[one] >= 0 for one in set(Feature) - AGAINST - TYPE_FEATURES)
    assert {part_of(one) for one in Feature} == set(Part) - {Part.DISTINCTIVENESS}
    assert BIAS < 0 > KNOWN


def test_a_score_explains_itself() -> None:
    """Its line has the score, what weighs most, and what each of the four parts adds to the log-odds."""
    found = memorability(TOLD, [0.2, 0.94])
    line = found.explained()
    assert line.startswith(f"{found.score:.2f}: the command measures or reproduces +")
    assert "near a stored memory -2.0" in line
    for part, value in found.parts.items():
        assert f"{part} {value:+.1f}" in line


@pytest.mark.parametrize(
    ("cosines", "expected"), [([], 1), ([0.9, -1], 1), ([0.1, 0.94], 0.5), ([0.98], 0), ([1.0], 0)]
)
def test_only_the_nearest_memory_counts(cosines: list[float], expected: float) -> None:
    """What is stored already is not distinct, and what is far from everything is."""
    assert distinctiveness(cosines) == pytest.approx(expected)
    assert memorability(TOLD, cosines).parts[Part.DISTINCTIVENESS] == pytest.approx(KNOWN * (1 - expected))


def test_each_feature_moves_the_score_its_way() -> None:
    """What speaks for a memory raises its score, what speaks against one lowers it, or leaves it as it is."""
    base = memorability(TOLD).score
    for one in set(Feature) - set(TOLD):
        score = memorability(TOLD | {one: 1.0}).score
        assert score == pytest.approx(base) if WEIGHTS[one] == 0 else (score > base) is (WEIGHTS[one] > 0)
