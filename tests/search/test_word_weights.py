"""Weights of words: the small sums that evidence is made from."""

from __future__ import annotations

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect.search.word_weights import coverage, rarity, saturated

quick = hypothesis_settings(deadline=None, database=None)


@quick
@given(st.floats(0.0, 1000.0), st.floats(0.0, 1000.0))
def test_bm25_saturates(one: float, other: float) -> None:
    """bm25 is brought to 0–1 and keeps its order."""
    one, other = sorted((one, other))
    assert 0.0 <= saturated(one) <= saturated(other) < 1.0


@quick
@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000))
def test_a_rare_word_weighs_more(uses: int, more: int, size: int) -> None:
    """The weight of a word is above zero and never rises with its uses."""
    assert rarity(uses, size) >= rarity(uses + more, size) > 0.0


def test_coverage_is_the_share_held() -> None:
    """Coverage is the weight of the held words over the weight of all; nothing asked is nothing covered."""
    assert coverage({"a": 3.0, "b": 1.0}, {"a", "x"}) == 0.75
    assert coverage({"a": 1.0}, {"a"}) == 1.0
    assert coverage({"a": 1.0}, set()) == 0.0
    assert coverage({}, {"a"}) == 0.0
