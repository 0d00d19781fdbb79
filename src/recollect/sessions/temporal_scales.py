"""Temporal scales: how far back each memory belongs, and how memories of all scales share the places in a prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from recollect.domain.results import Memory

_SCALE_ENDS: Final = (timedelta(minutes=5), timedelta(minutes=30), timedelta(hours=2))
_PROMOTING_USES: Final = (3, 6, 12)  # from which a memory is promoted by one, two and three scales


class Scale(StrEnum):
    """How far back a memory belongs, the shortest first."""

    IMMEDIATE = "immediate"
    TASK = "task"
    SESSION = "session"
    PROJECT = "project"


ALLOCATION: Final[Mapping[Scale, int]] = MappingProxyType(
    {Scale.IMMEDIATE: 1, Scale.TASK: 2, Scale.SESSION: 1, Scale.PROJECT: 1}
)
"""Places of each scale."""

_SCALES: Final = tuple(Scale)


def scale_by_age(age: timedelta) -> Scale:
    """Return the scale of an age; an age below zero, of clocks that differ, is immediate."""
    return _SCALES[sum(age >= end for end in _SCALE_ENDS)]


def scale_of(memory: Memory, now: datetime) -> Scale:
    """Return the scale of a memory by its age, promoted a step each at 3, 6 and 12 uses, at most to project."""
    uses = memory.accessed_count + memory.recalled_count
    by_age = _SCALES.index(scale_by_age(now - (memory.observed_at or memory.created_at)))
    return _SCALES[min(by_age + sum(uses >= least for least in _PROMOTING_USES), len(_SCALES) - 1)]


def balanced_by_scale(
    ranked: Sequence[Memory], now: datetime, allocation: Mapping[Scale, int] = ALLOCATION
) -> list[Memory]:
    """Return the best memories of each scale's places, in the order of `ranked` (the best first).

    Places that stay empty go to the best that are left, of any scale.
    """
    taken: Counter[Scale] = Counter()
    chosen: set[int] = set()
    for place, memory in enumerate(ranked):
        its = scale_of(memory, now)
        if taken[its] < allocation.get(its, 0):
            taken[its] += 1
            chosen.add(place)
    rest = [place for place in range(len(ranked)) if place not in chosen]
    chosen.update(rest[: sum(allocation.values()) - len(chosen)])
    return [ranked[place] for place in sorted(chosen)]
