"""The moments of memories: looked up by their words, within what a view may see, and gone with their memory."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from callers import EVERY_LEVEL
from entries import make_entry
from recollect.domain.enums import FactType, Sensitivity
from recollect.domain.moments import ANY, Kind
from recollect.store.sql import tables

pytestmark = pytest.mark.pooled

HERE, THERE = "project:crew/engine", "project:crew/hull"
PUSH = ("run git push --force", "edit deploy*")


def led_to(store: Any, *leads: str, kind: Kind = Kind.RUN, here: str = HERE, **changes: Any) -> list[int]:
    """Return the memories to whose moments these words lead."""
    return [one.memory_id for one in store.records.moments.find(kind, [*leads, ANY], store.view(here, **changes))]


def rows(store: Any) -> list[tuple[Any, ...]]:
    """Return what is kept to look moments up."""
    with store.database.reading() as connection:
        return [tuple(row) for row in connection.execute(select(tables.moment).order_by(*tables.moment.primary_key))]


def test_a_moment_is_found_by_its_words(store: Any) -> None:
    """Both words must be there, of that kind; one that no whole word leads to is found by any."""
    one = store.add("Never force a push.", when=PUSH)
    assert led_to(store, "git", "push") == led_to(store, "git", "force") == []
    assert led_to(store, "force", "push", "x") == [one]
    assert led_to(store, "force", "push", kind=Kind.FAIL) == []
    assert led_to(store, "whatever", kind=Kind.EDIT) == [one]
    found = store.records.moments.find(Kind.RUN, ["push", "force"], store.view())
    assert store.records.moments.texts(found) == {(one, 0): PUSH[0], (one, 1): PUSH[1]}


def test_moments_of_rules_come_first_and_then_the_newest(store: Any) -> None:
    """In that order they are compared, and what is cut from more than can be shown is the oldest of what is no rule."""
    rule = store.add("Never force a push.", when=PUSH, fact_type=FactType.DECISION)
    store.clock.pass_days(1)
    note = store.add("A push took an hour.", when=PUSH)
    store.clock.pass_days(1)
    newest = store.add("A push took two hours.", when=PUSH)
    assert led_to(store, "force", "push") == [rule, newest, note]


def test_no_moment_of_another_scope_or_level_is_found(store: Any) -> None:
    """What a view may not see does not exist for it: another project's, what is private, deleted, replaced, expired."""
    there = store.add("There.", THERE, when=PUSH)
    private = store.add("Mine alone.", when=PUSH, sensitivity=Sensitivity.PRIVATE)
    gone, old, late = (store.add(f"Note {number}.", when=PUSH) for number in range(3))
    new = store.add("Newer.", when=PUSH)
    soon = store.clock() + timedelta(hours=1)
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.hide(gone)
        transaction.memories.supersede(old, new)
        transaction.memories.delete(late)
        brief = transaction.memories.insert(make_entry("Soon over.", when=PUSH, expires_at=soon))
    assert led_to(store, "force", "push") == [brief, new]
    assert led_to(store, "force", "push", here=THERE) == [there]
    assert led_to(store, "force", "push", sensitivities=EVERY_LEVEL) == [brief, new, private]
    store.clock.pass_days(1)
    assert led_to(store, "force", "push") == [new]


def test_an_update_replaces_moments_only_where_it_gives_some(store: Any) -> None:
    """New moments stand in the place of the old ones, an empty list takes them away, and others stay."""
    one = store.add("Never force a push.", when=PUSH)
    for given, left in (({"tags": ("git",)}, 2), ({"when": ("fail timeout redis",)}, 1), ({"when": ()}, 0)):
        with store.records.writing(HERE, "ada") as transaction:
            transaction.memories.update(
                transaction.lookup.by_id(one), make_entry("Never force a push.", **given), "update"
            )
        assert len(rows(store)) == left
        assert len(store.records.load([one], store.view())[one].when) == left


def test_moments_follow_their_memory(store: Any) -> None:
    """An earlier text keeps its moments out of sight, a deleted memory leaves none, and all can be derived again."""
    one = store.add("Never force a push.", when=PUSH)
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.archive(transaction.lookup.by_id(one))
    assert led_to(store, "force", "push") == [one]
    before = rows(store)
    assert len(before) == 4
    with store.database.writing(HERE) as connection:
        connection.execute(tables.moment.delete())
    store.records.moments.rebuild()
    assert rows(store) == before
    with store.records.writing(HERE, "ada") as transaction:
        transaction.memories.delete(one)
    assert rows(store) == []


@pytest.mark.parametrize("many", [0, 1, 3_000])
def test_any_number_of_words_may_be_asked_for(store: Any, many: int) -> None:
    """No word, one or thousands are one question."""
    one = store.add("Never force a push.", when=("run force1 push2",))
    assert led_to(store, *(f"force{number}" for number in range(many)), "push2") == ([one] if many > 1 else [])
