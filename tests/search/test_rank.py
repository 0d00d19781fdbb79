"""Rank: weights that sum to one, parts that sum to the score, and the small sums that evidence is made from."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ranked_memories import NOW, a_memory
from recollect.domain.enums import POLICIES, FactType, Profile
from recollect.search import precedence, rank

unit = st.floats(0.0, 1.0)
quick = hypothesis_settings(deadline=None, database=None)


def test_the_profiles_are_those_of_the_design() -> None:
    """Each named profile weighs as it is documented, and its weights sum to one."""
    assert set(rank.PROFILES) == set(Profile)
    balanced, habit, relevance = (rank.PROFILES[name] for name in Profile)
    assert balanced == rank.Weights(match=0.55, recency=0.20, importance=0.15, trust=0.10)
    assert habit == rank.Weights(match=0.40, recency=0.20, importance=0.30, frequency=0.10)
    assert relevance == rank.Weights(match=1.0)
    for weights in rank.PROFILES.values():
        assert sum(asdict(weights).values()) == pytest.approx(1.0)


@quick
@given(unit, unit, unit, st.integers(0, 100), st.floats(0, 1000), st.sampled_from(Profile))
def test_the_parts_sum_to_the_score(match: float, importance: float, trust: float, uses: int, age: float, profile):
    """The score is 0–1, the sum of its parts, and each part is its weight times what was measured."""
    memory = a_memory(importance=importance, trust=trust, recalled_count=uses, updated_at=NOW - timedelta(days=age))
    weights = rank.PROFILES[profile]
    score, parts = rank.weigh(memory, match, weights, NOW)
    assert score == pytest.approx(sum(parts.values()))
    assert 0.0 <= score <= 1.0 + 1e-9
    assert parts["match"] == pytest.approx(weights.match * match)
    assert set(parts) == {name for name, weight in asdict(weights).items() if weight}


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("floor", [0.001, 0.06, 0.3, 0.9])
def test_at_the_floor_a_memory_passes_by_its_match_alone(profile: Profile, floor: float) -> None:
    """The grade rises with the match from 0 to 1, and at the floor it gives a score of 0.35 by itself."""
    weight = rank.PROFILES[profile].match
    steps = [step / 1000 for step in range(1001)]
    grades = [rank.grade(step, floor, weight) for step in steps]
    assert grades == sorted(grades)
    assert (grades[0], grades[-1]) == (0.0, pytest.approx(1.0))
    assert weight * rank.grade(floor, floor, weight) == pytest.approx(rank.PASSING)
    assert rank.grade(floor * 0.99, floor, weight) < rank.PASSING / weight


def test_the_grade_of_the_design() -> None:
    """In the default profile the floor lies at 0.35 / 0.55 of the scale, and the rest is two straight lines."""
    assert rank.grade(0.1, 0.1, 0.55) == pytest.approx(0.35 / 0.55)
    assert rank.grade(0.55, 0.1, 0.55) == pytest.approx((1 + 0.35 / 0.55) / 2)
    assert rank.grade(0.05, 0.1, 0.55) == pytest.approx(0.35 / 0.55 / 2)


def test_certainty_in_words() -> None:
    """A match is told in three words, the surer the better it is."""
    steps = [0.0, rank.LIKELY - 0.001, rank.LIKELY, rank.STRONG - 0.001, rank.STRONG, 1.0]
    assert [str(rank.certainty(step)) for step in steps] == ["weak", "weak", "likely", "likely", "strong", "strong"]


@pytest.mark.parametrize("kind", FactType)
def test_recency_halves_with_each_half_life(kind: FactType) -> None:
    """What was written now counts whole, half after one half-life of its kind, a quarter after two."""
    memory = a_memory(fact_type=kind)
    half_life = timedelta(days=POLICIES[kind].half_life)
    assert rank.recency(memory, NOW) == 1.0
    assert rank.recency(memory, NOW + half_life) == pytest.approx(0.5)
    assert rank.recency(memory, NOW + 2 * half_life) == pytest.approx(0.25)
    assert rank.recency(memory, NOW - half_life) == 1.0


def test_half_lives() -> None:
    """Most kinds halve in 21 days; a decision lasts twice as long."""
    assert POLICIES[FactType.GENERAL].half_life == 21.0
    assert POLICIES[FactType.DECISION].half_life == 42.0


def test_frequency_is_full_at_twenty_uses() -> None:
    """Unused counts nothing, twenty uses of either sort count whole, more count no more."""
    assert rank.frequency(a_memory()) == 0.0
    assert rank.frequency(a_memory(accessed_count=8, recalled_count=12)) == pytest.approx(1.0)
    assert rank.frequency(a_memory(recalled_count=10_000)) == 1.0
    assert rank.frequency(a_memory(recalled_count=1)) < rank.frequency(a_memory(recalled_count=2))


@quick
@given(st.floats(0.0, 1000.0), st.floats(0.0, 1000.0))
def test_bm25_saturates(one: float, other: float) -> None:
    """bm25 is brought to 0–1 and keeps its order."""
    one, other = sorted((one, other))
    assert 0.0 <= rank.saturated(one) <= rank.saturated(other) < 1.0


@quick
@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000))
def test_a_rare_word_weighs_more(uses: int, more: int, size: int) -> None:
    """The weight of a word is above zero and never rises with its uses."""
    assert rank.rarity(uses, size) >= rank.rarity(uses + more, size) > 0.0


def test_coverage_is_the_share_held() -> None:
    """Coverage is the weight of the held words over the weight of all; nothing asked is nothing covered."""
    assert rank.coverage({"a": 3.0, "b": 1.0}, {"a", "x"}) == 0.75
    assert rank.coverage({"a": 1.0}, {"a"}) == 1.0
    assert rank.coverage({"a": 1.0}, set()) == 0.0
    assert rank.coverage({}, {"a"}) == 0.0


@quick
@given(st.permutations(range(8)), st.dictionaries(st.integers(4, 7), st.sets(st.integers(0, 3)), max_size=4))
def test_what_gives_way_stands_behind_and_all_else_as_before(order: list[int], ahead: dict[int, set[int]]) -> None:
    """Each memory stands behind all that go ahead of it, and those that give way to nothing keep their order."""
    found = precedence.behind(order, ahead)
    assert sorted(found) == sorted(order)
    assert [one for one in found if not ahead.get(one)] == [one for one in order if not ahead.get(one)]
    assert all(found.index(high) < found.index(low) for low, some in ahead.items() for high in some)
