"""The limits of users and teams in SQL: those that admins have set, and how much is held of what they limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, Integer, bindparam, delete, insert, select, text, tuple_

from recollect.domain.limits import ASKED, HELD, Defaults, Holder, HolderKind, Limits, Resource, holder_of
from recollect.errors import QuotaFull
from recollect.store.sql import limit_schema, store_metadata
from recollect.store.sql.column_types import UtcDateTime
from recollect.store.sql.database import Database
from recollect.store.sql.dialect import Dialect
from recollect.store.sql.request_rates import Allowance, RequestRates
from recollect.store.sql.tables import usage_limit

STAMP: Final = "limits"
"""The entry of the store's metadata that names the resources for which an admin has set a limit, if any."""
_HELD_HERE: Final = "(n.name = :own OR substr(n.name, 1, :length) = :projects)"
_MEASURE: Final = text(
    f"""SELECT coalesce(sum(s.memories), 0), coalesce(sum(s.bytes), 0),
        coalesce(sum(CASE WHEN n.name = :own THEN 0 ELSE 1 END), 0) + (
            SELECT count(*) FROM team_project p JOIN team t ON t.id = p.team_id
            WHERE 'team:' || t.name = :own AND NOT EXISTS (
                SELECT 1 FROM namespace other JOIN live_size size ON size.namespace_id = other.id
                WHERE other.name = 'project:' || t.name || '/' || p.name AND size.memories > 0))
    FROM namespace n JOIN live_size s ON s.namespace_id = n.id WHERE s.memories > 0 AND {_HELD_HERE}"""  # noqa: S608 - our own text
)
_EXPIRED: Final = {
    name: text(
        f"""SELECT count(*), coalesce(sum({size}), 0) FROM memory JOIN namespace n ON n.id = memory.namespace_id
        WHERE memory.expires_at <= :now AND {limit_schema.LIVE} AND {_HELD_HERE}"""  # noqa: S608 - our own text
    ).bindparams(bindparam("now", type_=UtcDateTime()), bindparam("length", type_=Integer()))
    for name, size in limit_schema.BYTES.items()
}


def resources_set(stamps: Mapping[str, str]) -> frozenset[str]:
    """Return the resources for which an admin has set a limit, by the stamps of the store."""
    return frozenset(stamps.get(STAMP, "").split())


def limits_set(connection: Connection, holders: Iterable[Holder] | None = None) -> dict[Holder, dict[Resource, int]]:
    """Return the limits that admins have set, for all or for some holders."""
    query = select(usage_limit).order_by(usage_limit.c.kind, usage_limit.c.name, usage_limit.c.resource)
    if holders is not None:
        named = [(str(kind), name) for kind, name in holders]
        query = query.where(tuple_(usage_limit.c.kind, usage_limit.c.name).in_(named))
    found: dict[Holder, dict[Resource, int]] = defaultdict(dict)
    for row in connection.execute(query):
        found[Holder(HolderKind(row.kind), row.name)][Resource(row.resource)] = row.most
    return dict(found)


def write_limits(connection: Connection, holder: Holder, limits: Limits) -> None:
    """Set limits of a holder, in place of those that were set before."""
    clear_limits(connection, holder, limits)
    rows = [{"kind": holder.kind, "name": holder.name, "resource": name, "most": most} for name, most in limits.items()]
    connection.execute(insert(usage_limit), rows)
    _stamp(connection)


def clear_limits(connection: Connection, holder: Holder, resources: Iterable[Resource]) -> list[Resource]:
    """Take away limits that were set for a holder; return which."""
    mine = (usage_limit.c.kind == holder.kind) & (usage_limit.c.name == holder.name)
    gone = mine & usage_limit.c.resource.in_([str(name) for name in resources])
    found = connection.execute(select(usage_limit.c.resource).where(gone)).scalars().all()
    connection.execute(delete(usage_limit).where(gone))
    _stamp(connection)
    return [name for name in Resource if name in found]


def _stamp(connection: Connection) -> None:
    """Note for which resources a limit is set, so that writes and requests look for limits only where some are."""
    known = connection.execute(select(usage_limit.c.resource).distinct()).scalars()
    store_metadata.write(connection, {STAMP: " ".join(sorted(known))})


def held(connection: Connection, holder: Holder) -> dict[Resource, int]:
    """Return how much a holder holds, what has expired and is not purged yet included."""
    row = connection.execute(_MEASURE, _place(holder)).one()
    return dict(zip(HELD, map(int, row), strict=True))


def expired(connection: Connection, holder: Holder, now: datetime) -> dict[Resource, int]:
    """Return how much of what a holder holds has expired, which counts no more."""
    row = connection.execute(_EXPIRED[connection.dialect.name], _place(holder) | {"now": now}).one()
    return {Resource.MEMORIES: int(row[0]), Resource.BYTES: int(row[1]), Resource.PROJECTS: 0}


def _place(holder: Holder) -> dict[str, str | int]:
    """Return the names of a holder's namespaces: their own, and what those of a team's projects begin with."""
    own = f"{holder.kind}:{holder.name}"
    projects = f"project:{holder.name}/" if holder.kind is HolderKind.TEAM else own
    return {"own": own, "projects": projects, "length": len(projects)}


@dataclass(frozen=True, slots=True)
class Quotas:
    """Keeps what users and teams hold within their limits: those in the settings, or which admins have set."""

    _defaults: Defaults

    @contextmanager
    def kept(
        self,
        connection: Connection,
        dialect: Dialect,
        namespaces: Sequence[str],
        now: datetime,
        resources: frozenset[str],
    ) -> Iterator[None]:
        """Raise `QuotaFull` at the end of a block that writes, where a holder holds more than before and than allowed.

        The transaction holds the locks of the namespaces. Writers of other namespaces of a team wait for the end of it,
        where that team has a limit. `resources` are those for which an admin has set any limit: with neither these
        nor limits in the settings nothing is read.
        """
        limited = self._limits_of(connection, namespaces, resources)
        for holder in sorted(limited):
            if holder.kind is HolderKind.TEAM:
                dialect.lock(connection, f"limits {holder.name}")
        before = {holder: held(connection, holder) for holder in limited}
        yield
        for holder, limits in limited.items():
            _check(connection, holder, limits, before[holder], now)

    def _limits_of(
        self, connection: Connection, namespaces: Sequence[str], resources: frozenset[str]
    ) -> dict[Holder, Limits]:
        """Return the limits on what the holders of some namespaces hold; no holder who has none."""
        holders = {holder for name in namespaces if (holder := holder_of(name)) is not None}
        chosen = limits_set(connection, holders) if holders and resources & set(HELD) else {}
        found = {holder: only(HELD, self._defaults, holder, chosen.get(holder, {})) for holder in holders}
        return {holder: limits for holder, limits in found.items() if limits}


@dataclass(frozen=True, slots=True)
class UsageLimits:
    """Reads the limits of users and teams, and how much of them is used; `rates` counts their requests."""

    _database: Database
    _clock: Callable[[], datetime]
    defaults: Defaults
    rates: RequestRates = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rates", RequestRates(self._database, self._clock))

    def set_by_admins(self) -> dict[Holder, dict[Resource, int]]:
        """Return the limits that admins have set, by holder."""
        with self._database.reading() as connection:
            return limits_set(connection)

    def read(self, holders: Sequence[Holder]) -> dict[Holder, tuple[Limits, dict[Resource, int]]]:
        """Return, by holder, their limits and how much they hold; what has expired counts no more."""
        found: dict[Holder, tuple[Limits, dict[Resource, int]]] = {}
        with self._database.reading() as connection:
            chosen = limits_set(connection, holders)
            for holder in holders:
                gone = expired(connection, holder, self._clock())
                used = {name: many - gone[name] for name, many in held(connection, holder).items()}
                found[holder] = (only(tuple(Resource), self.defaults, holder, chosen.get(holder, {})), used)
        return found

    def allowances(self, holders: Iterable[Holder], chosen: Mapping[Holder, Limits]) -> list[Allowance]:
        """Return how often each holder may ask, by the limits that an admin has chosen for some; none without any."""
        found = (Allowance(holder, only(ASKED, self.defaults, holder, chosen.get(holder, {}))) for holder in holders)
        return [holder for holder in found if holder.most]


def only(resources: Collection[Resource], defaults: Defaults, holder: Holder, chosen: Limits) -> dict[Resource, int]:
    """Return the limits of a holder on some resources: those chosen for them, else the default; 0 is left out."""
    every = {**defaults.get(holder.kind, {}), **chosen}
    return {name: every[name] for name in resources if every.get(name)}


def _check(connection: Connection, holder: Holder, limits: Limits, before: Limits, now: datetime) -> None:
    """Raise `QuotaFull` for the first limit beyond which a holder holds more than before."""
    after = held(connection, holder)
    gone: Limits | None = None
    for resource, most in limits.items():
        if after[resource] <= max(most, before[resource]):
            continue
        gone = expired(connection, holder, now) if gone is None else gone
        if after[resource] - gone[resource] > most:
            numbers = (max(before[resource] - gone[resource], 0), most, after[resource] - before[resource])
            raise QuotaFull(holder.kind, holder.name, resource, resource.words, numbers)
