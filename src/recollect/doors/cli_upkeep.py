"""The commands that look after a store: reindex, backup and restore. They own no rule, only what is asked and shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import recollect
from recollect.doors.daemon import launch
from recollect.doors.daemon.client import Client, Gone
from recollect.doors.ending import write_json
from recollect.errors import DaemonUnreachable, relayed
from recollect.settings import Settings

Json = Annotated[bool, typer.Option("--json", help="Answer as JSON, for machines.")]
_Told = Callable[[int, int], None]

_ATTEMPTS = 6
_PAUSE = 0.2  # seconds between two looks at the daemon's progress


def register(cli: typer.Typer, settings: Callable[[], Settings]) -> None:
    """Add the commands to `cli`; `settings` tells those of the run."""
    _register_reindex(cli, settings)
    _register_backup(cli, settings)


def _register_reindex(cli: typer.Typer, settings: Callable[[], Settings]) -> None:
    @cli.command()
    def reindex(
        everything: Annotated[
            bool, typer.Option("--all", help="Embed everything anew and build every index, even for the same model.")
        ] = False,
        model: Annotated[
            str | None, typer.Option(help="Move the store to this embedding model. Default: the configured one.")
        ] = None,
        as_json: Json = False,
    ) -> None:
        """Bring every index up to date, or move the store to another embedding model while recall goes on.

        With the store's own model only what is missing or damaged is built. When it was interrupted, run it again:
        it goes on where it was.
        """
        wanted = settings() if model is None else Settings(**(settings().model_dump() | {"model": model}))
        with _bar(hidden=as_json) as told:
            count = _reindex(wanted, told, everything=everything)
        _show({"memories": count}, as_json, f"{count} memories are indexed with {wanted.model}.")
        if wanted.model != settings().model and not as_json:
            _say(f"From now on set RECOLLECT_MODEL={wanted.model}: this store answers no other model.")


def _register_backup(cli: typer.Typer, settings: Callable[[], Settings]) -> None:
    @cli.command()
    def backup(
        file: Annotated[Path, typer.Argument(help="The file to write.")],
        force: Annotated[bool, typer.Option("--force", help="Overwrite the file when it exists.")] = False,
        as_json: Json = False,
    ) -> None:
        """Copy the whole store into one file, as of one instant; others may go on writing."""
        manifest = recollect.backup(file, settings(), force=force)
        held = ", ".join(f"{count} {name}" for name, count in _counts(manifest.counts).items())
        _show(asdict(manifest) | {"file": str(file)}, as_json, f"{file}: {held}, {manifest.size / 1e6:.1f} MB.")

    @cli.command()
    def restore(
        file: Annotated[Path, typer.Argument(help="A file that `recollect backup` wrote.")],
        force: Annotated[
            bool, typer.Option("--force", help="Also when the store is not empty: its database is kept aside.")
        ] = False,
        as_json: Json = False,
    ) -> None:
        """Bring a store back from a backup, once every byte of it has been checked."""
        restored = recollect.restore(file, settings(), force=force, free=lambda: launch.stop(settings()))
        held = ", ".join(f"{count} {name}" for name, count in _counts(restored.manifest.counts).items())
        body = asdict(restored.manifest) | {"kept": str(restored.kept) if restored.kept else None}
        _show(body, as_json, f"Restored from {restored.manifest.made_at}: {held}.")
        if restored.kept and not as_json:
            _say(f"The database that was there is kept as {restored.kept}.")


def _reindex(settings: Settings, told: _Told, *, everything: bool) -> int:
    """Let the daemon do it where one runs, so that recall goes on; else open the store here.

    A daemon that goes while it is asked has ended or has died; whatever is left is done by asking again.
    """
    for attempt in range(_ATTEMPTS):
        client = launch.running(settings) if settings.daemon else None
        if client is None:
            with recollect.open_app(settings, wait=False, background=False, other_model=True) as app:
                return recollect.reindex(app, told, everything=everything)
        try:
            return _watched(client, settings, told, everything=everything)
        except Gone:
            time.sleep(_PAUSE * attempt)
        finally:
            client.close()
    raise DaemonUnreachable("The memory daemon was lost again and again while it worked; see its log.")


def _watched(client: Client, settings: Settings, told: _Told, *, everything: bool) -> int:
    models_dir = settings.models_dir and str(settings.models_dir.expanduser().absolute())
    course = client.post("/reindex", {"model": settings.model, "models_dir": models_dir, "everything": everything})
    while course["state"] == "running":
        told(course["done"], course["total"])
        time.sleep(_PAUSE)
        course = client.post("/progress", {})
    if course["state"] != "done":
        raise relayed(course["error"], course["message"])
    told(course["total"], course["total"])
    return int(course["total"])


def _counts(counts: dict[str, int]) -> dict[str, int]:
    return {name.replace("journal", "journal lines"): count for name, count in counts.items()}


@contextmanager
def _bar(*, hidden: bool) -> Iterator[_Told]:
    """Give what draws a bar from the first time it is told something, so that an earlier error stands alone."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), disable=hidden)
    task = bar.add_task("Embedding", total=None)

    def told(done: int, total: int) -> None:
        bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield told
    finally:
        if bar.live.is_started:
            bar.stop()


def _show(body: dict[str, Any], as_json: bool, otherwise: str) -> None:
    if as_json:
        write_json(body)
    else:
        _say(otherwise)


def _say(sentence: str) -> None:
    Console(soft_wrap=True).print(sentence, markup=False, highlight=False)
