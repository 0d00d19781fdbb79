"""Relevance is decided by the match alone: the same store gives the same memories at any age."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from callers import ADA
from recollect import App, Settings, recall, remember
from recollect.domain.enums import Certainty, Profile
from recollect.domain.requests import Query
from recollect.domain.results import Hit
from sample_notes import FIRST, FOREIGN, QUESTIONS, drafts
from stores import open_app

pytestmark = pytest.mark.slow

AGES = (0, 60, 700, 3_650)  # days
ALL = 100


@dataclass
class Clock:
    """A clock that stands still where it was set."""

    now: datetime = FIRST

    def __call__(self) -> datetime:
        """Return the time it was set to."""
        return self.now


@dataclass(frozen=True)
class Store:
    """A store of notes of a year, their ids in order, and its clock."""

    app: App
    clock: Clock
    ids: list[int]
    last: datetime

    def ask(self, text: str, days: int, **fields: object) -> tuple[Hit, ...]:
        """Return the hits of a query so many days after the last note was stored."""
        self.clock.now = self.last + timedelta(days=days)
        return recall(self.app, Query(query=text, limit=ALL, **fields), ADA).hits


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Return a store in which every note was stored at its own date."""
    clock = Clock()
    settings = Settings(home=tmp_path_factory.mktemp("age"), user="ada", team="crew", project="engine")
    with open_app(settings, clock=clock) as app:
        assert app.embedder.wait(60)
        ids = []
        for clock.now, draft in drafts():
            ids.append(int(remember(app, draft, ADA).id))
        app.vectors.sync()
        yield Store(app, clock, ids, clock.now)


@pytest.mark.full_cases("habit", "relevance")
@pytest.mark.parametrize("profile", Profile)
def test_the_same_memories_are_relevant_at_any_age(store: Store, profile: Profile) -> None:
    """Fresh, after two months, two years and ten years, every question brings back the same memories."""
    for text in (*(text for text, _ in QUESTIONS), *FOREIGN):
        shown = [{hit.memory.id for hit in store.ask(text, days, profile=profile)} for days in AGES]
        assert shown == [shown[0]] * len(AGES), text


@pytest.mark.parametrize("days", AGES)
def test_what_is_known_is_found_at_any_age(store: Store, days: int) -> None:
    """The note that answers is among the hits, whatever its age, importance and kind."""
    missed = [
        text for text, place in QUESTIONS if store.ids[place] not in {hit.memory.id for hit in store.ask(text, days)}
    ]
    assert missed == []


@pytest.mark.parametrize("days", AGES)
def test_what_is_unknown_stays_unknown(store: Store, days: int) -> None:
    """Questions that have nothing to do with the store bring back nothing, however fresh its notes are."""
    assert [text for text in FOREIGN if store.ask(text, days)] == []


def test_an_explicit_min_score_applies_to_the_whole_score(store: Store) -> None:
    """Above the default, age decides too: an old note falls below a `min_score` that the fresh one reaches."""
    text, _ = QUESTIONS[36 - 12]
    fresh = store.ask(text, 0)
    least = fresh[0].score - 0.01
    assert store.ask(text, 0, min_score=least)
    assert all(hit.score >= least for hit in store.ask(text, 0, min_score=least))
    assert store.ask(text, 3_650, min_score=least) == ()


def test_every_hit_says_how_sure_it_is(store: Store) -> None:
    """The better the match the surer the word, in the hit as a door shows it too."""
    order = [Certainty.WEAK, Certainty.LIKELY, Certainty.STRONG]
    asked = [hit for text, _ in QUESTIONS for hit in store.ask(text, 0, min_score=0.0)]
    hits = sorted(asked, key=lambda hit: hit.match)
    words = [order.index(hit.certainty) for hit in hits]
    assert words == sorted(words)
    assert set(words) == {0, 1, 2}
    assert {str(hit.certainty) for hit in hits} == {hit.public()["certainty"] for hit in hits}
