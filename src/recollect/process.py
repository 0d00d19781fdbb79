"""What surrounds this process: its variables and its user. It imports next to nothing, as each hook waits for it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PREFIX = "RECOLLECT_"
IN_FILE = "_FILE"
DATABASE = "memory.db"
"""The name of the database in a data folder."""
_NO = frozenset({"0", "false", "f", "no", "n", "off"})


def variables() -> dict[str, str]:
    """Return the variables of ours that are set; an empty one counts as absent.

    `NAME_FILE` names a file that holds the value of `NAME`, as secrets come into containers; it stays as it is when
    `NAME` is set too, or the file holds nothing that can be read.
    """
    told = {name: text for name, text in os.environ.items() if name.startswith(PREFIX) and text}
    for name in [name for name in told if name.endswith(IN_FILE)]:
        wanted = name.removesuffix(IN_FILE)
        if wanted not in told and (text := _first_line(told[name])):
            told[wanted] = text
            del told[name]
    return told


def _first_line(path: str) -> str:
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
    """Return those of these variables that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}


def of_child(**settings: str) -> dict[str, str]:
    """Return the environment of a process that is started here, with some settings of ours in it."""
    given = {f"{PREFIX}{name.upper()}": value for name, value in settings.items() if value}
    files = {name + IN_FILE for name in given}  # a setting stands in one place
    return {name: value for name, value in os.environ.items() if name not in files} | given


def of_git() -> dict[str, str]:
    """Return the environment in which git is asked: of git's own variables only those that name its configuration."""
    named = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
    kept = {name: text for name, text in os.environ.items() if not name.startswith("GIT_") or name in named}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


def detached() -> dict[str, Any]:
    """Return the options by which a process outlives the one that starts it."""
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
    return name if folder else _first_line("/etc/timezone")


def home(given: str, told: Mapping[str, str]) -> str:
    """Return the data folder as the settings would find it, without checking it."""
    folder = given or told.get(f"{PREFIX}HOME", "~/.recollect")
    return os.path.abspath(os.path.expanduser(folder))  # noqa: PTH100, PTH111 - pathlib takes long to import


def store(given: Mapping[str, str], told: Mapping[str, str]) -> str:
    """Return the folder of the store's files as the settings would find it.

    A data folder that was `given` comes before a database that the environment names.
    """
    named = "" if "home" in given else told.get(f"{PREFIX}MEMORY_DB", "")
    database = named or f"{home(given.get('home', ''), told)}/{DATABASE}"
    return files_of(os.path.abspath(os.path.expanduser(database)))  # noqa: PTH100, PTH111


def files_of(database: str) -> str:
    """Return the folder of what belongs to a database: lock, daemon, vectors, logs. Through a link it is the same."""
    folder, name = os.path.split(real(database))
    return folder if name == DATABASE else f"{folder}/{name}.files"


def real(database: str) -> str:
    """Return a file, or what a link in its place leads to; a link of another user is not followed."""
    try:
        ours = os.lstat(database).st_uid in (0, os.geteuid())
    except OSError:
        return database
    return os.path.realpath(database) if ours and os.path.islink(database) else database  # noqa: PTH114


def daemon_wanted(told: Mapping[str, str]) -> bool:
    """Return whether clients share a daemon, as the settings would read it."""
    return told.get(f"{PREFIX}DAEMON", "1").strip().lower() not in _NO


def yes(text: str) -> bool:
    """Return whether a setting says yes."""
    return bool(text) and text.strip().lower() not in _NO
