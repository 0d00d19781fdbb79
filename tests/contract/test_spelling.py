"""The vocabulary counts, for each namespace, exactly the memories that use each word, whatever happens to them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from entries import make_entry

NAMESPACES = ("project:crew/engine", "team:crew", "user:ada")
WORDS = "tide rope mast sail keel hull deck bow stern helm anchor cleat camelCase snake_case café ünïcode 数据".split()


def counted(store: Any) -> Counter[tuple[str, str]]:
    """Count what the memories' own word lists say."""
    query = """SELECT namespace.name, memory_words.words FROM memory_words
        JOIN memory ON memory.id = memory_words.memory_id JOIN namespace ON namespace.id = memory.namespace_id"""
    return Counter((name, word) for name, words in store.rows(query) for word in words.split())


def stored(store: Any) -> dict[tuple[str, str], int]:
    """Read the vocabulary."""
    query = "SELECT namespace.name, word.text, uses FROM word JOIN namespace ON namespace.id = word.namespace_id"
    return {(name, word): uses for name, word, uses in store.rows(query)}


def fail(store: Any, namespace: str, content: str) -> None:
    """Write and change one's mind."""
    with store.records.writing(namespace, "ada") as transaction:
        transaction.memories.insert(make_entry(content))
        raise ZeroDivisionError


@pytest.mark.full_cases("sqlite-1", "sqlite-2", "sqlite-3", "postgresql-0", "postgresql-2", "postgresql-3")
@pytest.mark.parametrize("seed", range(4))
def test_the_vocabulary_equals_what_is_used(store: Any, seed: int) -> None:
    """After random inserts, updates, deletes and failures every count is right and no word is left over."""
    chance = random.Random(seed)
    living: dict[int, tuple[str, set[str]]] = {}
    for number in range(60):
        namespace = chance.choice(NAMESPACES)
        entry = make_entry(" ".join(chance.choices(WORDS, k=chance.randint(1, 8))), tags=(chance.choice(WORDS),))
        mine = [one for one, (name, _) in living.items() if name == namespace]
        action = chance.choice(["insert", "insert", "update", "delete", "fail"])
        with store.records.writing(namespace, "ada") as transaction:
            if action == "insert" or not mine:
                living[transaction.memories.insert(entry)] = (namespace, set(entry.parts.words))
            elif action == "update":
                memory_id = chance.choice(mine)
                transaction.memories.update(store.one(memory_id, namespace), entry, "update")
                living[memory_id] = (namespace, set(entry.parts.words))
            elif action == "delete":
                memory_id = chance.choice(mine)
                assert transaction.memories.delete(memory_id)
                del living[memory_id]
        if action == "fail":
            with pytest.raises(ZeroDivisionError):
                fail(store, namespace, f"never{number} said")
        assert stored(store) == counted(store)
    assert stored(store) == Counter((name, word) for name, words in living.values() for word in words)
    for memory_id, (namespace, _) in living.items():
        with store.records.writing(namespace, "ada") as transaction:
            transaction.memories.delete(memory_id)
    assert stored(store) == {}


def test_words_with_spaces_inside_are_several(store: Any) -> None:
    """A letter that unfolds to a whole phrase, such as U+FDFA, counts as the words of that phrase."""
    memory_id = store.add("a1\ufdfa stands here")
    assert stored(store) == counted(store)
    with store.records.writing(NAMESPACES[0], "ada") as transaction:
        transaction.memories.delete(memory_id)
    assert stored(store) == {}
