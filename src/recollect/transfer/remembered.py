"""What agents on this machine have remembered already: their memory files, instruction files, and last sessions.

Finds it, and keeps in the data folder what of it is to be taken in and how far that is. Reads no more of a file than
which folder it speaks of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from recollect.domain.enums import Scope
from recollect.domain.origin import SaidBy
from recollect.domain.transfer import ImportFormat
from recollect.errors import InvalidInput
from recollect.private_files import write_private
from recollect.projects import find_project
from recollect.transfer import instructions
from recollect.transfer.import_paths import name_of
from recollect.transfer.installed_passage import PASSAGE
from recollect.transfer.instructions import AgentFolder

SESSIONS: Final = 20
"""How many sessions are taken in, the last ones."""
BUDGET: Final = 64 * 2**20
"""Bytes of all their transcripts; the oldest are left out first."""
FILE: Final = "remembered.json"
_HEAD: Final = 2**18  # bytes of a transcript in which its folder is named
_CWD: Final = re.compile(rb'"cwd"\s*:\s*("(?:[^"\\]|\\.)*")')
_NO_LETTER: Final = re.compile(r"[^A-Za-z0-9]")
_MOST_TRIES: Final = 3
_PROJECTS: Final = "projects"
_OF_SUBAGENTS: Final = "agent-"


class What(StrEnum):
    """What a file is to the agent that wrote or reads it."""

    MEMORIES = "memory files"
    INSTRUCTIONS = "instruction files"
    SESSION = "sessions"


class State(StrEnum):
    """What became of a file."""

    WAITS = "waits"
    DONE = "done"
    KNOWN = "known"
    FAILED = "failed"


class _Agent(NamedTuple):
    """Where an agent keeps what it remembers, as patterns below its folder."""

    title: str
    folder: AgentFolder
    memories: tuple[str, ...] = ()
    sessions: str = ""
    format: ImportFormat = ImportFormat.MARKDOWN


_AGENTS: Final = (
    _Agent(
        "Claude Code",
        instructions.CLAUDE_CODE,
        ("projects/*/memory/**/*.md",),
        "projects/*/*.jsonl",
        ImportFormat.CLAUDE_CODE,
    ),
    _Agent(
        "Codex",
        instructions.CODEX,
        ("memories/MEMORY.md", "memories/memory_summary.md", "memories/rollout_summaries/*.md"),
        "sessions/**/rollout-*.jsonl",
        ImportFormat.CODEX,
    ),
    _Agent("Gemini CLI", instructions.GEMINI),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A file of an agent: whose words it holds, the project that it speaks of, and how far it was taken in.

    `name` is what the keys of its memories begin with. `sent` counts the events of a session that were, `tries` how
    often it was begun.
    """

    agent: str
    what: What
    path: str
    name: str
    format: ImportFormat
    size: int
    changed_at: float
    project: str
    folder: str
    scope: Scope
    said_by: SaidBy
    state: State = State.WAITS
    sent: int = 0
    kept: int = 0
    tries: int = 0

    @property
    def gave_up(self) -> bool:
        """Return whether reading the file was begun so often without an end that it is skipped."""
        return self.tries >= _MOST_TRIES

    def is_unchanged_since(self, earlier: Remembered) -> bool:
        """Return whether the file has the size and the time of change that an earlier record of it has."""
        return (self.size, self.changed_at) == (earlier.size, earlier.changed_at)


@dataclass(frozen=True, slots=True)
class Found:
    """What can be taken in, in the order in which that is done, and how many older sessions are left out."""

    files: tuple[Remembered, ...]
    older: int = 0


def find_remembered(root: Path, home: Path) -> Found:
    """Find what agents of this user remember, and the instruction files of the project in `root`.

    `home` is the data folder, in which this user has named projects. Sessions come last, the oldest of them first.
    """
    files: list[Remembered] = []
    sessions: list[Remembered] = []
    known: dict[str, str] = {}  # the name of the project of a folder
    for agent in _AGENTS:
        folder = agent.folder.path
        if folder.is_dir():
            files += _memory_files(agent, folder, home, known)
            sessions += _session_files(agent, folder, home, known)
    files += _project_instructions(root, home, known)
    sessions.sort(key=lambda session: -session.changed_at)
    taken: list[Remembered] = []
    for session in sessions[:SESSIONS]:
        if sum(each.size for each in taken) + session.size > BUDGET:
            break
        taken.append(session)
    return Found((*files, *reversed(taken)), len(sessions) - len(taken))


def _memory_files(agent: _Agent, folder: Path, home: Path, known: dict[str, str]) -> Iterator[Remembered]:
    """Yield the memory files and the user's own instruction files of an agent."""
    for pattern in agent.memories:
        for path in _own_files(folder, pattern):
            of_project = path.relative_to(folder).parts[0] == _PROJECTS
            where = _project_of(folder / _PROJECTS / path.relative_to(folder).parts[1]) if of_project else ""
            if where or not of_project:
                yield _file_entry(agent.title, What.MEMORIES, path, where, SaidBy.ASSISTANT, home, known)
    for name in instructions.OF_USER[agent.folder]:
        if _holds_own_text(path := folder / name):
            yield _file_entry(agent.title, What.INSTRUCTIONS, path, "", SaidBy.PERSON, home, known)


def _session_files(agent: _Agent, folder: Path, home: Path, known: dict[str, str]) -> Iterator[Remembered]:
    """Yield the transcripts of an agent's sessions, without those of its subagents."""
    for path in _own_files(folder, agent.sessions) if agent.sessions else ():
        if not path.name.startswith(_OF_SUBAGENTS) and (where := _folder_in(path)):
            file = _file_entry(agent.title, What.SESSION, path, where, SaidBy.PERSON, home, known)
            yield replace(file, format=agent.format)


def _project_instructions(root: Path, home: Path, known: dict[str, str]) -> Iterator[Remembered]:
    """Yield the instruction files that an agent reads when it begins in the root of a project."""
    for path in filter(_holds_own_text, instructions.instruction_files(root)):
        yield _file_entry("this project", What.INSTRUCTIONS, path, str(root), SaidBy.FILE, home, known)


def _holds_own_text(path: Path) -> bool:
    """Return whether a file holds more than the passage that `recollect install` writes."""
    try:
        return bool(PASSAGE.sub("", path.read_text(encoding="utf-8", errors="replace")).strip())
    except OSError:
        return False


def _file_entry(
    agent: str, what: What, path: Path, folder: str, said_by: SaidBy, home: Path, known: dict[str, str]
) -> Remembered:
    """Return the record of a file; `known` holds the project of each folder that was looked up before."""
    there = path.stat()
    if folder and folder not in known:
        known[folder] = find_project(Path(folder), home).name
    return Remembered(
        agent=agent,
        what=what,
        path=str(path),
        name=name_of(path),
        format=ImportFormat.MARKDOWN,
        size=there.st_size,
        changed_at=there.st_mtime,
        project=known.get(folder, ""),
        folder=folder,
        scope=Scope.PROJECT if folder else Scope.PERSONAL,
        said_by=said_by,
    )


def _own_files(folder: Path, pattern: str) -> list[Path]:
    """Return the files that match a pattern and hold some text of their own, without links."""
    real = folder.resolve()
    found = (path for path in sorted(folder.glob(pattern)) if path.is_file() and not path.is_symlink())
    return [path for path in found if path.resolve().is_relative_to(real) and path.stat().st_size]


def _project_of(folder: Path) -> str:
    """Return the project of a folder of Claude Code, by a transcript in it, else by its name."""
    folders = (_folder_in(path) for path in folder.glob("*.jsonl"))
    return next(filter(None, folders), "") or _folder_from_name(Path(folder.anchor), folder.name[1:])


def _folder_in(transcript: Path) -> str:
    """Return the folder of a session; an empty text where its transcript names none."""
    with transcript.open("rb") as file:
        found = _CWD.search(file.read(_HEAD))
    try:
        folder = str(json.loads(found[1])) if found else ""
    except ValueError:
        return ""
    return folder if Path(folder).is_absolute() else ""


def _folder_from_name(above: Path, name: str) -> str:
    """Return the folder whose path Claude Code writes as `name`, with a `-` for all but letters and digits."""
    try:
        inside = sorted(path for path in above.iterdir() if path.is_dir())
    except OSError:
        return ""
    for subfolder in inside:
        own = _NO_LETTER.sub("-", subfolder.name)
        if name == own:
            return str(subfolder)
        if name.startswith(f"{own}-") and (found := _folder_from_name(subfolder, name.removeprefix(f"{own}-"))):
            return found
    return ""


class Plan:
    """What is to be taken in and how far that is, kept in a file of the data folder after each step."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self.user = self.team = ""
        self.files: list[Remembered] = []
        try:
            plan = json.loads(self._file.read_text(encoding="utf-8"))
            self.user, self.team = str(plan["user"]), str(plan["team"])
            self.files = [_parse_entry(file) for file in plan["files"]]
        except (OSError, ValueError, KeyError, TypeError):  # there is none, or it is none of ours
            self.files = []

    def add(self, files: Iterable[Remembered], user: str, team: str) -> None:
        """Add the files that are new or changed; of a session only the events since the last time are read."""
        own = (self.user, self.team) == (user, team)
        known = {file.path: file for file in self.files} if own else {}
        self.user, self.team = user, team
        for file in files:
            old = known.get(file.path)
            if old is None:
                known[file.path] = file
            elif not file.is_unchanged_since(old):
                known[file.path] = replace(file, sent=old.sent, kept=old.kept)
            elif old.state is State.FAILED:
                known[file.path] = replace(old, state=State.WAITS, tries=0)
        self.files = sorted(known.values(), key=lambda file: file.what is What.SESSION)
        self.save()

    def new(self, files: Iterable[Remembered]) -> list[Remembered]:
        """Return the files that were not taken in as they are now."""
        done = {file.path: file for file in self.files if file.state in (State.DONE, State.KNOWN)}
        return [file for file in files if file.path not in done or not file.is_unchanged_since(done[file.path])]

    def put(self, file: Remembered) -> None:
        """Save the progress of a file."""
        self.files = [file if each.path == file.path else each for each in self.files]
        self.save()

    @property
    def waiting(self) -> list[Remembered]:
        """Return the files that still wait to be read, in order."""
        return [file for file in self.files if file.state is State.WAITS]

    @property
    def message(self) -> str:
        """Return the progress as a sentence; '' where nothing was ever begun."""
        if not self.files:
            return ""
        ended = len(self.files) - len(self.waiting)
        kept = sum(file.kept for file in self.files)
        failed = sum(file.state is State.FAILED for file in self.files)
        more = f"; {failed} could not be read" if failed else ""
        what = f"{ended} of {len(self.files)} files" if self.waiting else f"{ended} files"
        return f"{what} of what agents remembered are taken in, {kept} memories{more}"

    def save(self) -> None:
        """Write the plan atomically: a process that ends at any instant leaves the old file or the new file."""
        plan = {"user": self.user, "team": self.team, "at": datetime.now(UTC).isoformat(timespec="seconds")}
        text = json.dumps(plan | {"files": [asdict(file) for file in self.files]}, indent=1)
        write_private(self._file, text)


def _parse_entry(entry: dict[str, Any]) -> Remembered:
    """Return a file's record from its JSON object."""
    kinds: dict[str, Any] = {
        "what": What,
        "format": ImportFormat,
        "scope": Scope,
        "said_by": SaidBy,
        "state": State,
    }
    return Remembered(**{name: kinds[name](value) if name in kinds else value for name, value in entry.items()})


def files_from_json(body: Iterable[dict[str, Any]]) -> list[Remembered]:
    """Return the files that a client names in JSON; raise `InvalidInput` for anything else."""
    try:
        return [_parse_entry(entry) for entry in body]
    except (TypeError, ValueError, AttributeError):
        raise InvalidInput("files", "Invalid files: Must be files of agents, as `recollect init` finds them") from None
