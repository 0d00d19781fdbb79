"""The one room that reads the environment; it needs the standard library only."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final, NamedTuple

PREFIX: Final = "RECOLLECT_"
_TERMINAL: Final = frozenset(
    ("COLORTERM", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "TERM", "TZ", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
)
"""What tells a program how to print, and by which clock."""
_NO: Final = frozenset({"0", "false", "f", "no", "n", "off"})


class Surroundings(NamedTuple):
    """What surrounds a client whose command the daemon runs: its variables of ours, working folder and user."""

    variables: Mapping[str, str]
    folder: Path
    user: str


_client: ContextVar[Surroundings | None] = ContextVar("surroundings", default=None)


@contextmanager
def surrounded(client: Surroundings) -> Iterator[None]:
    """Let what runs here see a client's surroundings in place of this process's own."""
    token = _client.set(client)
    try:
        yield
    finally:
        _client.reset(token)


def working_folder() -> Path:
    """Return the working folder; raise `OSError` when it is gone."""
    client = _client.get()
    return Path.cwd() if client is None else client.folder


def system_user() -> str:
    """Return the system's name of the user."""
    if (client := _client.get()) is not None:
        return client.user
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "local"


def variables() -> Mapping[str, str]:
    """Return the variables of ours that are set; an empty one counts as absent."""
    if (client := _client.get()) is not None:
        return client.variables
    return {name: text for name, text in os.environ.items() if name.startswith(PREFIX) and text}


def named(name: str) -> str:
    """Return the variable of another program, or an empty text."""
    return os.environ.get(name, "")


def of_terminal() -> dict[str, str]:
    """Return the variables by which a program prints for a terminal."""
    return {name: os.environ[name] for name in _TERMINAL if name in os.environ}


def home(given: str = "") -> Path:
    """Return the data folder as the settings would find it, without checking it."""
    return Path(given or variables().get(f"{PREFIX}HOME", "~/.recollect")).expanduser().absolute()


def daemon_wanted() -> bool:
    """Return whether clients share a daemon, as the settings would read it."""
    return variables().get(f"{PREFIX}DAEMON", "1").strip().lower() not in _NO
