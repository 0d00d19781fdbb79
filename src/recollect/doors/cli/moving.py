"""Moves all of one project into another, as an export that is imported; most commands need none of these formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from recollect.domain.enums import Scope
from recollect.domain.transfer import ExportFormat, ExportPage, ImportBatch, Imported
from recollect.doors.cli.opening import opened
from recollect.doors.cli.options import EVERY_LEVEL
from recollect.errors import InvalidInput, NotFound
from recollect.settings import Settings
from recollect.transfer.export_file import save
from recollect.transfer.export_page import pages
from recollect.transfer.formats import WRITERS
from recollect.transfer.import_client import Import
from recollect.transfer.import_paths import find_files


def move_all(settings: Settings, old: str) -> int:
    """Move all memories and facts of another project into that of the settings, and return how many memories."""
    if old == settings.project:
        raise InvalidInput("old", f"{old} is the project of the working folder already.")
    with opened(settings.model_copy(update={"project": old}), model=False) as there:
        whole = ExportPage(scope=Scope.PROJECT, **EVERY_LEVEL)
        lines = list(pages(whole, lambda page: there("export_page", **dict(page))))
    found = {kind: [str(line[kind]["id"]) for line in lines if kind in line] for kind in ("memory", "fact")}
    if not any(found.values()):
        raise NotFound(f"No memory is filed under {old}.")
    with opened(settings, model=True) as here:
        total = _import_lines(lines, lambda batch: here("import_batch", **dict(batch)))
    if lost := total.counts["failed"] + total.counts["refused"]:
        raise InvalidInput("old", f"{lost} could not be stored here, so that all stay in {old} too. {total.message}")
    with opened(settings.model_copy(update={"project": old}), model=False) as there:
        for fact in found["fact"]:
            there("forget_fact", id=fact, scope=Scope.PROJECT, **EVERY_LEVEL)
        for memory in found["memory"]:
            there("forget", id=memory, scope=Scope.PROJECT, **EVERY_LEVEL)
    return len(found["memory"])


def _import_lines(lines: Iterable[dict[str, Any]], send: Callable[[ImportBatch], Imported]) -> Imported:
    """Store the lines of an export, by way of a file that nobody else can read."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "moved.jsonl"
        save(file, WRITERS[ExportFormat.JSONL](iter(lines)))
        importing = Import(send, {"own": True})
        importing.run(find_files([file], None, transcripts=False, instructions=False).files, lambda *_: None)
    return importing.total()
