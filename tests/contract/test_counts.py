"""What a recall asks at every query, counts and names, is kept beside the memories and equals what they say."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest
from sqlalchemy import event

from entries import make_entry
from recollect.domain.enums import Sensitivity
from recollect.domain.search import View
from recollect.text.speaker_names import words_of

HERE = "project:crew/engine"
LEVELS = tuple(Sensitivity)
NAMESPACES = (HERE, "team:crew", "user:ada")
SPEAKERS = ("Ada Lovelace", "ada lovelace", "Zoë", "王伟", "user", "O'Neill", None)


def counted(store: Any) -> dict[tuple[int, str], int]:
    """Count the memories of each namespace and level."""
    query = "SELECT namespace_id, sensitivity, count(*) FROM memory GROUP BY namespace_id, sensitivity"
    return {(number, level): many for number, level, many in store.rows(query)}


def kept(store: Any) -> dict[tuple[int, str], int]:
    """Read the counts that are kept."""
    query = "SELECT namespace_id, sensitivity, memories FROM held WHERE memories != 0"
    return {(number, level): many for number, level, many in store.rows(query)}


def speaking(store: Any) -> set[tuple[int, str]]:
    """Return who speaks in which namespace, by what the memories say."""
    return set(map(tuple, store.rows("SELECT DISTINCT namespace_id, speaker FROM memory WHERE speaker IS NOT NULL")))


def known(store: Any) -> set[tuple[int, str]]:
    """Return who speaks in which namespace, by the names that are kept."""
    return set(map(tuple, store.rows("SELECT DISTINCT namespace_id, name FROM speaker")))


def fail(store: Any, namespace: str) -> None:
    """Write and change one's mind."""
    with store.records.writing(namespace, "ada") as transaction:
        transaction.memories.insert(make_entry("Never said", speaker="Nobody"))
        raise ZeroDivisionError


@pytest.mark.full_cases("sqlite-1", "sqlite-2", "postgresql-0", "postgresql-2")
def speakers(store: Any, view: View, words: Iterable[str]) -> list[str]:
    """Return the speakers whom a view may know of and who have one of these words in their name."""
    return list(store.records.query_facts([], list(words), view).speakers)


@pytest.mark.parametrize("seed", range(3))
def test_counts_and_names_equal_what_is_stored(store: Any, seed: int) -> None:
    """After random inserts, updates, deletes and failures the counts and names are those of the memories."""
    chance = random.Random(seed)
    living: dict[int, str] = {}
    for number in range(40):
        namespace = chance.choice(NAMESPACES)
        level = chance.choice(LEVELS)
        entry = make_entry(f"Said {number}", speaker=chance.choice(SPEAKERS), sensitivity=level)
        mine = [one for one, name in living.items() if name == namespace]
        action = chance.choice(["insert", "insert", "update", "delete", "fail"])
        if action == "fail":
            with pytest.raises(ZeroDivisionError):
                fail(store, namespace)
        with store.records.writing(namespace, "ada", LEVELS) as transaction:
            if action == "insert" or not mine:
                living[transaction.memories.insert(entry)] = namespace
            elif action == "update":
                one = chance.choice(mine)
                transaction.memories.update(store.one(one, namespace), entry, "update")
            elif action == "delete":
                one = chance.choice(mine)
                assert transaction.memories.delete(one)
                assert not transaction.memories.delete(one)
                del living[one]
        assert kept(store) == counted(store)
        assert known(store) == speaking(store)
    for one, namespace in living.items():
        with store.records.writing(namespace, "ada", LEVELS) as transaction:
            transaction.memories.delete(one)
    assert kept(store) == {}
    assert known(store) == set()


def test_an_update_that_names_no_speaker_keeps_the_name(store: Any) -> None:
    """Who speaks stays known when another field of their memory changes, and goes when the speaker is taken away."""
    one = store.add("Said", speaker="Ada Lovelace", key="k")
    for given, names in (({"importance": 0.9}, ["Ada Lovelace"]), ({"speaker": None}, [])):
        with store.records.writing(HERE, "ada") as transaction:
            transaction.memories.update(store.one(one), make_entry("Said", **given), "update")
        assert speakers(store, store.view(), ["lovelace"]) == names


def test_speakers_are_found_by_any_word_of_their_names(store: Any) -> None:
    """Each folded word of a name finds it, in the view's namespaces only; no words find nobody."""
    for name in ("Ada Lovelace", "Ada Byron", "Zoë", "assistant"):
        store.add(f"{name} said so", speaker=name)
    store.add("Elsewhere", "user:ada", speaker="Ada Elsewhere")
    found = partial(speakers, store)
    assert found(store.view(), ["ada"]) == ["Ada Byron", "Ada Lovelace"]
    assert found(store.view(), ["byron", "zoe", "assistant", "nobody"]) == ["Ada Byron", "Zoë", "assistant"]
    assert found(store.view(HERE, "user:ada"), iter(["elsewhere"])) == ["Ada Elsewhere"]
    assert found(store.view("user:nobody"), ["ada"]) == []
    assert found(store.view(), []) == []
    assert found(store.view(), ["ad", "lace", "%", ""]) == []


def test_many_words_find_a_speaker_among_many(store: Any) -> None:
    """A query of a thousand words finds the one of many speakers who is named, through the index."""
    for number in range(300):
        store.add(f"Said by {number}", speaker=f"Person{number} Family{number % 7}")
    asked: list[tuple[str, Any]] = []
    event.listen(store.database.engine, "before_cursor_execute", lambda *told: asked.append(told[2:4]))
    words = [f"word{number}" for number in range(1_000)] + ["person42"]
    assert speakers(store, store.view(), words) == ["Person42 Family0"]
    if store.sqlite:
        statement, values = [one for one in asked if "speaker" in one[0]][-1]
        with store.database.reading() as connection:
            steps = [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)]
        assert [step for step in steps if "SEARCH speaker" in step and "namespace_id=? AND word=?" not in step] == []
        walked = {step for step in steps if step.startswith("SCAN") and "json_each" not in step}
        assert walked <= {"SCAN store_metadata", "SCAN waiting"}


def test_a_name_of_the_longest_kind_can_be_stored(store: Any) -> None:
    """A speaker whose name is as long as a name may be, in letters of four bytes, is stored and found by its words."""
    name = " ".join("𐐀" * 60 for _ in range(8))
    one = store.add("Said", speaker=f"{name} ada")
    assert speakers(store, store.view(), ["ada"]) == [f"{name} ada"]
    assert store.one(one).speaker == f"{name} ada"


def test_recounting_mends_counts_and_names(store: Any) -> None:
    """Counting again mends what was changed by hand and files every speaker under the words it is told."""
    store.add("Said", speaker="Ada Lovelace")
    store.add("Said elsewhere", "user:ada")
    whole = store.dump()
    store.by_hand("UPDATE held SET memories = 7", "DELETE FROM speaker")
    store.by_hand("INSERT INTO speaker (namespace_id, name, word) VALUES (2, 'Nobody', 'nobody')")
    store.records.derived.recount(words_of)
    assert store.dump() == whole
    store.records.derived.recount(lambda name: frozenset({name[:2]}))
    assert speakers(store, store.view(), ["Ad"]) == ["Ada Lovelace"]
    assert speakers(store, store.view(), ["ada"]) == []


def test_a_snapshot_is_one_transaction(store: Any) -> None:
    """All reads within a snapshot go through one connection, also when one fails; the next read opens its own."""
    one = store.add("Said", speaker="Ada")
    opened: list[object] = []
    event.listen(store.database.engine, "checkout", lambda *told: opened.append(told))
    with store.records.snapshot():
        assert speakers(store, store.view(), ["ada"]) == ["Ada"]
        assert set(store.records.load([one], store.view())) == {one}
    assert len(opened) == 1
    with pytest.raises(ZeroDivisionError), store.records.snapshot(), store.records.snapshot():
        raise ZeroDivisionError
    assert len(opened) == 2
    assert store.records.count(store.view()) == 1
    assert len(opened) == 3


def test_writes_do_not_join_a_snapshot(store: Any) -> None:
    """What is written within a snapshot is a transaction of its own, seen by the next read."""
    with store.records.snapshot():
        store.records.count(store.view())
        store.add("Said meanwhile")
    assert store.records.count(store.view()) == 1
