"""The commands that look after a store: `reindex` builds its indexes, `migrate-store` moves it."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import Annotated

import typer

import recollect
from recollect.client import launch
from recollect.client.daemon import Client
from recollect.client.transport import persistently
from recollect.doors.cli import exit_codes, render
from recollect.doors.cli.opening import of_store
from recollect.doors.cli.options import Json
from recollect.doors.cli.render import Report
from recollect.errors import relayed
from recollect.settings import Settings

_PAUSE = 0.2  # seconds between two questions for the daemon's progress

cli = typer.Typer()


@cli.command()
def reindex(
    ctx: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", help="Embed everything anew and build every index, even for the same model.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Move the store to this embedding model. Default: the configured one."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Bring every index up to date, or change the embedding model. Recall goes on meanwhile.

    With the store's own model only what is missing or damaged is built. Run it again after an interruption: it
    continues where it stopped. A damaged database file needs a backup: `recollect backup restore`.
    """
    settings = of_store(ctx)
    wanted = settings if model is None else Settings(**(settings.model_dump() | {"model": model}))
    with render.progress("Embedding", hidden=as_json) as report:
        count = _reindex_store(wanted, report, everything=everything)
    sentences = [f"{count} memories are indexed with {wanted.model}."]
    if wanted.model != settings.model:
        sentences.append(f"From now on set RECOLLECT_MODEL={wanted.model}: this store accepts no other model.")
    exit_codes.show({"memories": count}, as_json, *sentences)


def _reindex_store(settings: Settings, report: Report, *, everything: bool) -> int:
    """Let a running daemon reindex, and try again when it ends meanwhile; without a daemon open the store here."""

    def ask() -> int:
        client = launch.running(settings) if settings.daemon else None
        if client is None:
            with recollect.open_app(settings, wait=False, background=False, other_model=True) as app:
                return recollect.reindex(app, report, everything=everything)
        return _follow_reindex(client, settings, report, everything=everything)

    return persistently(ask)


def _follow_reindex(client: Client, settings: Settings, report: Report, *, everything: bool) -> int:
    """Start a reindex in the daemon and report its progress until it ends; return the number of memories."""
    models_dir = settings.models_dir and str(settings.models_dir)
    job = client.post("/reindex", {"model": settings.model, "models_dir": models_dir, "everything": everything})
    while job["state"] == "running":
        report(job["done"], job["total"])
        time.sleep(_PAUSE)
        job = client.post("/progress", {})
    if job["state"] != "done":
        raise relayed(job["error"], job["message"])
    report(job["total"], job["total"])
    return int(job["total"])


class Place(StrEnum):
    """Where a store may lie."""

    SERVER = "server"
    FOLDER = "folder"


@cli.command("migrate-store")
def migrate_store(
    ctx: typer.Context,
    to: Annotated[Place, typer.Option("--to", help="The PostgreSQL of RECOLLECT_DATABASE_URL, or the data folder.")],
    as_json: Json = False,
) -> None:
    """Move the store to PostgreSQL, or from there to the data folder, and compare every row. The old one stays.

    Both places come from the settings: RECOLLECT_DATABASE_URL and RECOLLECT_HOME. Let nobody write meanwhile. Run it
    again after an interruption: it goes on where it stopped.
    """
    settings = of_store(ctx)
    from recollect import wiring

    with render.progress("Rows", hidden=as_json) as report:
        moved = wiring.relocate(
            settings, to_server=to is Place.SERVER, free=lambda: launch.stop(settings), report=report
        )
    where = settings.store_name if to is Place.SERVER else str(settings.memory_db or settings.folder)
    more = (
        "Unset RECOLLECT_DATABASE_URL to use it." if to is Place.FOLDER else "Its vector index is built when it opens."
    )
    counts = f"{moved.rows['memory']} memories, {moved.rows['journal']} journal lines"
    exit_codes.show({"to": where, "rows": moved.rows}, as_json, f"{where} has the whole store: {counts}. {more}")
