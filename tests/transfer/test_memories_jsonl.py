"""The three-layer memories.jsonl: six categories, three layers, a usage count."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from recollect.domain.transfer import ImportFormat, MemoryRecord

LINE = {
    "id": "mem_0123",
    "category": "preferences",
    "abstract": "Likes tea",
    "overview": "The user likes tea.",
    "content": "The user likes green tea in the morning.",
    "vector": [0.1, 0.2],
    "active_count": 7,
    "created_at": "2026-01-02T03:04:05.123456789Z",
    "updated_at": "2026-02-03T04:05:06+02:00",
}


def test_every_layer_arrives(read: Callable[..., Any]) -> None:
    """Layers, category, id, count and times arrive; the vector of another model does not."""
    (one,) = read(ImportFormat.MEMORIES_JSONL, json.dumps(LINE)).memories
    draft = kept = MemoryRecord(**one.fields)
    assert (draft.abstract, draft.overview) == ("Likes tea", "The user likes tea.")
    assert (draft.key, draft.fact_type) == ("mem_0123", "preference")
    assert draft.content == LINE["content"]
    assert kept.accessed_count == 7
    assert str(kept.created_at) == "2026-01-02 03:04:05.123456+00:00"
    assert str(kept.updated_at) == "2026-02-03 02:05:06+00:00"


def test_names_without_tags_are_understood(read: Callable[..., Any]) -> None:
    """A writer that names its fields `ID` and `ActiveCount` is understood as well."""
    names = {"id": "ID", "active_count": "ActiveCount", "created_at": "CreatedAt", "updated_at": "UpdatedAt"}
    line = {names.get(name, name.capitalize()): value for name, value in LINE.items()}
    assert read(ImportFormat.MEMORIES_JSONL, json.dumps(line)).memories[0].fields == (
        read(ImportFormat.MEMORIES_JSONL, json.dumps(LINE)).memories[0].fields
    )


@pytest.mark.parametrize("category", ["profile", "preferences", "entities", "events", "cases", "patterns", "event"])
def test_all_six_categories_are_known(read: Callable[..., Any], category: str) -> None:
    """Each of the six, and the singular of it, is a kind of knowledge here."""
    (one,) = read(ImportFormat.MEMORIES_JSONL, json.dumps(LINE | {"category": category})).memories
    assert str(MemoryRecord(**one.fields).fact_type)[:4] == category[:4]


def test_an_unknown_category_is_a_problem(read: Callable[..., Any]) -> None:
    """A category that is none of the six is told with its line, and nothing is guessed."""
    found = read(ImportFormat.MEMORIES_JSONL, json.dumps(LINE | {"category": "rumours"}), "m.jsonl")
    assert ([one.where for one in found.problems], found.memories) == (["m.jsonl:1"], [])


def test_a_missing_layer_is_filled_from_another(read: Callable[..., Any]) -> None:
    """Without content the overview, else the abstract, is the content."""
    found = read(ImportFormat.MEMORIES_JSONL, json.dumps(LINE | {"content": "", "overview": ""}))
    assert found.contents == ["Likes tea"]
