"""The events of agents' sessions that wait in a replica: in several lanes, each in the order in which they came."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final

from recollect.app import App
from recollect.domain.requests import Caller
from recollect.domain.verbs import BY_NAME, PARTS, Verb
from recollect.doors.operations import perform
from recollect.doors.serving import hook_events
from recollect.doors.serving.hook_queue import HookQueue
from recollect.errors import InvalidInput
from recollect.lifecycle.project_settings import narrowed

Asking = Callable[[], AbstractContextManager[Caller]]
"""Gives the caller of an event, with the rights that they have by now."""
_LANES: Final = 4
_FIELDS: Final = ("fields", "settings")


class Events:
    """Takes the events of sessions; those of one session wait in one lane."""

    def __init__(self) -> None:
        self._lanes = [HookQueue() for _ in range(_LANES)]

    @property
    def waiting(self) -> int:
        """Return how many events are not done."""
        return sum(one.waiting for one in self._lanes)

    @property
    def lost(self) -> int:
        """Return how many events did not fit, or failed, since the server started."""
        return sum(one.lost for one in self._lanes)

    def take(self, app: App, event: str, body: dict[str, Any], asking: Asking) -> dict[str, Any]:
        """Answer an event, and put what is left to do of it into its lane.

        The client's settings change what a project's file may change: they turn nothing on, and raise no limit.
        """
        if unknown := sorted(body.keys() - set(_FIELDS)):
            raise InvalidInput(unknown[0], "Unknown parameter: An event has `fields` and `settings`.")
        fields, settings = (_object(body, name) for name in _FIELDS)
        operation_of(event).request(**fields)
        with asking() as caller:
            app = replace(app, lifecycle=narrowed(app.lifecycle, settings, caller.project))
        lane = self._lanes[hash((caller.user, str(fields["session_id"]))) % _LANES]

        def run(name: str, **given: Any) -> Any:
            with asking() as caller:
                return perform(app, name, given, caller)

        return hook_events.take(event, fields, run, app.clock().isoformat(), lane)

    def finish(self, seconds: float) -> bool:
        """Wait until every event is done, so many seconds at most; return whether all are."""
        until = time.monotonic() + seconds
        return all(one.finish(max(0.0, until - time.monotonic())) for one in self._lanes)


def operation_of(event: str) -> Verb:
    """Return the operation whose request an event is."""
    name = hook_events.OPERATIONS[event]
    return BY_NAME.get(name) or PARTS[name]


def _object(body: dict[str, Any], name: str) -> dict[str, Any]:
    found = body.get(name, {})
    if not isinstance(found, dict):
        raise InvalidInput(name, f"Invalid {name}: Must be a JSON object")
    return found
