"""Eviction: a full namespace lets go of what is worth least, and only of that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from recollect import App
from recollect.domain.enums import Choice
from run_operations import OTHER, actions, add, always, do, ill, judged_by, listed, shown

if TYPE_CHECKING:
    from conftest import Clock

NAMES = ("quokka", "heron", "wombat", "stork", "otter", "lynx")


def use(app: App, clock: Clock, memory_id: int, times: int) -> None:
    """Count so many accesses at once."""
    for _ in range(times):
        app.records.usage.add([memory_id], clock(), accessed=1)


def test_the_least_used_goes_first(open_store: Callable[..., App], clock: Clock) -> None:
    """The lowest count of accesses goes, then the oldest update, then the lowest importance."""
    app = open_store(max_memories=4)
    ids = [add(app, f"The {name} sleeps.", importance=0.5) for name in NAMES[:2]]
    clock.pass_days(1)
    ids += [add(app, f"The {NAMES[2]} sleeps.", importance=0.9), add(app, f"The {NAMES[3]} sleeps.", importance=0.1)]
    use(app, clock, ids[0], 2)
    expected = [ids[1], ids[3], ids[2]]
    for place, name in enumerate(("otter", "lynx", "crane")):
        clock.pass_days(1)
        new = add(app, f"The {name} sleeps.")
        use(app, clock, new, 5)
        left = set(listed(app))
        assert len(left) == 4
        assert left.isdisjoint(expected[: place + 1])
        assert new in left
    assert actions(app, ids[1]) == ["insert", "evict"]
    assert ill(app) == []


def test_what_was_just_read_is_not_what_goes(open_store: Callable[..., App]) -> None:
    """A read by id counts before its answer is given, so that a write right after it spares what was read."""
    app = replace(open_store(max_memories=2), run_later=lambda task: None)
    ids = [add(app, f"The {name} sleeps.") for name in NAMES[:2]]
    shown(app, ids[0])
    assert shown(app, ids[0]).accessed_count == 1
    new = add(app, "The wombat sleeps.")
    assert set(listed(app)) == {ids[0], new}


def test_no_text_of_what_was_evicted_stays(open_store: Callable[..., App]) -> None:
    """The text index is rewritten after an eviction, so that no word of the evicted memory is left in it."""
    app = open_store(max_memories=1)
    later: list[object] = []
    app = replace(app, run_later=later.append)
    add(app, "The quokka sleeps.")
    assert later == []
    add(app, "The heron sleeps.")
    assert later == [app.text.purge_deleted]


def test_the_newest_stays_though_nobody_used_it(open_store: Callable[..., App], clock: Clock) -> None:
    """Where every other memory was used, one of those gives way to the new one, and the cap holds."""
    app = open_store(max_memories=3)
    for name in NAMES:
        one = add(app, f"The {name} sleeps.")
        assert one in listed(app)
        assert len(listed(app)) <= 3
        use(app, clock, one, 1)
        clock.pass_days(1)
    assert do(app, "stats").memories == 3


def test_each_namespace_has_its_own_room(open_store: Callable[..., App]) -> None:
    """A full namespace takes nothing from another."""
    app = open_store(max_memories=1)
    foreign = add(app, "The pier is long.", OTHER)
    team = add(app, "The team has a boat.", scope="team")
    last = [add(app, f"The {name} sleeps.") for name in NAMES][-1]
    assert set(listed(app)) == {team, last}
    assert shown(app, foreign, OTHER).content == "The pier is long."


def test_what_is_out_of_sight_goes_before_what_is_seen(open_store: Callable[..., App], clock: Clock) -> None:
    """Hidden and expired memories make room first, however much they were used."""
    app = open_store(max_memories=3)
    hidden, brief, plain = (
        add(app, f"The {name} sleeps.", **more) for name, more in zip(NAMES, ({}, {"ttl_days": 1}, {}), strict=False)
    )
    for one in (hidden, brief):
        use(app, clock, one, 9)
    do(app, "memory_forget", id=str(hidden))
    clock.pass_days(2)
    ids = [add(app, f"The {name} sleeps.") for name in NAMES[3:5]]
    assert set(listed(app)) == {plain, *ids}
    assert actions(app, hidden)[-1] == actions(app, brief)[-1] == "evict"


def test_an_update_evicts_nothing(open_store: Callable[..., App]) -> None:
    """Saying again what is there, or changing it, needs no room."""
    app = open_store(max_memories=2)
    ids = [add(app, f"The {name} sleeps.", key=name) for name in NAMES[:2]]
    add(app, "The quokka wakes.", key="quokka")
    add(app, "The heron sleeps.")
    assert set(listed(app)) == set(ids)


def test_a_summary_needs_room_too(open_store: Callable[..., App], clock: Clock) -> None:
    """A summary in a full namespace makes room for itself, and is not what goes."""
    app = open_store(max_memories=4)
    for name in NAMES[:4]:
        add(app, f"The {name} of the zoo sleeps all day.", category="zoo")
    clock.pass_days(60)
    (summary,) = do(app, "summarize_old").ids
    assert len(listed(app)) == 4
    assert summary in listed(app)
    assert do(app, "stats").superseded == 3


def test_what_was_replaced_goes_before_what_replaced_it(open_store: Callable[..., App], clock: Clock) -> None:
    """However often the older memory was used, making room never brings back what holds no longer."""
    app = open_store(max_memories=3)
    old = add(app, "We use MySQL for the orders.")
    use(app, clock, old, 5)
    new = add(app, "We switched from MySQL to Postgres for the orders.", supersedes=str(old))
    assert shown(app, old).superseded_by == new
    ids = [new, *(add(app, f"The {name} sleeps.") for name in NAMES[:2])]
    assert sorted(listed(app)) == sorted(ids)
    assert actions(app, old)[-1] == "evict"
    assert ill(app) == []


@pytest.mark.parametrize(("most", "kept"), [(1, 0), (3, 1)])
def test_a_merge_promises_nothing_where_there_is_no_room(open_store: Callable[..., App], most: int, kept: int) -> None:
    """Where the parts of a merge had to make room at once, the answer does not say that they are kept."""
    said = "The user prefers dark mode in the editor."
    app = judged_by(open_store(max_memories=most), always(Choice.MERGE))
    one = add(app, said)
    first, *others = do(app, "remember", content=f"{said} The font is Fira Code.").notes
    assert first == f"Merged into memory {one}."
    assert [note.partition(" is kept as memory ")[0] for note in others] == ["The new text by itself"] * kept
    assert ill(app) == []


@pytest.mark.parametrize(("most", "kept"), [(1, 0), (2, 1)])
def test_a_new_version_promises_nothing_where_there_is_no_room(
    open_store: Callable[..., App], most: int, kept: int
) -> None:
    """Where the earlier text had to make room at once, the answer does not say that it is kept."""
    app = open_store(max_memories=most)
    one = add(app, "The mast is oak.")
    outcome = do(app, "remember", content="The mast is pine.", id=str(one))
    assert [note.partition(" is kept as memory ")[0] for note in outcome.notes] == ["The earlier text"] * kept
    assert listed(app) == [one]
    assert ill(app) == []
