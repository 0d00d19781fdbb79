"""The gate on every write: a secret in any text of any writing request is refused and on record, its value nowhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from recollect import App, Settings
from recollect.domain.enums import OnSecret
from recollect.domain.fields import Request
from recollect.domain.verbs import BY_NAME
from recollect.errors import InvalidInput, NotFound, SecretFound
from run_operations import add, do, rows, token

REQUIRED: dict[str, dict[str, Any]] = {
    "update_memory": {"id": "1"},
    "store_fact": {"subject": "mast", "predicate": "is", "object": "oak"},
    "memory_store": {"content": "The pier is long."},
    "memory_remember": {"content": "The pier is long.", "category": "event"},
    "remember": {"content": "The pier is long."},
}
IDS = ("id", "memory_id", "supersedes")
SECRET = f"use {token()} please"
GONE_BY_ANOTHER_NAME = {"summary": "abstract"}


def takes_text(request: type[Request], name: str, value: object, required: dict[str, Any]) -> bool:
    """Say whether a field of a request takes this value."""
    try:
        request(**required | {name: value})
    except InvalidInput:
        return False
    return True


def text_fields() -> list[tuple[str, str, Any]]:
    """Return each text field of the writing requests, with what to put into it."""
    found = []
    for operation, required in REQUIRED.items():
        request = BY_NAME[operation].request
        for name in request.model_fields:
            values = [one for one in (SECRET, (SECRET,)) if takes_text(request, name, one, required)]
            if values and name not in IDS:
                found.append((operation, name, values[0]))
    return found


def test_the_fields_are_those_of_the_requests() -> None:
    """What is tried below is every field that takes a free text."""
    tried = text_fields()
    assert {name for operation, name, _ in tried if operation == "store_fact"} == {"subject", "predicate", "object"}
    assert {name for operation, name, _ in tried if operation == "memory_store"} == {"content", "summary", "tags"}
    assert {name for operation, name, _ in tried if operation == "memory_remember"} == {
        "content",
        "abstract",
        "overview",
    }
    assert len([one for one in tried if one[0] == "update_memory"]) == 14


@pytest.mark.parametrize(("operation", "field", "value"), text_fields(), ids=lambda one: str(one)[:20])
def test_a_secret_is_refused(app: App, settings: Settings, operation: str, field: str, value: object) -> None:
    """The error names the field and no value; nothing is written but the line that says so."""
    one = add(app, "The mast is oak.")
    with pytest.raises(SecretFound) as caught:
        do(app, operation, **REQUIRED[operation] | {field: value})
    assert caught.value.field == GONE_BY_ANOTHER_NAME.get(field, field)
    assert token() not in str(caught.value)
    assert rows(settings, "SELECT id, content FROM memory") == [(one, "The mast is oak.")]
    assert rows(settings, "SELECT * FROM fact") == []
    (_, (action, changes)) = rows(settings, "SELECT action, changes FROM journal ORDER BY id")
    assert (action, json.loads(changes)["field"]) == ("refuse", caught.value.field)
    app.close()
    files = [file for file in settings.folder.rglob("*") if file.is_file()]
    assert not [file for file in files if token().encode() in file.read_bytes()]


def test_a_masked_write_leaves_no_value(open_store: Callable[..., App], settings: Settings) -> None:
    """Where secrets are masked, no field of any write, no id that is none and no question leaves one in any file."""
    app = open_store(on_secret=OnSecret.REDACT, journal_mirror=settings.folder / "journal.jsonl")
    add(app, "The mast is oak.")
    for operation, field, value in text_fields():
        do(app, operation, **REQUIRED[operation] | {field: value})
    for number, operation in enumerate(("forget", "memory_forget", "forget_fact", "restore")):
        assert do(app, operation, id=SECRET, request_id=f"again {number}").id == SECRET
        assert do(app, operation, id=SECRET, request_id=f"again {number}").status == "not_found"
    for name in ("id", "supersedes"):
        with pytest.raises(NotFound) as caught:
            do(app, "remember", content="The pier is long.", **{name: SECRET})
        assert token() not in str(caught.value)
    for operation, asked in (("recall", {"query": SECRET}), ("list_memories", {"category": SECRET})):
        do(app, operation, request_id=SECRET, **asked)
    app.close()
    files = [file for file in settings.folder.rglob("*") if file.is_file()]
    assert settings.folder / "journal.jsonl" in files
    assert not [file for file in files if token().encode() in file.read_bytes()]
