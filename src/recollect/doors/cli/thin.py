"""Commands as a thin client: the daemon parses the words and runs the command, this process prints what it answers."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from recollect import __version__, environment
from recollect.client.daemon import Client, running_at
from recollect.client.transport import Lost, persistently
from recollect.doors.cli.editor import EDITED, edited
from recollect.doors.cli.pager import needs_pager, page
from recollect.doors.cli.patience import told_after_a_second
from recollect.doors.cli.standard_input import piped_input, read_input
from recollect.errors import RecollectError
from recollect.text.utf8 import utf8_fault_of_text


def run(words: Sequence[str], options: Mapping[str, str], home: Path, *, start: bool, keyed: bool) -> int | None:
    """Run a command in the daemon, print its answer and return its exit code; None where this process has to run it.

    `start` says whether the daemon is started where none is running, `keyed` whether the command takes effect once
    however often it is asked for; `options` are the settings among the words.
    """
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if any(utf8_fault_of_text(word) for word in words):  # as in the name of a file; JSON takes none of it along
        return None
    if not all(isinstance(stream, TextIOWrapper) for stream in streams):
        return None
    try:
        body = request(words)
        with told_after_a_second(words):
            client = running_at(home)
            if client is None and start:
                client = _started_client(options)
            if client is None or client.runtime.version != __version__:
                return None
            answer = _ask_daemon(client, options, body, keyed=keyed)
        if answer.get("wanted") in ("read", "piped"):
            typed = read_input() if answer["wanted"] == "read" else piped_input()
            answer = _ask_daemon(client, options, body | {"stdin": typed, "stdin_read": True}, keyed=keyed)
        elif answer.get("wanted") == EDITED:
            both = [answer["text"], edited(answer["text"])]
            answer = _ask_daemon(client, options, body | {"edited": both}, keyed=keyed)
        return None if "wanted" in answer else _print_reply(answer)
    except RecollectError as error:
        from recollect.doors.cli.exit_codes import fail

        return fail(error)


def _ask_daemon(client: Client, options: Mapping[str, str], body: dict[str, Any], *, keyed: bool) -> dict[str, Any]:
    """Send the command to the daemon, again if the daemon is lost, under an id by which it takes effect only once."""

    def ask() -> dict[str, Any]:
        nonlocal client
        try:
            return dict(client.post("/command", body))
        except Lost:
            client = _ensured_client(options) or client
            raise

    return persistently(ask, keyed=keyed)


def _started_client(options: Mapping[str, str]) -> Client | None:
    """Start the daemon and return a client of it; None after any error, which the command itself meets again."""
    with suppress(RecollectError, OSError):
        return _ensured_client(options)
    return None


def _ensured_client(options: Mapping[str, str]) -> Client | None:
    """Return a client of the daemon, started when absent; None for a store that this process has to open itself."""
    from recollect.client.launch import ensure
    from recollect.settings import Settings
    from recollect.store.files import read_only

    settings = Settings(**options)
    return None if not settings.daemon or read_only(settings.database.parent) else ensure(settings)


def request(words: Sequence[str]) -> dict[str, Any]:
    """Return the words, terminal and variables that the daemon needs to run a command for this process."""
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # the request refuses what is not text
    return {
        "words": list(words),
        "stdin": None,
        "stdin_read": False,
        "variables": dict(environment.variables()),
        "folder": _working_folder(),
        "user": environment.system_user(),
        "request_id": os.urandom(16).hex(),
        "terminal": {
            "tty": [sys.stdout.isatty(), sys.stderr.isatty()],
            "size": _terminal_size(),
            "encoding": sys.stdout.encoding,
            "variables": environment.of_terminal(),
        },
    }


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # it is gone
        return os.sep


def _terminal_size() -> tuple[int, int] | None:
    """Return columns and rows of the first standard stream that is a terminal, None without any."""
    for number in range(3):
        try:
            return os.get_terminal_size(number)
        except OSError:
            continue
    return None


def _print_reply(answer: dict[str, Any]) -> int:
    """Print the output of a command, in the pager where it is long, and return the exit code."""
    size = _terminal_size() if answer["paged"] and sys.stdin.isatty() and sys.stdout.isatty() else None
    if size is not None and needs_pager(answer["out"], size[1]):
        page(answer["out"])
        answer = answer | {"out": ""}
    for stream, text in ((sys.stdout, answer["out"]), (sys.stderr, answer["err"])):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode gets question marks
        try:
            stream.write(text)
            stream.flush()
        except OSError as error:
            from recollect.doors.cli.exit_codes import unwritable

            return unwritable(error)
    return int(answer["code"])
