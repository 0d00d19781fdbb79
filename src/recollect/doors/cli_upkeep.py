"""The commands that maintain a store and its daemon."""

from __future__ import annotations

import platform
import sqlite3
import time
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from typing import Annotated

import typer

import recollect
from recollect.client import launch
from recollect.client.daemon import Client
from recollect.client.transport import persistently
from recollect.domain.results import Check
from recollect.doors import exit_codes, pipe, render, server_checks
from recollect.doors.clients import registrations
from recollect.doors.operations import opened
from recollect.doors.options import Json, of_store
from recollect.doors.render import Report
from recollect.doors.serializers import public_json
from recollect.doors.toolset_names import check_names
from recollect.errors import DaemonUnreachable, RecollectError, StoreOwned, relayed
from recollect.settings import Settings, hidden, unknown_variables
from recollect.store.files import KEPT_DAYS

_LIBRARIES = ("chromadb", "onnxruntime", "mcp", "sqlalchemy", "detect-secrets")

_UNUSABLE = (
    "Fix this, then run `recollect doctor`. A damaged database is built anew by `recollect reindex`, or brought back "
    "from a backup by `recollect backup restore FILE --force`."
)
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
    continues where it stopped. A database whose file or schema is damaged is built anew first, the old one is kept.
    """
    settings = of_store(ctx)
    wanted = settings if model is None else Settings(**(settings.model_dump() | {"model": model}))
    wiring = import_module("recollect.wiring")  # a store takes half a second to import
    mended = wiring.mend(settings, free=lambda: launch.stop(settings))
    with render.progress("Embedding", hidden=as_json) as report:
        count = _reindex(wanted, report, everything=everything)
    sentences = [f"{count} memories are indexed with {wanted.model}."]
    if mended:
        sentences.append(
            f"The database was damaged ({mended.damage}) and was built anew; the old file is {mended.kept}, for "
            f"{KEPT_DAYS} days."
        )
    if wanted.model != settings.model:
        sentences.append(f"From now on set RECOLLECT_MODEL={wanted.model}: this store accepts no other model.")
    exit_codes.show({"memories": count}, as_json, *sentences)


@cli.command()
def doctor(
    ctx: typer.Context,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every journal line, row and vector, and embed all again to compare.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check everything, and say what to do about each problem."""
    checks = _diagnose(ctx.obj, deep=deep)
    exit_codes.show(public_json(list[Check], checks)["checks"], as_json, print_answer=lambda: render.checks(checks))
    if not all(one.well for one in checks):
        raise typer.Exit(1)


@cli.command()
def mcp(
    ctx: typer.Context,
    toolset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Tools to offer: memory (default), store, dual or more; repeat it."),
    ] = None,
) -> None:
    """Serve the `memory` tool, or others, to an MCP client. It speaks over stdin and stdout."""
    sets = check_names(toolset or ())
    if ctx.obj.url:
        set_here = ctx.obj.model_fields_set & {"team", "project"}
        pipe.serve({name: getattr(ctx.obj, name) for name in set_here}, ctx.obj.folder, sets, remote=True)
        return
    if ctx.obj.daemon:
        pipe.serve(ctx.obj.model_dump(mode="json", exclude=set(hidden())), ctx.obj.folder, sets)
        return
    door = import_module("recollect.doors.mcp")  # the SDK takes half a second to import
    door.serve(ctx.obj, sets)


def _diagnose(settings: Settings, *, deep: bool) -> list[Check]:
    """Return the report, one check for each part; also when the store cannot be opened."""
    checks = [
        _versions(),
        _settings(settings),
        *registrations.checks(registrations.project_folder()),
    ]
    if settings.url:
        return [*checks, *server_checks.checks(settings)]
    checks.append(_daemon(settings))
    try:
        with opened(settings, model=False) as run:
            return [*checks, Check("store", True, settings.store_name), *run("doctor", deep=deep)]
    except StoreOwned as error:
        advice = "Wait until that process ends, or end it; one process at a time can open the store."
        return [*checks, Check("store", False, str(error), advice)]
    except RecollectError as error:
        return [*checks, Check("store", False, str(error), _UNUSABLE)]


def _versions() -> Check:
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    own = f"recollect {version('recollect')}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    return Check("versions", True, f"{own}, {libraries}")


def _settings(settings: Settings) -> Check:
    caller = settings.caller
    seen = f"user {caller.user}, team {caller.team}, project {caller.project}; secrets: {settings.on_secret}"
    if unknown := unknown_variables():
        return Check("settings", False, f"unknown: {', '.join(unknown)}", "Check the spelling: README lists them all.")
    return Check("settings", True, seen)


def _daemon(settings: Settings) -> Check:
    """Tell of a running daemon which version it is; one that does not answer shows in the check of the store."""
    with suppress(DaemonUnreachable):
        if (client := launch.running(settings)) is not None:
            theirs, ours = client.runtime.version, version("recollect")
            seen = f"recollect {theirs}, process {client.runtime.pid}, since {client.runtime.since}"
            return Check("daemon", theirs == ours, seen, "Run `recollect stop`: the next command starts this version.")
    return Check("daemon", True, "none is running")


def _reindex(settings: Settings, report: Report, *, everything: bool) -> int:
    """Let a running daemon do it, and ask again when it ends meanwhile; without one open the store here."""

    def ask() -> int:
        client = launch.running(settings) if settings.daemon else None
        if client is None:
            with recollect.open_app(settings, wait=False, background=False, other_model=True) as app:
                return recollect.reindex(app, report, everything=everything)
        return _follow(client, settings, report, everything=everything)

    return persistently(ask)


def _follow(client: Client, settings: Settings, report: Report, *, everything: bool) -> int:
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
