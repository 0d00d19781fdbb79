"""The commands for programs: `serve`, the daemon in the foreground or the server of a team, and `mcp`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import typer

import recollect
from recollect.app import App
from recollect.client import launch
from recollect.client.daemon import published
from recollect.doors import pipe
from recollect.doors.cli import render, served
from recollect.doors.cli.opening import of_store
from recollect.doors.cli.render import err
from recollect.doors.toolset_names import check_names
from recollect.errors import InvalidInput, StoreOwned
from recollect.settings import Settings, hidden
from recollect.store import store_lock

_ATTEMPTS: Final = 3
_LOOPBACK: Final = "127.0.0.1"
_PORT: Final = 8765
_MOST_WORKERS: Final = 256

cli = typer.Typer()


@cli.command()
def serve(
    ctx: typer.Context,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, metavar="N", help="Also listen on this port of this computer: MCP over HTTP at `/mcp`."
        ),
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="HOST", help="Serve a team by tokens on this address; port 8765 by default.")
    ] = None,
    init: Annotated[
        bool,
        typer.Option("--init", help="Make the first admin and print their token, once; without `--host`, then end."),
    ] = False,
    behind_proxy: Annotated[bool, typer.Option("--behind-proxy", help="A proxy in front terminates TLS.")] = False,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificate chain of the server.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Key of the certificate.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Let tokens cross the network in the clear.")] = False,
    workers: Annotated[
        int,
        typer.Option(min=1, max=_MOST_WORKERS, metavar="N", help="Processes that share the port, one for each core."),
    ] = 1,
) -> None:
    """Run the daemon in the foreground, or a team's server. The daemon serves every other process of yours.

    A daemon that another command has started gives way to it. With `--host` it is the server of a team: over HTTP, for
    whoever holds a token.
    """
    of_store(ctx)
    if host is not None:
        more = {"tls_cert": tls_cert, "tls_key": tls_key, "behind_proxy": behind_proxy, "insecure": insecure}
        _serve_team(ctx.obj, {"host": host, "port": _PORT if port is None else port} | more, workers, init)
        return
    if init:
        _initialize_store(ctx.obj)
        return
    if tls_cert or tls_key or behind_proxy or insecure or workers > 1:
        raise InvalidInput("host", "Missing host: these options are for the server of a team, which `--host` starts.")
    _serve_this_computer(ctx, port)


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
    from recollect.doors.mcp import serve as serve_here  # the SDK takes half a second to import

    serve_here(ctx.obj, sets)


def url_for_mcp(settings: Settings, port: int) -> str | None:
    """Return the address for MCP over HTTP that speaks as the caller of these settings, None without a port."""
    caller = settings.caller
    names = {"user": caller.user, "project": caller.project} | ({"team": caller.team} if caller.team != "local" else {})
    return f"http://{_LOOPBACK}:{port}/mcp?{urlencode(names)}" if port else None


def _serve_this_computer(ctx: typer.Context, port: int | None) -> None:
    """Run the daemon in the foreground, in the place of a daemon that a command has started."""
    from recollect.doors.http import daemon

    daemon.log_to_file(ctx.obj)
    run = partial(served.run, command_line=lambda: ctx.find_root().command)
    for attempt in range(_ATTEMPTS):
        _take_over(ctx.obj)
        try:
            daemon.serve(ctx.obj, run, port, lambda: _say_ready(ctx.obj), foreground=True)
            return
        except StoreOwned:  # a client may have started another daemon meanwhile
            if attempt == _ATTEMPTS - 1:
                raise


def _serve_team(settings: Settings, given: dict[str, Any], count: int, init: bool) -> None:
    """Run the server of a team with this number of workers; with `init` first make its first admin."""
    try:
        from recollect.doors.http import listening, server, workers
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("recollect"):
            raise
        raise InvalidInput(
            "host", 'The server of a team needs some packages more: `pip install "recollect[server]"`.'
        ) from None
    place = listening.Listening(**given)
    place.check()
    if count > 1:
        workers.check(settings)
        if init:
            _initialize_store(settings)
        workers.serve(settings, place, count, lambda url: _say_serving(settings, url, count))
        return
    if not settings.database_url:
        _take_over(settings)
    server.serve(
        settings,
        place,
        lambda app: _make_admin(app, settings.user) if init else None,
        lambda: _say_serving(settings, place.url),
    )


def _initialize_store(settings: Settings) -> None:
    """Open the store only to make its first admin."""
    with recollect.open_app(settings, wait=False, background=False, role="serve --init") as app:
        _make_admin(app, settings.user)


def _make_admin(app: App, user: str) -> None:
    """Make the first admin, and print their token alone to standard output."""
    from recollect.auth.administration import initialize

    made = initialize(app, user, user)
    render.out.print(made.token, markup=False, highlight=False, soft_wrap=True)
    _print_note(f"This is the token of {user}, the first admin. It is shown this once: keep it.")


def _take_over(settings: Settings) -> None:
    """Stop a daemon that a command has started; raise `StoreOwned` where a person runs one."""
    client = launch.running(settings)
    if client is None:
        return
    if client.runtime.foreground:
        raise store_lock.owned(settings.folder)
    launch.stop(settings)
    _print_note(f"Stopped the daemon that an earlier command had started (process {client.runtime.pid}).")


def _say_serving(settings: Settings, url: str, count: int = 1) -> None:
    by = f", with {count} workers" if count > 1 else ""
    _print_note(f"Serving {settings.store_name} at {url}{by}")


def _say_ready(settings: Settings) -> None:
    _print_note(f"Serving {settings.memory_db or settings.folder}; log: {launch.log_file(settings)}")
    found = published(settings.folder)
    if found is not None and (url := url_for_mcp(settings, found.port)):
        _print_note(f"MCP over HTTP: {url}\nIt asks for a bearer token, which `recollect status --token` prints.")


def _print_note(text: str) -> None:
    err.print(text, highlight=False, markup=False, soft_wrap=True)
