"""Consolidation: use raises importance, time lowers it, and how often it is run makes no difference."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from memories import NOW, a_memory

from recollect.domain.enums import FactType, Observation
from recollect.domain.results import Memory
from recollect.policy.consolidation import Mark, consolidated

quick = hypothesis_settings(deadline=None, database=None)


def after(memory: Memory, *days: float) -> tuple[float, Mark | None]:
    """Consolidate a memory at each of these days from now; return its importance and mark."""
    mark = None
    for day in days:
        done = consolidated(memory, mark, NOW + timedelta(days=day))
        memory, mark = memory.model_copy(update={"importance": done.importance}), done.mark
    return memory.importance, mark


@pytest.mark.parametrize(
    ("fields", "rate"),
    [
        ({}, 0.02),
        ({"fact_type": FactType.DECISION}, 0.01),
        ({"type": Observation.DECISION}, 0.01),
        ({"type": Observation.DISCOVERY}, 0.01),
        ({"type": Observation.DISCOVERY, "fact_type": FactType.DECISION}, 0.01),
        ({"type": Observation.BUGFIX, "fact_type": FactType.PREFERENCE}, 0.02),
    ],
)
def test_what_nobody_uses_fades(fields: dict[str, object], rate: float) -> None:
    """A day without use takes 0.02, and half of that from decisions and discoveries, however they are labelled."""
    assert after(a_memory(importance=0.9, **fields), 10)[0] == pytest.approx(0.9 - 10 * rate)


def test_use_raises_importance_once() -> None:
    """The boost is 0.03 × ln(1 + accesses), by id and as a hit alike, and running again adds nothing."""
    memory = a_memory(accessed_count=4, recalled_count=3, last_accessed_at=NOW)
    assert after(memory, 0)[0] == pytest.approx(0.5 + 0.03 * math.log(8))
    assert after(memory, 0, 0, 0) == after(memory, 0)


def test_later_accesses_add_what_they_would_have_added_before() -> None:
    """Two accesses and then five more are worth as much as seven."""
    _, mark = after(a_memory(accessed_count=2), 0)
    second = consolidated(a_memory(accessed_count=7, importance=0.5 + 0.03 * math.log(3)), mark, NOW)
    assert second.importance == pytest.approx(0.5 + 0.03 * math.log(8))


@quick
@given(st.lists(st.floats(0, 40), min_size=1, max_size=5), st.integers(0, 50), st.sampled_from(FactType))
def test_five_sessions_are_one(days: list[float], accesses: int, kind: FactType) -> None:
    """Whoever consolidates after every session has what one consolidation at the end gives."""
    memory = a_memory(accessed_count=accesses, fact_type=kind)
    days.sort()
    assert after(memory, *days)[0] == pytest.approx(after(memory, days[-1])[0], abs=1e-9)


def test_days_count_from_the_last_use() -> None:
    """What was used yesterday fades for one day, also where it was last consolidated before that."""
    used = a_memory(last_accessed_at=NOW + timedelta(days=9))
    assert after(used, 10)[0] == pytest.approx(0.48)
    done = consolidated(used, Mark(NOW, 0), NOW + timedelta(days=10))
    assert done.importance == pytest.approx(0.48)


@pytest.mark.parametrize(("importance", "accesses", "most"), [(1.0, 100, 1.0), (0.0, 0, 0.0)])
def test_importance_stays_in_its_bounds(importance: float, accesses: int, most: float) -> None:
    """However often a memory is used or left alone, its importance is 0–1."""
    memory = a_memory(importance=importance, accessed_count=accesses)
    assert after(memory, 0)[0] == most


@pytest.mark.parametrize(
    ("days", "fields", "evicted"),
    [
        (90, {}, True),
        (89.9, {}, False),
        (94, {"importance": 1.0, "fact_type": FactType.DECISION}, False),
        (100, {"last_accessed_at": NOW + timedelta(days=20)}, False),
        (100, {"superseded_by": 7}, False),
        (100, {"merged_into": 7}, False),
        (96, {"importance": 1.0, "type": Observation.DISCOVERY}, True),
        (94, {"importance": 1.0, "type": Observation.DISCOVERY}, False),
    ],
)
def test_what_is_worth_nothing_goes(days: float, fields: dict[str, object], evicted: bool) -> None:
    """Below 0.05 and unused for ninety days a memory goes, unless another has taken its place."""
    assert consolidated(a_memory(**fields), None, NOW + timedelta(days=days)).evicted is evicted


def test_a_clock_that_goes_back_changes_nothing() -> None:
    """A mark of later than now is kept, nothing fades, and accesses that were taken back are not counted anew."""
    mark = Mark(NOW, 5)
    done = consolidated(a_memory(accessed_count=3), mark, NOW - timedelta(days=5))
    assert (done.importance, done.mark) == (0.5, Mark(NOW, 5))
