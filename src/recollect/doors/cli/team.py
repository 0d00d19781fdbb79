"""The commands on users, teams, projects and tokens of a deployment."""

from __future__ import annotations

from typing import Final

import typer

from recollect.domain.verbs import ADMIN_BY_NAME
from recollect.doors.cli import exit_codes
from recollect.doors.cli.answers import print_answer
from recollect.doors.cli.leaving import delete_user, export_user, holds, me, retention
from recollect.doors.cli.opening import administering
from recollect.doors.cli.options import Fields, from_fields
from recollect.doors.cli.project import projects
from recollect.doors.serializers import public_json

users = typer.Typer(no_args_is_help=True, help="Add, invite, list, disable and delete the users of a deployment.")
teams = typer.Typer(no_args_is_help=True, help="Add teams, and give users roles in them.")
limits = typer.Typer(no_args_is_help=True, help="Set, clear and list limits of users and teams.")
tokens = typer.Typer(no_args_is_help=True, help="Make, accept, list and revoke tokens.")
cli = typer.Typer()

_COMMANDS: Final = (
    (users, "add", "add_user", "Add a user, and print the invitation that makes their first token."),
    (users, "invite", "invite_user", "Make a new invitation for a user who lost their token; it ends the others."),
    (users, "link", "link_user", "Let a person of the identity provider sign in as a user who is here already."),
    (users, "list", "list_users", "List users and their roles."),
    (users, "disable", "disable_user", "Block a user: their tokens end, their memories stay."),
    (users, "enable", "enable_user", "Unblock a user; `user invite` gives them a token."),
    (teams, "add", "add_team", "Add a team."),
    (teams, "list", "list_teams", "List teams and their members."),
    (teams, "grant", "grant_team", "Give a user a role in a team."),
    (teams, "revoke", "revoke_team", "Take a user out of a team and its projects."),
    (projects, "add", "add_project", "Register a project of a team, or change whether it is private."),
    (projects, "registered", "list_projects", "List registered projects and the roles in them."),
    (
        projects,
        "grant",
        "grant_project",
        "Give a user a role in a registered project, which replaces their team role there.",
    ),
    (
        projects,
        "revoke",
        "revoke_project",
        "Remove the role that a user has in a project; in an open project their team role counts again.",
    ),
    (
        tokens,
        "add",
        "add_token",
        "Make an additional token for yourself; a token with a role of its own cannot make one.",
    ),
    (tokens, "accept", "accept_invitation", "Exchange an invitation, given as RECOLLECT_TOKEN, for your first token."),
    (tokens, "list", "list_tokens", "List tokens, without their secret part."),
    (tokens, "revoke", "revoke_token", "Revoke a token, from the next request on."),
    (limits, "set", "set_limits", "Limit what a user or a team may hold and ask, in place of the server's settings."),
    (limits, "clear", "clear_limits", "Let the limits of the server's settings hold for a user or a team again."),
    (limits, "list", "list_limits", "List the limits in the server's settings, and those set for users and teams."),
    (cli, "limits", "show_limits", "Show your limits and those of your teams, and what is used of them."),
    (
        users,
        "receipt",
        "list_receipts",
        "Show the receipts of users who were deleted, as the journal signs them.",
    ),
    (holds, "set", "set_hold", "Set a legal hold on all that a user wrote, or on a team or a project of it."),
    (holds, "list", "list_holds", "List the legal holds that you may see."),
    (holds, "release", "release_hold", "Release a legal hold: what it kept can be deleted again."),
    (retention, "list", "list_retention", "List after how many days a team's memories are removed."),
    (retention, "drop", "drop_retention", "Remove a rule of retention."),
)

_GROUPS: Final = {
    **{"project": projects, "user": users, "team": teams, "token": tokens},
    **{"limit": limits, "me": me, "hold": holds, "retention": retention},
}
for _name, _group in _GROUPS.items():
    cli.add_typer(_group, name=_name)
users.command("delete")(delete_user)
users.command("export")(export_user)


def _register_operation(group: typer.Typer, name: str, operation: str, about: str) -> None:
    """Add a command that runs an operation of administration with its fields as options."""

    @group.command(name, help=about)
    @from_fields(ADMIN_BY_NAME[operation].request, "user" if operation in ("list_tokens", "list_receipts") else "")
    def run(ctx: typer.Context, fields: Fields, as_json: bool = False) -> None:
        kind = ADMIN_BY_NAME[operation]
        kind.request(**fields)  # report invalid input before anything is opened
        with administering(ctx.obj) as perform:
            found = perform(operation, **fields)
        exit_codes.show(public_json(kind.answer, found), as_json, print_answer=lambda: print_answer(found))


for _group, _name, _operation, _about in _COMMANDS:
    _register_operation(_group, _name, _operation, _about)
