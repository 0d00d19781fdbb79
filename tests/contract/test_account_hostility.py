"""What people do to accounts who mean harm or have odd names: on every database, and without a trace of a token."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from account_admin import Office
from recollect.auth.principal import Principal
from recollect.auth.tokens import new_token
from recollect.errors import Forbidden, InvalidInput, RecollectError, SecretFound, Unauthorized
from recollect.store.journal import walk
from recollect.store.sql.granted_rights import never_granted
from recollect.store.sql.tables import journal

ODD = ("a/b c", "Ärger 北京 🚢", "-rf", "%_\\'\"; DROP TABLE token;--", "../..", "user:ada", "accounts", "x" * 200)
"""Names that are text like any other."""
FORGED = {
    "user eve": "UPDATE account SET admin = true WHERE name = 'eve'",
    "user mallory": "INSERT INTO account (name, admin, created_at) SELECT 'mallory', true, created_at FROM account "
    "WHERE name = 'eve'",
    "role crew eve": "INSERT INTO membership (team_id, account_id, role) SELECT team.id, account.id, 'admin' "
    "FROM team, account WHERE team.name = 'crew' AND account.name = 'eve'",
    "role crew ada": "UPDATE membership SET role = 'admin' WHERE account_id = "
    "(SELECT id FROM account WHERE name = 'ada')",
    "project crew vault": "UPDATE team_project SET private = false",
    "user bob": "UPDATE account SET disabled_at = NULL WHERE name = 'bob'",
    "token": "UPDATE token SET revoked_at = NULL WHERE label = 'invitation' AND account_id = "
    "(SELECT id FROM account WHERE name = 'eve')",
}


def test_odd_names_stay_apart(office: Office, root: Principal) -> None:
    """A name may be any line of text; each is its own user and its own project, and opens nobody else's."""
    for name in ODD:
        token = office.join(root, name, team="crew", role="reader").token
        office.do("add_project", root, team="crew", project=name, private=True)
        office.do("grant_project", root, team="crew", project=name, user=name, role="writer")
        caller = office.enter(token).caller("crew", name)
        assert caller.namespaces() == (f"user:{name}", f"project:crew/{name}", "team:crew")
        assert caller.writes == ("personal", "project")
    for name in ODD:
        [other] = [one for one in office.do("list_projects", root).projects if one.project == name]
        assert list(other.members) == [name]
    with office.store.database.reading() as connection:
        assert walk(connection).broken == {}


def test_a_pattern_in_a_team_name_matches_no_other_team(office: Office, root: Principal) -> None:
    """An admin of a team called `%` audits that one alone, as signs of patterns are letters like others."""
    office.do("add_team", root, team="%")
    office.do("add_team", root, team="c_ew")
    for namespace in ("project:crew/engine", "project:%/mast", "project:c_ew/hull"):
        office.store.add("The mast is pine.", namespace)
    for team in ("%", "c_ew"):
        admin = office.enter(office.join(root, f"admin of {team}", team=team, role="admin").token)
        seen = {one.namespace for one in office.do("audit", admin).lines}
        assert seen <= {f"team:{team}", "project:%/mast" if team == "%" else "project:c_ew/hull"}
        assert len(seen) == 2


def test_every_refused_token_is_refused_in_the_same_words(office: Office, root: Principal) -> None:
    """Who tries tokens learns nothing: unknown, malformed, expired, revoked or of a disabled user, it is one answer."""
    tokens = {name: office.join(root, name, team="crew").token for name in ("revoked", "disabled", "expired")}
    office.do("revoke_token", root, prefix=tokens["revoked"][4:12])
    office.do("disable_user", root, user="disabled")
    office.clock.pass_days(91)  # type: ignore[attr-defined]
    known = tokens["expired"]
    near = [known[:-1], known + "x", known.swapcase(), f" {known}", known[:13] + "A" * 43, known[4:]]
    said = set()
    for text in (*tokens.values(), new_token().text, *near, "", "rec_", "\ud800", "x" * 100_000, known + "\n"):
        with pytest.raises(Unauthorized) as error:
            office.enter(text)
        said.add(str(error.value))
    assert len(said) == 1


def test_no_token_is_in_errors_logs_or_the_journal(
    office: Office, root: Principal, caplog: pytest.LogCaptureFixture
) -> None:
    """A token that is refused, misspelt, or given where a name belongs shows up nowhere."""
    caplog.set_level(logging.DEBUG)
    token = office.join(root, "ada", team="crew").token
    secret = token[13:]
    said = [repr(office.enter(token)), repr(office.do("list_tokens", root, user="ada"))]
    attempts: list[tuple[str, dict[str, Any]]] = [
        ("add_user", {"user": token}),
        ("add_team", {"team": f"the team of {token}"}),
        ("add_project", {"team": "crew", "project": token}),
        ("grant_team", {"team": "crew", "user": token}),
        ("add_token", {"label": token}),
        ("revoke_token", {"prefix": token}),
        ("audit", {"team": token}),
    ]
    for name, fields in attempts:
        with pytest.raises((SecretFound, InvalidInput)) as error:
            office.do(name, root, **fields)
        said.append(str(error.value))
    with pytest.raises(Unauthorized) as refused:
        office.enter(token + "x")
    with office.store.database.reading() as connection:
        said += [str(row) for row in connection.execute(select(journal))]
    assert secret not in "\n".join([*said, str(refused.value), caplog.text])


def test_last_use_is_kept_to_the_minute(office: Office, root: Principal) -> None:
    """The time of a token's last use is written at most once a minute, and never counts as a change in the journal."""
    token = office.join(root, "ada", team="crew").token
    lines = len(office.do("audit", root, limit=500).lines)

    def used() -> datetime | None:
        return next(one for one in office.do("list_tokens", root, user="ada").tokens if not one.invitation).last_used_at

    assert used() is None
    office.enter(token)
    first = used()
    for seconds, moved in ((59, False), (61, True)):
        office.store.clock.now = first + timedelta(seconds=seconds)
        office.enter(token)
        assert (used() != first) is moved
    assert len(office.do("audit", root, limit=500).lines) == lines


def test_who_loses_the_role_of_admin_administers_no_more(office: Office, root: Principal) -> None:
    """A token knows no role of its own: what its user loses it loses with the next request."""
    token = office.join(root, "ada", team="crew", role="admin").token
    office.do("grant_team", office.enter(token), team="crew", user="ada", role="reader")
    for name, fields in (("grant_team", {"user": "ada", "role": "admin"}), ("add_project", {"project": "mine"})):
        with pytest.raises(Forbidden):
            office.do(name, office.enter(token), team="crew", **fields)


def test_a_failed_change_leaves_nothing(office: Office, root: Principal) -> None:
    """A change that is refused half-way, such as a user for a team that is not there, leaves no row and no line."""
    before = office.store.dump()
    for name, fields in (
        ("add_user", {"user": "eve", "team": "nowhere"}),
        ("add_project", {"team": "nowhere", "project": "mine"}),
        ("grant_team", {"team": "crew", "user": "nobody"}),
        ("grant_project", {"team": "crew", "project": "unregistered", "user": "root"}),
    ):
        with pytest.raises(RecollectError):
            office.do(name, root, **fields)
    assert office.store.dump() == before


def test_an_admin_of_a_team_takes_over_no_personal_memories(office: Office, root: Principal) -> None:
    """Who invites could accept in another's name: a name that has memories is for the deployment's admins."""
    office.store.add("grace's own", "user:grace")
    admin = office.enter(office.join(root, "ada", team="crew", role="admin").token)
    with pytest.raises(Forbidden, match="an admin of the deployment adds them"):
        office.do("add_user", admin, user="grace", team="crew")
    assert office.do("add_user", root, user="grace", team="crew").prefix


@pytest.mark.parametrize("what", FORGED)
def test_a_right_that_nobody_granted_is_named(office: Office, root: Principal, what: str) -> None:
    """Rights that follow from the journal are well, however often they changed; one written into the tables is told."""
    for name, fields in (("eve", {}), ("ada", {"team": "crew"}), ("bob", {"team": "crew"})):
        office.join(root, name, **fields)
    office.do("add_project", root, team="crew", project="vault", private=True)
    office.do("grant_project", root, team="crew", project="vault", user="ada", role="reader")
    office.do("grant_team", root, team="crew", user="bob", role="admin")
    office.do("grant_project", root, team="crew", project="vault", user="bob", role="reader")
    office.do("revoke_team", root, team="crew", user="bob")
    office.do("disable_user", root, user="bob")
    with office.store.database.writing() as connection:
        assert never_granted(connection) == []
        connection.exec_driver_sql(FORGED[what])
        [told] = never_granted(connection)
    assert told.startswith(what)
