"""Recall under filters: what few memories hold is found as surely as what all hold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from callers import ADA
from recollect import App, Draft, Query, Settings, recall, remember
from recollect.domain.enums import FactType
from stores import open_app

pytestmark = pytest.mark.slow

SIZE = 400
RARE = {
    "incident": ["The payment outage was caused by an expired certificate"],
    "runbook": [
        "To restart the payment gateway drain it first",
        "To restart the payment worker send it a signal",
        "To restart the payment database fail over to the replica",
    ],
}
AREAS = ("billing", "search", "login", "mail")


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Return a store of some hundred memories that speak of payments too, few of which have the wanted label."""
    home = tmp_path_factory.mktemp("crowd")
    settings = Settings(home=home, user="ada", team="crew", project="engine")
    with open_app(settings) as app:
        for number in range(SIZE - 4):
            area = AREAS[number % len(AREAS)]
            content = f"To restart the payment service number {number} ask the {area} crew first"
            remember(app, Draft(content=content, category=area), ADA)
        for category, contents in RARE.items():
            for content in contents:
                remember(app, Draft(content=content, category=category, fact_type=FactType.CASE), ADA)
        yield app


@pytest.mark.full
@pytest.mark.parametrize("category", RARE)
def test_a_rare_category_gives_all_it_has(crowd: App, category: str) -> None:
    """A category that 0.25 % or 0.75 % of the store have gives every one of its memories, and no other."""
    hits = recall(crowd, Query(query="restart the payment after an outage", category=category), ADA).hits
    assert {hit.memory.content for hit in hits} == set(RARE[category])


@pytest.mark.full
@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_a_rare_fact_type_gives_as_many_as_asked(crowd: App, limit: int) -> None:
    """A fact type that 1 % of the store have gives `limit` hits whenever there are so many."""
    hits = recall(crowd, Query(query="restart the payment after an outage", fact_type="cases", limit=limit), ADA).hits
    assert len(hits) == limit
    assert {hit.memory.fact_type for hit in hits} == {FactType.CASE}


def test_a_rare_memory_is_found_by_meaning(crowd: App) -> None:
    """Under a filter a memory is found by meaning alone, although hundreds without the label are nearer."""
    query = "Why could nobody settle their invoices?"
    hits = recall(crowd, Query(query=query, category="incident", min_score=0.0), ADA).hits
    assert [hit.memory.content for hit in hits] == RARE["incident"]


def test_filters_are_taken_together(crowd: App) -> None:
    """Two filters give what meets both; a label that nobody has gives nothing."""
    query = "restart the payment"
    both = recall(crowd, Query(query=query, category="runbook", fact_type="case"), ADA).hits
    assert len(both) == 3
    assert recall(crowd, Query(query=query, category="runbook", fact_type="general"), ADA).hits == ()
    assert recall(crowd, Query(query=query, category="nobody has this"), ADA).hits == ()


def test_a_common_category_fills_the_limit(crowd: App) -> None:
    """A category that a quarter of the store have gives as many as asked, all of it."""
    hits = recall(crowd, Query(query="restart the payment service", category="mail", limit=50), ADA).hits
    assert len(hits) == 50
    assert {hit.memory.category for hit in hits} == {"mail"}


def test_one_among_hundreds_that_look_alike_is_found(crowd: App) -> None:
    """A number tells memories apart that are otherwise the same."""
    assert " number 217 " in recall(crowd, Query(query="payment service number 217"), ADA).hits[0].memory.content
