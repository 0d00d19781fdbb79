"""Temporal scales: ages have a scale, use promotes, and each scale has its places."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ranked_memories import NOW, a_memory
from recollect.domain.results import Memory
from recollect.sessions.temporal_scales import ALLOCATION, Scale, balanced_by_scale, scale_by_age, scale_of


def aged(identity: int, minutes: float, **fields: object) -> Memory:
    """Return a memory that was written so many minutes ago."""
    return a_memory(id=identity, created_at=NOW - timedelta(minutes=minutes), **fields)


def ids(ages: list[float]) -> list[int]:
    """Return the places in `ages` (minutes, the best ranked first) of what is chosen."""
    return [one.id for one in balanced_by_scale([aged(place, age) for place, age in enumerate(ages)], NOW)]


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        (-1, Scale.IMMEDIATE),
        (0, Scale.IMMEDIATE),
        (4.99, Scale.IMMEDIATE),
        (5, Scale.TASK),
        (29.99, Scale.TASK),
        (30, Scale.SESSION),
        (119.99, Scale.SESSION),
        (120, Scale.PROJECT),
        (1_000_000, Scale.PROJECT),
    ],
)
def test_an_age_has_a_scale(minutes: float, expected: Scale) -> None:
    """Immediate is below 5 minutes, task below 30, session below 2 hours, and project from there on."""
    assert scale_by_age(timedelta(minutes=minutes)) is expected


@pytest.mark.parametrize(
    ("uses", "expected"),
    [(2, Scale.IMMEDIATE), (3, Scale.TASK), (6, Scale.SESSION), (12, Scale.PROJECT), (99, Scale.PROJECT)],
)
def test_use_promotes(uses: int, expected: Scale) -> None:
    """What proves durable goes from immediate to task, session and project, by id and as a hit alike."""
    assert scale_of(aged(1, 1, accessed_count=1, recalled_count=uses - 1), NOW) is expected


def test_nothing_is_promoted_beyond_project() -> None:
    """A memory of two hours that is used much stays in project."""
    assert scale_of(aged(1, 121, accessed_count=50), NOW) is Scale.PROJECT


def test_when_it_happened_counts() -> None:
    """Old notes that are imported now belong to the project."""
    assert scale_of(aged(1, 0, observed_at=NOW - timedelta(days=300)), NOW) is Scale.PROJECT


def test_the_allocation_is_five() -> None:
    """One place is immediate, two are of the task, one of the session and one of the project."""
    assert [ALLOCATION[one] for one in Scale] == [1, 2, 1, 1]


def test_each_scale_has_its_places() -> None:
    """The best of each scale are chosen, in the order of their rank, although others rank above them."""
    assert ids([500, 600, 700, 60, 10, 11, 12, 1, 2]) == [0, 3, 4, 5, 7]


@pytest.mark.parametrize(
    ("ages", "expected"),
    [([500] * 7, [0, 1, 2, 3, 4]), ([500, 600, 700, 800, 900, 1], [0, 1, 2, 3, 5]), ([1, 2], [0, 1]), ([], [])],
)
def test_empty_places_are_backfilled(ages: list[float], expected: list[int]) -> None:
    """Places that a scale cannot fill go to the best that are left, and fewer memories than places are all chosen."""
    assert ids(ages) == expected
