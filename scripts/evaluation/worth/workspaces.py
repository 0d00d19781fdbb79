"""Workspaces: a small repository, the earlier sessions of a developer with an agent in it, and later tasks.

A workspace is a folder with `repository.toml`, `sessions.toml` and `tasks.toml`; its notes, where they have been
written, lie beside these.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from recollect.errors import InvalidInput

DATA: Final = Path(__file__).parents[1] / "data" / "worth"
REPOSITORY, SESSIONS, TASKS = "repository.toml", "sessions.toml", "tasks.toml"

Text = Annotated[str, Field(min_length=1)]
_Content = TypeVar("_Content")
_Model = TypeVar("_Model", bound=BaseModel)


class Kind(StrEnum):
    """What a task needs of earlier sessions."""

    RULE = "rule"
    FAILED_APPROACH = "failed-approach"
    DECISION = "decision"
    PLACE = "place"
    FLAKY = "flaky"
    PREFERENCE = "preference"
    CHANGED = "changed"
    ELSEWHERE = "elsewhere"
    NOTHING = "nothing"


class Expected(StrEnum):
    """The judgement that a sample answer must get."""

    RIGHT = "right"
    WRONG = "wrong"
    REPEATS = "repeats"


def _inner_path(path: str) -> str:
    """Return a path that stays inside its folder; raise `ValueError` for any other."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or "\\" in path or ".." in parts or str(PurePosixPath(path)) != path:
        raise ValueError("must be a relative path inside the repository, such as `app/store.py`")
    return path


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from error
    return text


FilePath = Annotated[str, AfterValidator(_inner_path)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Event(_Table):
    """Something that happened in a session; exactly one of the first five fields is set."""

    person: str = ""
    agent: str = ""
    command: str = ""
    edit: str = ""
    read: str = ""
    output: str = ""
    change: str = ""
    failed: bool = False

    @model_validator(mode="after")
    def _has_one_subject(self) -> Event:
        subjects = {name: getattr(self, name) for name in ("person", "agent", "command", "edit", "read")}
        named = [name for name, text in subjects.items() if text.strip()]
        if len(named) != 1:
            raise ValueError(f"must have exactly one of {', '.join(subjects)}, not {', '.join(named) or 'none'}")
        if self.change and not self.edit:
            raise ValueError("has a `change`, which only an `edit` has")
        if self.output and not (self.command or self.read):
            raise ValueError("has an `output`, which only a `command` or a `read` has")
        if self.failed and not self.command:
            raise ValueError("has `failed`, which only a `command` has")
        return self

    @property
    def text(self) -> str:
        """Return all its texts."""
        texts = (self.person, self.agent, self.command, self.edit, self.read, self.output, self.change)
        return "\n".join(text for text in texts if text)


class Session(_Table):
    """An earlier session; without a `project` it lies in the workspace's own."""

    id: Text
    at: AwareDatetime
    project: str = ""
    events: tuple[Event, ...] = Field(min_length=1)

    @property
    def text(self) -> str:
        """Return the texts of all events."""
        return "\n".join(event.text for event in self.events)


class Edit(_Table):
    """A replacement in a file of the repository; `old` stands there exactly once."""

    path: FilePath
    old: Text
    new: str


class Sample(_Table):
    """An answer to a task with the judgement that it must get."""

    expect: Expected
    files: dict[FilePath, str] = {}
    edits: tuple[Edit, ...] = ()
    commands: tuple[str, ...] = ()
    question: str = ""
    reply: str = ""


class Task(_Table):
    """A later request, what it needs, and the Python that judges an answer."""

    id: Text
    kind: Kind
    at: AwareDatetime
    needs: tuple[str, ...]
    clue: Annotated[str, AfterValidator(_pattern)] = ""
    request: Text
    check: Text
    asking_is_right: bool = False
    samples: tuple[Sample, ...]

    @property
    def needs_memory(self) -> bool:
        """Say whether an earlier session holds what it needs."""
        return self.kind is not Kind.NOTHING

    @property
    def detects_repeats(self) -> bool:
        """Say whether its check says which answers repeat what an earlier session showed to be wrong."""
        return re.search(r"^def repeats\(", self.check, re.MULTILINE) is not None

    def has_clue(self, text: str) -> bool:
        """Say whether a text holds what the task needs."""
        return bool(self.clue) and re.search(self.clue, text, re.IGNORECASE) is not None


class Repository(_Table):
    """The person, the project, and its files as the later requests find them."""

    person: Text
    project: Text
    about: Text
    files: dict[FilePath, str] = Field(min_length=1)


class _Sessions(_Table):
    sessions: tuple[Session, ...] = Field(min_length=1)


class _Tasks(_Table):
    tasks: tuple[Task, ...] = Field(min_length=1)


@dataclass(frozen=True)
class Workspace:
    """A repository with its sessions, the oldest first, and its tasks."""

    folder: Path
    repository: Repository
    sessions: tuple[Session, ...]
    tasks: tuple[Task, ...]

    @property
    def name(self) -> str:
        """Return the name of its folder."""
        return self.folder.name

    def project_of(self, session: Session) -> str:
        """Return the project in which a session lies."""
        return session.project or self.repository.project

    def task_name(self, task: Task) -> str:
        """Return the name of a task that no other workspace has."""
        return f"{self.name}-{task.id}"


def load_workspace(folder: Path) -> Workspace:
    """Read a workspace; raise `InvalidInput` that names the file and the field where it cannot be read."""
    repository = _read(folder / REPOSITORY, Repository)
    sessions = _read(folder / SESSIONS, _Sessions).sessions
    return Workspace(folder.resolve(), repository, sessions, _read(folder / TASKS, _Tasks).tasks)


def load_workspaces(folder: Path) -> list[Workspace]:
    """Read the workspaces in a folder, by their names; raise `InvalidInput` where there is none."""
    found = [load_workspace(file.parent) for file in sorted(folder.glob(f"*/{REPOSITORY}"))]
    if not found:
        raise InvalidInput("data", f"{folder} holds no workspace: a workspace is a folder with {REPOSITORY}.")
    return found


def tasks_of(workspaces: list[Workspace]) -> Iterator[tuple[Workspace, Task]]:
    """Yield each task with its workspace."""
    for workspace in workspaces:
        for task in workspace.tasks:
            yield workspace, task


def read_file(name: str, file: Path, parse: Callable[[bytes], _Content]) -> _Content:
    """Return what a file holds; raise `InvalidInput` of this name, with the file and the field that is wrong."""
    try:
        return parse(file.read_bytes())
    except OSError as error:
        raise InvalidInput(name, f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(name, f"{file} is not UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(name, f"{file} is not valid TOML: {error}.") from error
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, item['loc'])) or 'it'}: {item['msg']}" for item in error.errors()]
        raise InvalidInput(name, f"{file}: {'; '.join(problems)}") from error


def _read(file: Path, model: type[_Model]) -> _Model:
    return read_file("file", file, lambda content: model.model_validate(tomllib.loads(content.decode())))
