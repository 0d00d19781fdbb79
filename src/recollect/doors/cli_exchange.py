"""The commands that move memories in and out of a store: `recollect export` and `recollect import`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import recollect
from recollect.domain import Export, ExportPage, Format, Imported, OnSecret, Scope, Shape
from recollect.doors import render
from recollect.doors.daemon import launch
from recollect.doors.ending import write_json
from recollect.operations.exchange.checking import COUNTS
from recollect.operations.exchange.exporting import pages
from recollect.operations.exchange.files import carried, save, things_in, written
from recollect.operations.table import perform
from recollect.settings import Settings

Perform = Callable[..., Any]

out = Console()
err = Console(stderr=True)

_STDOUT: Final = Path("-")
_LISTED: Final = 20

Json = Annotated[bool, typer.Option("--json", help="Answer as JSON, for machines.")]


def register(cli: typer.Typer, settings: Callable[[], Settings]) -> None:
    """Add the commands to `cli`; `settings` tells those of this run."""

    @cli.command(name="export")
    def _export(
        file: Annotated[Path, typer.Argument(help="Where to; `-` is standard output.")] = _STDOUT,
        shape: Annotated[
            Shape, typer.Option("--format", help="JSON lines with everything, or Markdown for people.")
        ] = Shape.JSONL,
        scope: Annotated[Scope | None, typer.Option(help="Only this scope; default: everything of yours.")] = None,
        private: Annotated[bool, typer.Option("--private", help="Also private memories.")] = False,
        secret: Annotated[bool, typer.Option("--secret", help="Also secret memories.")] = False,
    ) -> None:
        """Write memories, facts and journal to a file that `recollect import` reads, or to Markdown."""
        request = Export(shape=shape, scope=scope, allow_private=private, allow_secret=secret)
        _write(settings(), file, request)

    @cli.command(name="import")
    def _import(
        files: Annotated[list[Path], typer.Argument(help="Exports, CLAUDE.md and its like, memory.json, and others.")],
        format: Annotated[Format | None, typer.Option(help="What wrote the files; default: found out.")] = None,
        scope: Annotated[Scope | None, typer.Option(help="Into this scope, whatever the file says.")] = None,
        on_secret: Annotated[
            OnSecret | None, typer.Option(help="Leave out what holds a secret, or mask the secret.")
        ] = None,
        category: Annotated[str | None, typer.Option(help="The group of what has none.")] = None,
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen; write nothing.")] = False,
        as_json: Json = False,
    ) -> None:
        """Import memories from files of many kinds; doing it again changes nothing."""
        options = {"scope": scope, "on_secret": on_secret, "category": category, "dry_run": dry_run or None}
        given = {name: value for name, value in options.items() if value is not None}
        totals = {one: things_in(one, format) for one in files}  # a file that cannot be read stops all before it begins
        with _store(settings(), model=not dry_run) as ask:
            found = {str(one): _carry(ask, one, format, given, total) for one, total in totals.items()}
        if as_json:
            body = [{"file": name} | asdict(one) for name, one in found.items()]
            write_json(_told(body))
        else:
            _show(found, dry_run=dry_run)


@contextmanager
def _store(settings: Settings, *, model: bool) -> Iterator[Perform]:
    """Yield what runs an operation: in the daemon where there is to be one, else in this process."""
    if settings.daemon:
        with recollect.connect(settings) as link:
            yield link.perform
        return
    with recollect.open_app(settings, wait=model, background=False) as app:
        yield lambda name, **fields: perform(app, name, fields, None)


def _write(settings: Settings, file: Path, request: Export) -> None:
    if settings.daemon and launch.running(settings) is None:
        settings = settings.model_copy(update={"daemon": False})  # reading needs no model, and no daemon
    with _store(settings, model=False) as ask:
        lines = pages(request, lambda page: ask("export_page", **_given(page)))
        pieces = written(request.shape, lines)
        if file == _STDOUT:
            for piece in pieces:
                sys.stdout.write(piece)
        else:
            save(file, pieces)
            err.print(f"Exported to {file}.", highlight=False)


def _given(page: ExportPage) -> dict[str, Any]:
    return {name: getattr(page, name) for name in ExportPage.model_fields}


def _carry(ask: Perform, file: Path, format: Format | None, options: dict[str, Any], total: int) -> Imported:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal, transient=True) as progress:
        task = progress.add_task(file.name, total=total)
        return carried(
            lambda batch: ask("import_batch", **{name: getattr(batch, name) for name in batch.model_fields_set}),
            file,
            format,
            options,
            total,
            lambda done, _: progress.update(task, completed=done),
        )


def _told(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what only the program that imports needs."""
    return [{name: value for name, value in one.items() if name not in ("ids", "tip")} for one in found]


def _show(found: dict[str, Imported], *, dry_run: bool) -> None:
    table = Table(title="What would happen" if dry_run else None)
    table.add_column("File", overflow="fold")
    for name in COUNTS:
        table.add_column(name.capitalize(), justify="right")
    for file, one in found.items():
        table.add_row(file, *(str(getattr(one, name)) for name in COUNTS))
    render.lay(out, table)
    for one in found.values():
        for problem in one.problems[:_LISTED]:
            said = f"{problem.where}: {problem.why}" if problem.where else problem.why
            out.print(render.still(said), markup=False, highlight=False, soft_wrap=True)
        if len(one.problems) > _LISTED:
            out.print(f"{len(one.problems) - _LISTED} more; `--json` shows them.", markup=False, highlight=False)
