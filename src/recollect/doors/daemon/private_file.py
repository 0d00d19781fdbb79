"""Reads a file that its owner alone may touch. It imports next to nothing, as each hook waits for it."""

from __future__ import annotations

import os

_OTHERS = 0o077


def read_private(path: str) -> bytes | None:
    """Return a file's content, None without one; raise a bare `PermissionError` where other users may touch it."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib takes long to import
            about, content = os.fstat(file.fileno()), file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if os.name == "posix" and (about.st_mode & _OTHERS or about.st_uid != os.getuid()):
        raise PermissionError
    return content
