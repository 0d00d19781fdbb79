"""The commands that save a store to one file, check such a file, and bring a store back from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import recollect
from recollect.client import launch
from recollect.domain.results import Check
from recollect.doors.cli import answers, exit_codes, terminal
from recollect.doors.cli.opening import of_store
from recollect.doors.cli.options import Json
from recollect.doors.serializers import public_json
from recollect.environment import working_folder
from recollect.errors import InvalidInput
from recollect.store.kept_files import KEPT_DAYS

cli = typer.Typer()

Force = Annotated[bool, typer.Option("--force", help="Also when the store is not empty: its database is kept aside.")]
Written = Annotated[Path, typer.Argument(help="A file that `recollect backup create` wrote.")]

_backups = typer.Typer(no_args_is_help=True, help="Save the store to one file, check such a file, or restore it.")
cli.add_typer(_backups, name="backup")


@_backups.command()
def create(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file when it exists.")] = False,
    as_json: Json = False,
) -> None:
    """Copy the whole store into one file. It is of one instant, and others may write meanwhile."""
    manifest = recollect.backup(working_folder() / file, of_store(ctx), force=force)
    message = f"{file}: {_counts_text(manifest.counts)}, {manifest.size / 1e6:.1f} MB."
    note = "Memories you forget later stay in this backup."
    exit_codes.show(asdict(manifest) | {"file": str(file)}, as_json, message, note)


@_backups.command()
def verify(file: Written, as_json: Json = False) -> None:
    """Read every byte of a backup, and change nothing. Exit code 2 when it is damaged."""
    from recollect.wiring import verify_backup

    manifest = verify_backup(working_folder() / file)
    message = f"{file} is whole. It was made at {manifest.made_at} and holds {_counts_text(manifest.counts)}."
    exit_codes.show(asdict(manifest) | {"file": str(file)}, as_json, message)


@_backups.command("drill")
def _drill(
    ctx: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="A backup, or a dump of PostgreSQL. Default: a new backup.")
    ] = None,
    restored: Annotated[
        bool,
        typer.Option("--restored", help="Compare with the database of RECOLLECT_DRILL_DATABASE_URL, restored before."),
    ] = False,
    questions: Annotated[int, typer.Option(min=0, max=1_000, help="How many recalls to compare.")] = 20,
    as_json: Json = False,
) -> None:
    """Restore a backup into a scratch store, check it, and compare it with the store. Exit code 1 when they differ.

    The store is only read, and the scratch store is removed. A store on PostgreSQL needs `pg_dump` and `pg_restore`,
    and a role that may make databases; else restore the backup yourself and use --restored.
    """
    from recollect.drill import drill

    settings = of_store(ctx)
    found = drill(settings, file and working_folder() / file, restored=restored, questions=questions)
    body = asdict(found) | {"checks": public_json(list[Check], list(found.checks))["checks"], "well": found.well}
    times = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found.seconds.items())
    sizes = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in found.sizes.items())
    verdict = "The backup can be restored." if found.well else "The backup has failed the drill."
    figures = f"It holds {_counts_text(found.counts)}." if found.counts else "Nothing was restored."
    exit_codes.show(
        body,
        as_json,
        f"{verdict} {figures}",
        f"{times}; {sizes or 'no sizes'}.",
        print_answer=lambda: answers.print_checks(found.checks),
    )
    if not found.well:
        raise typer.Exit(1)


@_backups.command("restore")
def _restore(ctx: typer.Context, file: Written, force: Force = False, as_json: Json = False) -> None:
    """Bring a store back from a backup. Every byte of it is checked first."""
    terminal.leave_to_client()  # the daemon has to end for it
    settings = of_store(ctx)
    restored = recollect.restore(file, settings, force=force, free=lambda: launch.stop(settings))
    sentences = [f"Restored from {restored.manifest.made_at}: {_counts_text(restored.manifest.counts)}."]
    if restored.kept:
        sentences.append(f"The previous database is kept for {KEPT_DAYS} days as {restored.kept}.")
    kept = {"kept": str(restored.kept) if restored.kept else None}
    exit_codes.show(asdict(restored.manifest) | kept, as_json, *sentences)


@cli.command("restore", hidden=True)
def _old_restore(ctx: typer.Context, file: Written, force: Force = False, as_json: Json = False) -> None:
    """Bring a store back from a backup, as `backup restore` does, or a memory by its id, as `undo` does."""
    if not file.exists():
        if str(file).isdecimal():
            exit_codes.answered(ctx.obj, "restore", {"id": str(file)}, as_json)
            return
        raise InvalidInput(
            "file", f"There is no backup {file}: to bring back a store, type `recollect backup restore FILE`."
        )
    _restore(ctx, file, force, as_json)


def _counts_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('journal', 'journal lines')}" for name, count in counts.items())
