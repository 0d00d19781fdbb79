"""Periods: the days that a query names, and how well a moment fits them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect.search.periods import Period, fit, named_period
from recollect.text.terms import date_in_words

quick = hypothesis_settings(deadline=None, database=None)
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)  # a Sunday
ON = datetime(2023, 5, 7, 15, 30, tzinfo=UTC)


def period(first: str, days: int = 1, *, yearly: bool = False) -> Period:
    return Period(datetime.fromisoformat(first), days, yearly)


MAY = period("2000-05-01", 31, yearly=True)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("What happened on 7 May 2023?", period("2023-05-07")),
        ("May 7th, 2023", period("2023-05-07")),
        ("the outage on 2026-03-19?", period("2026-03-19")),
        ("the figures of 2026-03", period("2026-03-01", 31)),
        ("rechnung vom 13.03.2025", period("2025-03-13")),
        ("on the 22nd of june", period("2000-06-22", yearly=True)),
        ("the trip of 12 to 14 October", period("2000-10-14", yearly=True)),
        ("Who came in October?", period("2000-10-01", 31, yearly=True)),
        ("Who came in May?", MAY),
        ("who came in may", MAY),
        ("may 2023 figures", period("2023-05-01", 31)),
        ("the 2019 fair in March", period("2019-03-01", 31)),
        ("What did she buy in October for 2 kids?", period("2000-10-01", 31, yearly=True)),
        ("The 3 fairs of April", period("2000-04-01", 30, yearly=True)),
        ("Is it late? May we go in June?", period("2000-06-01", 30, yearly=True)),
        ("how was the deploy done in 2025", period("2025-01-01", 365)),
        ("last month's billing export", period("2026-10-01", 31)),
        ("what did we decide yesterday", period("2026-11-21")),
        ("what broke last Tuesday", period("2026-11-17")),
        ("what I did since Monday", period("2026-11-16")),
        ("the talk two weeks ago", period("2026-11-02", 7)),
        ("where we lived 4 years ago", period("2022-01-01", 365)),
        ("plans of this week", period("2026-11-16", 7)),
        ("may I", None),
        ("May I come in?", None),
        ("They may come", None),
        ("the 7th", None),
        ("31 June", None),
        ("2026-13-45", None),
        ("port 2024 and version 3.11.2", None),
        ("sun and sat are days", None),
        ("", None),
    ],
)
def test_the_period_that_a_query_names(query: str, named: Period | None) -> None:
    """A day, a week, a month or a year, named or relative to now; may is a month only where it cannot be the verb."""
    assert named_period(query, NOW) == named


@quick
@given(st.datetimes(datetime(1900, 1, 1), datetime(2099, 12, 31)))
def test_a_written_date_is_read_again(moment: datetime) -> None:
    """What is written of a date, a query that holds it names, and the moment fits it wholly."""
    named = named_period(f"What happened on {date_in_words(moment)}?", NOW)
    assert named == Period(moment.replace(hour=0, minute=0, second=0, microsecond=0), 1)
    assert fit(named, moment.replace(tzinfo=UTC)) == 1.0


@quick
@given(st.text(alphabet="0127 May,june.thlaswekgo-", max_size=60))
def test_a_named_period_could_be_one(query: str) -> None:
    """Whatever a query holds, what is taken for its period has days."""
    named = named_period(query, NOW)
    assert named is None or 1 <= named.days <= 366


@pytest.mark.parametrize(
    ("named", "days", "fits"),
    [
        (period("2023-05-07"), 0, 1.0),
        (period("2023-05-07"), 3, 1.0),
        (period("2023-05-07"), 4, 0.6),
        (period("2023-05-07"), 14, 0.6),
        (period("2023-05-07"), 15, 0.0),
        (period("2023-05-07"), -1, 0.6),
        (period("2023-05-07"), -3, 0.0),
        (period("2022-05-07"), 0, 0.0),
        (period("2000-05-07", yearly=True), 0, 1.0),
        (period("2000-05-07", yearly=True), 365, 0.6),
        (period("2023-05-01", 31), 24, 1.0),
        (period("2023-05-01", 31), 25, 0.5),
        (period("2023-05-01", 31), 39, 0.0),
        (period("2023-05-01", 31), -7, 0.0),
        (MAY, 365, 1.0),
        (None, 0, 0.0),
    ],
)
def test_how_well_a_moment_fits(named: Period | None, days: int, fits: float) -> None:
    """What was observed so many days after 7 May 2023 fits that day, a little less after it, or its month."""
    assert fit(named, ON + timedelta(days=days)) == fits


def test_a_period_of_any_year_is_near_over_the_new_year() -> None:
    """The last days of a year are near the first ones of the next; leap days and time zones are no error."""
    new_year = datetime(2024, 1, 1, 9, tzinfo=UTC)
    assert fit(period("2000-12-31", yearly=True), new_year) == 1.0
    assert fit(period("2000-12-01", 31, yearly=True), new_year) == 0.5
    assert fit(period("2000-01-01", yearly=True), new_year - timedelta(days=1)) == 0.6
    assert fit(period("2000-02-29", yearly=True), datetime(2023, 3, 2, tzinfo=UTC)) == 1.0
    assert fit(period("2023-05-07"), ON.astimezone(timezone(timedelta(hours=2)))) == 1.0
