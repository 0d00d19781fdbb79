"""The principal: who holds a token, and of what teams and projects. Every caller of a deployment is made here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recollect.domain.enums import Role, Scope
from recollect.domain.limits import Holder, HolderKind, Limits
from recollect.domain.requests import Caller, Elsewhere
from recollect.errors import Forbidden, InvalidInput

_NOWHERE = "-"
"""Stands for the team or project of a caller who names none, and may then neither read nor write there."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: a user with the roles that they have, as far as their token goes.

    `token` is its prefix, `cap` what it may do at most. A role in `projects` counts in place of that in `teams`; of the
    `private` projects only those with such a role are seen. An `operator` sits at the machine itself, and administers.
    `limits` are those on requests that an admin has set for the user or their teams.
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
    limits: Mapping[Holder, Limits] = field(default_factory=dict)

    def caller(self, team: str = "", project: str = "", zone: str = "") -> Caller:
        """Return this principal as the caller in a team and a project, which limit what they see, and in a time zone.

        Without a team it is their only team; without a project, or a team for it, no project is seen. Raises
        `Forbidden` for a team or project in which they have no role, whether it exists or not, and `InvalidInput` for a
        project without a team where they have several.
        """
        if self.invitation or self.operator:
            raise Forbidden("An invitation opens no memories: `recollect token accept` makes a token of it.")
        team = self._chosen_team(team, project)
        rights = {Scope.PERSONAL: Role.WRITER, Scope.TEAM: self.teams.get(team)}
        if project and team:
            rights[Scope.PROJECT] = self._require_role(team, project)
        reads = tuple(scope for scope in Scope if rights.get(scope) is not None)
        writes = tuple(scope for scope in reads if self._covers(rights[scope], Role.WRITER))
        return Caller(
            user=self.user,
            team=team or _NOWHERE,
            project=project or _NOWHERE,
            reads=reads,
            writes=writes,
            elsewhere=self._other_projects(team),
            zone=zone or "UTC",
        )

    def _other_projects(self, team: str) -> Elsewhere:
        """Return this principal's rights in the other projects of a team, limited by the role of the token."""
        named = {project for of, project in (*self.projects, *self.private) if of == team}
        return Elsewhere(
            role=self._limited_by_token(self.teams.get(team)),
            named={project: self._limited_by_token(self._own_role_in(team, project)) for project in sorted(named)},
        )

    def reads(self, namespace: str) -> bool:
        """Return whether this principal may read a namespace: their own, or that of a team or project of theirs."""
        if self.operator:
            return True
        scope, _, place = namespace.partition(":")
        if scope == "user":
            return place == self.user
        team, _, project = place.partition("/")
        return (self._own_role_in(team, project) if scope == "project" else self.teams.get(place)) is not None

    def administers(self, team: str = "") -> bool:
        """Return whether this principal may administer a team, or the whole deployment where no team is named."""
        if self.invitation:
            return False
        if self.operator or (self.admin and self.cap is Role.ADMIN):
            return True
        return bool(team) and self._covers(self.teams.get(team), Role.ADMIN)

    @property
    def administered(self) -> tuple[str, ...] | None:
        """Return the teams that this principal may administer, None for all."""
        return None if self.administers() else tuple(team for team in self.teams if self.administers(team))

    @property
    def known_teams(self) -> tuple[str, ...]:
        """Return the teams in which this principal has a role, or a role in a project."""
        return tuple(dict.fromkeys((*self.teams, *(team for team, _ in self.projects))))

    def holders(self, team: str = "") -> tuple[Holder, ...]:
        """Return whose limits a request counts towards: the user's, and those of the team, by default the only team."""
        known = self.known_teams
        chosen = team if team in known else known[0] if len(known) == 1 and not team else ""
        user = Holder(HolderKind.USER, self.user)
        return (user, Holder(HolderKind.TEAM, chosen)) if chosen else (user,)

    def may_see_use(self, holder: Holder) -> bool:
        """Return whether this principal may know how much a holder uses: themselves, or a team that they belong to."""
        return holder.name == self.user if holder.kind is HolderKind.USER else holder.name in self.teams

    def _chosen_team(self, team: str, project: str) -> str:
        """Return the named team, or the only team; '' without either. Raises `Forbidden` or `InvalidInput`."""
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

    def _require_role(self, team: str, project: str) -> Role:
        """Return the role in a project; raise `Forbidden` without one."""
        role = self._own_role_in(team, project)
        if role is None:
            raise Forbidden(f"You have no role in the project `{project}` of the team `{team}`, or there is none.")
        return role

    def _own_role_in(self, team: str, project: str) -> Role | None:
        """Return the role in a project: the project's own, else that of the team unless the project is private."""
        role = self.projects.get((team, project))
        return self.teams.get(team) if role is None and (team, project) not in self.private else role

    def _limited_by_token(self, role: Role | None) -> Role | None:
        """Return a role, at most that of the token."""
        return role if role is None or self.cap.covers(role) else self.cap

    def _covers(self, role: Role | None, wanted: Role) -> bool:
        return role is not None and role.covers(wanted) and self.cap.covers(wanted)
