"""Inject: puts what is remembered of a prompt's subject before the prompt, fenced as data; mostly there is nothing.

What an agent was shown since its session began, or last lost its earlier messages, is not shown again, nor what was
kept of this session since then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from recollect.domain.lifecycle import CheckpointSession, Injection, SessionEvent, StartSession, SubmitPrompt
from recollect.domain.results import Memory
from recollect.prompt.fence import memory_context
from recollect.search.budget import estimate
from recollect.search.injection import relevant
from recollect.search.recall import count_use
from recollect.sessions.session_state import Context


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
_ENDS: Final = (timedelta(minutes=5), timedelta(minutes=30), timedelta(hours=2))
_USES: Final = (3, 6, 12)  # from which a memory is promoted by one, two and three scales


def scale_by_age(age: timedelta) -> Scale:
    """Return the scale of an age; an age below zero, of clocks that differ, is immediate."""
    return _SCALES[sum(age >= end for end in _ENDS)]


def scale(memory: Memory, now: datetime) -> Scale:
    """Return the scale of a memory: that of its age, promoted by one each at 3, 6 and 12 uses, at most to project."""
    uses = memory.accessed_count + memory.recalled_count
    by_age = _SCALES.index(scale_by_age(now - (memory.observed_at or memory.created_at)))
    return _SCALES[min(by_age + sum(uses >= least for least in _USES), len(_SCALES) - 1)]


def balanced(ranked: Sequence[Memory], now: datetime, allocation: Mapping[Scale, int] = ALLOCATION) -> list[Memory]:
    """Return at most as many memories as there are places, in the order of `ranked` (the best first).

    Each scale fills its own places with its best. Places that stay empty go to the best that are left, of any scale.
    """
    taken: Counter[Scale] = Counter()
    chosen: set[int] = set()
    for place, memory in enumerate(ranked):
        its = scale(memory, now)
        if taken[its] < allocation.get(its, 0):
            taken[its] += 1
            chosen.add(place)
    rest = [place for place in range(len(ranked)) if place not in chosen]
    chosen.update(rest[: sum(allocation.values()) - len(chosen)])
    return [ranked[place] for place in sorted(chosen)]


_RESUMED: Final = "resume"


def inject(context: Context[SubmitPrompt]) -> Injection | None:
    """Return the block to put before the prompt and the memories in it; nothing where none is relevant."""
    if not context.has("memory.store") or not (context.settings.inject and context.settings.max_inject_count):
        return None
    state, app = context.state, context.app
    known = {*state.injected, *({*state.kept} - {*state.forgotten})}
    found = relevant(app, context.event.prompt, context.caller, known)
    counter = app.embedder.counter() or estimate
    text, ids = memory_context(_balanced(context, found), context.settings.token_budget, counter)
    if not ids:
        return None
    context.update(injected=(*state.injected, *ids))
    count_use(app, [one for one in found if one.id in ids], context.at, context.caller, accessed=False)
    return Injection(text, tuple(map(str, ids)))


def forget_shown(context: Context[SessionEvent]) -> None:
    """Note that the agent has none of the memories in front of it that it was shown or made before."""
    resumed = isinstance(context.event, StartSession) and context.event.source == _RESUMED
    if isinstance(context.event, StartSession | CheckpointSession) and not resumed:
        context.update(injected=(), forgotten=context.state.kept)


def _balanced(context: Context[SubmitPrompt], found: list[Memory]) -> list[Memory]:
    """Return as many memories as there are places, of all temporal scales where that capability is there."""
    places = context.settings.max_inject_count
    if not context.has("memory.temporal") or len(found) <= places:
        return found[:places]
    first = balanced(found, context.at)[:places]
    taken = {one.id for one in first}
    return first + [one for one in found if one.id not in taken][: places - len(first)]
