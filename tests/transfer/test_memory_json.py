"""The reference server's memory.json: entities are memories, relations are facts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from recollect.domain.transfer import FactRecord, ImportFormat, MemoryRecord

ADA = {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["likes tea", "lives in Turin"]}
KNOWS = {"type": "relation", "from": "Ada", "to": "Bo", "relationType": "knows"}


def lines(*objects: object) -> str:
    return "\n".join(json.dumps(one) for one in objects)


def test_an_entity_is_a_memory(read: Callable[..., Any]) -> None:
    """Its observations are one text under its name, its key is its name, its kind is a tag."""
    (one,) = read(ImportFormat.MEMORY_JSON, lines(ADA), "memory.json").memories
    draft = MemoryRecord(**one.fields)
    assert draft.content == "Ada (person)\n- likes tea\n- lives in Turin"
    assert (draft.key, draft.fact_type, draft.tags, draft.title) == ("entity:Ada", "entity", ("person",), "Ada")
    assert one.where == "memory.json:1"


def test_a_relation_is_a_fact(read: Callable[..., Any]) -> None:
    """From, kind and to are subject, predicate and object."""
    (one,) = read(ImportFormat.MEMORY_JSON, lines(ADA, KNOWS)).facts
    fact = FactRecord(**one.fields)
    assert (fact.subject, fact.predicate, fact.object) == ("Ada", "knows", "Bo")


def test_a_graph_in_one_object_is_read_too(read: Callable[..., Any]) -> None:
    """What `read_graph` answers, one object with both lists, says the same."""
    graph = {"entities": [ADA], "relations": [KNOWS, 7]}
    found = read(ImportFormat.MEMORY_JSON, json.dumps(graph, indent=2), "g.json")
    assert [one.fields["key"] for one in found.memories] == ["entity:Ada"]
    assert [one.fields["object"] for one in found.facts] == ["Bo"]
    assert [one.where for one in found.problems] == ["g.json, relation 2"]


def test_an_entity_that_says_nothing_still_is_one(read: Callable[..., Any]) -> None:
    """Without observations the name and the kind are the text; observations may also be objects."""
    bare = {"type": "entity", "name": "Bo", "entityType": "dog", "observations": []}
    dated = {"type": "entity", "name": "Cy", "observations": [{"content": "barks", "timestamp": "x"}, 3, None]}
    assert read(ImportFormat.MEMORY_JSON, lines(bare, dated)).contents == ["Bo (dog)", "Cy\n- barks"]


def test_bad_lines_are_told_and_passed_over(read: Callable[..., Any]) -> None:
    """A line of another kind, without a name, or that is no JSON is a problem with its number; the rest is read."""
    text = "\n".join([json.dumps(ADA), "{", '{"type":"x"}', '{"type":"entity"}', "[]", "", json.dumps(KNOWS)])
    found = read(ImportFormat.MEMORY_JSON, text, "m")
    assert [one.where for one in found.problems] == ["m:2", "m:3", "m:4", "m:5"]
    assert (len(found.memories), len(found.facts)) == (1, 1)


def test_two_entities_of_one_name_are_two(read: Callable[..., Any]) -> None:
    """The second one of a name is numbered, so that none overwrites the other."""
    found = read(ImportFormat.MEMORY_JSON, lines(ADA, ADA | {"observations": ["codes"]}))
    assert [one.fields["key"] for one in found.memories] == ["entity:Ada", "entity:Ada~2"]
