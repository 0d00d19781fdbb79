"""What a stage is given: the store, whose session it is, what is known of it, and where to note what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from recollect.app import App
from recollect.domain.lifecycle import LifecycleSettings, Observation, Session, SessionEvent
from recollect.domain.requests import Caller
from recollect.lifecycle.capabilities import Registry
from recollect.lifecycle.session_state import SessionState

E = TypeVar("E", bound=SessionEvent)


@dataclass(eq=False, slots=True, kw_only=True)
class Context(Generic[E]):
    """One event on its way through the stages; `at` is when it happened (aware, UTC).

    `state` is replaced by `update` and written, with what was noted, when the event has passed all stages.
    """

    app: App
    caller: Caller
    settings: LifecycleSettings
    capabilities: Registry
    session: Session
    state: SessionState
    event: E
    at: datetime
    observations: list[Observation] = field(default_factory=list)

    def update(self, **changes: Any) -> None:
        """Put fields of the state in the place of what they were."""
        self.state = self.state.model_copy(update=changes)

    def note(self, observation: Observation) -> None:
        """Add what became of the event to the session's observations."""
        self.observations.append(observation)
