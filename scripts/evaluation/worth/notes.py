"""What an agent noted at the end of each session: lines for files `MEMORY.md`, and calls of the tool `memory`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, TypeAdapter

from evaluation.worth.workspaces import Event, Session, Workspace, read_file
from recollect.errors import InvalidInput

FILE: Final = "notes.json"
PERSON: Final = "person"
"""The name of the file about the person, which all projects share."""
_PLACE: Final = re.compile(r"s\d+#\d+")
_WRITES: Final = ("remember", "forget")


class FileChange(BaseModel):
    """The lines that a session adds to the end of a file, and those that it takes out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class SessionNotes(BaseModel):
    """The notes of a session; in `calls`, `s03#2` stands for the id that the second call of session s03 got."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    project_md: FileChange = FileChange()
    person_md: FileChange = FileChange()
    calls: tuple[dict[str, Any], ...] = ()


Notes = Mapping[str, SessionNotes]
_NOTES: Final = TypeAdapter(dict[str, SessionNotes])


def read_notes(workspace: Workspace, *, whole: bool = True) -> Notes:
    """Read the notes of a workspace; raise `InvalidInput` that names the place where they are wrong.

    With `whole` each session must have an entry; without it the notes may still be in the making.
    """
    file = workspace.folder / FILE
    if not file.exists() and not whole:
        return {}
    found = read_file("notes", file, _NOTES.validate_json)
    names = [session.id for session in workspace.sessions]
    if unknown := found.keys() - set(names):
        raise InvalidInput("notes", f"{file} has notes of {', '.join(sorted(unknown))}, which is no session.")
    if whole and (missing := [name for name in names if name not in found]):
        raise InvalidInput("notes", f"{file} has no entry of {', '.join(missing)}.")
    for name, entry in found.items():
        for number, call in enumerate(entry.calls, 1):
            if call.get("action") not in _WRITES:
                raise InvalidInput("action", f"{file}, {name}#{number}: `action` must be {' or '.join(_WRITES)}.")
    return found


def memory_files(workspace: Workspace, notes: Notes) -> dict[str, list[str]]:
    """Return the lines of each file `MEMORY.md` after all sessions, by its project, and of the file about the person.

    Raises `InvalidInput` for a line that is taken out and does not stand there.
    """
    files: dict[str, list[str]] = {}
    for session in workspace.sessions:
        entry = notes.get(session.id, SessionNotes())
        for name, change in ((workspace.project_of(session), entry.project_md), (PERSON, entry.person_md)):
            lines = files.setdefault(name, [])
            for line in change.remove:
                if line not in lines:
                    raise InvalidInput("remove", f"{session.id}: no such line stands in the file of {name}: {line!r}")
                lines.remove(line)
            lines += change.add
    return files


def with_ids(call: Mapping[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of a call with the ids that earlier calls got; raise `InvalidInput` for an unknown place."""
    arguments = dict(call)
    for name in ("id", "supersedes"):
        place = str(arguments.get(name, ""))
        if _PLACE.fullmatch(place):
            if place not in ids:
                raise InvalidInput(name, f"`{name}` names {place}, which is no earlier `remember` that was taken.")
            arguments[name] = ids[place]
    return arguments


def transcript(workspace: Workspace, session: Session) -> str:
    """Return a session as a text to read."""
    head = f"# Session {session.id}, {session.at:%Y-%m-%d %H:%M}, project {workspace.project_of(session)}"
    return "\n\n".join((head, *(_event_text(workspace, event) for event in session.events)))


def notes_so_far(workspace: Workspace, notes: Notes) -> str:
    """Return what the notes hold, as a text to read: each file, and each call with its place."""
    parts = ["# Your notes so far"]
    for name, lines in memory_files(workspace, notes).items():
        title = "MEMORY.md about the person" if name == PERSON else f"MEMORY.md of the project {name}"
        parts.append("\n".join((f"## {title}", *(lines or ["(empty)"]))))
    calls = [
        f"{name}#{number}: {json.dumps(call, ensure_ascii=False)}"
        for name, entry in notes.items()
        for number, call in enumerate(entry.calls, 1)
    ]
    parts.append("\n".join(("## Calls of the tool `memory`", *(calls or ["(none)"]))))
    return "\n\n".join(parts)


def _event_text(workspace: Workspace, event: Event) -> str:
    if event.person:
        return f"{workspace.repository.person}:\n{event.person.strip()}"
    if event.agent:
        return f"You:\n{event.agent.strip()}"
    if event.command:
        ended = "failed" if event.failed else "ended well"
        return f"You ran `{event.command.strip()}`, which {ended}:\n{event.output.strip() or '(no output)'}"
    if event.edit:
        return f"You wrote {event.edit}:\n{event.change.strip()}"
    return f"You read {event.read}:\n{event.output.strip()}"
