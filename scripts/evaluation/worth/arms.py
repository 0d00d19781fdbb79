"""Arms: what an agent has of its earlier sessions when a later request comes, and the folder in which it answers.

The folder of a task holds the repository, the request, and what the arm adds. Beside the folders of the tasks lies
their state, which an agent does not look at: the store, and a log of all that came before the agent.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import recollect
from evaluation.worth.answers import write_files
from evaluation.worth.notes import PERSON, Notes, memory_files, read_notes
from evaluation.worth.stores import begin, fill, open_store
from evaluation.worth.workspaces import Task, Workspace, load_workspace
from recollect.doors import memory_tool
from recollect.doors.mcp_record import Record
from recollect.engines.embedder import Embedder
from recollect.errors import InvalidInput

STATE: Final = ".state"
START, ANSWER, CHECKOUT = "START.md", "answer.json", "repository"
EMPTY_ANSWER: Final = {"commands": [], "question": "", "reply": ""}
LATER: Final = "later"
"""The name of the session in which a task is answered."""
TOOL, AT_START = "tool", "start"
"""What brings the description of a tool, and what the hooks add before the work begins."""
_ABOUT, _LOG, _HOME = "about.json", "log.jsonl", "home"
_HOW: Final = """## Your answer

Change files where they lie, in `repository/`. In `answer.json` write `commands`, the commands that you would run for
{person} or that they asked for, in their order (what cannot run on this machine belongs there too); `question`, if you
cannot go on without an answer of {person}; and `reply`, what you tell {person}. What does not apply stays empty. Then
run `./finish`, which checks the form and says what is left to do.
"""
_FILES: Final = """## Your notes

At the end of each earlier session you noted in `MEMORY.md` what a colleague would need: {project} lines about this
project, {person} about the person. `./memory cat` prints them, `./memory grep PATTERN` the lines that match.
"""
_TOOL: Final = """## Your tool `memory`

{instructions}

{description}

```json
{schema}
```

Call it with its arguments, as in `./memory '{{"action": "recall", "query": "…"}}'`. In this session it is only read.
"""
_HOOKS: Final = """## What was added to this session

{texts}

Say what you do, as it happens, and read what comes back: `./memory run 'COMMAND'` before you run or propose a command,
`./memory edit PATH` when you have changed a file of the repository, `./memory failed 'COMMAND' 'OUTPUT'` after a
failure.
"""


_OPENING: Final = {
    "method": "initialize",
    "params": {"protocolVersion": "", "clientInfo": {"name": "", "version": ""}, "capabilities": {}},
}
"""What an agent sends to a server of tools first; the answer holds instructions for the agent."""


class Arm(StrEnum):
    """What an agent has of its earlier sessions."""

    NONE = "none"
    MARKDOWN = "markdown"
    RECALL = "recall"
    RECOLLECT = "recollect"

    @property
    def stores(self) -> bool:
        """Say whether the agent has a store."""
        return self in (Arm.RECALL, Arm.RECOLLECT)


@dataclass(frozen=True)
class Shown:
    """Something that came before the agent: what brought it, its tokens, and whether it holds what the task needs.

    `subject` is the command or the file and `digest` that of the file's text, where an action brought it.
    """

    by: str
    tokens: int
    has_clue: bool
    subject: str = ""
    digest: str = ""


@dataclass(frozen=True)
class Place:
    """The folder of a task in a prepared arm, and its state."""

    folder: Path
    state: Path
    arm: Arm
    workspace: Workspace
    task: Task

    @property
    def name(self) -> str:
        """Return the name of the task."""
        return self.folder.name

    @property
    def checkout(self) -> Path:
        """Return the folder with the files of the repository."""
        return self.folder / CHECKOUT

    @property
    def home(self) -> Path:
        """Return the folder of the store."""
        return self.state / _HOME

    def log(self) -> list[Shown]:
        """Return all that came before the agent, in order."""
        lines = (self.state / _LOG).read_text(encoding="utf-8").splitlines()
        return [Shown(**json.loads(line)) for line in lines]

    def note(self, by: str, text: str, count: Callable[[str], int], *, subject: str = "", digest: str = "") -> None:
        """Note that a text came before the agent."""
        row = Shown(by, count(text) if text else 0, self.task.has_clue(text), subject, digest)
        with (self.state / _LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")


def counter_of(embedder: Embedder) -> Callable[[str], int]:
    """Return the function that counts tokens, by the tokenizer of the embedding model."""
    count = embedder.counter()
    if count is None:
        raise InvalidInput("model", "The tokenizer of the embedding model cannot be read.")
    return count


def digest_of(*texts: str) -> str:
    """Return what changes with these texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def prepare(arm: Arm, workspaces: Iterable[Workspace], folder: Path, embedder: Embedder) -> list[Place]:
    """Make the folder of each task for an arm; raise `InvalidInput` where the folder holds something already."""
    if folder.exists() and any(folder.iterdir()):
        raise InvalidInput("folder", f"{folder} is not empty; name a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    places = []
    for workspace in workspaces:
        notes = read_notes(workspace) if arm is not Arm.NONE else {}
        with tempfile.TemporaryDirectory(prefix="worth-store-") as home:
            if arm.stores:
                _fill_or_refuse(Path(home), workspace, notes, embedder, hooks=arm is Arm.RECOLLECT)
            for task in workspace.tasks:
                places.append(_prepare_task(arm, workspace, task, notes, folder, Path(home), embedder))
    return places


def open_place(state: Path) -> Place:
    """Return the place that a state belongs to; raise `InvalidInput` where there is none."""
    try:
        about = json.loads((state / _ABOUT).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput("folder", f"{state} is no state of a prepared task.") from error
    state = state.resolve()
    workspace = load_workspace(Path(about["workspace"]))
    task = next((each for each in workspace.tasks if each.id == about["task"]), None)
    if task is None:
        raise InvalidInput("task", f"{workspace.folder} has no task {about['task']} any more.")
    return Place(state.parents[1] / state.name, state, Arm(about["arm"]), workspace, task)


def places_in(folder: Path) -> Iterator[Place]:
    """Yield the prepared tasks of a folder, by their names; raise `InvalidInput` where there is none."""
    states = sorted(file.parent for file in (folder / STATE).glob(f"*/{_ABOUT}"))
    if not states:
        raise InvalidInput("folder", f"{folder} holds no prepared task.")
    yield from map(open_place, states)


def _fill_or_refuse(home: Path, workspace: Workspace, notes: Notes, embedder: Embedder, *, hooks: bool) -> None:
    if refusals := fill(home, workspace, notes, embedder, hooks=hooks):
        raise InvalidInput("notes", f"{workspace.name}: the tool refuses what was noted:\n  " + "\n  ".join(refusals))


def _prepare_task(
    arm: Arm, workspace: Workspace, task: Task, notes: Notes, folder: Path, filled: Path, embedder: Embedder
) -> Place:
    """Make the folder of a task, with a copy of the filled store and a session in it that has begun."""
    name = workspace.task_name(task)
    place = Place(folder / name, folder / STATE / name, arm, workspace, task)
    place.state.mkdir(parents=True)
    about = {"workspace": str(workspace.folder), "task": task.id, "arm": arm}
    (place.state / _ABOUT).write_text(json.dumps(about), encoding="utf-8")
    (place.state / _LOG).touch()
    write_files(place.checkout, workspace.repository.files)
    (place.folder / ANSWER).write_text(json.dumps(EMPTY_ANSWER, indent=1) + "\n", encoding="utf-8")
    _write_program(place.folder / "finish", "finish", place.state)
    if arm is not Arm.NONE:
        _write_program(place.folder / "memory", "use", place.state)
    if arm.stores:
        shutil.copytree(filled, place.home)
    context = _context(place, notes, embedder)
    parts = (_request(workspace, task), *context, _HOW.format(person=workspace.repository.person))
    (place.folder / START).write_text("\n".join(parts), encoding="utf-8")
    return place


def _request(workspace: Workspace, task: Task) -> str:
    about = workspace.repository
    quoted = "\n".join(f"> {line}".rstrip() for line in task.request.strip().splitlines())
    return (
        f"# {about.project}\n\nYou are a coding agent at work in `repository/`: {about.about}. "
        f"It is {task.at:%d %B %Y}. {about.person} writes:\n\n{quoted}\n"
    )


def _context(place: Place, notes: Notes, embedder: Embedder) -> list[str]:
    """Return what an arm adds to the request, and note what of it comes before the agent."""
    if place.arm is Arm.NONE:
        return []
    if place.arm is Arm.MARKDOWN:
        files = memory_files(place.workspace, notes)
        lengths = {"project": len(files.get(place.workspace.repository.project, ())), "person": len(files[PERSON])}
        return [_FILES.format(**lengths)]
    count = counter_of(embedder)
    schema = json.dumps(memory_tool.input_schema(), ensure_ascii=False)
    tool = {"instructions": _instructions(), "description": memory_tool.DESCRIPTION, "schema": schema}
    place.note(TOOL, "\n".join(tool.values()), count)
    context = [_TOOL.format(**tool)]
    if place.arm is Arm.RECOLLECT:
        with open_store(place.home, place.workspace, embedder, place.task.at) as new_session:
            texts = begin(new_session(LATER), place.task)
        for text in texts:
            place.note(AT_START, text, count)
        context.append(_HOOKS.format(texts="\n\n".join(texts) or "(nothing)"))
    return context


def _instructions() -> str:
    """Return what an agent is told by the server of the tool."""
    record = Record(["memory"])
    opened = record.result("initialize", record.version_of(_OPENING)) or {}
    return str(opened["instructions"])


def _write_program(file: Path, command: str, state: Path) -> None:
    """Write a program that runs a command of ours on the state of its folder."""
    roots = (Path(__file__).parents[2], Path(recollect.__file__).parents[1])
    path = shlex.quote(":".join(map(str, roots)))
    run = shlex.join([sys.executable, "-B", "-m", "evaluation.worth", command])
    beside = f'"$(dirname -- "$0")/../{STATE}/{state.name}"'
    file.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {run} {beside} "$@"\n', encoding="utf-8")
    file.chmod(0o755)
