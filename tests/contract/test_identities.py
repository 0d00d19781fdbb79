"""People of an identity provider as users, on every database: one transaction each, journalled, without their token."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import insert, select

from account_admin import Office
from recollect.auth.identity_provider import Person
from recollect.auth.people import admit_bearer, admit_browser
from recollect.auth.principal import Principal
from recollect.domain.enums import Role
from recollect.errors import Forbidden
from recollect.store.journal import walk
from recollect.store.sql.granted_rights import never_granted
from recollect.store.sql.tables import account, identity, journal, token

RULES = {"engineers": {"crew": Role.WRITER}, "leads": {"sail": Role.ADMIN}}


@pytest.fixture
def grace(office: Office, root: Principal) -> Person:
    """Return a person whose access token is good for an hour."""
    now = office.clock()
    return Person("https://idp.example", "g-1", "grace", ("engineers", "leads"), now, now + timedelta(hours=1))


def test_a_person_becomes_a_user_with_roles(office: Office, grace: Person) -> None:
    """User, teams, roles and token are there at once, and each follows from the journal."""
    admit_bearer(office.app, grace, "eyJa.b.c", RULES)
    who = office.enter("eyJa.b.c")
    assert (who.user, who.teams, who.admin) == ("grace", {"crew": Role.WRITER, "sail": Role.ADMIN}, False)
    assert "eyJa.b.c" not in office.written()
    with office.store.database.reading() as connection:
        assert never_granted(connection) == []
        assert walk(connection).broken == {}
        [lines] = [connection.execute(select(journal.c.changes).where(journal.c.action == "link_identity")).scalars()]
        signed_in = connection.execute(select(journal.c.actor).where(journal.c.action == "sign_in")).scalars().all()
        assert signed_in == ["grace"]
        assert list(lines) == [{"user": "grace", "issuer": "https://idp.example", "subject": "g-1"}]


def test_a_link_by_hand_shows(office: Office, grace: Person, root: Principal) -> None:
    """Whoever writes into the table that a person is another user has no line of the journal for it."""
    office.join(root, "bob")
    with office.store.database.writing() as connection:
        bob = connection.execute(select(account.c.id).where(account.c.name == "bob")).scalar_one()
        row = {"issuer": grace.issuer, "subject": grace.subject, "account_id": bob, "created_at": office.clock()}
        connection.execute(insert(identity).values(row))
    with office.store.database.reading() as connection:
        assert never_granted(connection) == [f"identity {grace.issuer} {grace.subject}"]


def test_each_sign_in_reads_the_groups_anew(office: Office, grace: Person) -> None:
    """A role that a group gave changes with the groups, and the tokens from before know it."""
    browser = admit_browser(office.app, grace, RULES)
    assert set(office.enter(browser).teams) == {"crew", "sail"}
    admit_bearer(office.app, replace(grace, groups=("leads",)), "eyJa.b.c", RULES)
    assert set(office.enter(browser).teams) == {"sail"}


def test_an_older_token_brings_no_group_back(office: Office, grace: Person, root: Principal) -> None:
    """The groups of what the provider issued last count, whatever is shown last, also once the person is linked."""
    admit_bearer(office.app, replace(grace, groups=("leads",)), "eyJa.b.new", RULES)
    older = replace(grace, issued_at=grace.issued_at - timedelta(seconds=1))
    admit_bearer(office.app, older, "eyJa.b.old", RULES)
    assert set(office.enter("eyJa.b.old").teams) == {"sail"}
    office.do("link_user", root, user="grace", issuer=grace.issuer, subject=grace.subject)
    assert set(office.enter(admit_browser(office.app, older, RULES)).teams) == {"sail"}


def test_tokens_that_have_expired_are_forgotten(office: Office, grace: Person) -> None:
    """The next sign-in removes those of the provider, so that hourly tokens do not gather; the others stay."""
    for day in range(3):
        until = office.clock() + timedelta(hours=1)
        admit_bearer(office.app, replace(grace, until=until), f"eyJa.b.{day}", RULES)
        admit_browser(office.app, grace, RULES)
        office.clock.pass_days(1)  # type: ignore[attr-defined]
    with office.store.database.reading() as connection:
        labels = connection.execute(select(token.c.label).where(token.c.label.contains("idp.example"))).scalars().all()
    assert sorted(labels) == ["browser of idp.example"] * 3 + ["sign-in at idp.example"]


def test_a_name_is_nobody_elses(office: Office, grace: Person, root: Principal) -> None:
    """A person who is called as a user is refused, and nothing of them is kept."""
    office.join(root, "grace")
    before = office.written()
    with pytest.raises(Forbidden, match="there is a user `grace`"):
        admit_browser(office.app, grace, RULES)
    assert office.written() == before


def test_an_admin_links_a_user(office: Office, grace: Person, root: Principal) -> None:
    """A user who had tokens before then signs in as a person of the provider, and as nobody else."""
    office.join(root, "grace")
    where = {"issuer": grace.issuer, "subject": grace.subject}
    office.do("link_user", root, user="grace", **where)
    assert office.enter(admit_browser(office.app, grace, RULES)).user == "grace"
    office.join(root, "hopper")
    office.do("link_user", root, user="hopper", **where)
    assert office.enter(admit_browser(office.app, grace, RULES)).user == "hopper"
    with office.store.database.reading() as connection:
        assert never_granted(connection) == []


def test_the_same_subject_at_another_provider_is_another_person(office: Office, grace: Person) -> None:
    """Only issuer and subject together say who it is."""
    admit_browser(office.app, grace, RULES)
    with pytest.raises(Forbidden):
        admit_browser(office.app, replace(grace, issuer="https://other.example"), RULES)
    other = admit_browser(office.app, replace(grace, issuer="https://other.example", name="hopper"), RULES)
    assert office.enter(other).user == "hopper"


def test_a_team_of_the_rules_is_made_once(office: Office, grace: Person) -> None:
    """It is there from the first member on, and stays when the last is gone."""
    admit_browser(office.app, grace, RULES)
    admit_browser(office.app, replace(grace, groups=()), RULES)
    admit_browser(office.app, grace, RULES)
    with office.store.database.reading() as connection:
        made = connection.execute(select(journal.c.namespace).where(journal.c.action == "add_team")).scalars().all()
    assert made.count("team:sail") == 1
