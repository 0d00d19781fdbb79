"""The rights of tokens as a process keeps them in memory: another process changes them, and the next request knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, event

from account_admin import Office
from recollect.auth.principal import Principal
from recollect.domain.enums import Role
from recollect.errors import Unauthorized
from recollect.store.sql import granted_access
from recollect.store.sql.database import Database

CHANGES: dict[str, Callable[[Office, Principal, str], Any]] = {
    "revoked": lambda office, root, prefix: office.do("revoke_token", root, prefix=prefix),
    "disabled": lambda office, root, _: office.do("disable_user", root, user="ada"),
    "invited anew": lambda office, root, _: office.do("invite_user", root, user="ada"),
}


@pytest.fixture
def elsewhere(office: Office) -> Iterator[Office]:
    """Return what administers the same accounts in another process, with connections of its own."""
    address = office.store.database.url.render_as_string(hide_password=False)
    with closing(Database(address)) as database:
        yield Office(replace(office.store, database=database), office.clock)


@pytest.fixture
def statements(office: Office) -> Iterator[list[str]]:
    """Return the statements that the first process sends, but for the beginnings of transactions."""
    sent: list[str] = []

    def note(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        if not statement.startswith(("BEGIN", "SELECT set_config")):
            sent.append(statement)

    event.listen(office.store.database.engine, "before_cursor_execute", note)
    yield sent
    event.remove(office.store.database.engine, "before_cursor_execute", note)


@pytest.mark.parametrize("change", CHANGES)
def test_a_token_that_ended_elsewhere_opens_nothing(
    office: Office, elsewhere: Office, root: Principal, change: str
) -> None:
    """Whatever ends a token in one process, every other process refuses it at its next request."""
    ada = office.join(root, "ada", team="crew")
    assert elsewhere.enter(ada.token).teams == {"crew": Role.WRITER}
    CHANGES[change](office, root, ada.prefix)
    with pytest.raises(Unauthorized):
        elsewhere.enter(ada.token)


def test_a_role_that_changed_elsewhere_counts(office: Office, elsewhere: Office, root: Principal) -> None:
    """Roles in teams and projects, and what is private, are those of the last change in any process."""
    token = office.join(root, "ada", team="crew").token
    assert elsewhere.enter(token).projects == {}
    office.do("add_project", root, team="crew", project="engine", private=True)
    assert elsewhere.enter(token).private == {("crew", "engine")}
    office.do("grant_project", root, team="crew", project="engine", user="ada", role="reader")
    assert elsewhere.enter(token).projects == {("crew", "engine"): Role.READER}
    office.do("grant_team", root, team="crew", user="ada", role="admin")
    assert elsewhere.enter(token).teams == {"crew": Role.ADMIN}
    office.do("revoke_team", root, team="crew", user="ada")
    who = elsewhere.enter(token)
    assert (who.teams, who.projects, who.private) == ({}, {}, frozenset())


def test_a_known_token_costs_one_statement(office: Office, root: Principal, statements: list[str]) -> None:
    """A token that was read is compared by the version alone; after a change its rights are read in one statement."""
    token = office.join(root, "ada", team="crew").token
    office.enter(token)
    statements.clear()
    office.enter(token)
    assert len(statements) == 1
    office.do("add_team", root, team="other")
    statements.clear()
    office.enter(token)
    assert len(statements) == 2


def test_rights_are_read_again_after_a_while(office: Office, root: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A role that somebody has changed by hand counts after ten seconds."""
    token = office.join(root, "ada", team="crew").token
    assert office.enter(token).teams == {"crew": Role.WRITER}
    office.store.by_hand("UPDATE membership SET role = 'reader' WHERE role = 'writer'")
    monkeypatch.setattr(granted_access, "_KEPT", 0.0)
    assert office.enter(token).teams == {"crew": Role.READER}


def test_no_more_tokens_are_kept_than_allowed(office: Office, root: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process forgets what it knows of tokens once these are too many."""
    monkeypatch.setattr(granted_access, "_MOST", 2)
    tokens = [office.join(root, name, team="crew").token for name in ("ada", "bob", "cem")]
    for token in (*tokens, *tokens):
        assert office.enter(token).teams == {"crew": Role.WRITER}
