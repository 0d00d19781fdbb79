"""Scores: weights that sum to one, and parts that sum to the score."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ranked_memories import NOW, a_memory
from recollect.domain.enums import POLICIES, FactType, Profile
from recollect.search import scores

unit = st.floats(0.0, 1.0)
quick = hypothesis_settings(deadline=None, database=None)


def test_the_profiles_are_those_of_the_design() -> None:
    """Each named profile weighs as it is documented, and its weights sum to one."""
    assert set(scores.PROFILES) == set(Profile)
    balanced, weighted, habit, relevance = (scores.PROFILES[name] for name in Profile)
    assert weighted == balanced
    assert balanced == scores.Weights(match=0.55, recency=0.20, importance=0.15, trust=0.10)
    assert habit == scores.Weights(match=0.40, recency=0.20, importance=0.30, frequency=0.10)
    assert relevance == scores.Weights(match=1.0)
    for weights in scores.PROFILES.values():
        assert sum(asdict(weights).values()) == pytest.approx(1.0)


@quick
@given(unit, unit, unit, st.integers(0, 100), st.floats(0, 1000), st.sampled_from(Profile))
def test_the_parts_sum_to_the_score(match: float, importance: float, trust: float, uses: int, age: float, profile):
    """The parts sum to 0–1, and each is its weight times what was measured."""
    columns = (np.array([value], dtype=np.float64) for value in (age, 21.0, importance, trust, uses))
    weights = scores.PROFILES[profile]
    parts = scores.weigh(scores.Merits(*columns), np.array([match]), weights)
    assert 0.0 <= sum(parts.values())[0] <= 1.0 + 1e-9
    assert parts["match"][0] == pytest.approx(weights.match * match)
    assert set(parts) == {name for name, weight in asdict(weights).items() if weight}


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("floor", [0.001, 0.06, 0.3, 0.9])
def test_at_the_floor_a_memory_passes_by_its_match_alone(profile: Profile, floor: float) -> None:
    """The grade rises with the match from 0 to 1, and at the floor it gives a score of 0.35 by itself."""
    weight = scores.PROFILES[profile].match
    steps = [step / 1000 for step in range(1001)]
    grades = scores.grade(np.array(steps), floor, weight).tolist()
    assert grades == sorted(grades)
    assert (grades[0], grades[-1]) == (0.0, pytest.approx(1.0))
    assert weight * scores.grade(floor, floor, weight) == pytest.approx(scores.PASSING)
    assert scores.grade(floor * 0.99, floor, weight) < scores.PASSING / weight


def test_the_grade_of_the_design() -> None:
    """In the default profile the floor lies at 0.35 / 0.55 of the scale, and the rest is two straight lines."""
    assert scores.grade(0.1, 0.1, 0.55) == pytest.approx(0.35 / 0.55)
    assert scores.grade(0.55, 0.1, 0.55) == pytest.approx((1 + 0.35 / 0.55) / 2)
    assert scores.grade(0.05, 0.1, 0.55) == pytest.approx(0.35 / 0.55 / 2)


@pytest.mark.parametrize("kind", FactType)
def test_recency_halves_with_each_half_life(kind: FactType) -> None:
    """What was written now counts whole, half after one half-life of its kind, a quarter after two."""
    memory = a_memory(fact_type=kind)
    half_life = timedelta(days=POLICIES[kind].half_life)
    assert scores.recency(memory, NOW) == 1.0
    assert scores.recency(memory, NOW + half_life) == pytest.approx(0.5)
    assert scores.recency(memory, NOW + 2 * half_life) == pytest.approx(0.25)
    assert scores.recency(memory, NOW - half_life) == 1.0


def test_columns_are_scored_as_memories_are() -> None:
    """The recency and frequency of a column are those of each memory by itself."""
    ages, uses = np.array([-1.0, 0.0, 21.0, 90.0]), np.array([0.0, 3.0, 20.0, 500.0])
    merits = scores.Merits(ages, np.full(4, 21.0), np.zeros(4), np.zeros(4), uses)
    memories = [
        a_memory(updated_at=NOW - timedelta(days=age), recalled_count=int(count))
        for age, count in zip(ages.tolist(), uses.tolist(), strict=True)
    ]
    assert merits.recency.tolist() == pytest.approx([scores.recency(one, NOW) for one in memories])
    assert merits.frequency.tolist() == pytest.approx([scores.frequency(one) for one in memories])


def test_half_lives() -> None:
    """Most kinds halve in 21 days; a decision lasts twice as long."""
    assert POLICIES[FactType.GENERAL].half_life == 21.0
    assert POLICIES[FactType.DECISION].half_life == 42.0


def test_frequency_is_full_at_twenty_uses() -> None:
    """Unused counts nothing, twenty uses of either sort count whole, more count no more."""
    assert scores.frequency(a_memory()) == 0.0
    assert scores.frequency(a_memory(accessed_count=8, recalled_count=12)) == pytest.approx(1.0)
    assert scores.frequency(a_memory(recalled_count=10_000)) == 1.0
    assert scores.frequency(a_memory(recalled_count=1)) < scores.frequency(a_memory(recalled_count=2))
