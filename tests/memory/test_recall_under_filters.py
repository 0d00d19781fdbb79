"""Every filter through a real recall: what passes is found, although everything that is nearer fails the filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from test_without_model import cold

from callers import ADA
from recollect import App, Caller, Draft, Query, Settings, recall, remember
from stores import open_app

pytestmark = pytest.mark.slow

SIZE = 300
DAY = datetime(2025, 5, 7, 12, tzinfo=UTC)
NEAR = "To restart the payment service ask the crew of area {} first"
RARE = (
    "A stuck payment service comes back after its queue was drained",
    "The payment service needs a restart whenever its certificate was renewed",
    "When payments hang, start the service again on the replica",
)
LABELS: dict[str, Any] = {
    "fact_type": "case",
    "category": "incident",
    "type": "bugfix",
    "tags": ("Outage", "payments"),
    "concepts": ("gotcha", "problem-solution"),
    "project": "atlas",
    "session_id": "night-shift",
    "files_modified": ("ops/runbooks/restart.md",),
    "observed_at": DAY,
    "sensitivity": "private",
}
ASKED: dict[str, dict[str, Any]] = {
    "fact_type": {"fact_type": "cases"},
    "category": {"category": "incident"},
    "type": {"type": "bugfix"},
    "tag": {"tags": "OUTAGE"},
    "tags": {"tags": ["payments", "outage"]},
    "concepts": {"concepts": ["gotcha", "problem-solution"]},
    "project": {"project": "atlas"},
    "session_id": {"session_id": "night-shift"},
    "file": {"file": "restart.md"},
    "folder": {"file": ".\\ops\\runbooks\\"},
    "until": {"until": "2025-05-07"},
    "since and until": {"since": DAY, "until": DAY},
    "sensitivity": {"sensitivity": "private"},
    "everything": {"type": "bugfix", "tags": "outage", "file": "ops", "until": DAY, "session_id": "night-shift"},
}


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Return a store of hundreds of memories on one subject, three of which have what the filters ask for."""
    home = tmp_path_factory.mktemp("filtered")
    settings = Settings(home=home, user="ada", team="crew", project="engine")
    with open_app(settings) as app:
        for number in range(SIZE):
            remember(
                app, Draft(content=NEAR.format(number), tags=("payments",), files_read=("ops/restart.md.txt",)), ADA
            )
        for content in RARE:
            remember(app, Draft(content=content, **LABELS), ADA)
        yield app


def contents(app: App, query: str = "restart the payment service", **asked: Any) -> list[str]:
    """Return what is recalled, best first, of a caller who is let in on what is private."""
    return [hit.memory.content for hit in recall(app, Query(query=query, allow_private=True, **asked), ADA).hits]


def test_without_a_filter_the_others_are_nearer(crowd: App) -> None:
    """None of the few is among the first ten when nobody filters."""
    assert not set(contents(crowd)) & set(RARE)


@pytest.mark.parametrize("limit", [1, 3, 10])
@pytest.mark.parametrize("name", ASKED)
def test_a_filter_gives_as_many_as_there_are(crowd: App, name: str, limit: int) -> None:
    """Under a filter that 1 % passes there are as many hits as asked, or all that pass."""
    hits = contents(crowd, limit=limit, **ASKED[name])
    assert len(hits) == min(limit, len(RARE))
    assert set(hits) <= set(RARE)


class Strict:
    """The real model with a card by which no match is good enough."""

    def __init__(self, embedder: Any) -> None:
        self._embedder = embedder
        self.card = replace(embedder.card, floor=1.0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)


@pytest.mark.parametrize("name", ASKED)
def test_whoever_asks_for_all_that_passes_gets_it(crowd: App, name: str) -> None:
    """With a lowest score of 0 there is no floor, filtered or not; otherwise the answer is that nothing is relevant."""
    strict, query = replace(crowd, embedder=Strict(crowd.embedder)), "zebras of the savannah"
    assert len(contents(strict, query, min_score=0.0, profile="relevance")) == 10
    assert contents(strict, query, **ASKED[name]) == []
    assert set(contents(strict, query, min_score=0.0, profile="relevance", **ASKED[name])) == set(RARE)
    assert len(contents(strict, query, min_score=0.0, limit=2, **ASKED[name])) == 2


def test_a_filter_that_keeps_nearly_all_fills_the_limit(crowd: App) -> None:
    """Where nearly everything passes there are as many hits as asked, the nearest of all among them."""
    hits = contents(crowd, limit=60, tags="Payments", sensitivity="public")
    assert len(hits) == 60
    assert not set(hits) & set(RARE)
    assert NEAR.format(217) in contents(crowd, NEAR.format(217), limit=5, tags="payments")


@pytest.mark.parametrize(
    "query",
    ["restart the payment service", "certificate", "queue drained", "Why do payments hang?", "replica", "paymnet queu"],
)
@pytest.mark.parametrize("name", ["category", "tags", "file", "until"])
def test_no_filter_hides_what_is_found_without_it(crowd: App, query: str, name: str) -> None:
    """Whatever is a hit without a filter and passes it is a hit with it."""
    without = set(contents(crowd, query, limit=100))
    assert without & set(RARE) <= set(contents(crowd, query, **ASKED[name]))


def test_a_filter_opens_nothing(crowd: App) -> None:
    """No filter shows what is private to a caller who is not let in, or anything to another team."""
    for asked in ASKED.values():
        if "sensitivity" not in asked:
            query = Query(query="restart the payment service", min_score=0.0, **asked)
            assert recall(crowd, query, ADA).hits == ()
            assert recall(crowd, query, Caller(user="eve", team="other", project="engine")).hits == ()
    past_the_checks = Query(query="restart").model_copy(update={"sensitivity": "private"})
    assert recall(crowd, past_the_checks, ADA).hits == ()


def test_words_find_what_waits_for_the_model(open_store: Callable[..., App]) -> None:
    """Before the model is there, a filter finds by words, by typo, and with no lowest score whatever passes."""
    app = cold(open_store(background=False))
    for number in range(60):
        remember(app, Draft(content=NEAR.format(number)), ADA)
    for content in RARE:
        remember(app, Draft(content=content, **LABELS), ADA)
    for asked in ASKED.values():
        assert set(contents(app, "payment service certificate", min_score=0.0, **asked)) == set(RARE)
        assert contents(app, "certificate", **asked) == [RARE[1]]
        assert contents(app, "certifcate", min_score=0.0, limit=1, **asked) == [RARE[1]]
        assert set(contents(app, "zebras", min_score=0.0, **asked)) == set(RARE)
        assert contents(app, "zebras", **asked) == []
