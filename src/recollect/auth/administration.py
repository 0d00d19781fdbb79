"""Administration: users, teams, projects and tokens, each change by somebody who may make it, and in the journal.

Every request passes the gate: a name or a label is stored like any other text.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from recollect.app import App
from recollect.auth.deletion import delete_user, list_receipts
from recollect.auth.keeping import (
    drop_retention,
    list_holds,
    list_retention,
    release_hold,
    set_hold,
    set_retention,
)
from recollect.auth.limits import usage_of
from recollect.auth.person_export import export_user
from recollect.auth.principal import Principal
from recollect.auth.tokens import NewToken, new_token
from recollect.domain.accounts import (
    INVITATION_DAYS,
    AcceptInvitation,
    AddProject,
    AddTeam,
    AddToken,
    AddUser,
    Audit,
    AuditExport,
    AuditPage,
    ChangeUser,
    Done,
    ExportAudit,
    GrantProject,
    GrantTeam,
    InviteUser,
    IssuedToken,
    LinkUser,
    ListProjects,
    ListTeams,
    ListTokens,
    ListUsers,
    Projects,
    RevokeProject,
    RevokeTeam,
    RevokeToken,
    Teams,
    Token,
    Tokens,
    Users,
)
from recollect.domain.enums import OnSecret, Role
from recollect.domain.limits import (
    ClearLimits,
    Holder,
    Limit,
    LimitList,
    ListLimits,
    Resource,
    SetLimits,
    ShowLimits,
    Usage,
)
from recollect.domain.verbs import ADMIN_BY_NAME
from recollect.errors import Conflict, Forbidden, InvalidInput, NotFound, SecretFound, Unauthorized
from recollect.gate import clear
from recollect.spans import span

if TYPE_CHECKING:
    from recollect.store.sql.accounts import AccountWriting

_DEPLOYMENT: Final = "the deployment"


def add_user(app: App, request: AddUser, principal: Principal) -> IssuedToken:
    """Add a user, into a team if one is named, and return the invitation that makes their first token."""
    if request.admin or request.team is None:
        _require_admin(principal)
    else:
        _require_admin(principal, request.team)
    with app.accounts.changing(principal.user) as writing:
        if writing.user(request.user) is not None:
            raise InvalidInput("user", f"Invalid user: There is a user `{request.user}` already")
        if writing.departures.unfinished(request.user) is not None:
            raise Conflict(f"`{request.user}` is being deleted: `recollect user delete` goes on with that.")
        _require_team(writing, request.team)
        if not principal.administers() and writing.ever_had_memories(request.user):
            raise Forbidden(f"There are personal memories of a `{request.user}`: an admin of the deployment adds them.")
        writing.add_user(request.user, admin=request.admin)
        if request.team is not None:
            writing.set_role(request.team, request.user, request.role)
        return _issue_invitation(app, writing, request.user)


def invite_user(app: App, request: InviteUser, principal: Principal) -> IssuedToken:
    """End every token of a user and return a new invitation, such as for a lost token."""
    _require_admin(principal)
    with app.accounts.changing(principal.user) as writing:
        _require_user(writing, request.user)
        writing.revoke_all(request.user)
        return _issue_invitation(app, writing, request.user)


def list_users(app: App, request: ListUsers, principal: Principal) -> Users:
    """List users and their roles: all for an admin of the deployment, else the members of your teams."""
    return Users(tuple(app.accounts.users(_visible_teams(principal, request.team))))


def disable_user(app: App, request: ChangeUser, principal: Principal) -> Done:
    """Disable a user: their tokens end at once, their memories stay."""
    _require_admin(principal)
    with app.accounts.changing(principal.user) as writing:
        user = _require_user(writing, request.user)
        if user.admin and user.disabled_at is None and writing.admins() == 1:
            raise InvalidInput("user", f"Invalid user: `{request.user}` is the last admin of the deployment")
        if user.disabled_at is None:
            writing.set_disabled(request.user, disabled=True)
            writing.revoke_all(request.user)
    return Done(f"{request.user} is disabled; their tokens open nothing any more.")


def enable_user(app: App, request: ChangeUser, principal: Principal) -> Done:
    """Enable a disabled user again; `invite_user` then gives them an invitation."""
    _require_admin(principal)
    with app.accounts.changing(principal.user) as writing:
        if _require_user(writing, request.user).disabled_at is not None:
            writing.set_disabled(request.user, disabled=False)
    return Done(f"{request.user} is enabled; `recollect user invite` makes an invitation for a new token.")


def link_user(app: App, request: LinkUser, principal: Principal) -> Done:
    """Let a person of the identity provider sign in as a user who is here, in place of whom they were before."""
    _require_admin(principal)
    with app.accounts.changing(principal.user) as writing:
        _require_user(writing, request.user)
        writing.link(request.user, request.issuer, request.subject)
    return Done(f"{request.subject} of {request.issuer} signs in as {request.user}.")


def add_team(app: App, request: AddTeam, principal: Principal) -> Done:
    """Add a team; `grant_team` gives it members."""
    _require_admin(principal)
    with app.accounts.changing(principal.user) as writing:
        if writing.has_team(request.team):
            raise InvalidInput("team", f"Invalid team: There is a team `{request.team}` already")
        writing.add_team(request.team)
    return Done(f"Team {request.team} added.")


def list_teams(app: App, request: ListTeams, principal: Principal) -> Teams:
    """List teams with their members: all for an admin of the deployment, else yours."""
    del request
    return Teams(tuple(app.accounts.teams(_visible_teams(principal, None))))


def grant_team(app: App, request: GrantTeam, principal: Principal) -> Done:
    """Give a user a role in a team, replacing the one they had."""
    _require_admin(principal, request.team)
    with app.accounts.changing(principal.user) as writing:
        _require_team(writing, request.team)
        _require_user(writing, request.user)
        writing.set_role(request.team, request.user, request.role)
    return Done(f"{request.user} is {request.role} of the team {request.team}.")


def revoke_team(app: App, request: RevokeTeam, principal: Principal) -> Done:
    """Remove a user from a team and its projects."""
    _require_admin(principal, request.team)
    with app.accounts.changing(principal.user) as writing:
        _require_team(writing, request.team)
        _require_user(writing, request.user)
        writing.set_role(request.team, request.user, None)
    return Done(f"{request.user} is no member of the team {request.team} any more.")


def add_project(app: App, request: AddProject, principal: Principal) -> Done:
    """Register a project of a team, or change whether it is private; an unregistered one is open to the team."""
    _require_admin(principal, request.team)
    with app.accounts.changing(principal.user) as writing:
        _require_team(writing, request.team)
        writing.put_project(request.team, request.project, private=request.private)
    kind = "private: only those with a role in it see it" if request.private else "open to the team"
    return Done(f"The project {request.project} of the team {request.team} is {kind}.")


def list_projects(app: App, request: ListProjects, principal: Principal) -> Projects:
    """List registered projects and the roles in them; private ones only for their members and the team's admins."""
    found = app.accounts.projects(_visible_teams(principal, request.team))
    seen = [row for row in found if not row.private or principal.administers(row.team) or principal.user in row.members]
    return Projects(tuple(seen))


def grant_project(app: App, request: GrantProject, principal: Principal) -> Done:
    """Give a user a role in a registered project, which replaces their team role there."""
    _require_admin(principal, request.team)
    with app.accounts.changing(principal.user) as writing:
        _require_project(writing, request.team, request.project)
        _require_user(writing, request.user)
        writing.set_project_role(request.team, request.project, request.user, request.role)
    return Done(f"{request.user} is {request.role} of the project {request.project}.")


def revoke_project(app: App, request: RevokeProject, principal: Principal) -> Done:
    """Remove the role that a user has in a project; in an open project their team role counts again."""
    _require_admin(principal, request.team)
    with app.accounts.changing(principal.user) as writing:
        _require_project(writing, request.team, request.project)
        _require_user(writing, request.user)
        writing.set_project_role(request.team, request.project, request.user, None)
    return Done(f"{request.user} has no role of their own in the project {request.project} any more.")


def add_token(app: App, request: AddToken, principal: Principal) -> IssuedToken:
    """Make an additional token for yourself; a token with a role of its own cannot make one."""
    if principal.invitation or principal.operator or principal.cap is not Role.ADMIN:
        raise Forbidden("Only a user makes tokens, for themselves, with a token that may do all that they may.")
    with app.accounts.changing(principal.user) as writing:
        return _issue_token(app, writing, principal.user, request)


def accept_invitation(app: App, request: AcceptInvitation, principal: Principal) -> IssuedToken:
    """Exchange an invitation for the first token; the invitation is then used up."""
    if not principal.invitation:
        raise Forbidden("Only an invitation can be accepted: give it in place of a token.")
    with app.accounts.changing(principal.user) as writing:
        known = writing.token(principal.token)
        if known is None or known.revoked_at is not None:
            raise Unauthorized("Invalid invitation: it was accepted already. Ask an admin for another one.")
        writing.revoke(principal.token)
        return _issue_token(app, writing, principal.user, request)


def list_tokens(app: App, request: ListTokens, principal: Principal) -> Tokens:
    """List your tokens without their secret part; an admin of the deployment may list those of another user."""
    user = request.user or principal.user
    if user != principal.user:
        _require_admin(principal)
    return Tokens(tuple(app.accounts.tokens(user)))


def revoke_token(app: App, request: RevokeToken, principal: Principal) -> Done:
    """Revoke a token: one of yours, or as an admin of the deployment anybody's.

    A token with a role of its own revokes only itself.
    """
    with app.accounts.changing(principal.user) as writing:
        known = writing.token(request.prefix)
        own = known is not None and known.user == principal.user and principal.cap is Role.ADMIN
        if known is None or not (own or request.prefix == principal.token or principal.administers()):
            raise NotFound(f"There is no token `{request.prefix}` that you may revoke.")
        writing.revoke(request.prefix)
    return Done(f"The token {request.prefix} opens nothing any more.")


def set_limits(app: App, request: SetLimits, principal: Principal) -> Done:
    """Set limits of a user or a team, in place of those in the settings; 0 is no limit."""
    _require_admin(principal)
    limits = request.limits()
    with app.accounts.changing(principal.user) as writing:
        writing.set_limits(Holder(request.kind, request.whose), limits)
    words = (f"{most:,} {name.words}" if most else f"no limit on {name.words}" for name, most in limits.items())
    return Done(f"Limits of the {request.kind} {request.whose}: {', '.join(words)}.")


def clear_limits(app: App, request: ClearLimits, principal: Principal) -> Done:
    """Let the limits of the settings hold for a user or a team again."""
    _require_admin(principal)
    resources = tuple(Resource) if request.resource is None else (request.resource,)
    with app.accounts.changing(principal.user) as writing:
        gone = writing.clear_limits(Holder(request.kind, request.whose), resources)
    words = ", ".join(name.words for name in gone) or "no other was set"
    return Done(f"Limits of the {request.kind} {request.whose} are those of the settings again: {words}.")


def list_limits(app: App, request: ListLimits, principal: Principal) -> LimitList:
    """List the limits in the settings, and those that admins have set for users and teams."""
    del request
    _require_admin(principal)
    common = [Limit(kind, "", name, most) for kind, each in app.limits.defaults.items() for name, most in each.items()]
    chosen = app.limits.set_by_admins().items()
    return LimitList((*common, *(Limit(*who, name, most) for who, each in chosen for name, most in each.items())))


def show_limits(app: App, request: ShowLimits, principal: Principal) -> Usage:
    """Show your limits and those of the teams that you are a member of, and what is used of them.

    What another user has is for them alone.
    """
    del request
    return usage_of(app, principal)


def audit(app: App, request: Audit, principal: Principal) -> AuditPage:
    """Show who did what in the teams that you administer, newest first; never a text, nothing personal.

    Lines of private projects are not among them, and those about users and tokens only for an admin of the deployment.
    """
    teams, accounts = _audited_by(principal, request.team)
    found = app.accounts.lines(teams, request, request.limit + 1, accounts=accounts)
    more = len(found) > request.limit
    shown = tuple(found[: request.limit])
    return AuditPage(shown, shown[-1].number if more else None)


def export_audit(app: App, request: ExportAudit, principal: Principal) -> AuditExport:
    """Export what `audit` shows, the oldest first in each chain, a page at a time; no line is left out or comes twice.

    An admin of the deployment also gets the hash of each line, by which whoever keeps the lines proves them unchanged.
    """
    teams, accounts = _audited_by(principal, request.team)
    found, after = app.accounts.export(teams, request, accounts=accounts, chained=principal.administers())
    return AuditExport(tuple(found), after, len(found) == request.limit)


def _audited_by(principal: Principal, team: str | None) -> tuple[tuple[str, ...] | None, bool]:
    """Return the teams whose lines a principal may read, None for all, and whether those of accounts are among them.

    Raises `Forbidden` where they may read none, or not those of the `team`.
    """
    if team is not None:
        _require_admin(principal, team)
        return (team,), False
    if principal.administered == ():
        _require_admin(principal)
    return principal.administered, principal.administers()


HANDLERS: Final[dict[str, Callable[[App, Any, Principal], Any]]] = {
    run.__name__: run
    for run in (
        *(add_user, invite_user, link_user, add_team, add_token, accept_invitation, disable_user, enable_user),
        *(grant_team, revoke_team, add_project, grant_project, revoke_project, revoke_token),
        *(list_users, list_teams, list_projects, list_tokens, audit, export_audit),
        *(set_limits, clear_limits, list_limits, show_limits),
        *(delete_user, list_receipts, export_user, set_hold, list_holds, release_hold),
        *(set_retention, list_retention, drop_retention),
    )
}
"""The function that runs each verb of administration, by name."""


def administer(app: App, name: str, fields: dict[str, Any], principal: Principal) -> Any:
    """Check the fields, pass them through the gate, and run an operation of administration: the only way to run it."""
    if principal.invitation and name != accept_invitation.__name__:
        raise Forbidden("An invitation opens nothing else: `recollect token accept` makes a token of it.")
    operation = ADMIN_BY_NAME.get(name)
    if operation is None:
        raise InvalidInput("name", f"Unknown operation: Must be one of {', '.join(sorted(ADMIN_BY_NAME))}")
    try:
        request = clear(operation.request(**fields), OnSecret.BLOCK).value
    except SecretFound as error:
        with app.accounts.changing(principal.user) as writing:
            writing.refuse(error.field, error.kinds)
        raise
    with span(f"verb {name}"):
        return HANDLERS[name](app, request, principal)


def initialize(app: App, user: str, actor: str) -> IssuedToken:
    """Create the first admin of a deployment and return their token; raise `Forbidden` if an admin exists already."""
    request = clear(AddUser(user=user, admin=True), OnSecret.BLOCK).value
    with app.accounts.changing(actor) as writing:
        if writing.admins():
            raise Forbidden("This deployment has an admin already; `recollect user invite` makes a new invitation.")
        if writing.user(request.user) is not None:
            raise InvalidInput("user", f"Invalid user: There is a user `{request.user}` already")
        writing.add_user(request.user, admin=True)
        return _issue_token(app, writing, request.user, AddToken(label="first admin"))


def operator_principal(user: str) -> Principal:
    """Return the principal of the person at the machine that holds the store; `user` is their name there."""
    return Principal(user=user, admin=True, operator=True)


def _require_admin(principal: Principal, team: str = "") -> None:
    """Raise `Forbidden` unless the principal administers the team, or the deployment where no team is named."""
    if not principal.administers(team):
        of = f"the team `{team}`" if team else _DEPLOYMENT
        raise Forbidden(f"You do not administer {of}.")


def _require_user(writing: AccountWriting, name: str) -> Any:
    """Return the user of this name; raise `NotFound` without one."""
    user = writing.user(name)
    if user is None:
        raise NotFound(f"There is no user `{name}`.")
    return user


def _require_team(writing: AccountWriting, name: str | None) -> None:
    if name is not None and not writing.has_team(name):
        raise NotFound(f"There is no team `{name}`.")


def _require_project(writing: AccountWriting, team: str, project: str) -> None:
    """Raise `NotFound` unless the team has a registered project of this name."""
    _require_team(writing, team)
    if writing.project(team, project) is None:
        raise NotFound(f"There is no registered project `{project}` in the team `{team}`: add it first.")


def _visible_teams(principal: Principal, team: str | None) -> tuple[str, ...] | None:
    """Return the teams that a principal may see, None for all; raise `Forbidden` for a team that they may not see."""
    if team is None:
        return None if principal.administers() else principal.known_teams
    if team not in principal.known_teams and not principal.administers():
        raise Forbidden(f"You have no role in the team `{team}`, or there is none of that name.")
    return (team,)


def _issue_invitation(app: App, writing: AccountWriting, user: str) -> IssuedToken:
    """Store a new invitation of a user, and return it with its secret."""
    made, now = new_token(), app.clock()
    expires = now + timedelta(days=INVITATION_DAYS)
    message = f"{user} accepts this invitation within {INVITATION_DAYS} days: `recollect token accept`."
    return _issued_token(writing, made, Token(made.prefix, user, "invitation", now, None, True, expires), message)


def _issue_token(app: App, writing: AccountWriting, user: str, asked: AddToken) -> IssuedToken:
    """Store a new token of a user, with the label, role and lifetime of the request; return it with its secret."""
    days = _days_of(asked, app.token_days_max)
    made, now = new_token(), app.clock()
    expires: datetime | None = now + timedelta(days=days) if days else None
    message = "Keep this token now: it is shown this once, and stored nowhere."
    return _issued_token(writing, made, Token(made.prefix, user, asked.label, now, asked.role, False, expires), message)


def _days_of(asked: AddToken, most: float) -> float:
    """Return for how many days a token is made, 0 for good; raise `InvalidInput` for more than the deployment allows.

    A request that names no days gets as many as it may, up to the default.
    """
    if not most:
        return asked.days
    if "days" not in asked.model_fields_set:
        return min(asked.days, most)
    if not 0 < asked.days <= most:
        raise InvalidInput("days", f"Invalid days: Must be above 0 and at most {most:g}, as this deployment allows")
    return asked.days


def _issued_token(writing: AccountWriting, made: NewToken, token: Token, message: str) -> IssuedToken:
    writing.add_token(token, made.hashed)
    return IssuedToken(message, token.user, made.prefix, made.text, token.expires_at)
