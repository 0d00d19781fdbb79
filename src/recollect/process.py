"""What surrounds this process: its variables and its user. It imports next to nothing, as each hook waits for it."""

from __future__ import annotations

import fcntl
import os
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any


def beginning_with(prefix: str) -> dict[str, str]:
    """Return the variables whose names begin so and that are not empty."""
    return {name: text for name, text in os.environ.items() if name.startswith(prefix) and text}


def first_line(path: str) -> str:
    """Return the first line of a file, empty where it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes long to import
            return file.readline().strip()
    except (OSError, ValueError):
        return ""


def set_default(name: str, text: str) -> None:
    """Set the variable of another program, which a library reads, unless somebody has set it."""
    os.environ.setdefault(name, text)


def named(name: str) -> str:
    """Return the variable of another program, or an empty text."""
    return os.environ.get(name, "")


def of(names: frozenset[str]) -> dict[str, str]:
    """Return the variables of these names that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}


def inherited(without: Collection[str] = ()) -> dict[str, str]:
    """Return the environment for a process that this one starts, without some of its variables."""
    return {name: value for name, value in os.environ.items() if name not in without}


def of_git() -> dict[str, str]:
    """Return the environment in which git is asked: of git's own variables only those that name its configuration."""
    named = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
    kept = {name: text for name, text in os.environ.items() if not name.startswith("GIT_") or name in named}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


def detached() -> dict[str, Any]:
    """Return the options with which a started process survives the end of this process."""
    return {"start_new_session": True}


def take_lock(handle: int, *, shared: bool = False) -> bool:
    """Lock an open file without waiting; return False where another process holds its lock."""
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def user() -> str:
    """Return the system's name of the user, as `getpass.getuser` would, which imports what no hook needs."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if text := os.environ.get(name):
            return text
    try:
        return str(import_module("pwd").getpwuid(os.getuid()).pw_name)
    except (ImportError, KeyError, OSError):
        return "local"


def time_zone() -> str:
    """Return the name of the machine's time zone, an empty text where nothing names it."""
    if text := os.environ.get("TZ", "").removeprefix(":"):
        return text.rpartition("zoneinfo/")[2]
    try:
        folder, _, name = os.readlink("/etc/localtime").rpartition("zoneinfo/")  # noqa: PTH115 - pathlib takes long
    except OSError:
        folder = name = ""
    return name if folder else first_line("/etc/timezone")
