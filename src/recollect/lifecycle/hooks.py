"""Calls the stages of a session's events in order of priority. A stage that fails never stops the others."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from recollect.domain.lifecycle import SessionEvent

log = logging.getLogger(__name__)

E = TypeVar("E", bound=SessionEvent)


@dataclass(frozen=True)
class Emitted:
    """What the stages of one event gave (stage and value, in order; None is left out), and which stages failed."""

    results: tuple[tuple[str, object], ...]
    failed: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Registration:
    event: type[SessionEvent]
    stage: str
    priority: int
    handler: Callable[[Any], object]


class Hooks:
    """The stages of each event; a lower priority runs first, equal ones in the order of their registration."""

    def __init__(self) -> None:
        self._registered: tuple[_Registration, ...] = ()
        self.failures: Counter[str] = Counter()

    def register(self, event: type[E], stage: str, priority: int, handler: Callable[[E], object]) -> Callable[[], None]:
        """Add a stage to an event and return what takes it out again, which may be called more than once."""
        added = _Registration(event, stage, priority, handler)
        self._registered = tuple(sorted((*self._registered, added), key=lambda one: one.priority))

        def unregister() -> None:
            self._registered = tuple(one for one in self._registered if one is not added)

        return unregister

    def emit(self, event: SessionEvent) -> Emitted:
        """Run every stage of the event; log and count those that fail."""
        results: list[tuple[str, object]] = []
        failed: list[str] = []
        for one in (each for each in self._registered if each.event is type(event)):
            try:
                value = one.handler(event)
            except Exception:  # one failing stage must not stop the others
                log.exception("Stage %s failed on %s", one.stage, event.event)
                self.failures[one.stage] += 1
                failed.append(one.stage)
            else:
                if value is not None:
                    results.append((one.stage, value))
        return Emitted(tuple(results), tuple(failed))
