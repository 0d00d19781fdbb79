"""The file of an export: it appears only when it is whole, and nobody else can read it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from recollect.errors import InvalidInput
from recollect.transfer.sqlite_file import MAGIC


def save(path: Path, pieces: Iterable[str]) -> None:
    """Put text in a file that nobody else can read, and that is never seen half written; a database is left alone."""
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        if path.is_file():
            with path.open("rb") as old:
                if old.read(len(MAGIC)) == MAGIC:
                    raise InvalidInput("file", f"{path} is a database; name another file.")
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInput("file", f"{path} cannot be written: {error.strerror or error}.") from None
