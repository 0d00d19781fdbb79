"""The entry of an MCP configuration that starts Recollect, and how an entry that is there already is kept."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from recollect.doors.agents.agents import Agent
from recollect.environment import named
from recollect.errors import InvalidInput
from recollect.setting_texts import IN_FILE, variable
from recollect.settings import Settings, variables_of

NAME: Final = "recollect"
_ADDRESSES: Final = ("url", "httpUrl", "serverUrl")
_VARIABLES: Final = ("env", "environment")

_PASSFILE: Final = "`~/.pgpass` or PGPASSFILE"
_INSTEAD: Final = {
    "embedding_url": "RECOLLECT_EMBEDDING_KEY",
    "chat_url": "RECOLLECT_CHAT_KEY",
    "chroma_url": "a proxy of yours",
}

_TOKEN_FILE: Final = variable("token") + IN_FILE

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
    """Return the entry that starts this program with these settings, but for the project's name.

    An entry in a file that others share names only the program on the search path, and no settings. A client that is
    started from a desktop knows nothing of the shell's variables, so they stand in the entry otherwise. Raises
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
    """Return an entry that starts what `new` starts, and keeps every other field of `old`.

    An entry with an address is returned unchanged: it uses a Recollect that runs elsewhere.
    """
    if not isinstance(old, dict):
        return new
    if by_address(old):
        return old
    known = {name: value for name, value in new.items() if name not in ("args", *_VARIABLES)}
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
    """Return the name of Recollect's entry in a table of servers, or the name that a new entry gets."""
    found = servers if isinstance(servers, dict) else {}
    ours = (name for name, value in found.items() if isinstance(value, dict) and Path(command_of(value)).stem == NAME)
    return NAME if NAME in found else next(ours, NAME)
