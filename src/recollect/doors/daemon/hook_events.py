"""What the daemon does with an event of a session: a prompt is answered, everything else waits its turn."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from recollect import environment
from recollect.doors.daemon.hook_queue import HookQueue
from recollect.errors import InvalidInput
from recollect.settings import Settings

Perform = Callable[..., Any]
"""Runs an operation by name with the fields of its request."""

OPERATIONS: Final = {
    "session:start": "session_start",
    "prompt:submit": "prompt_submit",
    "tool:post": "tool_post",
    "session:checkpoint": "session_checkpoint",
    "session:end": "session_end",
}
"""The operation of each event."""
_ANSWERED: Final = "prompt:submit"


def take(body: dict[str, Any], serving: Callable[[Settings], Perform], now: str, queue: HookQueue) -> dict[str, Any]:
    """Answer a prompt with the `text` to put before it; put any other event into the queue, and say whether it fitted.

    `serving` returns what runs operations under the settings that the client's variables and folder make; `now` is the
    time of an event that says none, or one that is still to come. Raises `InvalidInput` for an unknown event.
    """
    event = body["event"]
    if event not in OPERATIONS:
        raise InvalidInput("event", f"Unknown event: Must be one of {', '.join(OPERATIONS)}")
    folder = str(body["folder"])
    fields = {"folder": folder} | dict(body["fields"]) | {"at": _time(body["fields"].get("at"), now)}
    told = environment.Surroundings(dict(body["variables"]), Path(folder), str(body["user"]))
    with environment.surrounded(told):
        perform = serving(Settings(**dict(body["given"])))
    if event == _ANSWERED:
        return {"text": perform(OPERATIONS[event], **fields).text}
    size = sum(len(str(one)) for one in fields.values())
    return {"taken": queue.put(partial(perform, OPERATIONS[event], **fields), size)}


def _time(said: object, now: str) -> str:
    """Return the time that an event says where it is one with a zone and has come, else `now`."""
    try:
        found = datetime.fromisoformat(said) if isinstance(said, str) else None
        return said if isinstance(said, str) and found and found <= datetime.fromisoformat(now) else now
    except (ValueError, TypeError):  # no time, or one without a zone
        return now
