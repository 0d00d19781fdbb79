"""Legal holds: which of them keep a memory, a fact or a session, so that nothing deletes it for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from sqlalchemy import ColumnElement, Connection, Row, and_, insert, not_, or_, select, true, update

from recollect.domain.enums import own_levels, owner_of
from recollect.domain.leaving import Hold
from recollect.store.sql.database import Database
from recollect.store.sql.tables import legal_hold, level_of, memory, session

_ACTIVE = select(legal_hold).where(legal_hold.c.released_at.is_(None)).order_by(legal_hold.c.id)


def hold_of(row: Row[tuple[object, ...]]) -> Hold:
    """Return a hold as it stands in its row."""
    values = dict(row._mapping)
    values["user"] = values.pop("person")
    del values["id"]
    return Hold(**values)


def active_holds(connection: Connection) -> list[Hold]:
    """Return the holds that were not released, the oldest first."""
    return [hold_of(row) for row in connection.execute(_ACTIVE)]


@dataclass(frozen=True, slots=True)
class HoldRows:
    """Reads the holds of a database."""

    _database: Database

    def all(self, *, released: bool = False) -> list[Hold]:
        """Return the active holds, or also those that were released, the oldest first."""
        query = select(legal_hold).order_by(legal_hold.c.id) if released else _ACTIVE
        return [hold_of(row) for row in self._database.rows(query)]


@dataclass(frozen=True, slots=True)
class HoldWriting:
    """Writes holds in an open transaction that excludes every other writer."""

    _connection: Connection

    def active(self, name: str) -> Hold | None:
        """Return the active hold of this name, None without any."""
        return next((hold for hold in active_holds(self._connection) if hold.name == name), None)

    def add(self, hold: Hold) -> None:
        """Write a new hold."""
        values = {name: getattr(hold, name) for name in ("name", "reason", "set_by", "set_at", "team", "project")}
        self._connection.execute(insert(legal_hold).values(values | {"person": hold.user}))

    def release(self, name: str, by: str, at: datetime) -> None:
        """End the active hold of this name."""
        here = (legal_hold.c.name == name) & legal_hold.c.released_at.is_(None)
        self._connection.execute(update(legal_hold).where(here).values(released_by=by, released_at=at))


@dataclass(frozen=True)
class NamespaceHolds:
    """The active holds as they concern a namespace."""

    namespace: str
    active: Sequence[Hold]

    @cached_property
    def whole(self) -> Hold | None:
        """Return the first hold that covers all of the namespace, None without any."""
        return next((hold for hold in self.active if _covers(hold, self.namespace)), None)

    @cached_property
    def people(self) -> Mapping[str, Hold]:
        """Return the holds on people, by the user whom each is about."""
        return {hold.user: hold for hold in reversed(self.active) if hold.user is not None}

    def keeping(self, author: str, level: str) -> Hold | None:
        """Return the hold that keeps what this user wrote at this level, as it is stored; None without any."""
        return self.whole or self.people.get(author) or self.people.get(owner_of(level))

    def free(self) -> ColumnElement[bool]:
        """Select the memories of the namespace that no hold keeps."""
        if self.whole is not None:
            return not_(true())
        held = [memory.c.author.in_(list(self.people))] if self.people else []
        held += [level_of(memory).in_([level for user in self.people for level in own_levels(user)])] if held else []
        return not_(or_(*held)) if held else true()


def sessions_without_hold(active: Sequence[Hold]) -> ColumnElement[bool]:
    """Select the sessions that no hold keeps: neither a hold on their user nor a hold on their project."""
    held: list[ColumnElement[bool]] = []
    for hold in active:
        if hold.user is not None:
            held.append(session.c.owner == f"user:{hold.user}")
        elif hold.project is not None:
            held.append(session.c.project == f"project:{hold.team}/{hold.project}")
        else:
            held.append(session.c.project.startswith(f"project:{hold.team}/", autoescape=True))
    return and_(*map(not_, held)) if held else true()


def _covers(hold: Hold, namespace: str) -> bool:
    """Say whether a hold covers all of a namespace."""
    if hold.user is not None:
        return namespace == f"user:{hold.user}"
    if hold.project is not None:
        return namespace == f"project:{hold.team}/{hold.project}"
    return namespace == f"team:{hold.team}" or namespace.startswith(f"project:{hold.team}/")
