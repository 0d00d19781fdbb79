"""Commands that the daemon runs for a client which imports nothing: it has the libraries, and prints for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from recollect import environment
from recollect.doors.cli import terminal
from recollect.doors.cli.opening import served_by
from recollect.settings import Settings

_ZONE: Final = "TZ"

Perform = Callable[..., Any]
"""Runs an operation by name with the fields of its request."""


def run(body: dict[str, Any], serving: Callable[[Settings], Perform]) -> dict[str, Any]:
    """Run the command line of a client, and return what it prints and its exit code.

    Or return what is `wanted` first: that the client asks again with its standard input, or runs the command itself.
    `serving` returns what runs operations under the settings that the client's words and variables make.
    """
    about = body["terminal"]
    if about["variables"].get(_ZONE, "") != environment.named(_ZONE):  # dates in words are those of its clock
        return {"wanted": "itself"}
    client = terminal.ClientTerminal(
        words=[str(word) for word in body["words"]],
        stdin=body["stdin"],
        stdin_read=bool(body["stdin_read"]),
        encoding=str(about["encoding"]),
        tty=(bool(about["tty"][0]), bool(about["tty"][1])),
        size=about["size"] and (int(about["size"][0]), int(about["size"][1])),
        variables=dict(about["variables"]),
    )
    told = environment.Surroundings(dict(body["variables"]), Path(body["folder"]), str(body["user"]))
    from recollect.doors.cli.exit_codes import run_words

    with terminal.of_client(client), environment.surrounded(told), served_by(serving):
        try:
            code = run_words(_command_line(), client.words)
        except terminal.InputWanted as wanted:
            return {"wanted": str(wanted)}
    out, err = (one.getvalue() for one in client.streams)
    return {"out": out, "err": err, "code": code, "paged": bool(client.paged)}


@cache
def _command_line() -> Any:
    """Return the whole command line, which takes a fifth of a second to import; most daemons need it."""
    from typer.main import get_command

    from recollect.doors.cli.main import cli

    return get_command(cli)
