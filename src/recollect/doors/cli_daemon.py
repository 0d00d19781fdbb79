"""The commands on the daemon: its state and address, its end, and running it in the foreground."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Final
from urllib.parse import urlencode

import typer

from recollect.doors import exit_codes, render
from recollect.doors.daemon import launch, runtime
from recollect.doors.options import Json
from recollect.doors.render import err
from recollect.errors import NotFound, StoreOwned
from recollect.settings import Settings
from recollect.store import store_lock

_ATTEMPTS: Final = 3

cli = typer.Typer()


@cli.command()
def status(
    ctx: typer.Context,
    token: Annotated[bool, typer.Option("--token", help="Only print the token for MCP over HTTP.")] = False,
    as_json: Json = False,
) -> None:
    """Show the daemon: who owns the store, and its address. Also since when, and how much memory it uses."""
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
    body = {"running": True} | client.post("/status", {}) | {"url": _url(ctx.obj, client.runtime.port)}
    exit_codes.show(body, as_json, print_answer=lambda: render.status(body))


@cli.command()
def stop(ctx: typer.Context, as_json: Json = False) -> None:
    """Stop the daemon; the next command starts it again."""
    stopped = launch.stop(ctx.obj)
    message = "The memory daemon has stopped." if stopped else "No memory daemon was running."
    exit_codes.show({"stopped": stopped}, as_json, message)


@cli.command()
def serve(
    ctx: typer.Context,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, metavar="N", help="Also listen on this port of this computer: MCP over HTTP at `/mcp`."
        ),
    ] = None,
) -> None:
    """Run the daemon in the foreground. It owns the store and serves every other process of yours.

    A daemon that another command has started gives way to it.
    """
    daemon = import_module("recollect.doors.daemon.main")
    daemon.log_to_file(ctx.obj)
    for attempt in range(_ATTEMPTS):
        _take_over(ctx.obj)
        try:
            daemon.serve(ctx.obj, port, lambda: _say_ready(ctx.obj), foreground=True)
            return
        except StoreOwned:  # a client may have started another daemon meanwhile
            if attempt == _ATTEMPTS - 1:
                raise


def _take_over(settings: Settings) -> None:
    """Stop a daemon that a command has started; raise `StoreOwned` where a person runs one."""
    client = launch.running(settings)
    if client is None:
        return
    if client.runtime.foreground:
        raise store_lock.owned(settings.folder)
    launch.stop(settings)
    _say(f"Stopped the daemon that an earlier command had started (process {client.runtime.pid}).")


def _say_ready(settings: Settings) -> None:
    _say(f"Serving {settings.folder}; log: {launch.log_file(settings)}")
    published = runtime.read(settings.folder)
    if published is not None and (url := _url(settings, published.port)):
        _say(f"MCP over HTTP: {url}\nIt asks for a bearer token, which `recollect status --token` prints.")


def _say(text: str) -> None:
    err.print(text, highlight=False, markup=False, soft_wrap=True)


def _url(settings: Settings, port: int) -> str | None:
    """Return the address for MCP over HTTP that speaks as the caller of these settings, None without a port."""
    caller = settings.caller
    names = {"user": caller.user, "project": caller.project} | ({"team": caller.team} if caller.team != "local" else {})
    return f"http://127.0.0.1:{port}/mcp?{urlencode(names)}" if port else None
