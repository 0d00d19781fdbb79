"""Runs the commands of clients in the daemon: they import nothing, and it has the libraries and prints for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from recollect import environment
from recollect.doors.cli import terminal
from recollect.doors.cli.opening import served_by
from recollect.settings import Settings

_ZONE: Final = "TZ"

Perform = Callable[..., Any]
"""Runs an operation by name with the fields of its request."""


def run(
    body: dict[str, Any], serving: Callable[[Settings], Perform], *, command_line: Callable[[], Any]
) -> dict[str, Any]:
    """Run the command line of a client, and return its output and exit code.

    Or return as `wanted` that the client has to send its standard input, or to run the command itself. `serving`
    returns the function that runs operations under the settings of the client, and `command_line` the whole command
    line.
    """
    about = body["terminal"]
    if about["variables"].get(_ZONE, "") != environment.named(_ZONE):  # dates in words are those of its clock
        return {"wanted": "itself"}
    client = terminal.ClientTerminal(
        words=[str(word) for word in body["words"]],
        stdin=body["stdin"],
        stdin_read=bool(body["stdin_read"]),
        edited=(str(body["edited"][0]), body["edited"][1]) if "edited" in body else None,
        encoding=str(about["encoding"]),
        tty=(bool(about["tty"][0]), bool(about["tty"][1])),
        size=about["size"] and (int(about["size"][0]), int(about["size"][1])),
        variables=dict(about["variables"]),
    )
    surroundings = environment.Surroundings(dict(body["variables"]), Path(body["folder"]), str(body["user"]))
    from recollect.doors.cli.exit_codes import run_words

    with terminal.of_client(client), environment.surrounded(surroundings), served_by(serving):
        try:
            if "completing" in body:
                return _complete(command_line(), client.words, body["completing"])
            code = run_words(command_line(), client.words)
        except terminal.InputWanted as wanted:
            return dict(zip(("wanted", "text"), wanted.args, strict=False))
    out, err = (stream.getvalue() for stream in client.streams)
    return {"out": out, "err": err, "code": code, "paged": bool(client.paged)}


def _complete(command_line: Any, words: Sequence[str], about: dict[str, str]) -> dict[str, Any]:
    """Return the completions that a client's shell prints for the typed word, and the exit code that fish expects."""
    from typer._click.shell_completion import get_completion_class

    kind = get_completion_class(about["shell"])
    if kind is None:
        return {"out": "", "code": 1}
    shell = kind(command_line, {}, "recollect", "")
    items = shell.get_completions(list(words), about["incomplete"])
    if about["action"] == "is-args":
        return {"out": "", "code": 0 if items else 1}
    lines = [shell.format_completion(item) for item in items]
    if about["shell"] == "zsh":
        whole = "\n".join(lines)
        return {"out": f"_arguments '*: :(({whole}))'\n" if lines else "_files\n", "code": 0}
    return {"out": "".join(f"{line}\n" for line in lines), "code": 0}
