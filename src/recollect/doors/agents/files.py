"""Reads and writes files of other programs: whole or not at all, with their mode, and never through a stray link."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from recollect.errors import InvalidInput, RecollectError
from recollect.private_files import replace_file

_MOST: Final = 64 * 2**20  # bytes
_BACKUP: Final = ".recollect-backup"


def real_file(file: Path, roots: Iterable[Path]) -> Path:
    """Return the file that a path leads to; raise `InvalidInput` where a link leads out of all `roots`."""
    try:
        real = file.resolve()
        inside = any(real.is_relative_to(root.resolve()) for root in roots)
    except (OSError, RuntimeError) as error:  # links that go round in circles
        raise InvalidInput("file", f"{file} cannot be followed: {error}.") from None
    if not inside and real != file.parent.absolute() / file.name:
        raise InvalidInput("file", f"{file} is a link to {real}, outside of the home and project folders; left alone.")
    return real


def backup_of(file: Path) -> Path:
    """Return the path of the backup of a file, beside it."""
    return file.with_name(file.name + _BACKUP)


def read(file: Path) -> bytes | None:
    """Return the content of a file, None where there is none; raise `InvalidInput` where it cannot be read."""
    try:
        about = file.stat()
        if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST:
            raise InvalidInput("file", f"{file} is no file that a configuration would be; left alone.")
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InvalidInput("file", f"{file} cannot be read: {error.strerror or error}.") from None


def write(file: Path, content: bytes | None, like: Path | None = None, *, private: bool = False) -> None:
    """Replace a file at one instant, or delete it where the content is None; raise `RecollectError` when refused.

    The new file has the mode of the file before, else of `like`, else the usual mode, which for a `private` file lets
    nobody else read it.
    """
    try:
        if content is None:
            file.unlink(missing_ok=True)
        else:
            _replace_file(file, content, like or file, private=private)
    except OSError as error:
        raise RecollectError(f"{file} cannot be written: {error.strerror or error}.") from None


def _replace_file(file: Path, content: bytes, like: Path, *, private: bool) -> None:
    """Replace a file, with the mode of `like` where that exists, else private or with the usual mode."""
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(like.stat().st_mode) if like.exists() else 0o600 if private else None
    replace_file(file, [content], mode=mode, durable=True)
