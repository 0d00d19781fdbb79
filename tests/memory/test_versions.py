"""What a question names comes first at any age, of versions the newest, and neither limit nor filter changes that."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

import pytest

from callers import ADA
from clock import Clock
from places import TESTS
from recollect import App, Draft, Query, Settings, recall, remember
from recollect.search.unasked import sure_matches
from stores import open_app

pytestmark = pytest.mark.slow

PAIRS = TESTS / "versions"
SIBLINGS, VERSIONS = (
    [tuple(one[name] for name in ("older", "newer", "question")) for one in tomllib.loads(file.read_text())["pair"]]
    for file in (PAIRS / "siblings.toml", PAIRS / "versions.toml")
)
SOME = 3  # of so many pairs the fast suite stores one
HOURS = (0, 5, 48, 1_440)
LIMITS = (1, 3, 10, 11, 20, 50, 100)


class Store(NamedTuple):
    """A store in which the second note of each pair was written so many hours after the first."""

    app: App
    siblings: list[tuple[str, ...]]
    versions: list[tuple[str, ...]]

    def first(self, question: str) -> str:
        """Return the content of the best hit."""
        hits = recall(self.app, Query(query=question), ADA).hits
        return hits[0].memory.content if hits else ""

    def injected(self, question: str) -> str:
        """Return what is put first before a prompt."""
        found = sure_matches(self.app, question, ADA)
        return found[0].content if found else ""


@pytest.fixture(
    scope="module",
    params=[(60 * 24, SOME), *(pytest.param((hours, 1), marks=pytest.mark.full) for hours in HOURS)],
    ids=lambda param: f"{param[0]}h-1/{param[1]}",
)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Return a store of the pairs, or of some, an hour after the last was written."""
    hours, every = request.param
    clock, siblings, versions = Clock(), SIBLINGS[::every], VERSIONS[::every]
    settings = Settings(home=tmp_path_factory.mktemp("versions"), user="ada", team="crew", project="engine")
    with open_app(settings, clock=clock) as app:
        assert app.embedder.wait(60)
        for place in (0, 1):
            for pair in (*siblings, *versions):
                remember(app, Draft(content=pair[place]), ADA)
            clock.now += timedelta(hours=hours, minutes=1)
        app.vectors.sync()
        yield Store(app, siblings, versions)


def test_what_is_asked_for_by_name_comes_first(store: Store) -> None:
    """Of two memories that differ in their subject the one that the question names leads, however old it is."""
    wrong = [question for older, _, question in store.siblings if store.first(question) != older]
    assert len(wrong) <= max(1, len(store.siblings) // 25), wrong
    wrong = [question for older, _, question in store.siblings if store.injected(question) != older]
    assert len(wrong) <= max(1, len(store.siblings) // 25), wrong


def test_of_versions_the_newest_comes_first(store: Store) -> None:
    """Of two versions of one statement the newer leads, in recall and before a prompt."""
    wrong = [question for _, newer, question in store.versions if store.first(question) != newer]
    assert len(wrong) <= max(1, len(store.versions) // 10), wrong
    wrong = [question for _, newer, question in store.versions if store.injected(question) != newer]
    assert len(wrong) <= max(1, len(store.versions) // 10), wrong


def test_the_best_do_not_depend_on_the_limit(store: Store) -> None:
    """The first ten are the same for any limit, without a filter and with one that everything passes."""
    for question in ("How are webhooks signed?", "when do we ship?", "throttling"):
        for filters in ({}, {"since": "2020-01-01"}):
            found = {
                limit: recall(store.app, Query(query=question, limit=limit, min_score=0.0, **filters), ADA).hits
                for limit in LIMITS
            }
            ids = {limit: [hit.memory.id for hit in hits] for limit, hits in found.items()}
            assert all(one[:10] == ids[10][: min(limit, 10)] for limit, one in ids.items())
            assert all(len(one) == min(limit, len(ids[100])) for limit, one in ids.items())
            scores = [hit.score for hit in found[100]]
            assert scores == sorted(scores, reverse=True)
            shown = [recall(store.app, Query(query=question, limit=limit, **filters), ADA).hits for limit in LIMITS]
            assert all([hit.memory.id for hit in hits[:10]] == ids[10][: len(hits[:10])] for hits in shown)
            assert filters or ids[10] == [
                hit.memory.id
                for hit in recall(store.app, Query(query=question, min_score=0.0, since="2020-01-01"), ADA).hits
            ]


def test_the_score_that_is_shown_is_the_one_that_counts(store: Store) -> None:
    """A higher lowest score leaves out what is below it, and changes no score of what stays."""
    every = recall(store.app, Query(query="What does a deploy to production need?", min_score=0.0), ADA).hits
    for least in (0.1, 0.35, 0.6, every[0].score):
        kept = recall(store.app, Query(query="What does a deploy to production need?", min_score=least), ADA).hits
        assert [(hit.memory.id, hit.score) for hit in kept] == [
            (hit.memory.id, hit.score) for hit in every if hit.score >= least - 1e-9
        ]
