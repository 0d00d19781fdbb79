"""The commands that sign a person in to a team's server, and out again."""

from __future__ import annotations

import socket
import webbrowser
from pathlib import Path
from typing import Annotated, Final

import typer

from recollect.doors.cli import terminal
from recollect.doors.cli.exit_codes import show
from recollect.doors.cli.options import Json
from recollect.doors.cli.render import err
from recollect.environment import named
from recollect.errors import InvalidInput, RecollectError
from recollect.private_files import write_private
from recollect.server_url import parse
from recollect.settings import Settings

DAYS: Final = 7.0
"""Days for which a sign-in is valid unless somebody asks for fewer or more; then the groups count anew."""
_PREFIX: Final = slice(4, 12)  # of a token, `rec_` left out
_FILE: Final = Path("~/.config/recollect/token")
_VARIABLE: Final = "RECOLLECT_TOKEN_FILE"

cli = typer.Typer()


@cli.command()
def login(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="Address of the server. Default: RECOLLECT_URL.")] = "",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address, and open no browser.")] = False,
    device: Annotated[bool, typer.Option("--device", help="Print a code, to be typed in a browser elsewhere.")] = False,
    days: Annotated[float, typer.Option(min=0.01, max=365, metavar="N", help="Days until you sign in again.")] = DAYS,
    as_json: Json = False,
) -> None:
    """Sign in to a team's server through its identity provider. The token goes into a file that only you can read."""
    terminal.leave_to_client()
    settings: Settings = ctx.obj
    server = _server_address(url or settings.url, settings)
    from recollect.client.authorization import SigningIn, Wanted  # with what speaks OAuth: not for help

    signing_in = SigningIn(parse(server, insecure=settings.insecure), Wanted(f"login on {socket.gethostname()}", days))
    if device:
        issued = signing_in.by_code(lambda address, code: _print_note(f"Open {address} and type the code {code}"))
    else:
        issued = signing_in.by_browser(_say_address if no_browser else _open_browser)
    file = token_file()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(file, f"{issued['token']}\n")
    body = {"user": issued["user"], "url": server, "file": str(file), "expires_at": issued["expires_at"]}
    until = f"until {str(issued['expires_at'])[:10]}"
    show(body, as_json, f"Signed in to {server} as {issued['user']}, {until}.", *_profile_advice(server))


@cli.command()
def logout(ctx: typer.Context, as_json: Json = False) -> None:
    """Sign out of a team's server. The token of `login` is revoked there, and its file removed."""
    terminal.leave_to_client()
    settings: Settings = ctx.obj
    file = token_file()
    token = file.read_text(encoding="utf-8").strip() if file.exists() else ""
    if not token:
        raise InvalidInput("token", f"You are not signed in: there is no token in {file}.")
    signed_in = settings.model_copy(update={"url": _server_address(settings.url, settings), "token": token})
    from recollect.client.connection import ServerConnection

    try:
        ServerConnection(signed_in).administer("revoke_token", prefix=token[_PREFIX])
        done = f"Signed out of {signed_in.url}."
    except RecollectError as error:
        done = f"{error} The file with the token is removed."
    file.unlink()
    show({"url": signed_in.url, "file": str(file)}, as_json, done)


def token_file() -> Path:
    """Return the file that holds the token of a sign-in."""
    return Path(named(_VARIABLE) or _FILE).expanduser()


def _server_address(url: str, settings: Settings) -> str:
    """Return the address of the server, as typed or from the settings; raise `InvalidInput` for an unusable address."""
    if not url:
        raise InvalidInput("url", "Missing address: name the server, or set RECOLLECT_URL.")
    try:
        return parse(url, insecure=settings.insecure).name
    except ValueError as error:
        raise InvalidInput("url", f"Invalid url: The address {error}") from None


def _profile_advice(server: str) -> list[str]:
    """Return the lines that the shell's profile still lacks."""
    lines = {"RECOLLECT_URL": server, _VARIABLE: str(_FILE)}
    missing = [f"export {name}={value}" for name, value in lines.items() if not named(name)]
    return ["Add to your shell's profile:", *missing] if missing else []


def _open_browser(address: str) -> None:
    _say_address(address)
    webbrowser.open(address)


def _say_address(address: str) -> None:
    _print_note(f"Sign in at {address}")


def _print_note(text: str) -> None:
    err.print(text, highlight=False, markup=False, soft_wrap=True)
