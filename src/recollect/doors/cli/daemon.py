"""The commands on the daemon: its state and address, its start and its end."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from recollect.client import launch
from recollect.domain.review import WaitingPage
from recollect.doors.cli import answers, exit_codes
from recollect.doors.cli.opening import of_store, perform
from recollect.doors.cli.options import Json
from recollect.doors.cli.serve import url_for_mcp
from recollect.doors.cli.server_checks import inbox_checks, server_checks
from recollect.errors import InvalidInput, NotFound, RecollectError
from recollect.settings import Settings
from recollect.store import store_lock
from recollect.transfer.remembered import Plan

cli = typer.Typer()


@cli.command()
def status(
    ctx: typer.Context,
    token: Annotated[bool, typer.Option("--token", help="Only print the token for MCP over HTTP.")] = False,
    as_json: Json = False,
) -> None:
    """Show the daemon, or a team's server: who owns the store, its address, since when, and how much memory it uses."""
    if ctx.obj.url and not token:
        checks = list(server_checks(ctx.obj))
        body = {"running": all(check.well for check in checks), "server": ctx.obj.url}
        checks += inbox_checks(ctx.obj) if body["running"] else []
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
        state = {"running": False, **({"remembered": plan.message} if more else {})}
        waits = {} if owner else _waiting_field(ctx.obj)
        exit_codes.show(state | waits, as_json, message, *more, *waits.values())
        return
    if token:
        exit_codes.show({"bearer": client.runtime.token}, as_json, client.runtime.token)
        return
    body = {"running": True} | client.post("/status", {}) | {"url": url_for_mcp(ctx.obj, client.runtime.port)}
    body |= _waiting_field(ctx.obj)
    exit_codes.show(body, as_json, print_answer=lambda: answers.print_status(body))


def _waiting_field(settings: Settings) -> dict[str, str]:
    """Return the status field on memories that wait for a decision; empty where none waits, or there is no store."""
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


@cli.command()
def stop(ctx: typer.Context, as_json: Json = False) -> None:
    """Stop the daemon; the next command starts it again."""
    stopped = launch.stop(of_store(ctx))
    message = "The memory daemon has stopped." if stopped else "No memory daemon was running."
    exit_codes.show({"stopped": stopped}, as_json, message)
