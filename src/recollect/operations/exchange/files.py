"""Files in and out: an import begins only when the whole file can be read, an export appears only when it is whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from recollect.domain import Caller, Export, Format, Imported, Shape
from recollect.errors import InvalidInput
from recollect.operations.exchange.carrying import Carrier, Send, repeated
from recollect.operations.exchange.exporting import dumped, export
from recollect.operations.exchange.formats import opened
from recollect.operations.exchange.importing import import_batch
from recollect.operations.exchange.people import markdown
from recollect.ports import App

Told = Callable[[int, int], None]

_SQLITE = b"SQLite format 3\0"


def _silent(_done: int, _all: int) -> None:
    return None


def import_file(
    app: App,
    path: Path,
    caller: Caller | None = None,
    *,
    format: Format | None = None,
    progress: Told = _silent,
    **options: Any,
) -> Imported:
    """Import a file of any known format; `options` are those of a batch: scope, category, on_secret, dry_run.

    `progress` is told how many things are done and how many there are. Raises `InvalidInput` when the file cannot be
    read, before anything is written.
    """
    total = things_in(path, format)
    return carried(lambda batch: import_batch(app, batch, caller), path, format, options, total, progress)


def things_in(path: Path, format: Format | None) -> int:
    """Read a file to its end and return how many things it carries; raise `InvalidInput` when it cannot be read."""
    return sum(1 for _ in opened(path, called(path), format))


def carried(
    send: Send, path: Path, format: Format | None, options: dict[str, Any], total: int, progress: Told = _silent
) -> Imported:
    """Import a file through whatever takes batches."""
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress(done, total)

    again = repeated(opened(path, called(path), format)) if options.get("dry_run") else frozenset()
    return Carrier(send, options, advance, again).carry(opened(path, called(path), format))


def called(path: Path) -> str:
    """Return a file's name from the checkout that it lies in, so that it is the same from wherever one looks.

    Bytes in it that are no text are written as such.
    """
    whole = path.absolute()
    root = next((one for one in whole.parents if (one / ".git").exists()), whole.parent)
    return os.fsencode(whole.relative_to(root).as_posix()).decode(errors="backslashreplace")


def export_file(app: App, path: Path, request: Export, caller: Caller | None = None) -> None:
    """Write an export to a file, readable by its owner alone; raise `InvalidInput` when that cannot be."""
    save(path, written(request.shape, export(app, request, caller)))


def written(shape: Shape, lines: Iterable[dict[str, Any]]) -> Iterable[str]:
    """Return the text of an export in one shape or the other."""
    return markdown(lines) if shape is Shape.MARKDOWN else map(dumped, lines)


def save(path: Path, pieces: Iterable[str]) -> None:
    """Put text in a file that nobody else can read, and that is never seen half written; a database is left alone."""
    if _database(path):
        raise InvalidInput("file", f"{path} is a database; name another file.")
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
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


def _database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False
