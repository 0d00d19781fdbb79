"""Facts in SQL: what holds when, who sees it, and pages of it, on every database."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from callers import EVERY_LEVEL
from recollect.domain.enums import ObservationType, Sensitivity
from recollect.domain.origin import Origin
from recollect.domain.requests import FactQuery, StoreFact
from recollect.gate import clear
from recollect.store.entries import FactEntry

pytestmark = pytest.mark.pooled

HERE = "project:crew/engine"
THERE = "team:crew"
ALL = EVERY_LEVEL


def put(
    store: Any,
    subject: str,
    predicate: str,
    object_: str,
    *,
    namespace: str = HERE,
    memory_id: int | None = None,
    sensitivity: Sensitivity = Sensitivity.PUBLIC,
    valid_from: datetime | None = None,
    **fields: Any,
) -> int:
    """Write a fact as `store_fact` would."""
    asked = StoreFact(subject=subject, predicate=predicate, object=object_, **fields)
    entry = FactEntry(
        cleared=clear(asked),
        memory_id=memory_id,
        sensitivity=sensitivity,
        valid_from=valid_from or store.clock(),
        at=store.clock(),
        author="ada",
        stamp=Origin(),
    )
    with store.records.writing(namespace, "ada") as transaction:
        return int(transaction.facts.insert(entry))


def found(store: Any, view: Any = None, **asked: Any) -> list[int]:
    """Return the ids of the facts that are found."""
    facts, total = store.records.facts.find(FactQuery(**asked), view or store.view())
    assert total >= len(facts)
    return [one.id for one in facts]


def test_a_fact_comes_back_as_it_was_told(store: Any) -> None:
    """Every field is kept as it was written, in any script."""
    one = put(store, "Straße", "führt nach", "  Köln – 東京 ", confidence=0.7, valid_to=store.clock() + timedelta(1))
    (fact,), total = store.records.facts.find(FactQuery(), store.view())
    assert (fact.id, total, fact.namespace, fact.scope, fact.author) == (one, 1, HERE, "project", "ada")
    assert (fact.subject, fact.predicate, fact.object) == ("Straße", "führt nach", "  Köln – 東京 ")
    assert (fact.confidence, fact.memory_id, fact.sensitivity) == (0.7, None, "public")
    assert (fact.valid_from, fact.valid_to) == (store.clock(), store.clock() + timedelta(1))
    assert (fact.created_at, fact.updated_at) == (store.clock(), store.clock())


@pytest.mark.parametrize(
    ("asked", "which"),
    [
        ({}, "abc"),
        ({"subject": "STRASSE"}, "ab"),
        ({"predicate": " Leads   TO "}, "ac"),
        ({"object": "KÖLN"}, "ac"),
        ({"subject": "straße", "object": "köln"}, "a"),
        ({"min_confidence": 0.5}, "bc"),
        ({"memory_id": "999"}, ""),
        ({"memory_id": "9999999999"}, ""),
        ({"memory_id": "many"}, ""),
        ({"object": "%"}, ""),
    ],
)
def test_any_part_is_asked_for(store: Any, asked: dict[str, Any], which: str) -> None:
    """Each part is compared whole, letter case and spaces aside."""
    ids = {
        put(store, "Straße", "leads to", "Köln", confidence=0.4): "a",
        put(store, "strasse", "is", "long", confidence=0.5): "b",
        put(store, "path", "Leads to", "köln", confidence=0.9): "c",
    }
    assert {ids[one] for one in found(store, **asked)} == set(which)


def test_what_holds_is_a_matter_of_time(store: Any) -> None:
    """A fact holds from its beginning until just before its end; history shows all of them, the latest first."""
    begins = store.clock() - timedelta(days=10)
    ends = store.clock() - timedelta(days=5)
    past = put(store, "mast", "is", "oak", valid_from=begins, valid_to=ends)
    present = put(store, "mast", "is", "ash")
    future = put(store, "mast", "is", "steel", valid_from=store.clock() + timedelta(days=5))
    moment = timedelta(microseconds=1)
    assert found(store) == [present]
    assert found(store, as_of=begins - moment) == []
    assert found(store, as_of=begins) == found(store, as_of=ends - moment) == [past]
    assert found(store, as_of=ends) == []
    assert found(store, history=True) == [future, present, past]
    assert found(store, history=True, as_of=begins) == [past]


def test_pages_follow_one_another(store: Any) -> None:
    """Every fact is on one page, and each page tells how many there are."""
    ids = [put(store, "ship", "has", f"part {number}") for number in range(7)]
    pages = [store.records.facts.find(FactQuery(limit=3, offset=start), store.view()) for start in (0, 3, 6, 9)]
    assert [one.id for facts, _ in pages for one in facts] == ids[::-1]
    assert {total for _, total in pages} == {7}


def test_levels_and_namespaces_hold(store: Any) -> None:
    """A fact is seen with its own level, by its own namespace; an unknown level is denied."""
    ids = {level: put(store, "vault", "is", level, sensitivity=level) for level in Sensitivity}
    elsewhere = put(store, "vault", "is", "elsewhere", namespace=THERE)
    odd = put(store, "vault", "is", "odd")
    store.by_hand("UPDATE fact SET sensitivity = 'cosmic' WHERE id = :id", id=odd)
    assert found(store) == [ids[Sensitivity.PUBLIC]]
    assert set(found(store, store.view(sensitivities=ALL))) == set(ids.values())
    assert found(store, store.view(THERE, sensitivities=ALL)) == [elsewhere]
    assert found(store, store.view("user:nobody", sensitivities=ALL)) == []


def test_a_fact_is_seen_with_its_memory(store: Any) -> None:
    """Hidden, merged, expired, or not let in, a memory takes its facts along; superseded, unless it is asked for."""
    one = store.add("The mast is oak", expires_at=store.clock() + timedelta(days=9))
    fact = put(store, "mast", "is", "oak", memory_id=one)
    assert found(store) == found(store, memory_id=str(one)) == [fact]
    for column, value in (
        ("deleted_at", "created_at"),
        ("merged_into", "7"),
        ("sensitivity", "'private'"),
        ("sensitivity", "'cosmic'"),
        ("expires_at", "created_at"),
        ("superseded_by", "7"),
    ):
        before = store.rows(f"SELECT {column} FROM memory")[0][0]
        store.by_hand(f"UPDATE memory SET {column} = {value}")
        assert found(store, history=True) == [], column
        asked_for = found(store, store.view(superseded=True))
        assert asked_for == ([fact] if column == "superseded_by" else [])
        store.by_hand(f"UPDATE memory SET {column} = :before", before=before)
        assert found(store) == [fact]


def test_a_summary_leaves_facts_standing(store: Any) -> None:
    """What was only condensed still tells its facts."""
    one, summary = store.add("The mast is oak"), store.add("A list", type=ObservationType.COMPRESSED_SUMMARY)
    fact = put(store, "mast", "is", "oak", memory_id=one)
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.supersede(one, by=summary)
    assert found(store) == [fact]


def test_facts_go_with_their_memory(store: Any) -> None:
    """Deleting a memory deletes what it told, and nothing else."""
    one = store.add("The mast is oak")
    put(store, "mast", "is", "oak", memory_id=one)
    left = put(store, "keel", "is", "lead")
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.delete(one)
    assert store.rows("SELECT id FROM fact") == [(left,)]


def test_what_is_about_the_same(store: Any) -> None:
    """A writer finds what holds at a time or later, in its namespace only, confirms it and ends it."""
    past = put(store, "mast", "is", "oak", valid_to=store.clock() + timedelta(days=1))
    present = put(store, " MAST ", "Is", "ash")
    put(store, "mast", "is", "elm", namespace=THERE)
    put(store, "mast", "was", "elm")
    later = store.clock() + timedelta(days=2)
    with store.records.writing(HERE, "bob") as transaction:
        assert [one.id for one in transaction.facts.about("mast", "is", store.clock())] == [past, present]
        (one,) = transaction.facts.about("mast", "is", later)
        transaction.facts.confirm(one, 0.8)
        transaction.facts.end(one, later, past, Sensitivity.PUBLIC)
    (fact,), _ = store.records.facts.find(FactQuery(object="ash", history=True), store.view())
    assert (fact.id, fact.confidence, fact.valid_to, fact.updated_at) == (present, 0.8, later, store.clock())
    changes = [changes for (changes,) in store.rows("SELECT changes FROM journal WHERE actor = 'bob' ORDER BY id")]
    assert len(changes) == 2
    assert all("ash" not in str(one) for one in changes)
