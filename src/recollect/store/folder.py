"""The data folder: its private files, and the lock that one owner holds.

How the store treats files: what the system refuses becomes one sentence, what is written lasts.

Who owns a local store: one process at a time, by a file lock that the system drops when the process dies.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from recollect import process
from recollect.errors import RecollectError, StoreOwned, StoreUnusable
from recollect.store.ownership import ELSEWHERE, owner_name, problem, remedy, unwritable

log = logging.getLogger(__name__)

KEPT_DAYS = 7
"""How long a database that a restore or a repair put aside is kept."""

_FOLDERS = ("logs", "chroma", "cache")
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@contextmanager
def usable(failure: str) -> Iterator[None]:
    """Raise `StoreUnusable`, which says `failure` and why, when the system or SQLite refuses something in the block."""
    try:
        yield
    except RecollectError:
        raise
    except (OSError, sqlite3.Error) as error:
        raise StoreUnusable(f"{failure}: {getattr(error, 'strerror', None) or error}.") from None


def folder_of(database: Path) -> Path:
    """Return the folder of what belongs to a database: its lock, vectors and logs."""
    return Path(process.files_of(str(database)))


def secure(folder: Path) -> None:
    """Refuse a data folder that another user owns or has put something into, and take the right to write from others.

    Links are followed where they are our own or the superuser's. Raises `StoreUnusable`.
    """
    if os.name != "posix" or not folder.is_dir():
        return
    try:
        _secure(folder)
        for one in _FOLDERS:
            if (folder / one).is_dir():
                _secure(folder / one)
    except RecollectError:
        raise
    except OSError as error:
        reason = problem(folder, error) or f"The data folder {folder} cannot be looked at: {error.strerror or error}."
        raise StoreUnusable(reason) from None


def _secure(folder: Path) -> None:
    ours, about = os.geteuid(), folder.stat()
    with os.scandir(folder) as entries:
        owners = {folder: {about.st_uid, folder.lstat().st_uid}}
        for one in entries:
            with suppress(FileNotFoundError):  # it went meanwhile
                owners[Path(one.path)] = {one.stat(follow_symlinks=False).st_uid}
    for path, found in owners.items():
        if found - {0, ours}:
            raise _foreign(path)
    if about.st_mode & _OTHERS:
        if about.st_uid != ours or about.st_mode & stat.S_ISVTX:
            raise StoreUnusable(f"Other users can write into {folder}. {ELSEWHERE}")
        folder.chmod(stat.S_IMODE(about.st_mode) & ~_OTHERS)
        log.warning("other users could write into %s; they no longer can", folder)


def check_owner(file: Path) -> None:
    """Refuse a file, or a link in its place, that another user owns. Raises `StoreUnusable`."""
    if os.name == "posix" and os.path.lexists(file) and file.lstat().st_uid not in {0, os.geteuid()}:
        raise _foreign(file)


def _foreign(path: Path) -> StoreUnusable:
    return StoreUnusable(
        f"{path} belongs to another user, {owner_name(path)}, who could plant or read memories. {ELSEWHERE} "
        f"If it is yours, run `{remedy(path)}`."
    )


def read_only(folder: Path) -> bool:
    """Say whether a folder is there in which this process may not write."""
    return folder.is_dir() and not os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def remove(path: Path) -> None:
    """Delete a folder with all in it, a file or a link; nothing there is no error."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """See to it that a file, or the names in a folder where the system can, outlive a power failure."""
    if os.name == "posix" or path.is_file():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


DAEMON = "recollect serve"
"""What a daemon calls itself."""
_LOCK = "owner.lock"
_ABOUT = "owner.json"
_PATIENCE = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Owner:
    """The lock on a store, held until `release`."""

    lock: FileLock
    about: Path

    def release(self) -> None:
        """Let another process own the store."""
        with suppress(OSError):  # where the folder became read-only, whoever owns it next writes its own
            self.about.unlink(missing_ok=True)
        self.lock.release()


def own(folder: Path, role: str = "") -> Owner:
    """Become the owner of the store in `folder`; raise `StoreOwned`, naming the owner, when another process is.

    A short wait lets a process that is just ending go first. `role` is what this one calls itself. Raises
    `StoreUnusable` when the folder cannot be written.
    """
    lock = FileLock(folder / _LOCK, timeout=_PATIENCE, is_singleton=False, mode=0o600)
    verb = [word for word in sys.argv[1:2] if word.isidentifier()]
    command = role or " ".join([Path(sys.argv[0]).name, *verb]).strip() or Path(sys.executable).name
    since = datetime.now(UTC).isoformat(timespec="seconds")
    about = folder / _ABOUT
    secure(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock.acquire()
        about.write_text(json.dumps({"pid": os.getpid(), "command": command, "since": since}), encoding="utf-8")
    except Timeout:
        raise owned(folder) from None
    except OSError as error:
        lock.release()
        raise unwritable(folder, error) from None
    return Owner(lock, about)


def held(folder: Path) -> bool:
    """Say whether some process owns the store at this moment; a folder that nobody can lock has no owner."""
    if not (folder / _LOCK).exists():
        return False
    secure(folder)
    try:
        with FileLock(folder / _LOCK, timeout=0, is_singleton=False, mode=0o600):
            return False
    except OSError as error:
        return isinstance(error, Timeout)


def owned(folder: Path) -> StoreOwned:
    """Return the error that names the owner."""
    advice = " Ask it through `recollect.connect()`, or end it with `recollect stop`."
    hint = advice if role_of(folder) == DAEMON else ""
    return StoreOwned(f"The store in {folder} is in use by {owner_of(folder)}.{hint}")


def owner_of(folder: Path) -> str:
    """Describe the owner as it described itself: process, command and since when."""
    about = _about(folder)
    if about.keys() >= {"pid", "command", "since"}:
        return f"process {about['pid']} ({about['command']}, since {about['since']})"
    return "another process"


def role_of(folder: Path) -> str:
    """Return what the owner of the store calls itself, or an empty string."""
    return str(_about(folder).get("command", ""))


def pid_of(folder: Path) -> int | None:
    """Return the process that says it owns the store."""
    pid = _about(folder).get("pid")
    return pid if isinstance(pid, int) else None


def _about(folder: Path) -> dict[str, Any]:
    try:
        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}
