"""Who owns a local store: its lock, and what the owner wrote of itself. It imports next to nothing, for the hooks."""

from __future__ import annotations

import json
import os

from recollect import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DAEMON = "recollect serve"
"""What an owner that is a daemon calls itself."""
LOCK, ABOUT = "owner.lock", "owner.json"
"""The files of a store's folder: the lock of the owner, and the description of itself."""


def read_owner(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what the owner of a store wrote about itself; empty where nothing readable is there."""
    try:
        with open(f"{os.fspath(folder)}/{ABOUT}", encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes long to import
            about = json.load(file)
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}


def owns(folder: str | os.PathLike[str], pid: object) -> bool:
    """Return whether this process owns the store now; if not, another program may use its port."""
    return pid is not None and read_owner(folder).get("pid") == pid and is_locked(f"{os.fspath(folder)}/{LOCK}")


def is_locked(file: str) -> bool:
    """Return whether some process holds a lock on this file now; False for a file that nobody can lock."""
    try:
        handle = os.open(file, os.O_RDWR)
    except OSError:
        return False
    try:
        return not process.take_lock(handle, shared=True)
    except OSError:
        return False
    finally:
        os.close(handle)
