"""The rights that a token opens, read in one statement and kept in memory until an account changes.

Each change of accounts writes another version into the database, within its own transaction. Whoever asks for the
rights compares the version first, so that every process refuses a revoked token at its next request.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, bindparam, false, null, select, true, union_all

from recollect.domain.accounts import Token, User
from recollect.domain.enums import Role
from recollect.domain.limits import ASKED, Holder, HolderKind, Limits
from recollect.store.sql import store_metadata
from recollect.store.sql.account_rows import role_of, token_of
from recollect.store.sql.database import Database
from recollect.store.sql.limits import STAMP, limits_set, resources_set
from recollect.store.sql.tables import account, membership, project_membership, team, team_project, token
from recollect.store.sql.tables import store_metadata as stamps

_STAMP: Final = "accounts"
"""The entry of the store's metadata that changes with every change of accounts."""
_KEPT: Final = 10.0  # seconds; then the tables are read again, as somebody may have changed them by hand
_MOST: Final = 10_000  # tokens

_VERSION: Final = select(stamps.c.value).where(stamps.c.name == _STAMP)
_LIMITED: Final = select(stamps.c.value).where(stamps.c.name == STAMP)


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of whoever holds a token: the token, its user, and the user's roles.

    `projects` are the roles by team and project that count in place of those in `teams`, and `private` the projects of
    these teams that are for those alone who have such a role. `limits` are those on requests that an admin has set for
    the user, or for their teams.
    """

    token: Token
    user: User
    projects: dict[tuple[str, str], Role] = field(default_factory=dict)
    private: frozenset[tuple[str, str]] = frozenset()
    limits: Mapping[Holder, Limits] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Known:
    """An access that was read at the version of all accounts and at a moment of the monotonic clock."""

    access: Access
    version: str
    at: float


@dataclass(frozen=True, slots=True)
class GrantedAccess:
    """The rights of tokens by their hashes (SHA-256 in hex), as the tables of one database grant them."""

    _database: Database
    _known: dict[str, _Known] = field(default_factory=dict)

    def of(self, hashed: str) -> Access | None:
        """Return the rights of the token with this hash, valid or not; None for an unknown one."""
        if (known := self._known.get(hashed)) is not None and time.monotonic() - known.at < _KEPT:
            found = self._database.rows(_VERSION)
            if found and found[0].value == known.version:
                return known.access
        at, rows = time.monotonic(), self._database.rows(_select_rights(), {"hash": hashed})
        if not rows:
            self._known.pop(hashed, None)
            return None
        if len(self._known) >= _MOST:
            self._known.clear()
        access = self._with_limits(_access_from_rows(rows), rows[0].limited)
        if (version := rows[0].version) is not None:
            self._known[hashed] = _Known(access, version, at)
        return access

    def _with_limits(self, access: Access, limited: str | None) -> Access:
        """Return an access with the limits on requests that an admin has set, which are read where there are any."""
        if not resources_set({STAMP: limited or ""}) & set(ASKED):
            return access
        teams = dict.fromkeys((*access.user.teams, *(team for team, _ in access.projects)))
        holders = [Holder(HolderKind.USER, access.user.user), *(Holder(HolderKind.TEAM, team) for team in teams)]
        with self._database.reading() as connection:
            return replace(access, limits=limits_set(connection, holders))

    def used(self, hashed: str, at: datetime) -> None:
        """Note in memory that a token was used, after that was written."""
        if (known := self._known.get(hashed)) is not None:
            access = replace(known.access, token=replace(known.access.token, last_used_at=at))
            self._known[hashed] = replace(known, access=access)

    def remembered(self, hashed: str) -> Access | None:
        """Return the rights that the token had when they were last read, without a look at the database."""
        known = self._known.get(hashed)
        return None if known is None else known.access


def raise_version(connection: Connection) -> None:
    """Make every process read the accounts again once this transaction has ended."""
    store_metadata.write(connection, {_STAMP: secrets.token_hex(8)})


@cache
def _select_rights() -> Select[Any]:
    """Select what is known of the token with a hash: a row for each role of its user, and one for each private project.

    A user without a role has one row. The version that this holds for stands in each.
    """
    of_team = (membership.c.account_id, team.c.name.label("team"))
    in_teams = select(*of_team, null().label("project"), false().label("private"), membership.c.role.label("held"))
    in_teams = in_teams.join(team, team.c.id == membership.c.team_id)
    in_projects = select(
        *(project_membership.c.account_id, team.c.name.label("team"), team_project.c.name.label("project")),
        *(team_project.c.private, project_membership.c.role.label("held")),
    )
    in_projects = in_projects.join(team_project, team_project.c.id == project_membership.c.project_id)
    in_projects = in_projects.join(team, team.c.id == team_project.c.team_id)
    private = select(*of_team, team_project.c.name.label("project"), true().label("private"), null().label("held"))
    private = private.join(team, team.c.id == membership.c.team_id)
    private = private.join(team_project, team_project.c.team_id == team.c.id).where(team_project.c.private)
    rights = union_all(in_teams, in_projects, private).subquery("rights")
    return (
        select(token, account.c.name.label("user"), account.c.admin, account.c.disabled_at)
        .add_columns(account.c.created_at.label("joined_at"), _VERSION.scalar_subquery().label("version"))
        .add_columns(_LIMITED.scalar_subquery().label("limited"))
        .add_columns(rights.c.team, rights.c.project, rights.c.private, rights.c.held)
        .join(account, account.c.id == token.c.account_id)
        .outerjoin(rights, rights.c.account_id == account.c.id)
        .where(token.c.hash == bindparam("hash"))
        .order_by(rights.c.team, rights.c.project)
    )


def _access_from_rows(rows: Sequence[Row[Any]]) -> Access:
    """Return the rights that the rows of one token say."""
    first = rows[0]
    teams = {one.team: role_of(one.held) for one in rows if one.team is not None and one.project is None}
    projects = {(one.team, one.project): role_of(one.held) for one in _rows_with_project(rows) if one.held is not None}
    private = frozenset((one.team, one.project) for one in _rows_with_project(rows) if one.private)
    user = User(first.user, bool(first.admin), first.joined_at, first.disabled_at, teams)
    return Access(token_of(first), user, projects, private)


def _rows_with_project(rows: Iterable[Row[Any]]) -> list[Row[Any]]:
    """Return the rows that name a project."""
    return [one for one in rows if one.project is not None]
