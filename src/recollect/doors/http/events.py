"""Events of agents' sessions: a prompt is answered at once, and all else waits its turn, so that no agent waits.

They wait in memory alone: a graceful stop works them off, a kill loses them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from recollect.domain.lifecycle import Injection, StartSession
from recollect.domain.verbs import BY_NAME, PARTS, Verb
from recollect.doors.http.messages import to_recollect_error
from recollect.errors import InvalidInput
from recollect.spans import carried

log = logging.getLogger(__name__)

MOST: Final = 1_000
"""Events that wait in a queue at most."""
LARGEST: Final = 2**26
"""Characters of their texts in all."""
OPERATIONS: Final = {
    "session:start": "session_start",
    "prompt:submit": "note_prompt",
    "tool:pre": "answer_before_tool",
    "tool:post": "tool_post",
    "turn:end": "note_turn",
    "session:checkpoint": "session_checkpoint",
    "session:end": "session_end",
}
"""What takes each event: the queue runs it, but for what is only answered."""
_ANSWERS: Final = {
    "session:start": "answer_start",
    "prompt:submit": "answer_prompt",
    "tool:pre": "answer_before_tool",
    "tool:post": "answer_tool",
    "turn:end": "answer_turn",
}
"""What is run at once for an event whose answer may hold memories."""


class Event(NamedTuple):
    """What an event is run with: its fields, the user, and `run`, which runs an operation by name for its client.

    `former` are the names that the project of its folder had before, which the start of a session tells of.
    """

    fields: dict[str, Any]
    user: str
    run: Callable[..., Any]
    former: tuple[str, ...] = ()


class Taken(NamedTuple):
    """The answer to an event, its `text` and whether it was `taken`, and what to run once the answer was delivered."""

    body: dict[str, Any]
    delivered: Callable[[], object] | None


class Events:
    """Takes the events of sessions; those of one session wait in one of several queues."""

    def __init__(self, lanes: int) -> None:
        self._lanes = [EventQueue() for _ in range(lanes)]

    @property
    def waiting(self) -> int:
        """Return how many events are not done."""
        return sum(one.waiting for one in self._lanes)

    @property
    def lost(self) -> int:
        """Return how many events did not fit, or failed, since the process started."""
        return sum(one.lost for one in self._lanes)

    def take(self, name: str, event: Event, now: str, event_id: str = "", *, late: bool = False) -> Taken:
        """Answer an event with the text that the agent gets for it, and queue the rest of its work.

        A `late` event is only queued, as nobody waits for its answer. `now` is the time of an event without a time, or
        with a time in the future. Raises `InvalidInput` for a wrong field.
        """
        fields = event.fields | {"at": _event_time(event.fields.get("at"), now)}
        if event.former and name == StartSession.event:
            fields["former_projects"] = event.former
        operation_of(name).request(**fields)
        found = event.run(_ANSWERS[name], **fields) if name in _ANSWERS and not late else Injection()
        taken = OPERATIONS[name] == _ANSWERS.get(name) or self._queue_event(name, event, fields, event_id)
        about = {name: fields[name] for name in ("session_id", "agent", "folder", "at") if name in fields}
        delivered = partial(event.run, "note_shown", **about, **found.shown) if found.shown else None
        return Taken({"text": found.text, "taken": taken}, delivered)

    def _queue_event(self, name: str, event: Event, fields: dict[str, Any], event_id: str) -> bool:
        size = sum(len(str(one)) for one in fields.values())
        lane = self._lanes[hash((event.user, str(fields["session_id"]))) % len(self._lanes)]
        known = str(hash((event.user, event_id))) if event_id else ""
        return lane.put(carried(partial(event.run, OPERATIONS[name], **fields)), size, known)

    def finish(self, seconds: float) -> bool:
        """Wait until every event is done, so many seconds at most; return whether all are."""
        until = time.monotonic() + seconds
        return all(one.finish(max(0.0, until - time.monotonic())) for one in self._lanes)


class EventQueue:
    """Takes events at once and works them off in order in one thread, which ends when nothing is left."""

    def __init__(self, most: int = MOST, largest: int = LARGEST) -> None:
        self._most = most
        self._largest = largest
        self._waiting: deque[tuple[Callable[[], object], int]] = deque()
        self._size = 0
        self._known: deque[str] = deque(maxlen=most)
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self.lost = 0
        """Events that did not fit, or whose work failed, since the process started."""

    @property
    def waiting(self) -> int:
        """Return the number of unfinished events, with the event in progress."""
        with self._changed:
            return len(self._waiting)

    def put(self, work: Callable[[], object], size: int, event_id: str = "") -> bool:
        """Queue the work of an event whose texts have `size` characters; return whether there was room for it.

        An event that comes again, by its id, is queued once: its sender had no answer in time.
        """
        with self._changed:
            if event_id and event_id in self._known:
                return True
            if len(self._waiting) >= self._most or (self._waiting and self._size + size > self._largest):
                self.lost += 1
                return False
            self._known.append(event_id)
            self._waiting.append((work, size))
            self._size += size
            if self._thread is None:
                self._thread = threading.Thread(target=self._work_off, name="recollect-hooks", daemon=True)
                self._thread.start()
            return True

    def finish(self, seconds: float) -> bool:
        """Wait until everything is done, so many seconds at most; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, seconds)

    def _work_off(self) -> None:
        """Run the waiting work in order until none is left; an error is logged and counts as a lost event."""
        while True:
            with self._changed:
                if not self._waiting:
                    self._thread = None
                    return
                work, size = self._waiting[0]
            try:
                work()
            except Exception as error:  # noqa: BLE001 - the next event is worked on whatever became of this one
                log.warning("an event of a session was lost: %s", type(to_recollect_error(error)).__name__)
                with self._changed:
                    self.lost += 1
            with self._changed:
                self._waiting.popleft()
                self._size -= size
                self._changed.notify_all()


def operation_of(event: str) -> Verb:
    """Return the operation whose request an event is."""
    name = OPERATIONS[event]
    return BY_NAME.get(name) or PARTS[name]


def parts_of(body: dict[str, Any], client: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of an event and the object under `client`; raise `InvalidInput` for unknown members."""
    if unknown := sorted(body.keys() - {"fields", "id", "late", client}):
        raise InvalidInput(unknown[0], f"Unknown parameter: An event has `fields` and `{client}`.")
    for name in ("fields", client):
        if not isinstance(body.get(name, {}), dict):
            raise InvalidInput(name, f"Invalid {name}: Must be a JSON object")
    return body.get("fields", {}), body.get(client, {})


def _event_time(said: object, now: str) -> str:
    """Return the time in an event, if it has a zone and is not in the future; else `now`."""
    try:
        found = datetime.fromisoformat(said) if isinstance(said, str) else None
        return said if isinstance(said, str) and found and found <= datetime.fromisoformat(now) else now
    except (ValueError, TypeError):  # no time, or one without a zone
        return now
