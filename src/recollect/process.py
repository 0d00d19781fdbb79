"""What surrounds this process: its variables and its user. It imports next to nothing, as each hook waits for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module

PREFIX = "RECOLLECT_"
_NO = frozenset({"0", "false", "f", "no", "n", "off"})


def variables() -> dict[str, str]:
    """Return the variables of ours that are set; an empty one counts as absent."""
    return {name: text for name, text in os.environ.items() if name.startswith(PREFIX) and text}


def named(name: str) -> str:
    """Return the variable of another program, or an empty text."""
    return os.environ.get(name, "")


def of(names: frozenset[str]) -> dict[str, str]:
    """Return those of these variables that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}


def of_child(**settings: str) -> dict[str, str]:
    """Return the environment of a process that is started here, with some settings of ours in it."""
    return dict(os.environ) | {f"{PREFIX}{name.upper()}": value for name, value in settings.items() if value}


def user() -> str:
    """Return the system's name of the user, as `getpass.getuser` would, which imports what no hook needs."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if text := os.environ.get(name):
            return text
    try:
        return str(import_module("pwd").getpwuid(os.getuid()).pw_name)
    except (ImportError, KeyError, OSError):
        return "local"


def home(given: str, told: Mapping[str, str]) -> str:
    """Return the data folder as the settings would find it, without checking it."""
    folder = given or told.get(f"{PREFIX}HOME", "~/.recollect")
    return os.path.abspath(os.path.expanduser(folder))  # noqa: PTH100, PTH111 - pathlib takes long to import


def daemon_wanted(told: Mapping[str, str]) -> bool:
    """Return whether clients share a daemon, as the settings would read it."""
    return told.get(f"{PREFIX}DAEMON", "1").strip().lower() not in _NO
