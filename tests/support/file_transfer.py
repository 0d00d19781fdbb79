"""Whole files in and out of a store that is open in this process, as the command line moves them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from recollect import App, Caller
from recollect.domain.transfer import ExportFormat, ExportPage, Imported, ImportFormat
from recollect.sessions.observations.origins import read_outside
from recollect.transfer.export_file import save
from recollect.transfer.export_page import export_page, pages
from recollect.transfer.formats import WRITERS
from recollect.transfer.import_batch import import_batch
from recollect.transfer.import_client import Import
from recollect.transfer.import_paths import find_files


def import_paths(
    app: App,
    paths: list[Path],
    caller: Caller,
    *,
    format: ImportFormat | None = None,
    progress: Callable[[int, int], None] = lambda _bytes, _items: None,
    transcripts: bool = False,
    instructions: bool = False,
    **options: Any,
) -> Import:
    """Import files and folders; `options` are those of a batch."""
    importing = Import(lambda batch: import_batch(app, batch, caller), options, read_outside)
    found = find_files(paths, format, transcripts=transcripts, instructions=instructions)
    importing.run(found.files, progress)
    return importing


def import_file(app: App, path: Path, caller: Caller, **options: Any) -> Imported:
    """Import one file of any known format; raise what stopped its reading."""
    (file,) = import_paths(app, [path], caller, **options).files
    if file.error is not None:
        raise file.error
    return file.done()


def export(app: App, request: ExportPage, caller: Caller) -> Iterator[dict[str, Any]]:
    """Yield every line of an export as a JSON object, all of one moment."""
    with app.records.snapshot():
        yield from pages(request, lambda page: export_page(app, page, caller))


def export_file(
    app: App, path: Path, request: ExportPage, caller: Caller, *, format: ExportFormat = ExportFormat.JSONL
) -> None:
    """Write an export to a file."""
    save(path, WRITERS[format](export(app, request, caller)))


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder but those of git, each by its path there."""
    found = (one for one in folder.rglob("*") if one.is_file() and ".git" not in one.parts)
    return {str(one.relative_to(folder)): one.read_bytes() for one in found}
