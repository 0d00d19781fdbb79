"""A query that names a time: what is of it comes higher, the more so the less else is of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from callers import ADA
from clock import Clock
from recollect import App, Draft, Query, recall, remember
from recollect.search import periods

FAILURES = (
    "The nightly export failed because the certificate of the bank had expired.",
    "The nightly export failed because the disk of the worker was full.",
    "The nightly export failed because two jobs waited for one lock.",
    "The nightly export failed because a column was renamed.",
    "The nightly export failed because the queue was paused by hand.",
    "The nightly export failed because the clock of one host was slow.",
)
BESIDE = (
    "Ilse prefers tea to coffee in meetings.",
    "The office moved to the third floor.",
    "Fridays are free of meetings.",
)


@pytest.fixture(autouse=True)
def notes(app: App, clock: Clock) -> None:
    """Store a failure a month from January on, and what has nothing to do with them in March."""
    clock.now = datetime(2026, 11, 22, tzinfo=UTC)
    for month, content in enumerate(FAILURES, 1):
        remember(app, Draft(content=content, observed_at=datetime(2026, month, 12, tzinfo=UTC)), ADA)
    for content in BESIDE:
        remember(app, Draft(content=content, observed_at="2026-03-20"), ADA)


def shown(app: App, query: str) -> list[str]:
    return [hit.memory.content for hit in recall(app, Query(query=query, min_score=0.0), ADA).hits]


@pytest.mark.parametrize(("month", "place"), [("January", 0), ("February", 1), ("April", 3), ("June", 5)])
def test_the_note_of_the_named_month_comes_first(app: App, month: str, place: int) -> None:
    """Six notes match alike, and the month tells which is meant."""
    assert shown(app, f"Why did the nightly export fail in {month}?")[0] == FAILURES[place]


@pytest.mark.parametrize(
    "query", ["Why did the nightly export fail in March?", "What broke the payments run at the bank in March?"]
)
def test_what_does_not_match_stays_behind_what_does(app: App, query: str) -> None:
    """Being of the month makes no answer of a memory about something else, even where the answers match little."""
    assert set(shown(app, query)[:6]) == set(FAILURES)


def test_a_time_that_all_are_of_changes_nothing(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of a period that every memory is of stays in the order of its match."""
    query = "Why did the nightly export fail in 2026?"
    whole = shown(app, query)
    monkeypatch.setattr(periods, "fit", lambda _period, _moment: 0.0)
    assert whole == shown(app, query)
