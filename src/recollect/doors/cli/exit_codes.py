"""Ends a command: prints its answer, as JSON or for people, or one message about an error, and gives its exit code."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import TextIOWrapper
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Final

import typer

from recollect.domain.results import Listed, Outcome, Recalled, WriteStatus
from recollect.domain.verbs import BY_NAME
from recollect.doors.cli import render, terminal
from recollect.doors.cli.answers import in_commands, print_answer, with_contents
from recollect.doors.cli.opening import NEED_MODEL, opened, perform
from recollect.doors.cli.options import in_options
from recollect.doors.cli.render import err, out, sanitized
from recollect.doors.serializers import agent_json
from recollect.errors import InvalidInput, NotFound, RecollectError
from recollect.search.budget import printed
from recollect.settings import Settings

_JSON: Final = "--json"
_LIKE_JSON: Final = frozenset((option, "json") for option in ("-o", "--output", "--format"))
_OWN_FORMAT: Final = frozenset(("export", "import", "extract"))
_NUMBER: Final = re.compile(r"Input should be a valid (integer|number)")
_QUOTED: Final = re.compile(r"'([\w-]+)'")
_JARGON: Final = re.compile(r"Value error, |, unable to parse string as an? \w+")


def run(cli: typer.Typer) -> int:
    """Run the command line and return its exit code; an error is a message on standard error, or JSON with `--json`."""
    _prepare_streams()
    try:
        return _run_command(lambda: cli(_json_last(sys.argv[1:]), standalone_mode=False))
    except OSError as error:  # from writing the answer: all others are handled
        return unwritable(error)


def run_words(command: Any, words: Sequence[str]) -> int:
    """Run these words of a client's command line as `run` does, for the terminal that is the current one."""
    return _run_command(lambda: command.main(args=_json_last(words), prog_name="recollect", standalone_mode=False))


def fail(error: RecollectError) -> int:
    """Print an error as `run` does and return its exit code."""
    return _print_error(type(error).__name__, str(error), error.exit_code)


def unwritable(error: OSError) -> int:
    """Print that the answer cannot be written, unless its reader is gone, and return the exit code."""
    _discard_output()
    if not isinstance(error, BrokenPipeError):
        _print_message(f"The answer cannot be written: {error.strerror or error}.")
    return RecollectError.exit_code


def show(
    body: Any, as_json: bool, *sentences: str, print_answer: Callable[[], None] = lambda: None, brief: bool = False
) -> None:
    """Print an answer as JSON, or for people by `print_answer` and these sentences.

    A `brief` answer is printed exactly as its tokens were counted, where standard output can encode it.
    """
    stream = terminal.stdout()
    unicode = "utf" in stream.encoding.lower()
    if as_json:
        text = printed(body) if brief and unicode else json.dumps(body, ensure_ascii=not unicode, indent=2)
        stream.write(text + "\n")
        return
    with render.paged():
        print_answer()
    for sentence in sentences:
        out.print(sentence, markup=False, highlight=False, soft_wrap=True)


def answered(
    settings: Settings, name: str, fields: dict[str, Any], as_json: bool, *, why: bool = False, stored: str = ""
) -> Any:
    """Run a verb, print its answer and return it; exit with the code of `NotFound` when nothing was found.

    `stored` is a sentence for the answer to a new memory.
    """
    result = perform(settings, name, fields)
    brief = isinstance(result, Recalled) and result.index is not None
    if isinstance(result, Outcome):
        result = in_commands(result)
    if stored and isinstance(result, Outcome) and result.status is WriteStatus.STORED:
        result = replace(result, notes=(*result.notes, stored))
    body, offset = agent_json(BY_NAME[name].answer, result), fields.get("offset", 0)
    if isinstance(result, Listed):
        body = with_contents(body, result)
    show(body, as_json, print_answer=lambda: print_answer(result, offset, why=why), brief=brief)
    if isinstance(result, Outcome) and result.status is WriteStatus.NOT_FOUND:
        raise typer.Exit(NotFound.exit_code)
    return result


def answered_each(
    settings: Settings,
    name: str,
    requests: Sequence[dict[str, Any]],
    as_json: bool,
    print_each: Callable[[Outcome], None] = print_answer,
) -> None:
    """Run a verb for each request and print the outcomes; exit as for `NotFound` if a request found nothing."""
    for request in requests:
        BY_NAME[name].request(**request)
    with opened(settings, model=name in NEED_MODEL) as run:
        outcomes = [_outcome_of(run, name, request, alone=len(requests) == 1) for request in requests]
    bodies = [agent_json(Outcome, outcome) for outcome in outcomes]

    def print_all() -> None:
        for outcome in outcomes:
            print_each(outcome)

    show(bodies if len(bodies) > 1 else bodies[0], as_json, print_answer=print_all)
    if any(outcome.status is WriteStatus.NOT_FOUND for outcome in outcomes):
        raise typer.Exit(NotFound.exit_code)


def _outcome_of(run: Callable[..., Any], name: str, request: dict[str, Any], *, alone: bool) -> Outcome:
    """Return the outcome of a request; among several requests, "not found" does not stop the others."""
    try:
        return in_commands(run(name, **request))
    except NotFound:
        if alone:
            raise
        return Outcome(WriteStatus.NOT_FOUND, str(request["id"]))


def _run_command(command: Callable[[], Any]) -> int:
    """Run a command and return its exit code; every error of ours or of typer is printed."""
    try:
        code = command()
        terminal.stdout().flush()
    except RecollectError as error:
        return fail(error)
    except typer.Abort:
        return RecollectError.exit_code
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # on a terminal it is printed already
            if help_text := _message_of(error):
                terminal.stdout().write(f"{help_text}\n")
            return InvalidInput.exit_code
        return _print_error(InvalidInput.__name__, _usage_error(error), InvalidInput.exit_code)
    return code if isinstance(code, int) else 0


def _json_last(typed: Sequence[str]) -> list[str]:
    """Move `--json` behind all other words, wherever it was typed: each command knows it there.

    `-o json` and `--format json` mean the same, except for a command that has such an option.
    """
    options = list(takewhile(lambda word: word != "--", typed))
    rest = typed[len(options) :]
    if not _OWN_FORMAT & set(options):
        for place, two in reversed([*enumerate(pairwise(options))]):
            if two in _LIKE_JSON:
                options[place : place + 2] = [_JSON]
    if _JSON not in options:
        return list(typed)
    return [*(word for word in options if word != _JSON), _JSON, *rest]


def _message_of(error: Any) -> str:
    return str(error.format_message())


def _usage_error(error: Any) -> str:
    """Return the error in the arguments, and the command that prints their help."""
    message = _NUMBER.sub(_number_message, _JARGON.sub("", error.format_message())).rstrip(".")
    context = getattr(error, "ctx", None)
    if message.startswith("No such command"):
        message = _QUOTED.sub(r"`\1`", message)
    if context is None:
        return f"{message}."
    end = "" if message.endswith("?") else "."
    if type(error).__name__ == "NoSuchOption" and any(parameter.nargs == -1 for parameter in context.command.params):
        message += ". Put `--` before words that begin with a dash"
    return f"{message}{end} Try `{context.command_path} --help`."


def _number_message(found: re.Match[str]) -> str:
    return "Must be a whole number" if found[1] == "integer" else "Must be a number"


def _print_error(kind: str, message: str, code: int) -> int:
    """Print an error, as JSON with `--json`, and return its exit code."""
    if _JSON in takewhile(lambda word: word != "--", terminal.words()):
        show({"message": message, "error": kind}, as_json=True)
        terminal.stdout().flush()
    else:
        _print_message(in_options(message))
    return code


def _print_message(message: str) -> None:
    err.print(f"recollect: {sanitized(message)}", style="red", markup=False, highlight=False, soft_wrap=True)


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
    """Keep the interpreter from writing the rest of the answer when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
