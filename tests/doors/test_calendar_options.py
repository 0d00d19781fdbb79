"""One calendar at every door: the same day is meant by a word and by a date, in the zone of whoever asks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from callers import ADA
from clock import Clock
from recollect import App
from recollect.doors.handlers import perform

EDGES = ("Pacific/Kiritimati", "Etc/GMT+12", "Asia/Tokyo", "America/New_York")  # one is on another day than UTC
Typed = Callable[..., Any]


def day(zone: str, ago: int = 0) -> str:
    """Return the date that it is in a zone, or was."""
    return (datetime.now(ZoneInfo(zone)) - timedelta(days=ago)).date().isoformat()


@pytest.mark.parametrize("zone", EDGES)
def test_today_is_the_same_day_as_a_word_and_as_a_date(typed: Typed, zone: str) -> None:
    """What was stored just now is of today and not of yesterday, by the machine's zone and by the one that is set."""
    assert typed("remember", "We deploy on Fridays").code == 0
    for surroundings in ({"TZ": zone}, {"TZ": "UTC", "RECOLLECT_TIME_ZONE": zone}):
        for today, yesterday in (("today", "yesterday"), (day(zone), day(zone, 1))):
            assert typed("list", "--since", today, "--json", **surroundings).json["total"] == 1
            assert typed("list", "--until", today, "--json", **surroundings).json["total"] == 1
            assert typed("list", "--until", yesterday, "--json", **surroundings).json["total"] == 0


@pytest.mark.parametrize("zone", EDGES)
def test_what_ends_yesterday_is_refused(typed: Typed, zone: str) -> None:
    """A day that is over is refused as a date and as a word, and one that is not over is taken as both."""
    for over in ("yesterday", day(zone, 1)):
        assert typed("remember", "We deploy on Fridays", "--expires", over, TZ=zone).code == 2
    for left in ("today", day(zone), "tomorrow"):
        assert typed("remember", f"We deploy until {left}", "--expires", left, TZ=zone).code == 0


def test_figures_are_read_in_the_order_of_the_locale(typed: Typed) -> None:
    """What another country reads otherwise is named as it was understood, or refused with both days."""
    british = typed("list", "--since", "04/03/2026", LC_ALL="en_GB.UTF-8")
    assert (british.code, british.err.strip()) == (0, "`04/03/2026` is read as 4 March 2026.")
    american = typed("list", "--since", "04/03/2026", LC_ALL="en_US.UTF-8")
    assert (american.code, american.err.strip()) == (0, "`04/03/2026` is read as 3 April 2026.")
    assert typed("list", "--since", "03.04.2026", LC_ALL="C").err.strip() == "`03.04.2026` is read as 3 April 2026."
    unknown = typed("list", "--since", "04/03/2026", LC_ALL="C.UTF-8")
    assert unknown.code == 2
    assert "may be 4 March 2026 or 3 April 2026: type `2026-03-04` or `2026-04-03`" in " ".join(unknown.err.split())
    assert typed("remember", "x", "--expires", "31/02/2031", LC_ALL="en_GB").code == 2


def test_an_operation_reads_days_in_the_zone_of_its_caller(app: App) -> None:
    """A request that comes as JSON means days of the caller's zone."""
    perform(app, "remember", {"content": "We chose Redis for the queue", "observed_at": "2026-11-29T01:30"}, tokyo())
    for since, until, count in (("2026-11-29", "2026-11-29", 1), ("2026-11-28", "2026-11-28", 0)):
        asked = {"since": since, "until": until}
        assert perform(app, "list_memories", asked, tokyo()).total == count
        assert perform(app, "list_memories", asked, ADA.model_copy(update={"zone": "UTC"})).total == 1 - count


def test_a_question_about_today_means_the_day_of_its_caller(app: App, clock: Clock) -> None:
    """What was decided on the same day there comes first, though it was another day in UTC."""
    for text, moment in (
        ("I decided to keep the cron job", datetime(2026, 11, 24, 9, tzinfo=UTC)),
        ("I decided to drop the cron job", datetime(2026, 11, 28, 16, tzinfo=UTC)),
    ):
        clock.now = moment
        perform(app, "remember", {"content": text}, tokyo())
    clock.now = datetime(2026, 11, 28, 16, 43, tzinfo=UTC)
    found = perform(app, "recall", {"query": "what did I decide today"}, tokyo()).hits
    assert found[0].memory.content == "I decided to drop the cron job"
    assert (found[0].parts["period"] > 0, found[0].match >= 0.2) == (True, True)


def tokyo() -> Any:
    """Return Ada in Tokyo."""
    return ADA.model_copy(update={"zone": "Asia/Tokyo"})
