"""The calendar: a day is a range of instants in the zone of whoever asks, also where clocks change."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from recollect.domain import calendar
from recollect.domain.requests import Caller, Filters
from recollect.errors import InvalidInput

SECOND = timedelta(seconds=1)


def day_in(zone: str, day: str) -> calendar.Range:
    """Return a day of a zone."""
    with calendar.in_zone(ZoneInfo(zone)):
        return calendar.days(date.fromisoformat(day))


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("UTC", "2026-03-29", 24),
        ("Asia/Tokyo", "2026-11-29", 24),
        ("Europe/Berlin", "2026-03-29", 23),
        ("Europe/Berlin", "2026-10-25", 25),
        ("America/New_York", "2026-11-01", 25),
        ("America/Santiago", "2026-09-06", 23),
        ("Africa/Cairo", "2026-04-24", 23),
        ("Australia/Lord_Howe", "2026-04-05", 24.5),
        ("Pacific/Apia", "2011-12-30", 0),
    ],
)
def test_a_day_is_as_long_as_its_clocks_say(zone: str, day: str, hours: float) -> None:
    """Days on which clocks change are longer or shorter, also where they change at midnight."""
    found = day_in(zone, day)
    assert found.last - found.first + timedelta(microseconds=1) == timedelta(hours=hours)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Santiago", "America/Havana", "Africa/Cairo", "Asia/Tokyo"])
def test_each_instant_is_in_one_day(zone: str) -> None:
    """A year of days follow each other without a gap, and each begins and ends on its own date."""
    days = [date(2026, 1, 1) + timedelta(days=number) for number in range(366)]
    ranges = [day_in(zone, day.isoformat()) for day in days]
    for day, one, following in zip(days, ranges, ranges[1:], strict=False):
        assert one.last + timedelta(microseconds=1) == following.first
        assert {at.astimezone(ZoneInfo(zone)).date() for at in one} == {day}


def test_a_request_reads_days_in_the_zone_of_whoever_asks() -> None:
    """A day is meant from its midnight to its end there, a time without a zone too; what names a zone keeps it."""
    with calendar.in_zone(ZoneInfo("Asia/Tokyo")):
        asked = Filters(since="2026-11-29", until="2026-11-29")
        timed = Filters(since="2026-11-29T01:30", until="2026-11-29T01:30Z")
        given = Filters(since=date(2026, 11, 29))
    assert (asked.since, asked.until) == day_in("Asia/Tokyo", "2026-11-29")
    assert timed.since == datetime(2026, 11, 28, 16, 30, tzinfo=UTC)
    assert timed.until == datetime(2026, 11, 29, 1, 30, tzinfo=UTC)
    assert given.since == asked.since


@pytest.mark.parametrize(
    ("name", "meant"),
    [("Asia/Tokyo", 9), (":Asia/Tokyo", 9), ("/usr/share/zoneinfo/Asia/Tokyo", 9), ("UTC", 0), ("Asia/Kolkata", 5.5)],
)
def test_the_machine_names_its_zone(monkeypatch: pytest.MonkeyPatch, name: str, meant: float) -> None:
    """The variable TZ counts, in each form that names a zone."""
    monkeypatch.setenv("TZ", name)
    assert datetime(2026, 7, 1, tzinfo=calendar.local_zone()).utcoffset() == timedelta(hours=meant)
    assert calendar.machine_zone() == name.rpartition("zoneinfo/")[2].removeprefix(":")


def test_a_machine_without_a_named_zone_has_its_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where TZ holds a rule in place of a name, nothing is refused, and nobody else is told a name."""
    monkeypatch.setenv("TZ", "JST-9")
    assert calendar.machine_zone() == ""
    assert calendar.instant(datetime(2026, 7, 1)).tzinfo is UTC


def test_an_unknown_zone_is_refused() -> None:
    """The error says what a zone is called."""
    for name in ("Mars/Olympus", "../etc/passwd", "/etc/localtime", "\0"):
        with pytest.raises(InvalidInput, match="Invalid zone: Must be the name of a time zone, such as"):
            Caller(user="ada", project="engine", zone=name)
