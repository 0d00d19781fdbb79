"""Where the files of a local store lie, by its database. It imports next to nothing, as each hook waits for it."""

from __future__ import annotations

import os

DATABASE = "memory.db"
"""The name of the database in a data folder."""


def folder_of(database: str) -> str:
    """Return the folder of what belongs to a database: lock, daemon, vectors, logs. Through a link it is the same."""
    folder, name = os.path.split(real_file(database))
    return folder if name == DATABASE else f"{folder}/{name}.files"


def real_file(database: str) -> str:
    """Return a file, or what a link in its place leads to; a link of another user is not followed."""
    try:
        ours = os.lstat(database).st_uid in (0, os.geteuid())
    except OSError:
        return database
    return os.path.realpath(database) if ours and os.path.islink(database) else database  # noqa: PTH114
