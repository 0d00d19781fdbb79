"""From a person whom an identity provider vouches for to a user of this deployment, with a token and roles."""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from recollect.app import App
from recollect.auth.browsers import LIFE
from recollect.auth.tokens import NewToken, hashed, new_token
from recollect.domain.accounts import AddUser, Token
from recollect.domain.enums import OnSecret, Role
from recollect.domain.group_roles import GroupRoles, roles_by_team
from recollect.errors import Forbidden
from recollect.gate import clear
from recollect.store.sql.accounts import OF_BROWSER, OF_PROVIDER, AccountWriting

if TYPE_CHECKING:
    from recollect.auth.identity_provider import Person

_DISABLED: Final = "Sign-in refused: this user is disabled here."


def admit_bearer(app: App, person: Person, bearer: str, rules: GroupRoles) -> None:
    """Let an access token of the provider open what its person may, until it expires.

    A token that was issued to a client, such as a hosted client of MCP, reads and writes, but neither administers nor
    makes tokens.
    """
    made = NewToken(bearer, new_token().prefix, hashed(bearer))
    cap = Role.WRITER if person.of_client else None
    _admit(app, person, rules, made, f"{OF_PROVIDER}{_host(person)}", person.until, cap)


def admit_browser(app: App, person: Person, rules: GroupRoles) -> str:
    """Return a token for the browser in which a person has signed in, for half a day at most."""
    made = new_token()
    _admit(app, person, rules, made, f"{OF_BROWSER}{_host(person)}", app.clock() + LIFE)
    return made.text


def _admit(
    app: App,
    person: Person,
    rules: GroupRoles,
    made: NewToken,
    label: str,
    until: datetime,
    cap: Role | None = None,
) -> None:
    """Write the token of a person, at most with the role `cap`, in the transaction of their user and their roles."""
    before = app.accounts.user_of(person.issuer, person.subject)
    if before is not None and before.disabled_at is not None:  # refused again below, but that locks writers out
        raise Forbidden(_DISABLED)
    name = before.user if before is not None else _checked(person.name)
    with app.accounts.changing(name) as writing:
        if (known := writing.user_of(person.issuer, person.subject)) is None:
            _join(writing, name, person)
        name = known or name
        user = writing.user(name)
        if user is None or user.disabled_at is not None:
            raise Forbidden(_DISABLED)
        if writing.takes_groups(person.issuer, person.subject, person.issued_at):
            for team, role in roles_by_team(rules, person.groups).items():
                if role is not None and not writing.has_team(team):
                    writing.add_team(team)
                if user.teams.get(team) is not role:
                    writing.set_role(team, name, role)
        writing.forget_expired(name)
        if not writing.has_hash(made.hashed):
            now = app.clock()
            writing.add_token(Token(made.prefix, name, label, now, cap, False, until), made.hashed, "sign_in")


def _join(writing: AccountWriting, name: str, person: Person) -> None:
    """Add the user of a person who comes for the first time; raise `Forbidden` where the name is somebody's."""
    if writing.user(name) is not None or writing.ever_had_memories(name) or writing.departures.unfinished(name):
        words = ("recollect", "user", "link", name, person.issuer, person.subject)
        raise Forbidden(
            f"Sign-in refused: there is a user `{name}` here already, or memories of such a user, and nothing proves "
            f"that they are yours. An admin of the deployment lets you in as that user: `{shlex.join(words)}`."
        )
    writing.add_user(name, admin=False)
    writing.link(name, person.issuer, person.subject)


def _checked(name: str) -> str:
    """Return a name as a user may have it; raise `InvalidInput` or `SecretFound` for another."""
    return clear(AddUser(user=name), OnSecret.BLOCK).value.user


def _host(person: Person) -> str:
    return urlsplit(person.issuer).netloc
