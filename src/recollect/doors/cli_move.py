"""The command that moves a store from the data folder to servers, or back."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import Annotated

import typer

from recollect.client import launch
from recollect.doors import exit_codes, render
from recollect.doors.options import Json, of_store

cli = typer.Typer()


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
    wiring = import_module("recollect.wiring")
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
