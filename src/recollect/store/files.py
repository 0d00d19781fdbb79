"""The store's files: a refusal of the system becomes one sentence, and a written file outlasts a power failure."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from recollect import store_folder
from recollect.errors import RecollectError, StoreUnusable
from recollect.store.ownership import ELSEWHERE, owner_name, problem, remedy

log = logging.getLogger(__name__)

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
    return Path(store_folder.folder_of(str(database)))


def secure_folder(folder: Path) -> None:
    """Refuse a data folder that another user owns or has put files into; take the right to write from others.

    Links are followed where they are our own or the superuser's. Raises `StoreUnusable`.
    """
    if not folder.is_dir():
        return
    try:
        _check_owners_and_mode(folder)
        for one in _FOLDERS:
            if (folder / one).is_dir():
                _check_owners_and_mode(folder / one)
    except RecollectError:
        raise
    except OSError as error:
        reason = problem(folder, error) or f"The data folder {folder} cannot be looked at: {error.strerror or error}."
        raise StoreUnusable(reason) from None


def _check_owners_and_mode(folder: Path) -> None:
    """Raise `StoreUnusable` for a foreign owner in the folder, or for write access of others that cannot be removed."""
    ours, about = os.geteuid(), folder.stat()
    with os.scandir(folder) as entries:
        owners = {folder: {about.st_uid, folder.lstat().st_uid}}
        for one in entries:
            with suppress(FileNotFoundError):  # it went meanwhile
                owners[Path(one.path)] = {one.stat(follow_symlinks=False).st_uid}
    for path, found in owners.items():
        if found - {0, ours}:
            raise _foreign_owner_error(path)
    if about.st_mode & _OTHERS:
        if about.st_uid != ours or about.st_mode & stat.S_ISVTX:
            raise StoreUnusable(f"Other users can write into {folder}. {ELSEWHERE}")
        folder.chmod(stat.S_IMODE(about.st_mode) & ~_OTHERS)
        log.warning("other users could write into %s; they no longer can", folder)


def check_owner(file: Path) -> None:
    """Refuse a file, or a link in its place, that another user owns. Raises `StoreUnusable`."""
    if os.path.lexists(file) and file.lstat().st_uid not in {0, os.geteuid()}:
        raise _foreign_owner_error(file)


def _foreign_owner_error(path: Path) -> StoreUnusable:
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


def flush_to_disk(path: Path) -> None:
    """Make a file, or the names in a folder, outlast a power failure."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
