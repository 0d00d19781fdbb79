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
    """Reads the holds of one database."""

    _database: Database

    def all(self, *, released: bool = False) -> list[Hold]:
        """Return the active holds, or also those that were released, the oldest first."""
        query = select(legal_hold).order_by(legal_hold.c.id) if released else _ACTIVE
        return [hold_of(row) for row in self._database.rows(query)]


@dataclass(frozen=True, slots=True)
class HoldWriting:
    """Writes holds in one open transaction that excludes every other writer."""

    _connection: Connection

    def active(self, name: str) -> Hold | None:
        """Return the active hold of this name, None without any."""
        return next((one for one in active_holds(self._connection) if one.name == name), None)

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
    """The active holds as they concern one namespace."""

    namespace: str
    active: Sequence[Hold]

    @cached_property
    def whole(self) -> Hold | None:
        """Return the first hold that covers all of the namespace, None without any."""
        return next((one for one in self.active if _covers(one, self.namespace)), None)

    @cached_property
    def people(self) -> Mapping[str, Hold]:
        """Return the holds on people, by the user whom each is about."""
        return {one.user: one for one in reversed(self.active) if one.user is not None}

    def keeping(self, author: str, level: str) -> Hold | None:
        """Return the hold that keeps what this user wrote at this level, as it is stored; None without any."""
        return self.whole or self.people.get(author) or self.people.get(owner_of(level))

    def free(self) -> ColumnElement[bool]:
        """Select the memories of the namespace that no hold keeps."""
        if self.whole is not None:
            return not_(true())
        held = [memory.c.author.in_(list(self.people))] if self.people else []
        held += [level_of(memory).in_([one for user in self.people for one in own_levels(user)])] if held else []
        return not_(or_(*held)) if held else true()


def sessions_without_hold(active: Sequence[Hold]) -> ColumnElement[bool]:
    """Select the sessions that no hold keeps: neither one on their user, nor one on their project."""
    held: list[ColumnElement[bool]] = []
    for one in active:
        if one.user is not None:
            held.append(session.c.owner == f"user:{one.user}")
        elif one.project is not None:
            held.append(session.c.project == f"project:{one.team}/{one.project}")
        else:
            held.append(session.c.project.startswith(f"project:{one.team}/", autoescape=True))
    return and_(*map(not_, held)) if held else true()


def _covers(one: Hold, namespace: str) -> bool:
    """Say whether a hold covers all of a namespace."""
    if one.user is not None:
        return namespace == f"user:{one.user}"
    if one.project is not None:
        return namespace == f"project:{one.team}/{one.project}"
    return namespace == f"team:{one.team}" or namespace.startswith(f"project:{one.team}/")
