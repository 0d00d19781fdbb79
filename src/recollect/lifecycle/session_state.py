"""What the stages know of a session from one event to the next; it is kept as JSON in the session's row."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recollect.policy.boundaries import Boundary, Window
from recollect.policy.observations.trail import Trail


class SessionState(BaseModel):
    """The window of topics, the trail of what was done, what was seen, injected and kept, and how stages failed.

    `seen` are digests of outputs, `injected` ids of memories shown since the session's start or its last compaction,
    `kept` ids of memories that the session made, `forgotten` those of them from before that compaction.
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
    checkpoint: int | None = None
    failures: dict[str, int] = Field(default_factory=dict)


def state_of(stored: dict[str, Any]) -> SessionState:
    """Return the state as it was stored; one that cannot be read begins anew."""
    try:
        return SessionState.model_validate(stored)
    except ValidationError:
        return SessionState()
