"""How a command ends: its answer for machines, or one sentence about what went wrong, and the exit code of either."""

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

from recollect.doors.render import still
from recollect.errors import InvalidInput, RecollectError

_MISUSE: Final = cast(type[Exception], typer.BadParameter.__mro__[2])  # the library's own base has no public name
_JARGON: Final = re.compile(r"Value error, |, unable to parse string as an? \w+")


def run(cli: typer.Typer) -> int:
    """Run the command line and return its exit code; whatever goes wrong is one sentence on standard error.

    With `--json` the sentence stands in an object on standard output instead, as every other answer does.
    """
    _prepare()
    try:
        return _ended(cli)
    except OSError as error:  # none of ours comes this far: it is the answer that cannot be written
        _let_go()
        if not isinstance(error, BrokenPipeError):
            _say(f"The answer cannot be written: {error.strerror or error}.")
        return RecollectError.exit_code


def write_json(body: Any) -> None:
    """Write an answer as JSON, in letters that standard output knows."""
    plain = "utf" not in sys.stdout.encoding.lower()
    sys.stdout.write(json.dumps(body, ensure_ascii=plain, indent=2) + "\n")


def _ended(cli: typer.Typer) -> int:
    try:
        code = cli(standalone_mode=False)
        sys.stdout.flush()
    except RecollectError as error:
        return _failed(type(error).__name__, str(error), error.exit_code)
    except typer.Abort:
        return RecollectError.exit_code
    except _MISUSE as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the help that it stands for has been shown
            return InvalidInput.exit_code
        return _failed(InvalidInput.__name__, _misuse(error), InvalidInput.exit_code)
    return code if isinstance(code, int) else 0


def _misuse(error: Any) -> str:
    """Say what was typed wrongly, and where to read how it is typed."""
    said = _JARGON.sub("", error.format_message()).rstrip(".")
    context = getattr(error, "ctx", None)
    return f"{said}." if context is None else f"{said}. Try `{context.command_path} --help`."


def _failed(kind: str, message: str, code: int) -> int:
    if "--json" in takewhile(lambda word: word != "--", sys.argv[1:]):
        write_json({"message": message, "error": kind})
        sys.stdout.flush()
    else:
        _say(message)
    return code


def _say(message: str) -> None:
    console = Console(stderr=True)
    console.print(f"recollect: {still(message)}", style="red", markup=False, highlight=False, soft_wrap=True)


def _prepare() -> None:
    """Give every stream that is closed a place to write to, and let none fail over a letter it does not know."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end
        elif isinstance(stream := getattr(sys, name), TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode gets question marks, not a traceback
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # what is no text is refused with its field's name


def _let_go() -> None:
    """Keep the interpreter from writing once more, at its end, what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
