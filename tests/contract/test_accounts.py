"""Users, teams, projects and tokens on every database: who may change what, what opens nothing, what is journalled."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from account_admin import Office
from recollect.auth.administration import initialize, operator_principal
from recollect.auth.authenticate import authenticate
from recollect.auth.principal import Principal
from recollect.domain.enums import Role
from recollect.domain.verbs import ADMIN
from recollect.errors import Forbidden, InvalidInput, NotFound, RecollectError, SecretFound, StoreUnusable, Unauthorized
from recollect.store.journal import walk
from recollect.store.sql.granted_rights import unknown_roles
from recollect.store.sql.tables import token


def test_the_first_admin_is_made_once(office: Office) -> None:
    """A deployment gets its first admin from the machine itself, and no second one that way."""
    issued = initialize(office.app, "root", "operator")
    assert office.enter(issued.token).administers()
    with pytest.raises(Forbidden, match="has an admin already"):
        initialize(office.app, "other", "operator")


def test_only_the_hash_is_stored(office: Office, root: Principal) -> None:
    """Neither the database nor a repr holds a token; the prefix tells them apart."""
    issued = office.join(root, "ada", team="crew")
    secret = issued.token.removeprefix(f"rec_{issued.prefix}_")
    assert len(secret) == 43
    assert secret not in office.written()
    assert secret not in repr(issued)
    assert secret not in repr(office.do("list_tokens", office.enter(issued.token)))
    assert issued.prefix in office.written()


def test_an_invitation_is_used_up(office: Office, root: Principal) -> None:
    """An invitation opens nothing but one token, once, for a week."""
    invited = office.do("add_user", root, user="ada", team="crew")
    guest = office.enter(invited.token)
    for name, fields in (("list_users", {}), ("add_token", {}), ("audit", {}), ("list_teams", {})):
        with pytest.raises(Forbidden):
            office.do(name, guest, **fields)
    issued = office.do("accept_invitation", guest)
    assert office.enter(issued.token).teams == {"crew": Role.WRITER}
    with pytest.raises(Unauthorized):
        office.do("accept_invitation", guest)
    with pytest.raises(Unauthorized):
        office.enter(invited.token)
    late = office.do("add_user", root, user="bob", team="crew")
    office.clock.pass_days(7.01)
    with pytest.raises(Unauthorized):
        office.enter(late.token)


def test_whatever_opens_nothing_is_refused_alike(office: Office, root: Principal) -> None:
    """Unknown, malformed, expired and revoked tokens, and those of disabled users, are refused in the same words."""
    ada, bob = office.join(root, "ada"), office.join(root, "bob")
    short = office.do("add_token", office.enter(ada.token), days=1)
    office.do("revoke_token", root, prefix=ada.prefix)
    office.do("disable_user", root, user="bob")
    office.clock.pass_days(1)
    wrong = [ada.token, bob.token, short.token, "", "rec_", ada.token[:-1] + "A", ada.token + "x", "é" * 56]
    said = set()
    for text in wrong:
        with pytest.raises(Unauthorized) as error:
            office.enter(text)
        said.add(str(error.value))
    assert len(said) == 1


def test_a_token_counts_from_its_use(office: Office, root: Principal) -> None:
    """When a token was used last is kept to the minute."""
    issued = office.join(root, "ada")
    who = office.enter(issued.token)
    first = office.do("list_tokens", who).tokens[0].last_used_at
    assert first == office.clock()
    office.clock.pass_days(30 / 86_400)
    office.enter(issued.token)
    assert office.do("list_tokens", who).tokens[0].last_used_at == first
    office.clock.pass_days(31 / 86_400)
    office.enter(issued.token)
    assert office.do("list_tokens", who).tokens[0].last_used_at == office.clock()


def test_a_lesser_token_makes_no_greater_one(office: Office, root: Principal) -> None:
    """A token that may do less than its user makes no tokens and administers nothing."""
    less = office.enter(office.do("add_token", root, role="writer").token)
    assert not less.administers()
    with pytest.raises(Forbidden):
        office.do("add_token", less)
    with pytest.raises(Forbidden):
        office.do("add_team", less, team="other")


def test_roles_count_at_once(office: Office, root: Principal) -> None:
    """A role that is given or taken away counts from the next request on."""
    ada = office.join(root, "ada", team="crew", role="reader").token
    assert office.enter(ada).caller("crew", "engine").writes == ("personal",)
    office.do("grant_team", root, team="crew", user="ada", role="writer")
    assert len(office.enter(ada).caller("crew", "engine").writes) == 3
    office.do("add_project", root, team="crew", project="engine", private=True)
    with pytest.raises(Forbidden):
        office.enter(ada).caller("crew", "engine")
    office.do("grant_project", root, team="crew", project="engine", user="ada", role="reader")
    assert office.enter(ada).caller("crew", "engine").writes == ("personal", "team")
    office.do("revoke_team", root, team="crew", user="ada")
    with pytest.raises(Forbidden):
        office.enter(ada).caller("crew", "engine")


def test_a_role_that_nobody_knows_is_refused(office: Office, root: Principal) -> None:
    """A role that was written into the tables by hand opens nothing, one sentence says so, and the doctor counts it."""
    ada = office.join(root, "ada", team="crew", role="reader").token
    office.store.by_hand("UPDATE membership SET role = 'owner'")
    with pytest.raises(StoreUnusable, match="A role in the accounts is none that Recollect knows"):
        office.enter(ada)
    with office.store.database.reading() as connection:
        assert unknown_roles(connection) == 1


def test_who_administers_nothing_changes_nothing(office: Office, root: Principal) -> None:
    """A member may see their team and make tokens of their own, and changes no user, team, project or other's token."""
    ada = office.enter(office.join(root, "ada", team="crew").token)
    office.do("add_team", root, team="dock")
    before = office.written()
    attempts: dict[str, dict[str, Any]] = {
        "add_user": {"user": "eve", "team": "crew"},
        "invite_user": {"user": "root"},
        "link_user": {"user": "root", "issuer": "https://idp.example", "subject": "ada"},
        "disable_user": {"user": "root"},
        "enable_user": {"user": "root"},
        "add_team": {"team": "pier"},
        "grant_team": {"team": "crew", "user": "ada", "role": "admin"},
        "revoke_team": {"team": "crew", "user": "ada"},
        "add_project": {"team": "crew", "project": "engine"},
        "grant_project": {"team": "crew", "project": "engine", "user": "ada"},
        "revoke_project": {"team": "crew", "project": "engine", "user": "ada"},
        "accept_invitation": {},
        "revoke_token": {"prefix": root.token},
        "list_tokens": {"user": "root"},
        "set_limits": {"kind": "user", "whose": "ada", "memories": 9},
        "clear_limits": {"kind": "user", "whose": "ada"},
        "list_limits": {},
        "audit": {},
        "export_audit": {},
        "delete_user": {"user": "root", "erase": True},
        "list_receipts": {},
        "export_user": {"user": "root"},
        "set_hold": {"hold": "case", "team": "crew"},
        "release_hold": {"hold": "case"},
        "set_retention": {"team": "crew", "days": 1},
        "drop_retention": {"team": "crew"},
    }
    open_to_all = {"list_users", "list_teams", "list_projects", "add_token", "list_holds", "list_retention"}
    open_to_all |= {"show_limits"}
    assert attempts.keys() | open_to_all == {one.name for one in ADMIN}
    for name, fields in attempts.items():
        with pytest.raises((Forbidden, NotFound)):
            office.do(name, ada, **fields)
        assert office.written() == before, name
    assert [one.team for one in office.do("list_teams", ada).teams] == ["crew"]
    assert [one.user for one in office.do("list_users", ada).users] == ["ada"]
    with pytest.raises(Forbidden):
        office.do("list_users", ada, team="dock")


def test_an_admin_of_a_team_keeps_to_it(office: Office, root: Principal) -> None:
    """An admin of a team invites into it and gives roles there, and nowhere else."""
    office.do("add_team", root, team="dock")
    ada = office.enter(office.join(root, "ada", team="crew", role="admin").token)
    office.do("add_user", ada, user="bob", team="crew")
    office.do("grant_team", ada, team="crew", user="bob", role="reader")
    for name, fields in (
        ("add_user", {"user": "eve", "team": "dock"}),
        ("add_user", {"user": "eve"}),
        ("add_user", {"user": "eve", "team": "crew", "admin": True}),
        ("grant_team", {"team": "dock", "user": "ada", "role": "admin"}),
        ("invite_user", {"user": "root"}),
    ):
        with pytest.raises(Forbidden):
            office.do(name, ada, **fields)
    assert {one.namespace for one in office.do("audit", ada).lines} == {"team:crew"}


def test_the_last_admin_stays(office: Office, root: Principal) -> None:
    """The last admin of a deployment cannot be disabled, and of two that disable each other one stays."""
    with pytest.raises(InvalidInput, match="the last admin"):
        office.do("disable_user", root, user="root")
    other = office.enter(office.join(root, "rita", admin=True).token)
    errors: list[RecollectError] = []

    def disable(who: Principal, user: str) -> None:
        try:
            office.do("disable_user", who, user=user)
        except RecollectError as error:
            errors.append(error)

    threads = [threading.Thread(target=disable, args=pair) for pair in ((root, "rita"), (other, "root"))]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(errors) == 1
    with office.accounts.changing("root") as writing:
        assert writing.admins() == 1


def test_everything_is_journalled(office: Office, root: Principal) -> None:
    """Each change leaves a line that says who did it, in a chain that holds, and no line holds a token."""
    ada = office.join(root, "ada", team="crew")
    office.do("add_project", root, team="crew", project="engine", private=True)
    office.do("revoke_token", root, prefix=ada.prefix)
    lines = office.do("audit", root).lines
    assert [(one.actor, one.namespace, one.action) for one in reversed(lines)] == [
        ("operator", "accounts", "add_user"),
        ("operator", "accounts", "add_token"),
        ("root", "team:crew", "add_team"),
        ("root", "accounts", "add_user"),
        ("root", "team:crew", "grant_team"),
        ("root", "accounts", "invite_user"),
        ("ada", "accounts", "revoke_token"),
        ("ada", "accounts", "add_token"),
        ("root", "team:crew", "put_project"),
        ("root", "accounts", "revoke_token"),
    ]
    with office.store.database.reading() as connection:
        assert walk(connection).broken == {}
        hashes = connection.execute(select(token.c.hash)).scalars().all()
    assert not any(one in str(line.changes) for one in hashes for line in lines)


def test_an_audit_shows_nothing_personal(office: Office, root: Principal) -> None:
    """An admin sees that a team's memory was written, and no line of a personal one or of a private project."""
    office.do("add_project", root, team="crew", project="vault", private=True)
    for namespace in ("user:ada", "user:root", "team:crew", "project:crew/engine", "project:crew/vault"):
        office.store.add("The mast is pine.", namespace)
    page = office.do("audit", root)
    assert {one.namespace for one in page.lines} == {"accounts", "team:crew", "project:crew/engine"}
    assert "pine" not in str(page)
    first = office.do("audit", root, limit=2)
    second = office.do("audit", root, limit=2, before=first.before)
    whole = first.lines[0].at
    assert office.do("audit", root, since=whole).lines[:1] == first.lines[:1]
    assert office.do("audit", root, since=whole + timedelta(seconds=1)).lines == ()
    assert office.do("audit", root, until=whole - timedelta(days=1)).lines == ()
    assert office.do("audit", root, until=f"{whole:%Y-%m-%d}").lines == office.do("audit", root).lines
    assert [one.number for one in (*first.lines, *second.lines)] == [one.number for one in page.lines[:4]]


@pytest.mark.parametrize("name", ["a/b", " ", "x" * 201, "a\nb", "a\x00b", "\ud800"])
def test_a_team_with_an_odd_name_is_refused_or_made_plain(office: Office, root: Principal, name: str) -> None:
    """Names are lines of text without what no database holds; a team has no slash in its name."""
    if name == "a\nb":
        office.do("add_team", root, team=name)
        assert "a b" in [one.team for one in office.do("list_teams", root).teams]
        return
    with pytest.raises(InvalidInput, match="team"):
        office.do("add_team", root, team=name)


def test_a_name_that_holds_a_secret_is_refused(office: Office, root: Principal) -> None:
    """The gate sees every name and label; the refusal is journalled without the value."""
    secret = "gh" + "p_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))
    for name, fields in (("add_user", {"user": secret}), ("add_token", {"label": f"for {secret}"})):
        with pytest.raises(SecretFound):
            office.do(name, root, **fields)
    assert secret not in office.written()
    assert [one.action for one in office.do("audit", root).lines[:2]] == ["refuse", "refuse"]


def test_the_operator_administers(office: Office, root: Principal) -> None:
    """Whoever sits at the machine invites again, and makes no token for themselves."""
    who = operator_principal("ops")
    assert office.do("invite_user", who, user="root").prefix
    with pytest.raises(Unauthorized):
        authenticate(office.app, "rec_" + root.token)
    with pytest.raises(Forbidden):
        office.do("add_token", who)


def test_a_deployment_bounds_how_long_tokens_last(office: Office, root: Principal) -> None:
    """With a longest life a token for longer is refused, and a request that names no days gets that life."""
    office.token_days_max = 30
    ada = office.enter(office.join(root, "ada").token)
    for days in (0, 30.5, 90):
        with pytest.raises(InvalidInput, match="Invalid days: Must be above 0 and at most 30"):
            office.do("add_token", ada, days=days)
    for fields, days in (({}, 30), ({"days": 30}, 30), ({"days": 0.5}, 0.5)):
        assert office.do("add_token", ada, **fields).expires_at == office.clock() + timedelta(days=days)
    office.token_days_max = 365
    assert office.do("add_token", ada).expires_at == office.clock() + timedelta(days=90)
    office.token_days_max = 0
    assert office.do("add_token", ada, days=0).expires_at is None
