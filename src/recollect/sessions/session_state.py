"""The state of a session, which its stages keep from one event to the next; stored as JSON in the session's row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from recollect.app import App
from recollect.domain import verbs
from recollect.domain.lifecycle import Injected, LifecycleSettings, Observation, Session, SessionEvent
from recollect.domain.origin import with_address
from recollect.domain.requests import Caller
from recollect.memory.facts import store_fact
from recollect.memory.remember import remember
from recollect.memory.similar import find_similar
from recollect.sessions.boundaries import Boundary, Window
from recollect.sessions.observations.trail import Trail

T = TypeVar("T")

_RUN: Final[dict[str, Callable[..., Any]]] = {verb.__name__: verb for verb in (remember, find_similar, store_fact)}
_LISTED: Final = ("boundaries", "seen", "injected", "injections", "reminded", "kept", "forgotten")
_WORDED: Final = ("window", "trail")

E = TypeVar("E", bound=SessionEvent)


class SessionState(BaseModel):
    """The window of topics, the trail of what was done, what was seen, injected and kept, and how stages failed.

    `seen` are digests of outputs, `injected` ids of memories shown since the session's start or its last compaction,
    `injections` when which were shown, `reminded` those that came up at their moment since then, or
    were done before it,
    `outside` what the assistant has read from outside since the last prompt, `kept` ids of memories that the session
    made, `forgotten` those of them from before that compaction, which came at `began_at`. `owes_index` says that the
    index has not reached the agent since then. `events` counts the uses of tools since the session began or the agent
    was asked, `worked` says whether one of them was an edit or a command, `undecided` are drafts worth asking about
    since the agent stored something, `asks` counts how often it was asked. `erased` counts how often the store took
    words out of the state, because what they say was forgotten or masked.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    window: Window = Window()
    trail: Trail = Trail()
    boundaries: tuple[Boundary, ...] = ()
    seen: tuple[str, ...] = ()
    injected: tuple[int, ...] = ()
    injections: tuple[Injected, ...] = ()
    reminded: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    forgotten: tuple[int, ...] = ()
    since_checkpoint: int = 0
    began_at: AwareDatetime | None = None
    owes_index: bool = False
    events: int = 0
    worked: bool = False
    undecided: tuple[int, ...] = ()
    asks: int = 0
    outside: str = ""
    failures: dict[str, int] = Field(default_factory=dict)
    erased: int = 0

    @property
    def shown_at(self) -> dict[int, datetime]:
        """Return when the agent was last shown each memory, by its id."""
        return {number: injection.at for injection in self.injections for number in injection.memory_ids}


def state_of(stored: dict[str, Any]) -> SessionState:
    """Return the state in its stored form read again; an unreadable state begins anew."""
    try:
        return SessionState.model_validate(stored)
    except ValidationError:
        return SessionState()


def rebased(before: SessionState, after: SessionState, stored: SessionState) -> SessionState:
    """Merge the changes of an event, from `before` to `after`, into the state that is `stored` by now.

    Replicas may work on two events of one session at once, and words may have been taken out meanwhile. Neither event
    loses what the other noted: lists, counts and what was read outside get what each added. Of the window and the trail
    the later one is kept, but where words were taken out the event's own are dropped, since it began with those words.
    """
    if stored == before:
        return after
    changes: dict[str, Any] = {
        name: _merged_items(getattr(before, name), getattr(after, name), getattr(stored, name)) for name in _LISTED
    }
    if stored.erased == before.erased:
        changes |= {name: new for name in _WORDED if (new := getattr(after, name)) != getattr(before, name)}
    changes["since_checkpoint"] = max(0, stored.since_checkpoint + after.since_checkpoint - before.since_checkpoint)
    if after.outside != before.outside:  # a prompt empties it
        changes["outside"] = after.outside and with_address(stored.outside, after.outside)
    changed = ("owes_index", "events", "worked", "undecided", "asks")
    changes |= {name: new for name in changed if (new := getattr(after, name)) != getattr(before, name)}
    changes["failures"] = dict(Counter(stored.failures) + (Counter(after.failures) - Counter(before.failures)))
    return stored.model_copy(update=changes)


def _merged_items(before: tuple[T, ...], after: tuple[T, ...], stored: tuple[T, ...]) -> tuple[T, ...]:
    """Return the stored items without those that an event removed, followed by those that it added."""
    added = [item for item in after if item not in before and item not in stored]
    return (*(item for item in stored if item in after or item not in before), *added)


@dataclass(eq=False, slots=True, kw_only=True)
class Context(Generic[E]):
    """One event on its way through the stages; `at` is when it happened (aware, UTC).

    `state` is replaced by `update` and written, with what was noted, when the event has passed all stages.
    """

    app: App
    caller: Caller
    settings: LifecycleSettings
    session: Session
    state: SessionState
    event: E
    at: datetime
    observations: list[Observation] = field(default_factory=list)

    def has(self, capability: str) -> bool:
        """Return whether a capability such as `memory.temporal` is installed; the stages do the rest without it."""
        return capability.removeprefix("memory.") not in self.settings.off

    def perform(self, operation: str, **fields: Any) -> Any:
        """Run a verb by its name, as the session's caller; every write passes the gate. Raises `RecollectError`."""
        return _RUN[operation](self.app, verbs.BY_NAME[operation].request(**fields), self.caller)

    def update(self, **changes: Any) -> None:
        """Replace fields of the state."""
        self.state = self.state.model_copy(update=changes)

    def note(self, observation: Observation) -> None:
        """Add what became of the event to the session's observations."""
        self.observations.append(observation)
