"""The commands on users, teams, projects and tokens of a shared deployment, and on the journal of all that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

import typer

from recollect.domain.accounts import AuditLine, AuditPage, IssuedToken, Projects, Teams, Tokens, Users
from recollect.domain.verbs import ADMIN_BY_NAME
from recollect.doors import cli_project, exit_codes, render
from recollect.doors.administration import administering
from recollect.doors.options import Given, from_fields
from recollect.doors.serializers import public_json

users = typer.Typer(no_args_is_help=True, help="Add, invite, list and disable the users of a deployment.")
teams = typer.Typer(no_args_is_help=True, help="Add teams, and give users roles in them.")
tokens = typer.Typer(no_args_is_help=True, help="Make, accept, list and revoke tokens.")
audits = typer.Typer()

_COMMANDS: Final = (
    (users, "add", "add_user", "Add a user, and print the invitation that makes their first token."),
    (users, "invite", "invite_user", "Make a new invitation for a user who lost their token; it ends the others."),
    (users, "list", "list_users", "List users and their roles."),
    (users, "disable", "disable_user", "Let a user in no more; their tokens end, their memories stay."),
    (users, "enable", "enable_user", "Let a disabled user in again."),
    (teams, "add", "add_team", "Add a team."),
    (teams, "list", "list_teams", "List teams and their members."),
    (teams, "grant", "grant_team", "Give a user a role in a team."),
    (teams, "revoke", "revoke_team", "Take a user out of a team and its projects."),
    (cli_project.cli, "add", "add_project", "Register a project of a team, or change whether it is private."),
    (cli_project.cli, "list", "list_projects", "List registered projects and the roles in them."),
    (cli_project.cli, "grant", "grant_project", "Give a user a role in a project, in place of that in the team."),
    (cli_project.cli, "revoke", "revoke_project", "Take away the role that a user has in a project."),
    (tokens, "add", "add_token", "Make another token of your own."),
    (tokens, "accept", "accept_invitation", "Make your first token of an invitation, given as RECOLLECT_TOKEN."),
    (tokens, "list", "list_tokens", "List tokens, without their secret part."),
    (tokens, "revoke", "revoke_token", "End a token from now on."),
    (audits, "audit", "audit", "Show who did what in the teams that you administer."),
)


def _register(group: typer.Typer, name: str, operation: str, about: str) -> None:
    @group.command(name, help=about)
    @from_fields(ADMIN_BY_NAME[operation].request, "user" if operation == "list_tokens" else "")
    def run(ctx: typer.Context, given: Given, as_json: bool = False) -> None:
        kind = ADMIN_BY_NAME[operation]
        kind.request(**given)  # report invalid input before anything is opened
        with administering(ctx.obj) as perform:
            found = perform(operation, **given)
        exit_codes.show(public_json(kind.answer, found), as_json, print_answer=lambda: _print(found))


for _group, _name, _operation, _about in _COMMANDS:
    _register(_group, _name, _operation, _about)


def _print(found: Any) -> None:
    printed: dict[type, Callable[[Any], None]] = {
        Users: _users,
        Teams: _teams,
        Projects: _projects,
        Tokens: _tokens,
        AuditPage: _audit,
    }
    if isinstance(found, IssuedToken):
        render.err.print(render.sanitized(found.message), markup=False, highlight=False, soft_wrap=True)
        render.out.print(found.token, markup=False, highlight=False, soft_wrap=True)
    elif type(found) in printed:
        printed[type(found)](found)
    else:
        render.out.print(render.sanitized(found.message), markup=False, highlight=False, soft_wrap=True)


def _users(found: Users) -> None:
    rows = [
        [one.user, "admin" if one.admin else "", _roles(one.teams), _day(one.created_at), _day(one.disabled_at)]
        for one in found.users
    ]
    render.print_rows(
        rows,
        "user",
        "deployment",
        "teams",
        "since",
        "disabled",
        empty="No users yet: `recollect user add NAME` adds one.",
    )


def _teams(found: Teams) -> None:
    render.print_rows(
        [[one.team, _roles(one.members)] for one in found.teams],
        "team",
        "members",
        empty="No teams yet: `recollect team add NAME` adds one.",
    )


def _projects(found: Projects) -> None:
    rows = [
        [one.team, one.project, "private" if one.private else "open", _roles(one.members)] for one in found.projects
    ]
    render.print_rows(rows, "team", "project", "kind", "roles of its own", empty="No projects are registered.")


def _tokens(found: Tokens) -> None:
    rows = [
        [one.prefix, one.label, one.role or "all"]
        + [_day(at) for at in (one.created_at, one.expires_at, one.last_used_at, one.revoked_at)]
        for one in found.tokens
    ]
    render.print_rows(rows, "prefix", "label", "may", "made", "expires", "last used", "revoked", empty="No tokens.")


def _audit(found: AuditPage) -> None:
    rows = [
        [f"{one.number}", _second(one.at), one.actor, one.namespace, one.action, f"{one.memory_id or ''}", _what(one)]
        for one in found.lines
    ]
    render.print_rows(rows, "no", "time", "who", "where", "did", "memory", "what", empty="Nothing was done yet.")
    if found.before is not None:
        render.print_line(f"More: `recollect audit --before {found.before}`.")


def _what(line: AuditLine) -> str:
    return _listed(f"{name} {value}" for name, value in line.changes.items())


def _roles(roles: dict[str, Any]) -> str:
    return _listed(f"{name} ({role})" for name, role in roles.items())


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _day(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d}" if at else ""


def _second(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"
