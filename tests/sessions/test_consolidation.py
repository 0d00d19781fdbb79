"""Consolidation: use raises importance, time lowers it, and how often it is run makes no difference."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ranked_memories import NOW
from recollect.domain.enums import FactType, ObservationType, Sensitivity
from recollect.domain.results import JournalEntry
from recollect.memory.restore import importance_before
from recollect.sessions.consolidation import consolidated
from recollect.store.entries import AgingMemory, Mark

quick = hypothesis_settings(deadline=None, database=None)


def aging(**fields: Any) -> AgingMemory:
    """Return a memory written now of importance 0.5 that nobody used, with `fields` as given."""
    plain: dict[str, Any] = {"id": 1, "fact_type": FactType.GENERAL, "type": None, "importance": 0.5, "accesses": 0}
    times = {"updated_at": NOW, "last_accessed_at": None, "mark": None}
    return AgingMemory(**plain | times | {"sensitivity": Sensitivity.PUBLIC, "replaced": False} | fields)


def after(memory: AgingMemory, *days: float) -> tuple[float, Mark | None]:
    """Consolidate a memory at each of these days from now; return its importance and mark."""
    for day in days:
        done = consolidated(memory, NOW + timedelta(days=day))
        memory = replace(memory, importance=done.importance, mark=done.mark)
    return memory.importance, memory.mark


@pytest.mark.parametrize(
    ("fields", "rate"),
    [
        ({}, 0.02),
        ({"fact_type": FactType.DECISION}, 0.01),
        ({"type": ObservationType.DECISION}, 0.01),
        ({"type": ObservationType.DISCOVERY}, 0.01),
        ({"type": ObservationType.DISCOVERY, "fact_type": FactType.DECISION}, 0.01),
        ({"type": ObservationType.BUGFIX, "fact_type": FactType.PREFERENCE}, 0.02),
    ],
)
def test_what_nobody_uses_fades(fields: dict[str, object], rate: float) -> None:
    """A day without use takes 0.02, and half of that from decisions and discoveries, however they are labelled."""
    assert after(aging(importance=0.9, **fields), 10)[0] == pytest.approx(0.9 - 10 * rate)


def test_use_raises_importance_once() -> None:
    """The boost is 0.03 × ln(1 + accesses), by id and as a hit alike, and running again adds nothing."""
    memory = aging(accesses=7, last_accessed_at=NOW)
    assert after(memory, 0)[0] == pytest.approx(0.5 + 0.03 * math.log(8))
    assert after(memory, 0, 0, 0) == after(memory, 0)


def test_later_accesses_add_what_they_would_have_added_before() -> None:
    """Two accesses and then five more are worth as much as seven."""
    _, mark = after(aging(accesses=2), 0)
    second = consolidated(aging(accesses=7, importance=0.5 + 0.03 * math.log(3), mark=mark), NOW)
    assert second.importance == pytest.approx(0.5 + 0.03 * math.log(8))


@quick
@given(st.lists(st.floats(0, 40), min_size=1, max_size=5), st.integers(0, 50), st.sampled_from(FactType))
def test_five_sessions_are_one(days: list[float], accesses: int, kind: FactType) -> None:
    """Whoever consolidates after every session has what one consolidation at the end gives."""
    memory = aging(accesses=accesses, fact_type=kind)
    days.sort()
    assert after(memory, *days)[0] == pytest.approx(after(memory, days[-1])[0], abs=1e-9)


def test_days_count_from_the_last_use() -> None:
    """What was used yesterday fades for one day, also where it was last consolidated before that."""
    used = aging(last_accessed_at=NOW + timedelta(days=9))
    assert after(used, 10)[0] == pytest.approx(0.48)
    done = consolidated(replace(used, mark=Mark(NOW, 0)), NOW + timedelta(days=10))
    assert done.importance == pytest.approx(0.48)


@pytest.mark.parametrize(("importance", "accesses", "most"), [(1.0, 100, 1.0), (0.0, 0, 0.0)])
def test_importance_stays_in_its_bounds(importance: float, accesses: int, most: float) -> None:
    """However often a memory is used or left alone, its importance is 0–1."""
    memory = aging(importance=importance, accesses=accesses)
    assert after(memory, 0)[0] == most


@pytest.mark.parametrize(
    ("days", "fields", "evicted"),
    [
        (90, {}, True),
        (89.9, {}, False),
        (94, {"importance": 1.0, "fact_type": FactType.DECISION}, False),
        (100, {"last_accessed_at": NOW + timedelta(days=20)}, False),
        (100, {"replaced": True}, False),
        (96, {"importance": 1.0, "type": ObservationType.DISCOVERY}, True),
        (94, {"importance": 1.0, "type": ObservationType.DISCOVERY}, False),
    ],
)
def test_what_is_worth_nothing_goes(days: float, fields: dict[str, object], evicted: bool) -> None:
    """Below 0.05 and unused for ninety days a memory goes, unless another has taken its place."""
    assert consolidated(aging(**fields), NOW + timedelta(days=days)).evicted is evicted


def test_a_clock_that_goes_back_changes_nothing() -> None:
    """A mark of later than now is kept, nothing fades, and accesses that were taken back are not counted anew."""
    mark = Mark(NOW, 5)
    done = consolidated(aging(accesses=3, mark=mark), NOW - timedelta(days=5))
    assert (done.importance, done.mark) == (0.5, Mark(NOW, 5))


@pytest.mark.parametrize(
    ("days", "accesses", "slight"), [(0, 0, True), (2.4, 0, True), (2.5, 0, False), (0, 1, False), (1.9, 2, True)]
)
def test_slight_changes_add_up(days: float, accesses: int, slight: bool) -> None:
    """A loss is written from 0.05 on and a gain from 0.01 on, so that the journal has few lines of them."""
    assert consolidated(aging(accesses=accesses), NOW + timedelta(days=days)).slight is slight


def test_another_rate_is_another_loss() -> None:
    """The setting says what a day takes."""
    assert consolidated(aging(), NOW + timedelta(days=4), 0.1).importance == pytest.approx(0.1)


def test_the_journal_knows_what_a_memory_was_worth() -> None:
    """It is the importance before the first change since somebody set it."""

    def line(action: str, **changes: Any) -> JournalEntry:
        return JournalEntry(1, NOW, "ada", "project:crew/engine", action, 1, changes)

    faded = [line("consolidate", fields=["importance"], importance=pair) for pair in ([0.9, 0.8], [0.8, 0.7])]
    assert importance_before([line("insert", fields=["importance"]), *faded, line("evict", soft=True)]) == 0.9
    assert importance_before([*faded, line("update", fields=["importance"])]) is None
    assert importance_before([*faded, line("restore", fields=["importance"]), faded[1]]) == 0.8
    assert importance_before([line("insert")]) is None
