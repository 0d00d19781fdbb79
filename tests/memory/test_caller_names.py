"""Names of users, teams and projects pass the gate where they become a namespace that is written to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from recollect import App, Caller, Settings
from recollect.domain.enums import OnSecret
from recollect.errors import SecretFound
from run_operations import do, rows, token
from stores import open_app


@pytest.fixture(params=list(OnSecret))
def store(request: pytest.FixtureRequest, settings: Settings) -> Iterator[App]:
    """Return a store that refuses secrets, and one that masks them: a masked name would be somebody else's."""
    with open_app(settings.model_copy(update={"on_secret": request.param})) as app:
        yield app


@pytest.mark.parametrize("scope", ["personal", "project", "team"])
@pytest.mark.parametrize("field", ["user", "team", "project"])
def test_a_secret_in_a_name_is_refused(store: App, settings: Settings, field: str, scope: str) -> None:
    """A write is refused with the name of the field wherever it would store the secret, and nothing of it stays."""
    caller = Caller(**{"user": "ada", "team": "crew", "project": "engine"} | {field: token()})
    stored = field == "user" or scope == field or (scope == "project" and field == "team")
    writes = {
        "remember": {"content": "The pier is long.", "scope": scope},
        "store_fact": {"subject": "pier", "predicate": "is", "object": "long", "scope": scope},
    }
    for name, fields in writes.items():
        if stored:
            with pytest.raises(SecretFound) as found:
                do(store, name, caller, **fields)
            assert found.value.field == field
        else:
            do(store, name, caller, **fields)
    item = {"kind": "memory", "where": "line 1", "fields": writes["remember"] | {"content": "The mast is oak."}}
    if stored:
        with pytest.raises(SecretFound):
            do(store, "import_batch", caller, items=[item])
    assert do(store, "list_memories", caller).total == (0 if stored else 1)
    for table in ("namespace", "memory", "fact", "journal"):
        assert token() not in repr(rows(settings, f"SELECT * FROM {table}"))


def test_a_refusal_of_another_field_writes_no_secret_name(app: App, settings: Settings) -> None:
    """Where the content holds a secret too, the journal's line of that is not written under the name."""
    with pytest.raises(SecretFound):
        do(app, "remember", Caller(user=token(), project="engine"), content=f"The key is {token()}")
    assert rows(settings, "SELECT * FROM journal") == []


@pytest.mark.parametrize("name", ["ada", "550e8400-e29b-41d4-a716-446655440000", "user@example.com", "password-vault"])
def test_ordinary_names_are_welcome(app: App, name: str) -> None:
    """Names, addresses and numbers of accounts are no secrets."""
    caller = Caller(user=name, team=name, project=name)
    assert [
        do(app, "remember", caller, content="x y", scope=one).status for one in ("personal", "project", "team")
    ] == (["stored"] * 3)
