"""Answers: each operation declares one, what doors show meets its JSON schema, and a client gets it back whole."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from callers import ADA
from every_operation import REQUESTS, check_schema
from recollect import App, Memory
from recollect.client.connection import from_wire
from recollect.domain.answer import Answer, Failure
from recollect.domain.requests import Draft, MemoryFields, Query, Update
from recollect.domain.results import Outcome, Recalled
from recollect.domain.verbs import BY_NAME, VERBS, Verb
from recollect.doors import memory_tool
from recollect.doors.handlers import perform
from recollect.doors.serializers import public_json, public_schema, wire_json


def test_every_operation_is_tried() -> None:
    """Each operation of the table is asked for something below."""
    assert {name for name, _ in REQUESTS} == {operation.name for operation in VERBS}


@pytest.mark.parametrize("operation", VERBS, ids=lambda one: one.name)
def test_every_answer_is_described(operation: Verb) -> None:
    """Whatever an operation answers is one of our answers, or a list of one, and its schema is that of an object."""
    kind = operation.answer
    one = get_args(kind)[0] if get_args(kind) else kind
    assert issubclass(one, Answer)
    assert bool(get_args(kind)) is bool(one.plural)
    schema = public_schema(kind)
    assert schema["type"] == "object"
    assert schema["properties"]


def test_answers_meet_their_schema_and_come_back_whole(app: App) -> None:
    """What is shown meets the schema; what is packed as JSON becomes the same answer, to the microsecond."""
    for name, fields in REQUESTS:
        kind = BY_NAME[name].answer
        answer = perform(app, name, fields, ADA)
        check_schema(name, kind, answer)
        assert from_wire(kind, json.loads(json.dumps(wire_json(kind, answer)))) == answer, name


def test_what_says_nothing_is_not_shown(app: App) -> None:
    """Empty fields, and those that only programs need, are left out; ids are texts and times have no fractions."""
    perform(app, "remember", {"content": "The pier is long.", "confidence": 0.0}, ADA)
    memory: Memory = perform(app, "get_memory", {"id": "1"}, ADA)
    body = public_json(Memory, memory)
    assert {"namespace", "content_hash", "deleted_at", "key", "tags", "subtitle"}.isdisjoint(body)
    assert (body["id"], body["confidence"]) == ("1", 0)
    assert body["created_at"] == memory.created_at.isoformat(timespec="seconds")
    assert wire_json(Memory, memory)["namespace"] == memory.namespace


def test_a_field_is_declared_once() -> None:
    """Draft, update and memory share one declaration: description and checks are the same in all of them."""
    for name, field in MemoryFields.model_fields.items():
        assert Draft.model_fields[name].description == field.description
        assert Memory.model_fields[name].description == field.description
    assert set(Update.model_fields) - {"id", "allow_private", "allow_secret"} == set(MemoryFields.model_fields) - {
        "scope",
        "source",
    }
    assert not any(field.is_required() for name, field in Update.model_fields.items() if name != "id")


def test_the_tool_shows_what_its_schema_names() -> None:
    """The output schema of `memory` is made of the answers it gives, and requires the message alone."""
    schema = memory_tool.output_schema()
    assert schema["required"] == ["message"]
    known = {name for kind in (Outcome, Recalled, Failure) for name in public_schema(kind)["properties"]}
    assert set(schema["properties"]) <= known
    assert schema["properties"]["memories"] == {"type": "array", "items": {"type": "object"}}


def test_requests_survive_the_way_to_the_daemon() -> None:
    """A request that was sent as JSON is the same request, to the microsecond."""
    draft = Draft(content="x", observed_at="2026-02-03T04:05:06.789+02:00")
    assert Draft(**json.loads(json.dumps(draft.model_dump(mode="json", exclude_unset=True)))) == draft
    query = Query(query="x", since="2026-02-03", tags=("a",))
    assert Query(**json.loads(json.dumps(query.model_dump(mode="json", exclude_unset=True)))) == query
