"""Who owns what in a data folder: names the file that another user keeps from us, its owner, and the remedy."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Final

from recollect.errors import StoreUnusable

ELSEWHERE: Final = "Name a folder of your own in RECOLLECT_HOME."
_MOST: Final = 10_000  # entries that are looked at


def owner_name(path: Path) -> str:
    """Return the name of the user who owns a file, or of the link in its place."""
    return _user_name(path.lstat().st_uid)


def remedy(path: Path) -> str:
    """Return the command that gives a file or a folder to the user of this process."""
    return f"sudo chown -R {shlex.quote(f'{_user_name(os.geteuid())}:')} {shlex.quote(str(path))}"


def foreign_path(folder: Path, error: OSError | None = None) -> Path | None:
    """Return the first path of another user that this process may not use; None where there is none.

    That is the path that an error names, or a path in the data folder, or a folder above either.
    """
    named = [Path(str(error.filename))] if error is not None and error.filename else []
    for path in (*named, folder):
        around = next((one for one in (path, *path.parents) if os.path.lexists(one)), path)
        if _is_denied(around):
            return around
    return next((one for one in islice(_paths_inside(folder), _MOST) if _is_denied(one)), None)


def problem(folder: Path, error: OSError | None = None) -> str:
    """Return which file of another user is in the way, its owner and the remedy; an empty text where none is."""
    path = foreign_path(folder, error)
    if path is None:
        return ""
    own = f" {ELSEWHERE}" if path == folder or path in folder.parents else ""
    told = f"{path} belongs to {owner_name(path)}, and you may not use it as it is.{own}"
    return f"{told} If it is yours, run `{remedy(folder if path in folder.parents else path)}`."


def unwritable(folder: Path, error: OSError) -> StoreUnusable:
    """Return the error for a data folder that cannot be written: by whom, where that is it, else why."""
    reason = problem(folder, error) if isinstance(error, PermissionError) else ""
    return StoreUnusable(reason or f"The data folder {folder} cannot be written: {error.strerror or error}.")


def _is_denied(path: Path) -> bool:
    """Say whether a file or folder of another user cannot be read and written by this process."""
    try:
        about = path.lstat()
    except OSError:
        return False
    if about.st_uid == os.geteuid() or path.is_symlink():
        return False
    wanted = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
    return not os.access(path, wanted, effective_ids=os.access in os.supports_effective_ids)


def _paths_inside(folder: Path) -> Iterator[Path]:
    """Yield every path below a folder, in order of names; nothing for a folder that cannot be read."""
    try:
        with os.scandir(folder) as entries:
            there = sorted(entries, key=lambda one: one.name)
    except OSError:
        return
    for one in there:
        yield Path(one.path)
        if one.is_dir(follow_symlinks=False):
            yield from _paths_inside(Path(one.path))


def _user_name(number: int) -> str:
    """Return the system's name of a user, else the number."""
    try:
        return str(import_module("pwd").getpwuid(number).pw_name)
    except (ImportError, KeyError):
        return f"user {number}"
