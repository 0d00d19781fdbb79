"""How a command ends: its JSON answer, or one message about an error, and the exit code of either."""

from __future__ import annotations

import json
import os
import re
import sys
from io import TextIOWrapper
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, cast

import typer
from rich.console import Console

from recollect.doors.render import sanitized
from recollect.errors import InvalidInput, RecollectError

_USAGE_ERROR: Final = cast(type[Exception], typer.BadParameter.__mro__[2])  # the library's own base has no public name
_JARGON: Final = re.compile(r"Value error, |, unable to parse string as an? \w+")


def run(cli: typer.Typer) -> int:
    """Run the command line and return its exit code; an error is one message on standard error.

    With `--json` it is an object on standard output instead.
    """
    _prepare_streams()
    try:
        return _run(cli)
    except OSError as error:  # from writing the answer: all others are handled
        _discard_output()
        if not isinstance(error, BrokenPipeError):
            _print_message(f"The answer cannot be written: {error.strerror or error}.")
        return RecollectError.exit_code


def write_json(body: Any) -> None:
    """Write an answer as JSON, in characters that standard output can encode."""
    ascii_only = "utf" not in sys.stdout.encoding.lower()
    sys.stdout.write(json.dumps(body, ensure_ascii=ascii_only, indent=2) + "\n")


def _run(cli: typer.Typer) -> int:
    try:
        code = cli(standalone_mode=False)
        sys.stdout.flush()
    except RecollectError as error:
        return _print_error(type(error).__name__, str(error), error.exit_code)
    except typer.Abort:
        return RecollectError.exit_code
    except _USAGE_ERROR as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the help is printed already
            return InvalidInput.exit_code
        return _print_error(InvalidInput.__name__, _usage_error(error), InvalidInput.exit_code)
    return code if isinstance(code, int) else 0


def _usage_error(error: Any) -> str:
    """Return what is wrong in the arguments, and the command that prints their help."""
    message = _JARGON.sub("", error.format_message()).rstrip(".")
    context = getattr(error, "ctx", None)
    return f"{message}." if context is None else f"{message}. Try `{context.command_path} --help`."


def _print_error(kind: str, message: str, code: int) -> int:
    if "--json" in takewhile(lambda word: word != "--", sys.argv[1:]):
        write_json({"message": message, "error": kind})
        sys.stdout.flush()
    else:
        _print_message(message)
    return code


def _print_message(message: str) -> None:
    console = Console(stderr=True)
    console.print(f"recollect: {sanitized(message)}", style="red", markup=False, highlight=False, soft_wrap=True)


def _prepare_streams() -> None:
    """Replace streams that are closed, and let none fail on a character that it cannot encode."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end
        elif isinstance(stream := getattr(sys, name), TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode gets question marks
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # the request refuses what is not text


def _discard_output() -> None:
    """Keep the interpreter from writing the rest of the answer at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
