"""Users, teams, projects and tokens: what administration asks for and answers. No answer shows a token twice."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import Field, StringConstraints
from pydantic.dataclasses import dataclass

from recollect.domain import fields
from recollect.domain.answer import LAZY, Answer
from recollect.domain.enums import Role
from recollect.domain.fields import Allowed, Request
from recollect.domain.requests import Levels, Team

DAYS = 90
"""How long a token is valid unless it is said."""
INVITATION_DAYS = 7
"""How long an invitation can be accepted."""

Prefix = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9]{8}$"),
    Allowed("Must be the 8 characters after `rec_` at the beginning of a token"),
]
_WHO = "Name of the user"
_TEAM = "Name of the team"
_PROJECT = "Name of the project"


class AddUser(Request):
    """A new user, who gets an invitation. An admin of a team names the team into which they invite."""

    user: fields.CallerName = Field(description=_WHO)
    admin: bool = Field(default=False, description="Administers the whole deployment")
    team: Team | None = Field(default=None, description="Team that they become a member of")
    role: Role = Field(default=Role.WRITER, description="What they may do in the team")


class InviteUser(Request):
    """A new invitation for a user who lost their token; it ends all tokens that they have."""

    user: fields.CallerName = Field(description=_WHO)


class ListUsers(Request):
    """Which users are listed: all, or the members of a team."""

    team: Team | None = Field(default=None, description="Only its members")


class ChangeUser(Request):
    """A user who is to be disabled or enabled."""

    user: fields.CallerName = Field(description=_WHO)


class LinkUser(Request):
    """A user who is to sign in as a person of the identity provider, in place of whom that person was before."""

    user: fields.CallerName = Field(description=_WHO)
    issuer: fields.Line = Field(min_length=1, description="Issuer of the provider's tokens, as the server is set to it")
    subject: fields.Line = Field(min_length=1, description="Name of the provider for that person; a refusal names it")


class AddTeam(Request):
    """A new team."""

    team: Team = Field(description=_TEAM)


class ListTeams(Request):
    """The teams that the caller belongs to, or all for an admin of the deployment."""


class GrantTeam(Request):
    """A role in a team for a user, in place of the one they had."""

    team: Team = Field(description=_TEAM)
    user: fields.CallerName = Field(description=_WHO)
    role: Role = Field(default=Role.WRITER, description="What they may do there")


class RevokeTeam(Request):
    """A user who is to leave a team."""

    team: Team = Field(description=_TEAM)
    user: fields.CallerName = Field(description=_WHO)


class AddProject(Request):
    """A project of a team; a private one is for those alone who have a role in it."""

    team: Team = Field(description=_TEAM)
    project: fields.CallerName = Field(description=_PROJECT)
    private: bool = Field(default=False, description="Visible only to those who have a role in it")


class ListProjects(Request):
    """Which projects are listed: those of one team, or of all that the caller belongs to."""

    team: Team | None = Field(default=None, description="Only those of this team")


class GrantProject(Request):
    """A role in a project for a user; it counts in place of the one in the team."""

    team: Team = Field(description=_TEAM)
    project: fields.CallerName = Field(description=_PROJECT)
    user: fields.CallerName = Field(description=_WHO)
    role: Role = Field(default=Role.WRITER, description="What they may do there")


class RevokeProject(Request):
    """A user who is to lose their role in a project."""

    team: Team = Field(description=_TEAM)
    project: fields.CallerName = Field(description=_PROJECT)
    user: fields.CallerName = Field(description=_WHO)


class AddToken(Request):
    """A token of one's own."""

    label: fields.Line = Field(default="", description="What it is for")
    role: Role | None = Field(default=None, description="Its maximum role; it never has more rights than its user")
    days: Annotated[float, Field(ge=0, le=fields.MAX_DAYS, allow_inf_nan=False)] = Field(
        default=DAYS, description="Days until it expires; 0: never"
    )


class ListTokens(Request):
    """Whose tokens are listed: the caller's, or for an admin of the deployment those of another user."""

    user: fields.CallerName | None = Field(default=None, description="Whose tokens; default: yours")


class RevokeToken(Request):
    """A token that is to open nothing any more, from now on."""

    prefix: Prefix = Field(description="The 8 characters after `rec_` at its beginning")


class AcceptInvitation(AddToken):
    """The first token in place of an invitation, which is used up by it."""


class Audit(Request):
    """Which lines of the journal are shown: the newest first, of what the caller administers."""

    limit: Annotated[int, Field(ge=1, le=500)] = Field(default=50, description="How many lines")
    before: fields.Count | None = Field(default=None, description="Only lines with numbers below this one")
    team: Team | None = Field(default=None, description="Only lines of this team and its projects")
    since: fields.Since = Field(default=None, description="Only lines of then or later: day or ISO time")
    until: fields.Until = Field(default=None, description="Only lines of then or earlier; a day counts to its end")


class ExportAudit(Request):
    """Which lines of the journal are exported: the oldest first in each chain, of what the caller administers."""

    limit: Annotated[int, Field(ge=1, le=1_000)] = Field(default=500, description="How many lines")
    after: Annotated[tuple[fields.Count, ...], Field(max_length=100_000)] = Field(
        default=(), description="Where the last page ended, as its `after` says. Default: the beginning"
    )
    team: Team | None = Field(default=None, description="Only lines of this team and its projects")
    since: fields.Since = Field(default=None, description="Only lines of then or later: day or ISO time")
    until: fields.Until = Field(default=None, description="Only lines of then or earlier; a day counts to its end")


class CountProjects(Levels):
    """Which projects of the team the caller may read, and how many memories each holds."""


@dataclass(frozen=True, config=LAZY)
class Done(Answer):
    """What was done, in a sentence."""

    message: str


@dataclass(frozen=True, config=LAZY)
class IssuedToken(Answer):
    """A new token or invitation; this is the only time that it is shown."""

    message: str
    user: str
    prefix: str
    token: str = Field(repr=False)
    expires_at: datetime | None = None


@dataclass(frozen=True, config=LAZY)
class User(Answer):
    """A user of the deployment and their roles by team."""

    user: str
    admin: bool
    created_at: datetime
    disabled_at: datetime | None = None
    teams: dict[str, Role] = Field(default_factory=dict)


@dataclass(frozen=True, config=LAZY)
class Users(Answer):
    """Users by their names."""

    users: tuple[User, ...]


@dataclass(frozen=True, config=LAZY)
class TeamSummary(Answer):
    """A team and the roles of its members."""

    team: str
    members: dict[str, Role]


@dataclass(frozen=True, config=LAZY)
class Teams(Answer):
    """Teams by their names."""

    teams: tuple[TeamSummary, ...]


@dataclass(frozen=True, config=LAZY)
class ProjectSummary(Answer):
    """A project and the roles that count there in place of those in the team."""

    team: str
    project: str
    private: bool
    members: dict[str, Role]


@dataclass(frozen=True, config=LAZY)
class Projects(Answer):
    """Projects by their names."""

    projects: tuple[ProjectSummary, ...]


@dataclass(frozen=True, config=LAZY)
class ProjectCount(Answer):
    """A project, how many memories the caller sees there, and whether it is the one that the request names."""

    project: str
    memories: int
    here: bool


@dataclass(frozen=True, config=LAZY)
class ProjectCounts(Answer):
    """Projects with memories, the one with the most first."""

    projects: tuple[ProjectCount, ...]


@dataclass(frozen=True, config=LAZY)
class Token(Answer):
    """What is known of a token; its secret part is kept nowhere."""

    prefix: str
    user: str
    label: str
    created_at: datetime
    role: Role | None = None
    invitation: bool = False
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, config=LAZY)
class Tokens(Answer):
    """Tokens, the newest first."""

    tokens: tuple[Token, ...]


@dataclass(frozen=True, config=LAZY)
class AuditLine(Answer):
    """One line of the journal: who did what where; never a text of a memory."""

    internal: ClassVar[frozenset[str]] = frozenset()

    number: int
    at: datetime
    actor: str
    namespace: str
    action: str
    memory_id: int | None = None
    changes: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True, config=LAZY)
class AuditPage(Answer):
    """Lines of the journal, the newest first; `before` asks for the next page, and is absent on the last."""

    lines: tuple[AuditLine, ...]
    before: int | None = None


@dataclass(frozen=True, config=LAZY)
class AuditRecord(AuditLine):
    """A line of the journal with what its chain says of it, which only admins of the deployment get.

    `hash` is the SHA-256 of the line and of `previous`, the hash of the line before it in its namespace; `state` is the
    checksum of the memory or fact that the line is about.
    """

    sensitivity: str | None = None
    state: str | None = None
    previous: str | None = None
    hash: str | None = None


@dataclass(frozen=True, config=LAZY)
class AuditExport(Answer):
    """Lines of the journal, chain by chain; `after` asks for the next page, which is there at once if there is `more`.

    `after` has the number of the last line of each chain that was exported.
    """

    records: tuple[AuditRecord, ...]
    after: tuple[int, ...]
    more: bool
