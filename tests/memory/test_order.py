"""The order of hits in a real store: what repeats a rule, and what is shown at all."""

from __future__ import annotations

import pytest

from callers import ADA
from recollect import App, Query, recall
from recollect.domain.origin import SaidBy
from recollect.search.match import least_match
from run_operations import add

RULE = "We deploy the billing service from the branch release-stable."
QUESTION = "From which branch do we deploy the billing service?"


def test_what_repeats_a_rule_does_not_contradict_it(app: App) -> None:
    """A report that quotes what was told stands behind it, without a warning; a page that quotes it may deny it."""
    rule = add(app, RULE)
    report = add(app, f"Read the rules of the project. {RULE}", ADA.saying(SaidBy.REPORT))
    page = add(app, f"Outdated: {RULE} Use release-canary.", ADA.saying(SaidBy.WEB, "https://docs.example.com/deploys"))
    hits = {hit.memory.id: hit.contradicts for hit in recall(app, Query(query=QUESTION), ADA).hits}
    assert next(iter(hits)) == rule
    assert (hits[rule], hits[report], hits[page]) == (None, None, rule)


def test_the_best_match_decides_what_answers() -> None:
    """Below the floor nothing answers; from it on all that is not far worse than the best does."""
    assert least_match(0.04, 0.039) == 0.04
    assert least_match(0.04, 0.04) < 0.01
    assert least_match(0.04, 1.0) == pytest.approx(0.08)
