"""What becomes of an event of a session: a prompt is answered at once, and all else waits its turn."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Final

from recollect.doors.serving.hook_queue import HookQueue
from recollect.errors import InvalidInput

Perform = Callable[..., Any]
"""Runs an operation by name with the fields of its request."""

OPERATIONS: Final = {
    "session:start": "session_start",
    "prompt:submit": "note_prompt",
    "tool:post": "tool_post",
    "session:checkpoint": "session_checkpoint",
    "session:end": "session_end",
}
"""What the queue runs for each event."""
_ANSWERS: Final = {"prompt:submit": "answer_prompt"}
"""What is run at once for an event that somebody waits for."""


def take(
    event: str,
    fields: dict[str, Any],
    perform: Perform,
    now: str,
    queue: HookQueue,
    *,
    late: bool = False,
    event_id: str = "",
) -> dict[str, Any]:
    """Answer a prompt with the `text` to put before it, and put what is left to do of each event into the queue.

    One that comes `late` is only put there, as nobody waits for an answer. Says whether it was `taken` there. `perform`
    runs operations for the client; `now` is the time of an event that says none, or one that is still to come.
    """
    fields = fields | {"at": _time(fields.get("at"), now)}
    answer = {"text": perform(_ANSWERS[event], **fields).text} if event in _ANSWERS and not late else {}
    size = sum(len(str(one)) for one in fields.values())
    return answer | {"taken": queue.put(partial(perform, OPERATIONS[event], **fields), size, event_id)}


def check(event: str) -> None:
    """Raise `InvalidInput` for an unknown event."""
    if event not in OPERATIONS:
        raise InvalidInput("event", f"Unknown event: Must be one of {', '.join(OPERATIONS)}")


def _time(said: object, now: str) -> str:
    """Return the time that an event says where it is one with a zone and has come, else `now`."""
    try:
        found = datetime.fromisoformat(said) if isinstance(said, str) else None
        return said if isinstance(said, str) and found and found <= datetime.fromisoformat(now) else now
    except (ValueError, TypeError):  # no time, or one without a zone
        return now
