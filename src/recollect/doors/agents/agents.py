"""The agents that can be connected: their files, and the entry that each gets.

The table of agents (`agents.toml`): where each reads its MCP servers and its instructions, and who is here.

The entry of an MCP configuration that starts Recollect, and how an entry that is there already is kept.
"""

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
from urllib.parse import urlsplit

from recollect.environment import IN_FILE, PREFIX, named
from recollect.errors import InvalidInput
from recollect.settings import Settings, others_folder, variables_of

_VARIABLE: Final = re.compile(r"\$\{(\w+):-([^${}]*)\}")


class Level(StrEnum):
    """Where an agent is told of Recollect: for all projects of a user, or in one project."""

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
    posix_on_windows: bool = False
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
        """Return the file in which the agent's MCP servers stand; `root` is the project's folder."""
        place = self.places[level]
        others = (self._path(one, root) for one in place.instead)
        return next((one for one in others if one.is_file()), self._path(place.config, root))

    @property
    def asks(self) -> bool:
        """Say whether it asks before each call of the tool, unless it is told not to."""
        return bool(self.allow or self.permission)

    @property
    def plugin_folder(self) -> Path | None:
        """Return the folder that the agent can load instead of an installation; None where it takes none."""
        return Path(__file__).with_name(self.plugin) if self.plugin else None

    def hook_file(self, level: Level, root: Path) -> Path | None:
        """Return the file in which the agent's hooks stand; None where it has no hooks."""
        file = self.places[level].hooks
        return self._path(file, root) if file and self.hooks else None

    def instructions(self, level: Level, root: Path) -> Path | None:
        """Return the instruction file that the agent reads, or would read; None where it reads no file."""
        place = self.places[level]
        known = [self._path(one, root) for one in place.instructions]
        there = next((one for one in known if one.is_file()), None)
        return there or (self._path(place.new, root) if place.new else None)

    def present(self, level: Level, root: Path) -> bool:
        """Say whether somebody uses the agent on this machine, or in this project."""
        if any(self._path(one, root).exists() for one in self.places[level].signs):
            return True
        return level is Level.USER and any(shutil.which(one) for one in self.programs)

    def _path(self, text: str, root: Path) -> Path:
        def given(found: re.Match[str]) -> str:
            return str(others_folder(found[1]) or found[2])

        expanded = _VARIABLE.sub(given, text.replace("{folder}", self.folder))
        return root / (Path.home() / expanded.removeprefix("~").lstrip("/") if expanded[0] == "~" else Path(expanded))


@cache
def agents() -> dict[str, Agent]:
    """Return all agents of the table by their names."""
    table = tomllib.loads(Path(__file__).with_name("agents.toml").read_text(encoding="utf-8"))
    return {name: _agent(name, found) for name, found in table.items()}


def agent_named(name: str) -> Agent:
    """Return the agent of this name; raise `InvalidInput`, which lists all of them, for another."""
    found = agents().get(name.strip().lower())
    if found is None:
        known = ", ".join(agents())
        raise InvalidInput(
            "agent", f"Unknown agent: {name}. Known: {known}. For any other: `recollect install --print`."
        )
    return found


def _agent(name: str, found: dict[str, Any]) -> Agent:
    folders = found.pop("folder", {})
    places = {level: _place(found.pop(level)) for level in Level}
    hooks = HookForm(**_frozen(found.pop("hooks"))) if "hooks" in found else None
    lists: dict[str, Any] = {one: tuple(found.pop(one)) for one in ("servers", "programs")}
    return Agent(
        name=name,
        places=places,
        hooks=hooks,
        folder=folders.get(sys.platform, folders.get("linux", "")),
        **lists,
        **found,
    )


def _place(found: dict[str, Any]) -> Place:
    return Place(**_frozen(found))


def _frozen(found: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(one) if isinstance(one, list) else one for name, one in found.items()}


NAME: Final = "recollect"
_ADDRESSES: Final = ("url", "httpUrl", "serverUrl")
_VARIABLES: Final = ("env", "environment")

_PASSFILE: Final = "`~/.pgpass` or PGPASSFILE"
_INSTEAD: Final = {
    "embedding_url": "RECOLLECT_EMBEDDING_KEY",
    "chat_url": "RECOLLECT_CHAT_KEY",
    "chroma_url": "a proxy of yours",
}

_TOKEN_FILE: Final = f"{PREFIX}TOKEN{IN_FILE}"

Entry = dict[str, Any]


def this_program() -> Path:
    """Return the absolute path of the `recollect` that runs; raise `InvalidInput` where there is none to name."""
    started = Path(sys.argv[0]).absolute() if sys.argv[0] else Path()
    if started.stem == NAME and started.is_file():
        return started
    if found := shutil.which(NAME, path=str(Path(sys.executable).parent)) or shutil.which(NAME):
        return Path(found).absolute()
    raise InvalidInput("command", f"No program `{NAME}` is to be found beside {sys.executable}; install the package.")


def new_entry(settings: Settings, agent: Agent | None, *, shared: bool = False) -> Entry:
    """Return the entry that starts this program with the settings that were given, but for the project's name.

    One in a file that others share names what everybody has: the program on the search path, and no settings. A client
    that is started from a desktop knows nothing of the shell's variables, so they stand in the entry otherwise. Raises
    `InvalidInput` for an address with a password, which would stand in files and commands of other programs.
    """
    for name in ("database_url", "chroma_url", "embedding_url", "chat_url"):
        address = urlsplit(getattr(settings, name))
        if address.password or ("password" in address.query if name == "database_url" else address.query):
            raise InvalidInput(
                name,
                f"An address of a server holds a password or a key, which would be written into the agent's files: "
                f"take it out of RECOLLECT_{name.upper()} and let {_INSTEAD.get(name, _PASSFILE)} have it.",
            )
    variables = {} if shared else variables_of(settings) | token_file(settings)
    extra, program = agent.entry if agent else {}, NAME if shared else str(this_program())
    if agent and agent.joined:
        return {**extra, "command": [program, "mcp"]} | ({"environment": variables} if variables else {})
    return {**extra, "command": program, "args": ["mcp"]} | ({"env": variables} if variables else {})


def token_file(settings: Settings) -> dict[str, str]:
    """Return the variable that names the file of the token for the server of a team: never the token itself."""
    path = named(_TOKEN_FILE) if settings.url else ""
    return {_TOKEN_FILE: str(Path(path).absolute())} if path else {}


def merged(old: object, new: Entry) -> Entry:
    """Return an entry that starts what `new` starts, with all else that somebody put into `old`.

    One that names an address stays as it is: that Recollect runs elsewhere.
    """
    if not isinstance(old, dict):
        return new
    if by_address(old):
        return old
    known = {name: one for name, one in new.items() if name not in ("args", *_VARIABLES)}
    before = old.get("args" if "args" in new else "command")
    words = before if isinstance(before, list) and "mcp" in before else []
    if "args" not in new:
        known["command"] = [new["command"][0], *words[words.index("mcp") :]] if words else new["command"]
    elif not words:
        known["args"] = new["args"]
    for name in _VARIABLES:
        if name in new:
            set_before = old.get(name)
            known[name] = (set_before if isinstance(set_before, dict) else {}) | new[name]
    return old | known


def by_address(entry: Mapping[str, Any]) -> str:
    """Return the address that an entry names instead of a program, else an empty text."""
    return next((str(entry[name]) for name in _ADDRESSES if entry.get(name)), "")


def command_of(entry: Mapping[str, Any]) -> str:
    """Return the program that an entry names, else an empty text."""
    command = entry.get("command")
    if isinstance(command, list):
        return str(command[0]) if command else ""
    return str(command.get("path", "")) if isinstance(command, dict) else str(command or "")


def name_in(servers: object) -> str:
    """Return the name under which a table of servers has Recollect, or shall have it."""
    found = servers if isinstance(servers, dict) else {}
    ours = (name for name, one in found.items() if isinstance(one, dict) and Path(command_of(one)).stem == NAME)
    return NAME if NAME in found else next(ours, NAME)
