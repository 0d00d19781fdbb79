"""Tokens, whom they belong to, and what that person may do."""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from recollect.app import App
from recollect.domain.enums import Role, Scope
from recollect.domain.requests import Caller
from recollect.errors import Forbidden, InvalidInput, Unauthorized

_NOWHERE = "-"
"""Stands for the team or project of a caller who names none, and may then neither read nor write there."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: a user with the roles that they have, as far as their token goes.

    `token` is its prefix, `cap` what it may do at most. A role in `projects` counts in place of that in `teams`; of the
    `private` projects only those with such a role are seen. An `operator` sits at the machine itself, and administers.
    """

    user: str
    admin: bool = False
    token: str = ""
    cap: Role = Role.ADMIN
    invitation: bool = False
    operator: bool = False
    teams: Mapping[str, Role] = field(default_factory=dict)
    projects: Mapping[tuple[str, str], Role] = field(default_factory=dict)
    private: frozenset[tuple[str, str]] = frozenset()

    def caller(self, team: str = "", project: str = "") -> Caller:
        """Return the caller that this principal is in a team and a project, which narrow what they see.

        Without a team it is their only one; without a project, or a team for it, none is seen. Raises `Forbidden` for
        a team or project in which they have no role, whether it exists or not, and `InvalidInput` for a project whose
        team is not told by having only one.
        """
        if self.invitation or self.operator:
            raise Forbidden("An invitation opens no memories: `recollect token accept` makes a token of it.")
        team = self._team(team, project)
        rights = {Scope.PERSONAL: Role.WRITER, Scope.TEAM: self.teams.get(team)}
        if project and team:
            rights[Scope.PROJECT] = self._in_project(team, project)
        reads = tuple(one for one in Scope if rights.get(one) is not None)
        writes = tuple(one for one in reads if self._may(rights[one], Role.WRITER))
        return Caller(user=self.user, team=team or _NOWHERE, project=project or _NOWHERE, reads=reads, writes=writes)

    def administers(self, team: str = "") -> bool:
        """Say whether this principal may administer a team, or without one the whole deployment."""
        if self.invitation:
            return False
        if self.operator or (self.admin and self.cap is Role.ADMIN):
            return True
        return bool(team) and self._may(self.teams.get(team), Role.ADMIN)

    @property
    def administered(self) -> tuple[str, ...] | None:
        """Return the teams that this principal may administer, None for all."""
        return None if self.administers() else tuple(one for one in self.teams if self.administers(one))

    @property
    def known_teams(self) -> tuple[str, ...]:
        """Return the teams in which, or in a project of which, this principal has a role."""
        return tuple(dict.fromkeys((*self.teams, *(team for team, _ in self.projects))))

    def _team(self, team: str, project: str) -> str:
        known = self.known_teams
        if team:
            if team not in known:
                raise Forbidden(f"You have no role in the team `{team}`, or there is none of that name.")
            return team
        if len(known) == 1:
            return known[0]
        if project and known:
            raise InvalidInput("team", "Missing team: A request that names a project names its team too")
        return ""

    def _in_project(self, team: str, project: str) -> Role:
        role = self.projects.get((team, project))
        if role is None and (team, project) not in self.private:
            role = self.teams.get(team)
        if role is None:
            raise Forbidden(f"You have no role in the project `{project}` of the team `{team}`, or there is none.")
        return role

    def _may(self, role: Role | None, wanted: Role) -> bool:
        return role is not None and role.covers(wanted) and self.cap.covers(wanted)


_FORM: Final = re.compile(r"rec_([A-Za-z0-9]{8})_[A-Za-z0-9_-]{43}")
_LETTERS: Final = string.ascii_letters + string.digits
_SECRET: Final = 32  # random bytes: 256 bits


class NewToken(NamedTuple):
    """A token as its user keeps it, its prefix, and the hash by which it is known."""

    text: str
    prefix: str
    hashed: str


def new_token() -> NewToken:
    """Make a token: `rec_`, a prefix of 8 characters by which people tell it, and 256 random bits."""
    prefix = "".join(secrets.choice(_LETTERS) for _ in range(8))
    text = f"rec_{prefix}_{secrets.token_urlsafe(_SECRET)}"
    return NewToken(text, prefix, hashed(text))


def hashed(text: str) -> str:
    """Return the SHA-256 of a token in hex; its 256 random bits need no slow hash."""
    return hashlib.sha256(text.encode()).hexdigest()


def has_form(text: str) -> bool:
    """Say whether a text looks like a token of ours."""
    return _FORM.fullmatch(text) is not None


_USED_EVERY: Final = timedelta(minutes=1)
"""How exactly it is kept when a token was used last."""
_INVALID: Final = (
    "Invalid token: it is unknown, has expired or was revoked. "
    "An admin can invite you anew with `recollect user invite NAME`."
)


def authenticate(app: App, bearer: str) -> Principal:
    """Return who holds a token; raise `Unauthorized`, in the same words for every token that opens nothing."""
    found, used = _known(app, bearer)
    now = app.clock()
    if used is None or now - used >= _USED_EVERY:
        app.accounts.used(found.token, now)
    return found


def look_again(app: App, bearer: str) -> Principal:
    """Return who holds a token by now, or raise `Unauthorized`; within a transaction it is what that one sees."""
    return _known(app, bearer)[0]


def _known(app: App, bearer: str) -> tuple[Principal, datetime | None]:
    """Return who holds a token, and when it was used last."""
    now = app.clock()
    access = app.accounts.access(hashed(bearer)) if has_form(bearer) else None
    if access is None:
        raise Unauthorized(_INVALID)
    token, user = access.token, access.user
    expired = token.expires_at is not None and token.expires_at <= now
    if expired or token.revoked_at is not None or user.disabled_at is not None:
        raise Unauthorized(_INVALID)
    found = Principal(
        user=user.user,
        admin=user.admin,
        token=token.prefix,
        cap=token.role or Role.ADMIN,
        invitation=token.invitation,
        teams=user.teams,
        projects=access.projects,
        private=access.private,
    )
    return found, token.last_used_at
