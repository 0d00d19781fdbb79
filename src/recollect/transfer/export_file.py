"""The file of an export: it appears only when it is whole, and nobody else can read it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from recollect.errors import InvalidInput
from recollect.private_files import replace_file
from recollect.transfer.sqlite_file import MAGIC


def save(path: Path, pieces: Iterable[str]) -> None:
    """Write text to a file that nobody else can read and that is never seen half written; never over a database."""
    try:
        if path.is_file():
            with path.open("rb") as old:
                if old.read(len(MAGIC)) == MAGIC:
                    raise InvalidInput("file", f"{path} is a database; name another file.")
        replace_file(path, (piece.encode() for piece in pieces), durable=True)
    except OSError as error:
        raise InvalidInput("file", f"{path} cannot be written: {error.strerror or error}.") from None
