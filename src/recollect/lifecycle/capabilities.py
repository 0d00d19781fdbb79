"""The capabilities that stages find each other by. Every one may be absent, and each stage does what is left then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar, cast

from recollect.app import App
from recollect.domain import verbs
from recollect.domain.requests import Caller
from recollect.domain.results import Memory
from recollect.operations.facts import store_fact
from recollect.operations.remember import remember
from recollect.operations.similar import find_similar
from recollect.policy.boundaries import Boundary, Window
from recollect.policy.memorability import Memorability
from recollect.policy.observations.features import Feature

T = TypeVar("T")

_RUN: Final[dict[str, Callable[..., Any]]] = {verb.__name__: verb for verb in (remember, find_similar, store_fact)}
"""The verbs that stages use."""


@dataclass(frozen=True)
class Capability(Generic[T]):
    """The name of a capability, and the type of what provides it."""

    name: str


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """The operations of the store, as the session's caller."""

    app: App
    caller: Caller

    def perform(self, operation: str, **fields: Any) -> Any:
        """Run a verb by its name; every write passes the gate. Raises `RecollectError`."""
        return _RUN[operation](self.app, verbs.BY_NAME[operation].request(**fields), self.caller)


STORE: Final = Capability[MemoryStore]("memory.store")
MEMORABILITY: Final = Capability[Callable[[Mapping[Feature, float], Iterable[float]], Memorability]](
    "memory.memorability"
)
BOUNDARIES: Final = Capability[Callable[[Window, str, datetime, bool], tuple[Window, Boundary | None]]](
    "memory.boundaries"
)
TEMPORAL: Final = Capability[Callable[[Sequence[Memory], datetime], list[Memory]]]("memory.temporal")
CONSOLIDATION: Final = Capability[Callable[[], object]]("memory.consolidation")
COMPRESSION: Final = Capability[Callable[[], object]]("memory.compression")


class Registry:
    """What is provided in this session, by capability."""

    def __init__(self, provided: Mapping[str, object]) -> None:
        self._provided = dict(provided)

    def get(self, capability: Capability[T]) -> T | None:
        """Return what provides a capability, None where nothing does."""
        return cast("T | None", self._provided.get(capability.name))
