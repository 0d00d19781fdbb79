"""Sensitivity and time to live (000): every read is tried with each level, with one nobody knows, and past its time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from seed_doors import Door, ids

READS: dict[str, dict[str, Any]] = {
    "search_memories": {"query": "flowerpot", "min_score": 0.0},
    "list_memories": {},
    "search_by_file": {"file": "garden.md"},
    "search_by_concept": {"concept": "gotcha"},
    "get_timeline": {},
    "find_similar": {"content": "The key lies under the flowerpot", "threshold": 0.5},
    "query_facts": {},
}
LABELS = {"files_read": ["garden.md"], "concepts": ["gotcha"]}
LEVELS = {"private": "allow_private", "secret": "allow_secret"}


def closed_to(door: Door, level: str) -> str:
    """Store a memory of a level with a fact of it, and return the memory's id."""
    memory_id = door.store("The key lies under the flowerpot", sensitivity=level, **LABELS)
    fact = {"subject": "key", "predicate": "lies", "object": "flowerpot"}
    door.reply("store_fact", memory_id=memory_id, **fact, **({LEVELS[level]: True} if level in LEVELS else {}))
    return memory_id


@pytest.mark.parametrize("tool", READS)
def test_public_is_always_returned(door: Door, tool: str) -> None:
    """A public memory is in every answer, whatever is let in beside it."""
    closed_to(door, "public")
    for more in ({}, {"allow_private": True}, {"allow_secret": True}):
        assert len(ids(door.read(tool, **READS[tool], **more))) == 1


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("tool", READS)
def test_a_level_is_let_in_by_its_own_name_only(door: Door, tool: str, level: str) -> None:
    """A private or secret memory is returned only where exactly that level is allowed."""
    closed_to(door, level)
    other = next(allow for name, allow in LEVELS.items() if name != level)
    assert ids(door.read(tool, **READS[tool])) == []
    assert ids(door.read(tool, **READS[tool], **{other: True})) == []
    assert len(ids(door.read(tool, **READS[tool], **{LEVELS[level]: True}))) == 1


@pytest.mark.parametrize("level", LEVELS)
def test_a_memory_is_read_by_id_at_its_level_only(door: Door, level: str) -> None:
    """By id, too, a level is let in by its own name, and what is not is as if it did not exist; counts say so."""
    memory_id = closed_to(door, level)
    other = next(allow for name, allow in LEVELS.items() if name != level)
    for more in ({}, {other: True}):
        assert door.refused("get_memory", id=memory_id, **more) == f"Memory {memory_id} not found."
        assert door.read("stats", **more)["memories"] == 0
    assert door.read("get_memory", id=memory_id, **{LEVELS[level]: True})["sensitivity"] == level
    assert door.read("stats", **{LEVELS[level]: True})["memories"] == 1


@pytest.mark.parametrize("tool", READS)
def test_an_unknown_level_is_denied(door: Door, tool: str) -> None:
    """A level that nobody knows, as only somebody with the database in hand can write it, is never returned."""
    memory_id = closed_to(door, "public")
    with closing(sqlite3.connect(door.home / "memory.db", timeout=30)) as database, database:
        database.create_function("lowered", 1, str.lower, deterministic=True)
        database.execute("UPDATE memory SET sensitivity = 'cosmic' WHERE id = ?", (memory_id,))
        database.execute("UPDATE fact SET sensitivity = 'cosmic' WHERE memory_id = ?", (memory_id,))
    assert ids(door.read(tool, **READS[tool], allow_private=True, allow_secret=True)) == []
    assert door.answer("get_memory", id=memory_id, allow_private=True, allow_secret=True).failed


def test_an_unknown_level_cannot_be_stored(door: Door) -> None:
    """A level that is none of the three is bad input."""
    message = "Invalid sensitivity: Must be `public`, `private`, or `secret`"
    assert door.refused("store_memory", content="x", sensitivity="cosmic") == message


@pytest.mark.parametrize("tool", READS)
def test_what_has_expired_is_excluded(door: Door, tool: str) -> None:
    """A memory with `ttl_days` is in every answer until its time, and in none after it."""
    memory_id = door.store("The key lies under the flowerpot", ttl_days=2, **LABELS)
    if tool == "query_facts":
        door.reply("store_fact", subject="key", predicate="lies", object="flowerpot", memory_id=memory_id)
    door.time.pass_days(1.9)
    assert len(ids(door.read(tool, **READS[tool]))) == 1
    door.time.pass_days(0.1)
    assert ids(door.read(tool, **READS[tool])) == []
    assert door.refused("get_memory", id=memory_id) == f"Memory {memory_id} not found."
