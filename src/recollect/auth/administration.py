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
    AuditPage,
    ChangeUser,
    Done,
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
from recollect.domain.verbs import ADMIN_BY_NAME
from recollect.errors import Conflict, Forbidden, InvalidInput, NotFound, SecretFound, Unauthorized
from recollect.gate import clear

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


def audit(app: App, request: Audit, principal: Principal) -> AuditPage:
    """Show who did what in the teams that you administer, newest first; never a text, nothing personal.

    Lines of private projects are not among them, and those about users and tokens only for an admin of the deployment.
    """
    if request.team is not None:
        _require_admin(principal, request.team)
    teams = principal.administered if request.team is None else (request.team,)
    if teams == ():
        _require_admin(principal)
    accounts = request.team is None and principal.administers()
    found = app.accounts.lines(teams, request, request.limit + 1, accounts=accounts)
    more = len(found) > request.limit
    shown = tuple(found[: request.limit])
    return AuditPage(shown, shown[-1].number if more else None)


HANDLERS: Final[dict[str, Callable[[App, Any, Principal], Any]]] = {
    run.__name__: run
    for run in (
        *(add_user, invite_user, link_user, add_team, add_token, accept_invitation, disable_user, enable_user),
        *(grant_team, revoke_team, add_project, grant_project, revoke_project, revoke_token),
        *(list_users, list_teams, list_projects, list_tokens, audit),
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
    made, now = new_token(), app.clock()
    expires: datetime | None = now + timedelta(days=asked.days) if asked.days else None
    message = "Keep this token now: it is shown this once, and stored nowhere."
    return _issued_token(writing, made, Token(made.prefix, user, asked.label, now, asked.role, False, expires), message)


def _issued_token(writing: AccountWriting, made: NewToken, token: Token, message: str) -> IssuedToken:
    writing.add_token(token, made.hashed)
    return IssuedToken(message, token.user, made.prefix, made.text, token.expires_at)
