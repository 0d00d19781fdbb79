"""How often users and teams ask, counted in the database for all replicas and workers, by a statement a request.

The generic cell rate algorithm (ITU-T I.371): for N requests in P seconds, a moment is kept for each user and team.
A request moves it P/N on from now, or from where it is if that is later, and is refused where it would then lie more
than P after now. That is a token bucket of N tokens, into which N/P come back each second. A refused request moves
nothing, so that whoever is refused by a limit of their own takes nothing of their team's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, TextClause, bindparam, delete, func, select, text
from sqlalchemy.sql.expression import column, table

from recollect.domain.limits import Holder, Resource
from recollect.store.sql.database import Database

PERIODS: Final = {Resource.REQUESTS_MINUTE: 60, Resource.REQUESTS_DAY: 86_400}
"""The seconds in which so many requests may come."""
_SECOND: Final = 10**9  # moments are kept in nanoseconds, so that a day's steps add up to a day
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
RATES: Final = "request_rate"
"""The name of the table that says how often each user and team has asked."""
_COLUMNS: Final = {Resource.REQUESTS_MINUTE: "minute_at", Resource.REQUESTS_DAY: "day_at"}
_RATE: Final = table(RATES, column("subject"), column("minute_at"), column("day_at"))
_KNOWN: Final = select(_RATE).where(_RATE.c.subject.in_(bindparam("subjects", expanding=True)))


class Allowance(NamedTuple):
    """How many requests a user or a team may send in each period; 0 is any number."""

    holder: Holder
    most: Mapping[Resource, int]


class Rate(NamedTuple):
    """How many requests of an allowance are used, after how many seconds all are back, and when the next is."""

    holder: Holder
    resource: Resource
    most: int
    used: int
    full_after: float
    again_after: float
    """The seconds until a request is taken again; 0 where it would be now."""


@dataclass(frozen=True, slots=True)
class RequestRates:
    """Counts requests in a database; `clock` says when each comes."""

    _database: Database
    _clock: Callable[[], datetime]

    def take(self, allowances: Sequence[Allowance]) -> tuple[bool, list[Rate]]:
        """Count a request towards all allowances, or towards none where any is used up; say which, and how they are."""
        ordered = sorted(allowances)
        values: dict[str, Any] = {"now": (now := self._now())}
        for number, allowance in enumerate(ordered):
            values |= {f"subject{number}": _subject(allowance.holder)}
            values |= {f"{name}{number}": _step(allowance, name) for name in PERIODS}
        rows = self._database.write_alone(_take_statement(len(ordered), self._database.dialect.row_lock), values)
        taken = len(rows) == len(ordered)
        return taken, self._rates(ordered, now, rows if taken else None)

    def read(self, allowances: Sequence[Allowance]) -> list[Rate]:
        """Return how allowances stand, without counting a request."""
        return self._rates(allowances, self._now(), None)

    def _rates(self, allowances: Sequence[Allowance], now: int, rows: Sequence[Any] | None) -> list[Rate]:
        """Return how allowances stand, by rows of the database, which are read where there are none."""
        if rows is None:
            rows = self._database.rows(_KNOWN, {"subjects": [_subject(allowance.holder) for allowance in allowances]})
        known = {row.subject: row for row in rows}
        found = []
        for allowance in allowances:
            row = known.get(_subject(allowance.holder))
            for resource, most in allowance.most.items():
                if most and resource in PERIODS:
                    ahead = 0 if row is None else max(0, getattr(row, _COLUMNS[resource]) - now)
                    found.append(_rate(allowance.holder, resource, most, ahead))
        return found

    def _now(self) -> int:
        """Return the clock's time in nanoseconds since 1970."""
        return (self._clock() - _EPOCH) // _MICROSECOND * 1000


def rows_of(connection: Connection, holder: Holder) -> int:
    """Count the rows that say how often a holder has asked."""
    mine = select(func.count()).select_from(_RATE).where(_RATE.c.subject == _subject(holder))
    return int(connection.execute(mine).scalar_one())


def forget_requests(connection: Connection, holder: Holder) -> int:
    """Delete how often a holder has asked; return how many rows that were."""
    return connection.execute(delete(_RATE).where(_RATE.c.subject == _subject(holder))).rowcount


def _rate(holder: Holder, resource: Resource, most: int, ahead: int) -> Rate:
    """Return how an allowance stands whose moment lies so many nanoseconds after now."""
    step, period = PERIODS[resource] * _SECOND // most, PERIODS[resource] * _SECOND
    used = min(most, -(-ahead // step))
    again = max(0, ahead + step - period)
    return Rate(holder, resource, most, used, ahead / _SECOND, again / _SECOND)


def _step(allowance: Allowance, resource: Resource) -> int:
    """Return by how many nanoseconds a request moves a moment on; 0 without a limit."""
    most = allowance.most.get(resource, 0)
    return PERIODS[resource] * _SECOND // most if most else 0


def _subject(holder: Holder) -> str:
    return f"{holder.kind}:{holder.name}"


@cache
def _take_statement(count: int, row_lock: str) -> TextClause:
    """Return the statement that counts a request towards so many allowances; it returns no row where any is used up.

    Rows are locked in their order before they are looked at, so that two requests never take the same token. A row that
    another request has just made is looked at once more before it is written over.
    """
    asked = ", ".join(
        f"(CAST(:subject{row} AS text), CAST(:requests_minute{row} AS bigint), CAST(:requests_day{row} AS bigint))"
        for row in range(count)
    )
    nexts = {name: f"{_later(f'known.{name}')} + asked.{name}" for name in _COLUMNS.values()}
    known = {
        name: f"{_later(f'request_rate.{name}')} + {_step_of(resource, count)}" for resource, name in _COLUMNS.items()
    }
    return text(
        f"""WITH asked (subject, minute_at, day_at) AS (VALUES {asked}),
        known AS (SELECT * FROM request_rate WHERE subject IN (SELECT subject FROM asked) ORDER BY subject {row_lock}),
        following AS (
            SELECT asked.subject, {nexts["minute_at"]} AS minute_at, {nexts["day_at"]} AS day_at
            FROM asked LEFT JOIN known ON known.subject = asked.subject)
        INSERT INTO request_rate (subject, minute_at, day_at)
        SELECT subject, minute_at, day_at FROM following
        WHERE NOT EXISTS (SELECT 1 FROM following AS each WHERE {_beyond("each.minute_at", "each.day_at")})
        ORDER BY subject
        ON CONFLICT (subject) DO UPDATE SET minute_at = {known["minute_at"]}, day_at = {known["day_at"]}
        WHERE NOT ({_beyond(known["minute_at"], known["day_at"])})
        RETURNING subject, minute_at, day_at"""  # noqa: S608 - our own text
    )


def _later(moment: str) -> str:
    """Return the later of a moment, which may be absent, and now."""
    return f"CASE WHEN {moment} > CAST(:now AS bigint) THEN {moment} ELSE CAST(:now AS bigint) END"


def _beyond(minute_at: str, day_at: str) -> str:
    """Return the condition that a moment lies more than its period after now."""
    ends = [(minute_at, PERIODS[Resource.REQUESTS_MINUTE]), (day_at, PERIODS[Resource.REQUESTS_DAY])]
    return " OR ".join(f"{at} - CAST(:now AS bigint) > {seconds * _SECOND}" for at, seconds in ends)


def _step_of(resource: Resource, count: int) -> str:
    """Return the step of a row that is there, by its subject."""
    cases = " ".join(f"WHEN :subject{number} THEN CAST(:{resource}{number} AS bigint)" for number in range(count))
    return f"CASE request_rate.subject {cases} END"
