"""How the store treats files: what the system refuses becomes one sentence, what is written lasts."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recollect.errors import RecollectError, StoreUnusable

KEPT_DAYS = 7
"""How long a database that a restore or a repair put aside is kept."""


@contextmanager
def usable(failure: str) -> Iterator[None]:
    """Raise `StoreUnusable`, which says `failure` and why, when the system or SQLite refuses something in the block."""
    try:
        yield
    except RecollectError:
        raise
    except (OSError, sqlite3.Error) as error:
        raise StoreUnusable(f"{failure}: {getattr(error, 'strerror', None) or error}.") from None


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
