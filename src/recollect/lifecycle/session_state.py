"""What the stages know of a session from one event to the next; it is kept as JSON in the session's row."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recollect.policy.boundaries import Boundary, Window
from recollect.policy.observations.trail import Trail

T = TypeVar("T")

_LISTED: Final = ("boundaries", "seen", "injected", "kept", "forgotten")
_WORDED: Final = ("window", "trail")


class SessionState(BaseModel):
    """The window of topics, the trail of what was done, what was seen, injected and kept, and how stages failed.

    `seen` are digests of outputs, `injected` ids of memories shown since the session's start or its last compaction,
    `kept` ids of memories that the session made, `forgotten` those of them from before that compaction. `erased` counts
    how often the store took words out of the state, because what they say was forgotten or masked.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    window: Window = Window()
    trail: Trail = Trail()
    boundaries: tuple[Boundary, ...] = ()
    seen: tuple[str, ...] = ()
    injected: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    forgotten: tuple[int, ...] = ()
    since_checkpoint: int = 0
    failures: dict[str, int] = Field(default_factory=dict)
    erased: int = 0


def state_of(stored: dict[str, Any]) -> SessionState:
    """Return the state as it was stored; one that cannot be read begins anew."""
    try:
        return SessionState.model_validate(stored)
    except ValidationError:
        return SessionState()


def rebased(before: SessionState, after: SessionState, stored: SessionState) -> SessionState:
    """Return what an event that made `after` of `before` makes of what is `stored` by now.

    Replicas may work on two events of one session at once, and words may have been taken out meanwhile. Neither event
    loses what the other noted: lists and counts get what each added. Of the window and the trail the later one is kept,
    but where words were taken out the event's own are dropped, since it began with those words.
    """
    if stored == before:
        return after
    changes: dict[str, Any] = {
        name: _joined(getattr(before, name), getattr(after, name), getattr(stored, name)) for name in _LISTED
    }
    if stored.erased == before.erased:
        changes |= {name: new for name in _WORDED if (new := getattr(after, name)) != getattr(before, name)}
    changes["since_checkpoint"] = max(0, stored.since_checkpoint + after.since_checkpoint - before.since_checkpoint)
    changes["failures"] = dict(Counter(stored.failures) + (Counter(after.failures) - Counter(before.failures)))
    return stored.model_copy(update=changes)


def _joined(before: tuple[T, ...], after: tuple[T, ...], stored: tuple[T, ...]) -> tuple[T, ...]:
    """Return what is stored without what an event removed, and then what it added."""
    added = [one for one in after if one not in before and one not in stored]
    return (*(one for one in stored if one in after or one not in before), *added)
