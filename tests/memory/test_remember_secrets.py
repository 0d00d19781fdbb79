"""Remember and secrets: every field is read by the gate, nothing is stored, and the refusal is on record."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from callers import ADA
from recollect import App, Draft, Get, Query, Settings, get_memory, recall, remember
from recollect.domain.enums import OnSecret
from recollect.errors import SecretFound

TEXTS = ("content", "key", "category", "title", "subtitle", "abstract", "overview", "session_id", "project", "speaker")
TEXTS += ("id", "supersedes")
LISTS = ("tags", "files_read", "files_modified", "when")


def token() -> str:
    """Build what looks like a GitHub token, so that none stands in this file."""
    return "gh" + "p_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))


def rows(settings: Settings, query: str) -> list[tuple[object, ...]]:
    """Look into the database from outside."""
    with closing(sqlite3.connect(settings.folder / "memory.db")) as database:
        return database.execute(query).fetchall()


def draft_with(field: str, text: str) -> Draft:
    """Return a plain draft with `text` in one field."""
    text = f"run {text}" if field == "when" else text
    value = (text,) if field in LISTS else text
    return Draft(**{"content": "plain words", field: value})


def test_every_text_field_is_tried() -> None:
    """The fields tried below are all fields of a draft that hold free text."""
    draft = Draft(content="x")
    free = {name for name in Draft.model_fields if name in (*TEXTS, *LISTS)}
    closed = {"scope", "fact_type", "type", "concepts", "sensitivity", "source", "observed_at"}
    numbers = {"importance", "confidence", "trust", "discovery_tokens", "ttl_days", "position"}
    levels = {"allow_private", "allow_secret"}
    compared = {"if_hash"}  # a digest, which is never stored
    assert free | closed | numbers | levels | compared == set(type(draft).model_fields)


@pytest.mark.parametrize("field", [*TEXTS, *LISTS])
def test_a_secret_in_any_field_is_refused(app: App, settings: Settings, field: str) -> None:
    """The error names the field and the kind, never the value; nothing is stored; the journal knows of it."""
    secret = token()
    with pytest.raises(SecretFound) as caught:
        remember(app, draft_with(field, f"deploy with {secret} please"), ADA)
    assert caught.value.field == field
    assert caught.value.kinds
    assert secret not in str(caught.value)
    assert rows(settings, "SELECT count(*) FROM memory") == [(0,)]
    [(actor, action, memory_id, changes)] = rows(settings, "SELECT actor, action, memory_id, changes FROM journal")
    assert (actor, action, memory_id) == ("ada", "refuse", None)
    assert json.loads(str(changes)) == {"field": field, "kinds": list(caught.value.kinds)}
    app.close()
    assert not [file for file in settings.folder.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]


def test_a_refused_update_changes_nothing(app: App) -> None:
    """A secret in an update leaves the old memory as it was."""
    memory_id = remember(app, Draft(content="The token is in the vault", key="token"), ADA).id
    with pytest.raises(SecretFound):
        remember(app, Draft(content=f"The token is {token()}", key="token"), ADA)
    memory = get_memory(app, Get(id=memory_id), ADA)
    assert (memory.content, memory.confidence) == ("The token is in the vault", 0.5)


@pytest.mark.parametrize("field", ["content", "title", "tags", "files_read"])
def test_redaction_masks_the_secret(open_store: Callable[..., App], settings: Settings, field: str) -> None:
    """With `redact` the secret is masked before it is stored, the rest is kept, and the outcome says so."""
    app, secret = open_store(on_secret=OnSecret.REDACT), token()
    outcome = remember(app, draft_with(field, f"deploy with {secret} please"), ADA)
    assert outcome.notes == ("A secret was found and masked before storing.",)
    memory = get_memory(app, Get(id=outcome.id), ADA)
    held = getattr(memory, field)
    text = held[0] if field in LISTS else held
    assert text.startswith("deploy with [redacted: ")
    assert text.endswith("] please")
    assert secret not in str(memory)
    assert recall(app, Query(query=secret), ADA).hits == ()
    app.close()
    assert not [file for file in settings.folder.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]


def test_redaction_says_nothing_of_plain_text(open_store: Callable[..., App]) -> None:
    """Where nothing was masked there is no note."""
    assert remember(open_store(on_secret=OnSecret.REDACT), Draft(content="The token is in the vault"), ADA).notes == ()
