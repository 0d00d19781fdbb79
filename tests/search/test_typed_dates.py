"""Dates as people type them: words by the calendar here, figures in the order of whoever types."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from recollect.search.typed_dates import Ambiguous, date_order, day_in_figures, named_moment

BERLIN = ZoneInfo("Europe/Berlin")
WINTER = datetime(2026, 12, 1, 1, 43, tzinfo=BERLIN)
AFTER_CHANGE = datetime(2026, 10, 25, 4, 30, tzinfo=BERLIN)  # clocks went back at three
CASES = [
    ("today", WINTER, False, "2026-11-30T23:00"),
    ("yesterday", WINTER, True, "2026-11-30T22:59:59.999999"),
    ("July 2026", WINTER, False, "2026-06-30T22:00"),
    ("July 2026", WINTER, True, "2026-07-31T21:59:59.999999"),
    ("2026-07", WINTER, False, "2026-06-30T22:00"),
    ("last week", datetime(2026, 4, 1, 12, tzinfo=BERLIN), True, "2026-03-29T21:59:59.999999"),
    ("3 hours ago", AFTER_CHANGE, False, "2026-10-25T00:30"),
    ("25 October 2026", WINTER, False, "2026-10-24T22:00"),
    ("25 October 2026", WINTER, True, "2026-10-25T22:59:59.999999"),
]


@pytest.mark.parametrize(("words", "now", "end", "meant"), CASES)
def test_words_mean_moments_by_the_calendar_there(words: str, now: datetime, end: bool, meant: str) -> None:
    """A day of another season has the offset of that season, and so many hours are so many on any day."""
    assert named_moment(words, now, end=end) == datetime.fromisoformat(meant).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("figures", "order", "day"),
    [
        ("04/03/2026", "DMY", date(2026, 3, 4)),
        ("04/03/2026", "MDY", date(2026, 4, 3)),
        ("4-3-2026", "MDY", date(2026, 4, 3)),
        ("13/04/2026", "", date(2026, 4, 13)),
        ("04/13/2026", "", date(2026, 4, 13)),
        ("04/04/2026", "", date(2026, 4, 4)),
        ("03.04.2026", "MDY", date(2026, 4, 3)),
        ("2026/04/03", "DMY", date(2026, 4, 3)),
        ("2026.4.3", "", date(2026, 4, 3)),
        ("04/03/26", "DMY", None),
        ("yesterday", "DMY", None),
    ],
)
def test_figures_are_read_in_the_order_of_a_locale(figures: str, order: str, day: date | None) -> None:
    """What can be one day only needs no order; after a year come month and day, before points the day."""
    found = day_in_figures(figures, order)
    assert (found and found.day) == day


def test_figures_that_may_be_two_days_are_named() -> None:
    """Without an order both days are in the error; with one it is said that another one was possible."""
    with pytest.raises(Ambiguous, match="4 March 2026 or 3 April 2026"):
        day_in_figures("04/03/2026", "")
    doubtful = [day_in_figures(one, "DMY") for one in ("04/03/2026", "03.04.2026", "13/04/2026", "2026/03/04")]
    assert [one is not None and one.doubtful for one in doubtful] == [True, True, False, False]
    with pytest.raises(ValueError, match="day"):
        day_in_figures("31.02.2026", "DMY")


@pytest.mark.parametrize(
    ("locale", "order"),
    [
        *(("en_US.UTF-8", "MDY"), ("en_GB", "DMY"), ("de_DE.UTF-8", "DMY"), ("ja_JP.UTF-8", "YMD"), ("fr", "DMY")),
        *(("C.UTF-8", ""), ("POSIX", ""), ("", ""), ("xx_YY", "")),
    ],
)
def test_a_locale_has_an_order(locale: str, order: str) -> None:
    """The country counts, else the language; the locale of programs has none."""
    assert date_order(locale) == order
