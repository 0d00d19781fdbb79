"""The table of agents (`agents.toml`): where each reads its MCP servers and its instructions, and which are present."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

from recollect.errors import InvalidInput
from recollect.settings import others_folder

_VARIABLE: Final = re.compile(r"\$\{(\w+):-([^${}]*)\}")


class Level(StrEnum):
    """Where an agent's configuration names Recollect: for all projects of a user, or in one project."""

    USER = "user"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class HookForm:
    """How an agent's hooks are written: `timeout` is in the agent's own unit, `version` 0 where the file has none.

    With a `script` the file of hooks is a program of ours, from beside the table of agents. `matchers` name the tools
    for which an event is reported, where that is not all.
    """

    events: tuple[str, ...]
    timeout: int
    grouped: bool = True
    version: int = 0
    advice: str = ""
    script: str = ""
    matchers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """The files of an agent at one level, as `agents.toml` writes paths."""

    config: str
    instead: tuple[str, ...] = ()
    hooks: str = ""
    instructions: tuple[str, ...] = ()
    new: str = ""
    head: str = ""
    signs: tuple[str, ...] = ()
    per_project: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Agent:
    """A program that runs agents: how its configuration is written, and where it lies."""

    name: str
    title: str
    servers: tuple[str, ...]
    places: dict[Level, Place]
    programs: tuple[str, ...]
    hooks: HookForm | None = None
    plugin: str = ""
    load: str = ""
    format: str = "json"
    entry: dict[str, Any] = field(default_factory=dict)
    allow: dict[str, Any] = field(default_factory=dict)
    permission: str = ""
    folder: str = ""
    joined: bool = False

    def config(self, level: Level, root: Path) -> Path:
        """Return the file that holds the agent's MCP servers; `root` is the project's folder."""
        place = self.places[level]
        others = (self._expand_path(path, root) for path in place.instead)
        return next((other for other in others if other.is_file()), self._expand_path(place.config, root))

    @property
    def asks(self) -> bool:
        """Return whether the agent asks the person before each call of the tool, unless it is allowed to call it."""
        return bool(self.allow or self.permission)

    @property
    def plugin_folder(self) -> Path | None:
        """Return the folder that the agent can load instead of an installation; None where it takes none."""
        return Path(__file__).with_name(self.plugin) if self.plugin else None

    def hook_file(self, level: Level, root: Path) -> Path | None:
        """Return the file that holds the agent's hooks; None for an agent without hooks."""
        file = self.places[level].hooks
        return self._expand_path(file, root) if file and self.hooks else None

    def instructions(self, level: Level, root: Path) -> Path | None:
        """Return the instruction file that the agent reads, or would read; None where it reads no file."""
        place = self.places[level]
        known = [self._expand_path(instruction, root) for instruction in place.instructions]
        there = next((path for path in known if path.is_file()), None)
        return there or (self._expand_path(place.new, root) if place.new else None)

    def present(self, level: Level, root: Path) -> bool:
        """Say whether somebody uses the agent on this machine, or in this project."""
        if any(self._expand_path(sign, root).exists() for sign in self.places[level].signs):
            return True
        return level is Level.USER and any(shutil.which(program) for program in self.programs)

    def _expand_path(self, text: str, root: Path) -> Path:
        """Return a path of the agent table with variables, `{folder}` and `~` replaced, and in `root` if relative."""

        def value_of(found: re.Match[str]) -> str:
            return str(others_folder(found[1]) or found[2])

        expanded = _VARIABLE.sub(value_of, text.replace("{folder}", self.folder))
        return root / (Path.home() / expanded.removeprefix("~").lstrip("/") if expanded[0] == "~" else Path(expanded))


@cache
def agents() -> dict[str, Agent]:
    """Return all agents of the table by name."""
    table = tomllib.loads(Path(__file__).with_name("agents.toml").read_text(encoding="utf-8"))
    return {name: _read_agent(name, found) for name, found in table.items()}


def agent_named(name: str) -> Agent:
    """Return the agent of this name; raise `InvalidInput`, which lists all of them, for another."""
    found = agents().get(name.strip().lower())
    if found is None:
        known = ", ".join(agents())
        raise InvalidInput(
            "agent", f"Unknown agent: {name}. Known: {known}. For any other: `recollect install --print`."
        )
    return found


def _read_agent(name: str, found: dict[str, Any]) -> Agent:
    """Return the agent of a row of the table."""
    folders = found.pop("folder", {})
    places = {level: Place(**_with_tuples(found.pop(level))) for level in Level}
    hooks = HookForm(**_with_tuples(found.pop("hooks"))) if "hooks" in found else None
    lists: dict[str, Any] = {kind: tuple(found.pop(kind)) for kind in ("servers", "programs")}
    return Agent(
        name=name,
        places=places,
        hooks=hooks,
        folder=folders.get(sys.platform, folders.get("linux", "")),
        **lists,
        **found,
    )


def _with_tuples(found: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
