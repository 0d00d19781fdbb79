"""Exports that are one JSON document: mcp-memory-service and mem0."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from recollect.domain.transfer import ImportFormat, MemoryRecord
from recollect.transfer.reading import Unreadable

NOTE = {
    "content": "The build needs Java 21.",
    "content_hash": "c0ffee",
    "tags": ["build", "java"],
    "memory_type": "decision",
    "metadata": {"source": "cli", "project": "engine", "importance": 0.9, "odd": {"deep": 1}},
    "created_at": 1767225600.5,
    "updated_at": 1767312000.0,
    "created_at_iso": "2026-01-01T00:00:00.500000Z",
}
MEM0 = {
    "id": "6f2a",
    "memory": "Prefers window seats",
    "hash": "beef",
    "metadata": {"category": "travel"},
    "created_at": "2026-01-01T10:00:00-08:00",
    "updated_at": None,
    "user_id": "ada",
    "categories": ["preferences"],
    "expiration_date": "2027-01-01",
}


def test_a_note_of_the_service_arrives(read: Callable[..., Any]) -> None:
    """Content, tags, kind, project, importance and times arrive."""
    text = json.dumps({"export_metadata": {"total_memories": 1}, "memories": [NOTE]})
    (one,) = read(ImportFormat.MCP_MEMORY_SERVICE, text).memories
    draft = kept = MemoryRecord(**one.fields)
    assert (draft.content, draft.tags, draft.fact_type) == (
        NOTE["content"],
        ("build", "java", "source:cli"),
        "decision",
    )
    assert (draft.project, draft.importance) == ("engine", 0.9)
    assert str(kept.created_at) == "2026-01-01 00:00:00.500000+00:00"
    assert str(kept.updated_at) == "2026-01-02 00:00:00+00:00"


@pytest.mark.parametrize(
    ("kind", "tags", "expected"),
    [("note", "a, b", ("a", "b", "note")), ("bugfix", [], ()), (None, ["a", "a", 3, {}], ("a", "3"))],
)
def test_kinds_and_tags_of_the_service(read: Callable[..., Any], kind: Any, tags: Any, expected: tuple[str]) -> None:
    """A kind that is none of ours becomes a tag; tags may be one text, and what is no label is left out."""
    text = json.dumps({"memories": [NOTE | {"memory_type": kind, "tags": tags}]})
    draft = MemoryRecord(**read(ImportFormat.MCP_MEMORY_SERVICE, text).memories[0].fields)
    assert draft.tags == (*expected, "source:cli")
    assert (draft.type == "bugfix") == (kind == "bugfix")


@pytest.mark.parametrize(
    "wrap", [lambda one: {"results": [one]}, lambda one: [one], lambda one: {"data": {"memories": [one]}}]
)
def test_a_memory_of_mem0_arrives(read: Callable[..., Any], wrap: Callable[[Any], Any]) -> None:
    """However its list is wrapped, text, id, categories, owner and times arrive."""
    (one,) = read(ImportFormat.MEM0, json.dumps(wrap(MEM0))).memories
    draft = kept = MemoryRecord(**one.fields)
    assert (draft.content, draft.key, draft.category) == ("Prefers window seats", "mem0:6f2a", "travel")
    assert draft.tags == ("preferences", "user:ada")
    assert str(kept.expires_at) == "2027-01-01 00:00:00+00:00"
    assert str(kept.created_at) == str(kept.updated_at) == "2026-01-01 18:00:00+00:00"


def test_a_bad_entry_is_told_and_passed_over(read: Callable[..., Any]) -> None:
    """What is no object is a problem with its place; the others are read."""
    found = read(ImportFormat.MEM0, json.dumps([MEM0, "text", None, MEM0 | {"id": "2"}]), "m.json")
    assert [one.where for one in found.problems] == ["m.json, memory 2", "m.json, memory 3"]
    assert len(found.memories) == 2


@pytest.mark.parametrize("text", ["", "{}", '{"results": 3}', "[1, 2", '{"data": null}'])
def test_a_document_that_is_none_is_unreadable(read: Callable[..., Any], text: str) -> None:
    """A document without a list of memories, or that ends early, is refused as a whole."""
    for format in (ImportFormat.MEM0, ImportFormat.MCP_MEMORY_SERVICE):
        with pytest.raises(Unreadable):
            read(format, text)
