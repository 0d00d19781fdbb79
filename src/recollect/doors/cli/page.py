"""The command that opens the page in a browser."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from recollect import environment
from recollect.client import launch
from recollect.doors.cli import terminal
from recollect.doors.cli.exit_codes import show
from recollect.doors.cli.opening import of_store
from recollect.doors.cli.options import Json
from recollect.doors.web import AS_ARGUMENT, CODE_LIFE, PAGE
from recollect.errors import InvalidInput

cli = typer.Typer()


@cli.command()
def page(
    ctx: typer.Context,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    as_json: Json = False,
) -> None:
    """Open the page: look at memories, and put them right. It starts the daemon where none is running."""
    settings = ctx.obj
    opens = not (no_browser or as_json)
    if opens:
        terminal.leave_to_client()
    if settings.url:
        url = f"{settings.url.rstrip('/')}{PAGE}/"
        advice = "Sign in with a token of yours."
    else:
        settings = of_store(ctx)
        if not settings.daemon:
            raise InvalidInput("daemon", "The page needs the daemon: leave out `--in-process`, unset RECOLLECT_DAEMON.")
        caller = settings.caller
        body = {"user": caller.user, "team": caller.team, "project": caller.project}
        place = {"folder": str(environment.working_folder()), AS_ARGUMENT: opens}
        url = launch.ensure(settings).post("/page-address", body | place)["url"]
        advice = f"This address works once, within {CODE_LIFE / 60:.0f} minutes."
    if opens:
        webbrowser.open(url)
    show({"url": url}, as_json, url, advice)
