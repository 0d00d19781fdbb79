"""Files in and out: an import begins only when the whole file can be read, an export appears only when it is whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from recollect.domain.requests import Caller
from recollect.domain.transfer import ExportFormat, ExportPage, Imported, ImportFormat
from recollect.errors import InvalidInput
from recollect.ports.app import App
from recollect.transfer.export_page import export
from recollect.transfer.formats import WRITERS
from recollect.transfer.import_batch import import_batch
from recollect.transfer.import_client import count_items, send_file

_SQLITE: Final = b"SQLite format 3\0"


def import_file(
    app: App,
    path: Path,
    caller: Caller,
    *,
    format: ImportFormat | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Imported:
    """Import a file of any known format; `options` are those of a batch: scope, category, on_secret, dry_run.

    `progress` is told how many things are done and how many there are. Raises `InvalidInput` when the file cannot be
    read, before anything is written.
    """
    total = count_items(path, format)
    advance = None if progress is None else lambda done: progress(done, total)
    return send_file(lambda batch: import_batch(app, batch, caller), path, format, options, advance)


def export_file(
    app: App, path: Path, request: ExportPage, caller: Caller, *, format: ExportFormat = ExportFormat.JSONL
) -> None:
    """Write an export to a file, readable by its owner alone; raise `InvalidInput` when that cannot be."""
    save(path, WRITERS[format](export(app, request, caller)))


def save(path: Path, pieces: Iterable[str]) -> None:
    """Put text in a file that nobody else can read, and that is never seen half written; a database is left alone."""
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        if path.is_file() and _begins_like_a_database(path):
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


def _begins_like_a_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE
