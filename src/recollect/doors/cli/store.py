"""The commands that look after a store and its daemon."""

from __future__ import annotations

import platform
import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

import recollect
from recollect import __version__, projects
from recollect.client import launch
from recollect.client.connection import ServerConnection
from recollect.client.daemon import Client
from recollect.client.server import persistently
from recollect.domain.lifecycle import LifecycleSettings
from recollect.domain.results import Check
from recollect.domain.review import WaitingPage
from recollect.doors.agents import registrations
from recollect.doors.cli import answers, exit_codes, render, terminal
from recollect.doors.cli.opening import of_store, opened, perform
from recollect.doors.cli.options import Json
from recollect.doors.cli.render import Report
from recollect.doors.cli.serve import url_for_mcp
from recollect.doors.serializers import public_json
from recollect.environment import PREFIX, variables, working_folder
from recollect.errors import (
    DaemonUnreachable,
    Forbidden,
    InvalidInput,
    NotFound,
    RecollectError,
    StoreOwned,
    Unauthorized,
    relayed,
)
from recollect.settings import Settings, hidden, unknown_variables, variable
from recollect.store import store_lock
from recollect.store.kept_files import KEPT_DAYS
from recollect.store.ownership import problem
from recollect.transfer.remembered import Plan

if TYPE_CHECKING:
    from recollect.store.backup import Manifest

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
    from recollect import wiring  # a store takes half a second to import

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
        bool,
        typer.Option("--deep", help="Read every journal line, row and vector, and embed again what no digest proves."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check everything, and say what to do about each problem."""
    checks = _diagnose(ctx.obj, deep=deep)
    exit_codes.show(
        public_json(list[Check], checks)["checks"], as_json, print_answer=lambda: answers.print_checks(checks)
    )
    if not all(one.well for one in checks):
        raise typer.Exit(1)


def _diagnose(settings: Settings, *, deep: bool) -> list[Check]:
    """Return the report, one check for each part; also when the store cannot be opened."""
    checks = [
        _versions_check(),
        _settings_check(settings),
        *_project_checks(settings.lifecycle),
        *registrations.checks(registrations.project_folder()),
    ]
    if settings.url:
        server = list(server_checks(settings))
        return [*checks, *server, *(_inbox_checks(settings) if all(one.well for one in server) else [])]
    checks.append(_daemon_check(settings))
    try:
        with opened(settings, model=False) as run:
            store = Check("store", True, settings.store_name)
            return [*checks, store, *run("doctor", deep=deep), run("inbox", limit=1).check]
    except StoreOwned as error:
        advice = "Wait until that process ends, or end it; one process at a time can open the store."
        return [*checks, Check("store", False, str(error), advice)]
    except RecollectError as error:
        advice = "Then run `recollect doctor` again." if problem(settings.folder) else _UNUSABLE
        return [*checks, Check("store", False, str(error), advice)]


def _versions_check() -> Check:
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    own = f"recollect {version('recollect')}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    return Check("versions", True, f"{own}, {libraries}")


def _settings_check(settings: Settings) -> Check:
    caller = settings.caller
    seen = f"user {caller.user}, team {caller.team}, project {caller.project}; secrets: {settings.on_secret}"
    if unknown := unknown_variables():
        advice = "Check the spelling: docs/settings.md lists them all."
        return Check("settings", False, f"unknown: {', '.join(unknown)}", advice)
    return Check("settings", True, seen)


def _project_checks(here: LifecycleSettings) -> list[Check]:
    """Return a line where the project's files set what has no effect, such as a switch in the wrong file."""
    try:
        folder = Path.cwd()
    except OSError:  # the working folder is gone, or may not be looked at
        return []
    if vain := "; ".join(projects.without_effect(folder, partial(_refusal, here))):
        names = ", ".join(projects.NAMES)
        advice = f"In recollect.toml, or [tool.recollect] of pyproject.toml, a project can set: {names}."
        return [Check("project settings", False, vain, advice)]
    return []


def _refusal(here: LifecycleSettings, name: str, value: object) -> str:
    """Return why a project's value of a setting is not used over the settings `here`, nothing if it is."""
    text = ",".join(map(str, value)) if isinstance(value, list) else value
    try:
        project = LifecycleSettings.model_validate({name: text})
    except ValidationError as error:
        return error.errors()[0]["msg"]
    if filters := ", ".join(project.off & projects.FILTERS):
        return f"a project cannot turn {filters} off"
    asked, own = getattr(project, name), getattr(here, name)
    if name == "ask" and projects.ASKING.index(asked) > projects.ASKING.index(own):
        return f"a project can only lower it, from {own}"
    if name in projects.NO_MORE and asked > own:
        return "a project can only turn it off" if isinstance(own, bool) else f"a project can only lower it, from {own}"
    return f"a project can only raise it, from {own}" if name in projects.NO_LESS and asked < own else ""


def _daemon_check(settings: Settings) -> Check:
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


@cli.command()
def status(
    ctx: typer.Context,
    token: Annotated[bool, typer.Option("--token", help="Only print the token for MCP over HTTP.")] = False,
    as_json: Json = False,
) -> None:
    """Show the daemon, or a team's server: who owns the store, its address, since when, and how much memory it uses."""
    if ctx.obj.url and not token:
        checks = list(server_checks(ctx.obj))
        body = {"running": all(one.well for one in checks), "server": ctx.obj.url}
        checks += _inbox_checks(ctx.obj) if body["running"] else []
        exit_codes.show(body, as_json, print_answer=lambda: answers.print_checks(checks))
        return
    of_store(ctx)
    client = launch.running(ctx.obj)
    if client is None:
        owner = store_lock.role_of(ctx.obj.folder) if store_lock.held(ctx.obj.folder) else ""
        message = "No memory daemon is running." + (f" The store is held by `{owner}`." if owner else "")
        if token:
            raise NotFound(message)
        plan = Plan(ctx.obj.folder)
        more = [f"{plan.message}; the next start of the daemon goes on."] if plan.waiting else []
        told = {"running": False, **({"remembered": plan.message} if more else {})}
        waits = {} if owner else _waits(ctx.obj)
        exit_codes.show(told | waits, as_json, message, *more, *waits.values())
        return
    if token:
        exit_codes.show({"bearer": client.runtime.token}, as_json, client.runtime.token)
        return
    body = {"running": True} | client.post("/status", {}) | {"url": url_for_mcp(ctx.obj, client.runtime.port)}
    body |= _waits(ctx.obj)
    exit_codes.show(body, as_json, print_answer=lambda: answers.print_status(body))


def _waits(settings: Settings) -> dict[str, str]:
    """Return what is said of memories that wait for a decision; nothing where none do, or no store is there."""
    with suppress(RecollectError):
        if settings.database_url or settings.database.exists():
            page: WaitingPage = perform(settings, "inbox", {"limit": 1})
            return {"inbox": page.message} if page.total else {}
    return {}


@cli.command()
def start(ctx: typer.Context, as_json: Json = False) -> None:
    """Start the daemon now; a command that needs it does so by itself."""
    settings = of_store(ctx)
    if not settings.daemon:
        raise InvalidInput("daemon", "No daemon is wanted: leave out `--in-process`, and unset RECOLLECT_DAEMON.")
    pid = launch.ensure(settings).runtime.pid
    exit_codes.show({"running": True, "pid": pid}, as_json, f"The memory daemon is running (process {pid}).")


@cli.command("settings")
def settings_(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Only this one, such as `team`.")] = "",
    as_json: Json = False,
) -> None:
    """Show every setting, its value, and whether it was set; for tokens and keys, only whether they are set."""
    wanted = name.lower().removeprefix(PREFIX.lower()).replace("-", "_")
    if wanted and wanted not in Settings.model_fields:
        raise InvalidInput("name", f"No such setting `{name}`: `recollect settings` shows all.")
    settings: Settings = ctx.obj
    secret, told = hidden(), variables()
    rows = []
    for one in (wanted,) if wanted else Settings.model_fields:
        value = getattr(settings, one)
        text = "" if value is None else str(value)
        source = "environment" if variable(one) in told else "option" if one in settings.model_fields_set else ""
        rows.append([variable(one), "(hidden)" if one in secret and text else text, source])
    body = {"settings": [dict(zip(("name", "value", "set_by"), row, strict=True)) for row in rows]}
    exit_codes.show(body, as_json, print_answer=lambda: render.print_rows(rows, "setting", "value", "set by"))


@cli.command()
def stop(ctx: typer.Context, as_json: Json = False) -> None:
    """Stop the daemon; the next command starts it again."""
    stopped = launch.stop(of_store(ctx))
    message = "The memory daemon has stopped." if stopped else "No memory daemon was running."
    exit_codes.show({"stopped": stopped}, as_json, message)


_PREFIX = slice(4, 12)  # of a token, `rec_` left out


def server_checks(settings: Settings) -> Iterator[Check]:
    """Yield a line for the server, one for the token, and one for the user's teams; the first problem ends them."""
    server = ServerConnection(settings)
    try:
        version = str(server.client.get("/openapi.json").get("info", {}).get("version", ""))
        advice = "Use the same version on both sides."
        yield Check("server", version == __version__, f"{settings.url}, recollect {version}", advice)
        row = next(
            (one for one in server.administer("list_tokens").tokens if one.prefix == settings.token[_PREFIX]), None
        )
        if row is None:
            return
        until = f", until {row.expires_at:%Y-%m-%d}" if row.expires_at else ""
        yield Check("token", True, f"{row.prefix} of {row.user}{until}" + (f", as {row.role}" if row.role else ""))
        teams = [one for one in server.administer("list_teams").teams if row.user in one.members]
        named = ", ".join(f"{one.team} ({one.members[row.user]})" for one in teams)
        several = len(teams) > 1 and "team" not in settings.model_fields_set
        yield Check("teams", not several, named or "none", "Set RECOLLECT_TEAM to the one whose memories you mean.")
    except Unauthorized as error:
        advice = "Set RECOLLECT_TOKEN, or RECOLLECT_TOKEN_FILE, to a token that is valid."
        yield Check("server", True, settings.url)
        yield Check("token", False, str(error), advice)
    except RecollectError as error:
        yield Check("server", False, str(error), "Check RECOLLECT_URL, and whether the server runs.")


def _inbox_checks(settings: Settings) -> list[Check]:
    """Return the line on what waits for a decision on a server; none for whoever may not read there."""
    with suppress(Forbidden):
        page: WaitingPage = perform(settings, "inbox", {"limit": 1})
        return [page.check]
    return []


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
    message = f"{file}: {_contents(manifest)}, {manifest.size / 1e6:.1f} MB."
    note = "Memories you forget later stay in this backup."
    exit_codes.show(asdict(manifest) | {"file": str(file)}, as_json, message, note)


@_backups.command()
def verify(file: Written, as_json: Json = False) -> None:
    """Read every byte of a backup, and change nothing. Exit code 2 when it is damaged."""
    from recollect.wiring import verify_backup

    manifest = verify_backup(working_folder() / file)
    message = f"{file} is whole. It was made at {manifest.made_at} and holds {_contents(manifest)}."
    exit_codes.show(asdict(manifest) | {"file": str(file)}, as_json, message)


@_backups.command("restore")
def _restore(ctx: typer.Context, file: Written, force: Force = False, as_json: Json = False) -> None:
    """Bring a store back from a backup. Every byte of it is checked first."""
    terminal.leave_to_client()  # the daemon has to end for it
    settings = of_store(ctx)
    restored = recollect.restore(file, settings, force=force, free=lambda: launch.stop(settings))
    sentences = [f"Restored from {restored.manifest.made_at}: {_contents(restored.manifest)}."]
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


def _contents(manifest: Manifest) -> str:
    counts = manifest.counts.items()
    return ", ".join(f"{count} {name.replace('journal', 'journal lines')}" for name, count in counts)


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
