"""An event of a session as a client of the daemon sends it: with the folder and the variables that make settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from recollect import environment
from recollect.doors.serving import hook_events
from recollect.doors.serving.hook_events import Perform
from recollect.doors.serving.hook_queue import HookQueue
from recollect.doors.transcripts import extract_from
from recollect.lifecycle.project_settings import settings_in
from recollect.settings import Settings


def take(
    body: dict[str, Any],
    serving: Callable[[Settings], Perform],
    now: str,
    queue: HookQueue,
    read_later: Callable[[Callable[[], None]], None] | None = None,
) -> dict[str, Any]:
    """Take an event under the settings that the client's variables and folder make, for which `serving` runs it.

    `read_later` does work that a language model is asked for; with it a transcript that is about to be cut is read.
    Raises `InvalidInput` for an unknown event.
    """
    hook_events.check(body["event"])
    folder = str(body["folder"])
    told = environment.Surroundings(dict(body["variables"]), Path(folder), str(body["user"]))
    with environment.surrounded(told):
        settings = Settings(**dict(body["given"]))
        perform = serving(settings)
    fields = dict(body["fields"])
    transcript = fields.pop("transcript", None)
    if isinstance(transcript, str) and read_later and settings_in(folder, settings.lifecycle).capture:
        read_later(partial(extract_from, Path(transcript), perform))
    late, event_id = bool(body.get("late")), str(body.get("id", ""))
    event_fields = {"folder": folder} | fields
    return hook_events.take(body["event"], event_fields, perform, now, queue, late=late, event_id=event_id)
