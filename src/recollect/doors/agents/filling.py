"""Takes in what agents remembered before: their notes as an import, their sessions as if hooks had reported them.

So of a session only what is worth it becomes a memory, with the origin that it has for every other session.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from recollect.app import App
from recollect.domain.enums import OnSecret
from recollect.domain.lifecycle import Decision
from recollect.domain.requests import Caller
from recollect.domain.transfer import ImportBatch, Imported
from recollect.doors.agents.replay import events_of
from recollect.doors.handlers import perform
from recollect.errors import NotFound, RecollectError
from recollect.transfer.import_client import Import
from recollect.transfer.import_paths import FoundFile
from recollect.transfer.remembered import Plan, Remembered, State, What

log = logging.getLogger(__name__)

Report = Callable[[int, int], None]
_JOIN: Final = 10.0  # seconds


def take_in(
    app: App,
    plan: Plan,
    stopped: Callable[[], bool] = lambda: False,
    report: Report = lambda _done, _total: None,
) -> None:
    """Take in the waiting files in order, and note the progress after each event; note and skip a file that fails."""
    with suppress(RecollectError):  # without a model words find it, and what waits for one is judged later
        app.embedder.warm()
    while (waiting := plan.waiting) and not stopped():
        report(len(plan.files) - len(waiting), len(plan.files))
        file = waiting[0]
        if file.gave_up:
            plan.put(replace(file, state=State.FAILED))
            continue
        plan.put(file := replace(file, tries=file.tries + 1))
        caller = Caller(user=plan.user, team=plan.team, project=file.project or "default")
        try:
            read = _take_in_session if file.what is What.SESSION else _take_in_notes
            plan.put(read(app, caller, file, plan.put, stopped))
        except (RecollectError, OSError) as error:
            log.warning("a file of an agent was not taken in: %s", type(error).__name__)
            plan.put(replace(file, state=State.FAILED))
    report(len(plan.files), len(plan.files))


def _take_in_notes(app: App, caller: Caller, note: Remembered, _put: object, _stopped: object) -> Remembered:
    """Import a file of notes. Its folder tells whose words they are; a secret in it is masked."""

    def send(batch: ImportBatch) -> Imported:
        return perform(app, "import_batch", dict(batch), caller)  # type: ignore[no-any-return]

    importing = Import(send, {"scope": note.scope, "on_secret": OnSecret.REDACT})
    file = FoundFile(Path(note.path), note.name, note.format, note.size, said_by=note.said_by)
    importing.run([file], lambda *_: None)
    if (error := importing.files[0].error) is not None:
        raise error
    done = importing.total()
    return replace(note, state=State.DONE, kept=note.kept + done.new, tries=0)


def _take_in_session(
    app: App, caller: Caller, note: Remembered, put: Callable[[Remembered], None], stopped: Callable[[], bool]
) -> Remembered:
    """Send the events of a session that were not sent yet; a session that hooks reported is known already."""
    for number, event in enumerate(events_of(Path(note.path), note.format)):
        if number == 0 and not note.sent and _is_known(app, caller, event.fields["session_id"]):
            return replace(note, state=State.KNOWN)
        if number < note.sent and not event.final:
            continue
        if stopped():
            return replace(note, tries=0)
        done = perform(app, event.verb, event.fields, caller)
        kept = note.kept + (done.decision == Decision.KEPT)
        note = replace(note, kept=kept, sent=note.sent + (not event.final))
        put(note)
    return replace(note, state=State.DONE, tries=0)


def _is_known(app: App, caller: Caller, session_id: str) -> bool:
    try:
        return bool(perform(app, "show_session", {"session_id": session_id, "limit": 1}, caller))
    except NotFound:
        return False


class FillingJob:
    """At most one at a time, over the daemon's open store: what was begun before it started goes on by itself."""

    def __init__(self, app: App, folder: Path) -> None:
        self._app = app
        self._plan = Plan(folder)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        if self._plan.waiting:
            self._start_thread()

    @property
    def running(self) -> bool:
        """Return whether files are being taken in now."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def message(self) -> str:
        """Return a sentence on the progress; an empty text where nothing was ever begun."""
        return self._plan.message

    def add(self, files: Iterable[Remembered], user: str, team: str) -> dict[str, Any]:
        """Add these files to the waiting files, and start to take them in."""
        with self._lock:
            self._plan.add(files, user, team)
            if not self.running:
                self._start_thread()
        return {"message": self.message}

    def stop(self) -> None:
        """Stop after the current event; the next daemon continues."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_JOIN)

    def _start_thread(self) -> None:
        self._thread = threading.Thread(target=self._take_in_all, name="recollect-filling", daemon=True)
        self._thread.start()

    def _take_in_all(self) -> None:
        """Take in all waiting files in this thread; an error is logged and ends it."""
        try:
            take_in(self._app, self._plan, self._stopping.is_set)
        except (RecollectError, OSError):
            log.exception("what agents remembered is not taken in further")
