"""The lock on a local store: one process at a time owns it, and the system drops the lock when the process dies."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from recollect.errors import StoreOwned
from recollect.store.files import secure_folder
from recollect.store.ownership import unwritable
from recollect.store_owner import ABOUT, DAEMON, LOCK, is_locked, read_owner

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
    lock = FileLock(folder / LOCK, timeout=_PATIENCE, is_singleton=False, mode=0o600)
    verb = [word for word in sys.argv[1:2] if word.isidentifier()]
    command = role or " ".join([Path(sys.argv[0]).name, *verb]).strip() or Path(sys.executable).name
    since = datetime.now(UTC).isoformat(timespec="seconds")
    about = folder / ABOUT
    secure_folder(folder)
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
    if not (folder / LOCK).exists():
        return False
    secure_folder(folder)
    return is_locked(str(folder / LOCK))


def owned(folder: Path) -> StoreOwned:
    """Return the error that names the owner."""
    advice = " Ask it through `recollect.connect()`, or end it with `recollect stop`."
    hint = advice if role_of(folder) == DAEMON else ""
    return StoreOwned(f"The store in {folder} is in use by {owner_of(folder)}.{hint}")


def owner_of(folder: Path) -> str:
    """Describe the owner as it described itself: process, command and since when."""
    about = read_owner(folder)
    if about.keys() >= {"pid", "command", "since"}:
        return f"process {about['pid']} ({about['command']}, since {about['since']})"
    return "another process"


def role_of(folder: Path) -> str:
    """Return what the owner of the store calls itself, or an empty string."""
    return str(read_owner(folder).get("command", ""))


def pid_of(folder: Path) -> int | None:
    """Return the process that says it owns the store."""
    pid = read_owner(folder).get("pid")
    return pid if isinstance(pid, int) else None
