"""Rerank fusion: a reranker orders the best candidates together with the match, and leaves the level to the match."""

from __future__ import annotations

import math
import random

import pytest

from recollect.search.rerank import fused

MATCHES = {1: 0.6, 2: 0.5, 3: 0.3, 4: 0.1, 5: 0.04}


def log_odds(share: float) -> float:
    return math.log(share / (1.0 - share))


def order(matches: dict[int, float]) -> list[int]:
    """Return the candidates, best first."""
    return sorted(matches, key=lambda one: -matches[one])


def test_no_scores_change_nothing() -> None:
    """Without any scores the matches stay as they are, and are a copy."""
    unchanged = fused(MATCHES, {})
    assert unchanged == MATCHES
    assert unchanged is not MATCHES


@pytest.mark.parametrize("score", [0.0, 1e-5, 0.02, 0.5, 0.98, 1.0])
def test_scores_that_tell_nothing_apart_change_nothing(score: float) -> None:
    """Where the reranker finds all equally good, however good, every match stays to the last digit."""
    assert fused(MATCHES, dict.fromkeys(MATCHES, score)) == MATCHES


def test_a_single_candidate_keeps_its_match() -> None:
    """A score that can be compared with no other moves nothing."""
    assert fused({1: 0.3}, {1: 0.99}) == {1: 0.3}


def test_the_one_relevant_candidate_comes_first() -> None:
    """A candidate that alone is judged relevant overtakes all, and is likelier relevant than not."""
    scores = {1: 1e-4, 2: 1e-4, 3: 1e-4, 4: 0.99, 5: 1e-4}
    found = fused(MATCHES, scores)
    assert order(found) == [4, 1, 2, 3, 5]
    assert found[4] > 0.6
    assert all(found[one] <= MATCHES[one] for one in (1, 2, 3, 5))


def test_a_single_irrelevant_candidate_falls() -> None:
    """A candidate that alone is judged irrelevant falls far; the others keep their matches."""
    found = fused(MATCHES, {1: 1e-4, 2: 0.9, 3: 0.9, 4: 0.9, 5: 0.9})
    assert found[1] < 0.1
    assert {one: found[one] for one in (2, 3, 4, 5)} == {one: MATCHES[one] for one in (2, 3, 4, 5)}


def test_the_order_is_that_of_a_convex_mix() -> None:
    """For any matches and scores the judged are ordered by five parts of the match's log-odds, two of the score's."""
    chance = random.Random(5)
    for _ in range(200):
        matches = {number: chance.uniform(0.001, 0.99) for number in range(30)}
        scores = {number: chance.uniform(0.001, 0.999) ** chance.choice((1, 3)) for number in range(30)}
        mixed = {one: (5 * log_odds(matches[one]) + 2 * max(log_odds(scores[one]), -8)) / 7 for one in matches}
        assert order(fused(matches, scores)) == order(mixed)


def test_the_least_bad_is_not_called_relevant() -> None:
    """Where the reranker finds nothing relevant, it changes the order, and the best match rises no higher."""
    matches = {1: 0.02, 2: 0.015, 3: 0.012, 4: 0.01}
    found = fused(matches, {1: 1e-5, 2: 0.02, 3: 1e-5, 4: 1e-5})
    assert order(found)[0] == 2
    assert max(found.values()) == pytest.approx(0.02)


def test_the_best_rises_as_far_as_the_reranker_is_sure() -> None:
    """The log-odds of the best match rise by at most 0.4 of those of the best score."""
    matches = {1: 0.05, 2: 0.04, 3: 0.03}
    found = fused(matches, {1: 0.9, 2: 1e-5, 3: 1e-5})
    assert log_odds(found[1]) <= log_odds(0.05) + 0.4 * log_odds(0.9) + 1e-9
    assert found[1] > 0.05


def test_candidates_that_were_not_judged_keep_their_match() -> None:
    """Whoever the reranker did not look at keeps its match to the last digit."""
    found = fused(MATCHES, {1: 0.01, 2: 0.9})
    assert found.keys() == MATCHES.keys()
    assert [found[one] for one in (3, 4, 5)] == [MATCHES[one] for one in (3, 4, 5)]
    assert order(found)[0] == 2


def test_extremes_stay_within_bounds() -> None:
    """Matches and scores of exactly 0 and 1 give matches within 0–1, still in a sensible order."""
    found = fused({1: 1.0, 2: 0.0, 3: 0.5, 4: 0.0}, {1: 0.0, 2: 1.0, 3: 1.0, 4: 0.0})
    assert all(0.0 <= match <= 1.0 for match in found.values())
    assert found[2] > found[4]
    assert found[3] > found[4]
