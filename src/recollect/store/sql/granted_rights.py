"""Compare the rights in the tables of accounts with the journal: a right written by hand has no line in it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, or_, select

from recollect.domain.enums import Role
from recollect.store.sql.accounts import ACCOUNTS, registered_projects
from recollect.store.sql.tables import account, identity, journal, membership, project_membership, team, token


def unknown_roles(connection: Connection) -> int:
    """Return how many roles of users and tokens Recollect does not know."""
    columns = (membership.c.role, project_membership.c.role, token.c.role)
    foreign = (select(func.count()).where(one.not_in(list(Role))) for one in columns)
    return sum(connection.execute(each).scalar_one() for each in foreign)


def never_granted(connection: Connection) -> list[str]:
    """Name the users, roles, projects and tokens in the tables that no line of the journal grants."""
    users = select(account.c.name, account.c.admin).where(account.c.disabled_at.is_(None))
    member = select(team.c.name, account.c.name, membership.c.role).select_from(membership)
    member = member.join(team, team.c.id == membership.c.team_id).join(account, account.c.id == membership.c.account_id)
    tokens = select(token.c.prefix, account.c.name, token.c.role).join(account, account.c.id == token.c.account_id)
    there: set[tuple[Any, ...]] = {("user", *one) for one in connection.execute(users)}
    there |= {("role", name, "", user, role) for name, user, role in connection.execute(member)}
    people = select(identity.c.issuer, identity.c.subject, account.c.name).select_from(identity)
    people = people.join(account, account.c.id == identity.c.account_id)
    there |= {("identity", *row) for row in connection.execute(people)}
    there |= {("token", *one) for one in connection.execute(tokens.where(token.c.revoked_at.is_(None)))}
    for one in registered_projects(connection, None):
        there |= {("project", one.team, one.project, one.private)}
        there |= {("role", one.team, one.project, user, str(role)) for user, role in one.members.items()}
    return sorted(" ".join(filter(None, what[:-1])) for what in there - _rights_in_journal(connection))


def _is_of(key: tuple[Any, ...], value: object, user: str) -> bool:
    """Say whether a right is that of a user."""
    if key[0] == "identity":
        return value == user
    place = {"user": 1, "token": 2, "role": 3}.get(key[0])
    return place is not None and key[place] == user


def _rights_in_journal(connection: Connection) -> set[tuple[Any, ...]]:
    """Return the rights that result from the journal's lines on users, teams, projects and tokens."""
    query = select(journal.c.namespace, journal.c.action, journal.c.changes).where(journal.c.memory_id.is_(None))
    of_teams = or_(journal.c.namespace == ACCOUNTS, journal.c.namespace.startswith("team:"))
    held: dict[tuple[Any, ...], Any] = {}
    disabled: set[str] = set()
    for row in connection.execute(query.where(of_teams).order_by(journal.c.id)):
        name, changes = row.namespace.removeprefix("team:"), dict(row.changes)
        user, project = str(changes.get("user")), changes.get("project")
        match row.action:
            case "add_user":
                held["user", user] = changes["admin"]
            case "disable_user" | "enable_user":
                (disabled.add if row.action == "disable_user" else disabled.discard)(user)
            case "delete_user":
                disabled.discard(user)
                for key in [key for key in held if _is_of(key, held[key], user)]:
                    del held[key]
            case "grant_team":
                held["role", name, "", user] = changes["role"]
            case "revoke_team":
                for key in [key for key in held if key[:2] == ("role", name) and key[3] == user]:
                    del held[key]
            case "put_project":
                held["project", name, changes["project"]] = changes["private"]
            case "grant_project":
                held["role", name, project, user] = changes["role"]
            case "revoke_project":
                held.pop(("role", name, project, user), None)
            case "add_token" | "invite_user" | "sign_in":
                held["token", changes["prefix"], user] = changes.get("role")
            case "link_identity":
                held["identity", changes["issuer"], changes["subject"]] = user
            case "revoke_token":
                for key in [key for key in held if key[:2] == ("token", changes["prefix"])]:
                    del held[key]
    return {(*key, value) for key, value in held.items() if key[0] != "user" or key[1] not in disabled}
