"""Condensing: old memories become one summary for each category, and nothing is lost by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recollect import App, Settings
from recollect.domain.enums import Source
from run_operations import OTHER, add, by_hand, do, ill, listed, rows, shown, token

if TYPE_CHECKING:
    from conftest import Clock

pytestmark = pytest.mark.slow

PARTS = ("mast", "keel", "rudder", "bowsprit")


def old_ship(app: App, clock: Clock) -> list[int]:
    """Remember a ship's parts and let two months pass."""
    ids = [
        add(
            app,
            f"The {part} of the ship is oak. It was laid in {1900 + place}.",
            category="ship",
            tags=(part,),
            files_read=(f"{part}.md",),
        )
        for place, part in enumerate(PARTS)
    ]
    clock.pass_days(60)
    return ids


def test_old_memories_become_one(app: App, clock: Clock) -> None:
    """The summary says what each said first and leads in recall; the originals follow it, with all their details."""
    ids = old_ship(app, clock)
    done = do(app, "summarize_old")
    (summary,) = done.ids
    assert done.message == "4 memories condensed into 1 summary."
    memory = shown(app, summary)
    assert (memory.type, memory.source, memory.category) == ("compressed_summary", Source.COMPRESSION, "ship")
    assert all(f"The {part} of the ship is oak." in memory.content for part in PARTS)
    assert set(memory.tags) == set(PARTS)
    assert set(memory.files_read) == {f"{part}.md" for part in PARTS}
    for query in ("bowsprit of the ship", "parts of oak"):
        first, *others = do(app, "recall", query=query).hits
        assert first.memory.id == summary
        assert {hit.memory.id for hit in others} & set(ids)
        assert {hit.older_than for hit in others} == {summary}
    assert do(app, "recall", query="what was laid in 1902?").hits[0].memory.id == ids[2]
    assert shown(app, ids[0]).superseded_by == summary
    assert set(listed(app)) == {summary, *ids}
    assert do(app, "format_for_prompt").ids == (summary,)
    do(app, "restore", id=str(ids[0]))
    assert set(do(app, "format_for_prompt").ids) == {summary, ids[0]}
    assert ill(app) == []


def test_who_forgets_what_was_restored_leaves_nothing_in_its_summary(app: App, clock: Clock) -> None:
    """A summary quotes a member that was restored, until somebody forgets that one for good."""
    ids = old_ship(app, clock)
    (summary,) = do(app, "summarize_old").ids
    do(app, "restore", id=str(ids[0]))
    assert PARTS[0] in shown(app, summary).content
    assert f"Memory {summary} no longer quotes it." in do(app, "forget", id=str(ids[0])).notes
    assert PARTS[0] not in shown(app, summary).content
    assert PARTS[1] in shown(app, summary).content


def test_too_few_are_counted(app: App, clock: Clock) -> None:
    """Memories that are old enough and of too few in their category stay, and the answer says how many."""
    old_ship(app, clock)
    for part in PARTS[:2]:
        add(app, f"The {part} of the yacht is teak.", category="yacht")
    clock.pass_days(60)
    done = do(app, "summarize_old")
    assert (len(done.ids), done.condensed, done.left) == (1, 4, 2)
    assert done.message == "4 memories condensed into 1 summary. 2 left as they are: too few in their category."


def test_a_second_time_condenses_nothing(app: App, clock: Clock) -> None:
    """Neither the originals nor the summary are condensed again."""
    old_ship(app, clock)
    do(app, "summarize_old")
    clock.pass_days(60)
    assert do(app, "summarize_old", at_least=2).ids == ()


def test_only_what_may_be_condensed_is(app: App, clock: Clock) -> None:
    """What is young, used, private, keyed, has a term, is too little, or another's, stays as it is."""
    stays = [add(app, f"The {part} of the yacht is teak.", category="yacht") for part in PARTS[:2]]
    for more in ({"sensitivity": "private"}, {"key": "k"}, {"ttl_days": 400}, {"scope": "team"}):
        stays.append(add(app, f"The anchor of the ship is iron: {more}.", category="ship", **more))
    add(app, "The hull of the ship is steel.", OTHER, category="ship")
    ids = old_ship(app, clock)
    app.records.usage.add(ids[:1], clock(), accessed=1)
    young = add(app, "The galley of the ship is new.", category="ship")
    done = do(app, "summarize_old")
    assert done.condensed == 3
    assert set(listed(app, allow_private=True)) == {*stays, *ids, young, *done.ids}
    assert {one for one in ids if shown(app, one).superseded_by is None} == {ids[0]}


def test_each_category_has_its_own_summary(app: App, clock: Clock) -> None:
    """Categories are not mixed, one can be asked for alone, and what has none has a summary too."""
    for category in ("ship", "yacht", None):
        for part in PARTS[:3]:
            add(app, f"The {part} of the {category} is oak.", category=category)
    clock.pass_days(60)
    (first,) = do(app, "summarize_old", category="yacht").ids
    assert shown(app, first).category == "yacht"
    rest = do(app, "summarize_old", older_than_days=59).ids
    assert [shown(app, one).category for one in rest] == [None, "ship"]
    assert all(shown(app, one).content.count("\n- ") == 3 for one in (first, *rest))


def test_many_are_several_summaries(app: App, clock: Clock) -> None:
    """No summary is of more than forty memories, so that each still says something."""
    for number in range(83):
        add(app, f"Berth {number} is let to boat {number * 7}.", category="harbour", fact_type="case")
    clock.pass_days(60)
    done = do(app, "summarize_old")
    assert (len(done.ids), done.condensed) == (3, 83)


def test_a_secret_of_old_is_not_condensed(app: App, settings: Settings, clock: Clock) -> None:
    """Where the gate refuses the summary its memories stay as they are, the refusal is on record, the others go on."""
    ids = old_ship(app, clock)
    for part in PARTS[:3]:
        add(app, f"The {part} of the yacht is teak.", category="yacht")
    clock.pass_days(60)
    by_hand(settings, "UPDATE memory SET abstract = ? WHERE id = ?", f"The key is {token()}", ids[0])
    done = do(app, "summarize_old")
    assert [shown(app, one).category for one in done.ids] == ["yacht"]
    assert all(shown(app, one).superseded_by is None for one in ids)
    assert ("refuse",) in rows(settings, "SELECT action FROM journal")
