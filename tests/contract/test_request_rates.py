"""Limits on requests, on each database: one bucket a user and a team, whichever replica a request comes to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest
from sqlalchemy import Connection, event

from account_admin import Office
from clock import Clock
from recollect.auth.principal import Principal
from recollect.domain.limits import Holder, HolderKind, Resource
from recollect.store.sql.database import Database
from recollect.store.sql.request_rates import Allowance, RequestRates

ADA, BOB, CREW = (
    Holder(HolderKind.USER, "ada"),
    Holder(HolderKind.USER, "bob"),
    Holder(HolderKind.TEAM, "crew"),
)


def allowed(holder: Holder, minute: int = 0, day: int = 0) -> Allowance:
    """Return how often a holder may ask; 0 is any number."""
    return Allowance(holder, {Resource.REQUESTS_MINUTE: minute, Resource.REQUESTS_DAY: day})


@pytest.fixture
def rates(database: Database, clock: Clock) -> RequestRates:
    """Return what counts requests in that database."""
    return RequestRates(database, clock)


def how_many(rates: RequestRates, *allowances: Allowance, most: int = 1_000) -> int:
    """Return how many requests are taken until one is refused."""
    return next((number for number in range(most) if not rates.take(allowances)[0]), most)


def test_so_many_requests_come_at_once(rates: RequestRates, clock: Clock) -> None:
    """A full bucket has as many requests as the limit; then one comes back with each part of a minute."""
    six = allowed(ADA, 6)
    assert how_many(rates, six) == 6
    taken, (rate,) = rates.take([six])
    assert (taken, rate.used, rate.full_after, rate.again_after) == (False, 6, 60.0, 10.0)
    clock.now += timedelta(seconds=9.9)
    assert how_many(rates, six) == 0
    clock.now += timedelta(seconds=0.1)
    assert how_many(rates, six) == 1
    clock.now += timedelta(seconds=30)
    assert how_many(rates, six) == 3
    clock.now += timedelta(days=2)
    assert how_many(rates, six) == 6, "no more come back than the bucket holds"


@pytest.mark.parametrize("most", [1, 7, 60, 999])
def test_no_step_is_lost_in_rounding(rates: RequestRates, most: int) -> None:
    """Also where a minute or a day is no multiple of the limit, exactly so many requests come."""
    assert how_many(rates, allowed(ADA, most)) == most
    assert how_many(rates, allowed(BOB, 0, most)) == most


def test_a_day_is_longer_than_a_minute(rates: RequestRates, clock: Clock) -> None:
    """Both limits of one user hold: the day's is used up over many minutes, and says in hours when to come again."""
    both = allowed(ADA, 4, 10)
    for expected in (4, 4, 2):
        assert how_many(rates, both) == expected
        clock.now += timedelta(minutes=1)
    _, found = rates.take([both])
    waits = {rate.resource: rate.again_after for rate in found}
    assert waits[Resource.REQUESTS_MINUTE] == 0
    assert 8_000 < waits[Resource.REQUESTS_DAY] < 8_640
    clock.now += timedelta(hours=2.4)
    assert how_many(rates, both) == 1


def test_replicas_share_a_bucket(rates: RequestRates, database: Database, clock: Clock) -> None:
    """What one process takes another one has no more; the buckets of others stay full."""
    with closing(Database(database.url.render_as_string(hide_password=False))) as elsewhere:
        other = RequestRates(elsewhere, clock)
        assert [each.take([allowed(ADA, 3)])[0] for each in (rates, other, rates, other)] == [True] * 3 + [False]
        assert other.take([allowed(BOB, 3)])[0]


def test_a_refused_request_takes_nothing(rates: RequestRates) -> None:
    """Whoever is refused by their own limit takes nothing of their team's, and the other way round."""
    assert how_many(rates, allowed(ADA, 2), allowed(CREW, 3)) == 2
    assert how_many(rates, allowed(BOB, 2), allowed(CREW, 3)) == 1
    used = {rate.holder: rate.used for rate in rates.read([allowed(ADA, 2), allowed(BOB, 2), allowed(CREW, 3)])}
    assert used == {ADA: 2, BOB: 1, CREW: 3}


def test_another_limit_counts_at_once(rates: RequestRates) -> None:
    """A limit that is raised lets more in, one that is lowered fewer, and one that is taken away counts no more."""
    assert how_many(rates, allowed(ADA, 10)) == 10
    assert how_many(rates, allowed(ADA, 20)) == 0, "the minute is used up; it comes back twice as fast"
    assert how_many(rates, allowed(ADA, 0, 5)) == 5
    assert how_many(rates, allowed(ADA), most=20) == 20


def test_a_clock_that_goes_back_gives_no_requests(rates: RequestRates, clock: Clock) -> None:
    """A replica whose clock is behind refuses what the others would refuse."""
    assert how_many(rates, allowed(ADA, 5)) == 5
    clock.now -= timedelta(seconds=30)
    assert how_many(rates, allowed(ADA, 5)) == 0


@pytest.mark.parametrize("most", [1, 10])
def test_many_at_once_take_no_more_than_there_are(
    rates: RequestRates, database: Database, clock: Clock, most: int
) -> None:
    """Threads of two replicas that ask at the same moment, also for the first time, get exactly as many as allowed."""
    with closing(Database(database.url.render_as_string(hide_password=False))) as elsewhere:
        both = (rates, RequestRates(elsewhere, clock))
        for user in range(5):
            wanted = [allowed(Holder(HolderKind.USER, f"user{user}"), most), allowed(CREW, 1_000)]
            with ThreadPoolExecutor(8) as pool:
                taken = list(pool.map(lambda number, wanted=wanted: both[number % 2].take(wanted)[0], range(16)))
            assert sum(taken) == most


def test_a_request_is_one_statement(rates: RequestRates, database: Database) -> None:
    """A request towards the limits of a user and a team costs one statement; a refused one reads how they stand too."""
    sent: list[str] = []

    def note(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        if not statement.startswith(("BEGIN", "SET LOCAL")):
            sent.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    for expected in (1, 2):
        sent.clear()
        rates.take([allowed(ADA, 1), allowed(CREW, 9, 9)])
        assert len(sent) == expected


def test_a_request_is_not_written_to_the_log_of_the_database(rates: RequestRates, database: Database) -> None:
    """On PostgreSQL a request waits for no disk: the table that counts it is not logged."""
    if database.file is not None:
        return
    with database.reading() as connection:
        kind = "SELECT relpersistence FROM pg_class WHERE relname = 'request_rate'"
        assert connection.exec_driver_sql(kind).scalar_one() in ("u", b"u")


@pytest.fixture
def token(office: Office, root: Principal) -> str:
    """Return a token of a user of the team."""
    return office.join(root, "ada", team="crew").token


def test_a_principal_knows_the_limits_on_requests(office: Office, root: Principal, token: str) -> None:
    """Limits of the user and of their teams come with the rights of a token; a change counts at the next request."""
    assert office.enter(token).limits == {}
    office.do("set_limits", root, kind="user", whose="ada", requests_minute=5, memories=7)
    office.do("set_limits", root, kind="team", whose="crew", requests_day=9)
    office.do("set_limits", root, kind="user", whose="root", requests_day=1)
    assert office.enter(token).limits == {
        ADA: {Resource.REQUESTS_MINUTE: 5, Resource.MEMORIES: 7},
        CREW: {Resource.REQUESTS_DAY: 9},
    }
    office.do("clear_limits", root, kind="user", whose="ada")
    assert office.enter(token).limits == {CREW: {Resource.REQUESTS_DAY: 9}}
