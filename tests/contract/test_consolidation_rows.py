"""Importance, use and marks of many memories at once, on every database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from recollect.domain.enums import ObservationType, Sensitivity, Source
from recollect.store.entries import Mark

HERE = "project:crew/engine"
HOOK = (Source.HOOK,)


def test_only_what_came_in_so_is_looked_at(store: Any) -> None:
    """By source, namespace and level; what is hidden or merged is left out, and each says how it was used."""
    one = store.add("a", source="hook", importance=0.7, type=ObservationType.BUGFIX)
    store.add("b", source="tool")
    store.add("c", source="hook", sensitivity="private")
    store.add("d", "team:crew", source="hook")
    hidden, new = store.add("e", source="hook"), store.add("f", source="hook")
    for accessed in (True, False, False):
        store.records.usage.add([one], store.clock(), accessed=int(accessed), recalled=int(not accessed))
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.hide(hidden, "evict")
        transaction.memories.supersede(new, by=one)
    first, second = store.records.consolidation.aging(HERE, HOOK)
    assert (first.id, first.type, first.importance, first.accesses, first.replaced, first.mark) == (
        *(one, ObservationType.BUGFIX, 0.7, 3, False, None),
    )
    assert first.last_accessed_at == store.clock()
    assert (second.id, second.replaced, second.sensitivity) == (new, True, Sensitivity.PUBLIC)
    assert store.rows("SELECT action FROM journal ORDER BY id DESC LIMIT 2") == [("update",), ("evict",)]


def test_what_a_call_stored_is_left_out(store: Any) -> None:
    """It keeps its source and ends no more by itself; where everything fades it is looked at too."""
    one, other = (store.add(text, source="hook") for text in "ab")
    for _ in range(2):
        with store.records.writing(HERE, "ada") as transaction:
            transaction.consolidation.stop_fading(one)
    assert [each.id for each in store.records.consolidation.aging(HERE, HOOK)] == [other]
    assert [each.id for each in store.records.consolidation.aging(HERE, tuple(Source))] == [one, other]
    assert (store.one(one).source, store.one(one).expires_at) == (Source.HOOK, None)


def test_days_of_sessions_are_kept_for_each_project(store: Any) -> None:
    """Each day once and in order, whoever's clock was wrong; another project has its own."""
    store.add("a"), store.add("b", "project:crew/hull")
    today = store.clock().date()
    for ahead in (0, 365, 1, 0):
        with store.records.writing(HERE, "ada") as transaction:
            days = transaction.consolidation.note_session_day(today + timedelta(days=ahead))
    assert (
        days
        == store.records.consolidation.session_days(HERE)
        == tuple(today + timedelta(days=one) for one in (0, 1, 365))
    )
    assert (
        store.records.consolidation.session_days("project:crew/hull")
        == store.records.consolidation.session_days("project:crew/none")
        == ()
    )


def test_importance_and_marks_are_written(store: Any) -> None:
    """Again and again, with a line in the journal each time; the date of the memory stays, and that of others too."""
    ids = [store.add(text, source="hook") for text in "abc"]
    before = [store.one(each).updated_at for each in ids]
    for round_ in (1, 2):
        store.clock.pass_days(1)
        with store.records.writing(HERE, "ada") as transaction:
            found = transaction.consolidation.aging(ids[:2])
            transaction.consolidation.consolidate(
                [(each, each.importance / 2, Mark(store.clock(), round_)) for each in found]
            )
    assert [each.importance for each in store.records.consolidation.aging(HERE, HOOK)] == [0.125, 0.125, 0.5]
    assert [each.mark for each in store.records.consolidation.aging(HERE, HOOK)] == [Mark(store.clock(), 2)] * 2 + [
        None
    ]
    assert [store.one(each).updated_at for each in ids] == before
    lines = store.records.journal.history(ids[0], [HERE])
    assert [each.changes.get("importance") for each in lines] == [None, [0.5, 0.25], [0.25, 0.125]]


def test_another_namespace_is_not_changed(store: Any) -> None:
    """A transaction finds nothing of another namespace or level."""
    there, secret = store.add("a", "team:crew", source="hook"), store.add("b", source="hook", sensitivity="secret")
    with store.records.writing(HERE, "ada") as transaction:
        assert transaction.consolidation.aging([there, secret]) == []
        transaction.consolidation.consolidate([])


def test_a_member_is_replaced_until_its_summary_is_hidden(store: Any) -> None:
    """What gave way to a hidden summary stands for itself again; what gave way to a hidden memory does not."""
    kinds = {"compressed_summary": False, "decision": True}
    for kind, replaced in kinds.items():
        member, whole = store.add(f"a {kind}", source="hook"), store.add(f"b {kind}", source="hook", type=kind)
        with store.records.writing(HERE, "ada") as transaction:
            transaction.memories.supersede(member, by=whole)
            assert transaction.consolidation.aging([member])[0].replaced
            transaction.memories.hide(whole)
            assert transaction.consolidation.aging([member])[0].replaced is replaced


def test_facts_of_an_evicted_member_pass_to_its_summary(store: Any) -> None:
    """Only by a rule, and only to a summary: what is forgotten takes its facts along."""
    for action, kept in (("evict", 1), ("purge", 1), ("delete", 0)):
        member = store.add(f"m {action}", source="hook")
        summary = store.add(f"s {action}", source="hook", type="compressed_summary")
        with store.records.writing(HERE, "ada") as transaction:
            transaction.memories.supersede(member, by=summary)
        store.by_hand(
            "INSERT INTO fact (namespace_id, subject, predicate, object, subject_folded, predicate_folded, object_hash,"
            " confidence, memory_id, valid_from, sensitivity, author, created_at, updated_at) SELECT namespace_id, 'a',"
            " 'b', 'c', 'a', 'b', 'd', 1, id, created_at, 'public', 'ada', created_at, created_at FROM memory"
            " WHERE id = :id",
            id=member,
        )
        with store.records.writing(HERE, "ada") as transaction:
            transaction.memories.delete(member, action)
        assert store.rows(f"SELECT count(*) FROM fact WHERE memory_id = {summary}") == [(kept,)]
