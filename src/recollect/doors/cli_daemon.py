"""The commands on the daemon: its state and address, and its end."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.client import launch
from recollect.doors import exit_codes, render, server_checks
from recollect.doors.cli_serve import url_for_mcp
from recollect.doors.options import Json, of_store
from recollect.errors import NotFound
from recollect.store import store_lock

cli = typer.Typer()


@cli.command()
def status(
    ctx: typer.Context,
    token: Annotated[bool, typer.Option("--token", help="Only print the token for MCP over HTTP.")] = False,
    as_json: Json = False,
) -> None:
    """Show the daemon, or a team's server: who owns the store, its address, since when, and how much memory it uses."""
    if ctx.obj.url and not token:
        checks = server_checks.checks(ctx.obj)
        body = {"running": all(one.well for one in checks), "server": ctx.obj.url}
        exit_codes.show(body, as_json, print_answer=lambda: render.checks(checks))
        return
    of_store(ctx)
    client = launch.running(ctx.obj)
    if client is None:
        owner = store_lock.role_of(ctx.obj.folder) if store_lock.held(ctx.obj.folder) else ""
        message = "No memory daemon is running." + (f" The store is held by `{owner}`." if owner else "")
        if token:
            raise NotFound(message)
        exit_codes.show({"running": False}, as_json, message)
        return
    if token:
        exit_codes.show({"bearer": client.runtime.token}, as_json, client.runtime.token)
        return
    body = {"running": True} | client.post("/status", {}) | {"url": url_for_mcp(ctx.obj, client.runtime.port)}
    exit_codes.show(body, as_json, print_answer=lambda: render.status(body))


@cli.command()
def stop(ctx: typer.Context, as_json: Json = False) -> None:
    """Stop the daemon; the next command starts it again."""
    stopped = launch.stop(of_store(ctx))
    message = "The memory daemon has stopped." if stopped else "No memory daemon was running."
    exit_codes.show({"stopped": stopped}, as_json, message)
