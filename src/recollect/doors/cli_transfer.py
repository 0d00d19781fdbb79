"""The commands that move memories in and out of a store: `recollect export` and `recollect import`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from recollect.domain.transfer import IMPORT_COUNTS, ExportFormat, ExportPage, ImportBatch, Imported, ImportFormat
from recollect.doors import render
from recollect.doors.exit_codes import show
from recollect.doors.operations import opened
from recollect.doors.options import Given, from_fields
from recollect.doors.render import err, out
from recollect.doors.serializers import public_json
from recollect.errors import InvalidInput, SecretFound, StoreUnusable
from recollect.transfer.export_page import pages, save
from recollect.transfer.formats import WRITERS
from recollect.transfer.import_client import count_items, send_file

Perform = Callable[..., Any]

_STDOUT: Final = Path("-")
_LISTED: Final = 20


cli = typer.Typer()


@cli.command(name="export")
@from_fields(ExportPage, without="after")
def _export(
    ctx: typer.Context,
    given: Given,
    file: Annotated[Path, typer.Argument(help="Where to; `-` is standard output.")] = _STDOUT,
    format: Annotated[
        ExportFormat, typer.Option(help="JSON lines with everything, or Markdown for people.")
    ] = ExportFormat.JSONL,
) -> None:
    """Write memories, facts and journal to a file that `recollect import` reads, or to Markdown."""
    request = ExportPage(**given)
    unreadable: list[str] = []
    with opened(ctx.obj, model=False) as ask:
        pieces = WRITERS[format](pages(request, lambda page: ask("export_page", **dict(page)), unreadable))
        if file == _STDOUT:
            sys.stdout.writelines(pieces)
        else:
            save(file, pieces)
            err.print(f"Exported to {file}.", highlight=False)
    if unreadable:
        named = ", ".join(unreadable[:_LISTED]) + (" and more" if len(unreadable) > _LISTED else "")
        raise StoreUnusable(
            f"The store is damaged: {len(unreadable)} could not be read and are not in the export: {named}. Bring back "
            "a backup with `recollect restore FILE --force`."
        )


@cli.command(name="import")
@from_fields(ImportBatch, without="items links sections last")
def _import(
    ctx: typer.Context,
    given: Given,
    files: Annotated[list[Path], typer.Argument(help="Exports, CLAUDE.md and its like, memory.json, and others.")],
    format: Annotated[ImportFormat | None, typer.Option(help="What wrote the files; default: found out.")] = None,
    as_json: bool = False,
) -> None:
    """Import memories from files of many kinds; doing it again changes nothing. Exit code 3 where a secret was refused.

    Exit code 2 tells that something else could not be written.
    """
    dry_run = bool(given.get("dry_run"))
    totals = {one: count_items(one, format) for one in files}  # one that cannot be read stops all before it begins
    with opened(ctx.obj, model=not dry_run) as ask:
        found = {str(one): _send(ask, one, format, given, total) for one, total in totals.items()}
    body = [{"file": name} | public_json(Imported, one) for name, one in found.items()]
    show(body, as_json, print_answer=lambda: _show(found, dry_run=dry_run))
    for name, error in (("refused", SecretFound), ("failed", InvalidInput)):
        if any(one.counts[name] for one in found.values()):
            raise typer.Exit(error.exit_code)


def _send(ask: Perform, file: Path, format: ImportFormat | None, options: Given, total: int) -> Imported:
    with render.progress(file.name, hidden=not err.is_terminal, transient=True) as report:
        return send_file(
            lambda batch: ask("import_batch", **dict(batch)), file, format, options, lambda done: report(done, total)
        )


def _show(found: dict[str, Imported], *, dry_run: bool) -> None:
    rows = [[file, *map(str, one.counts.values())] for file, one in found.items()]
    title = "What would happen" if dry_run else ""
    render.print_rows(rows, "File", *(name.capitalize() for name in IMPORT_COUNTS), title=title)
    for one in found.values():
        for problem in one.problems[:_LISTED]:
            line = f"{problem.where}: {problem.why}" if problem.where else problem.why
            out.print(render.sanitized(line), markup=False, highlight=False, soft_wrap=True)
        if len(one.problems) > _LISTED:
            out.print(f"{len(one.problems) - _LISTED} more; `--json` shows them.", markup=False, highlight=False)
