"""Commands as a thin client: the daemon parses the words and runs the command, this process prints what it answers."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

from recollect import __version__, environment
from recollect.client.daemon import Client, running_at
from recollect.client.transport import Lost, persistently
from recollect.doors.cli.patience import told_after_a_second
from recollect.errors import InvalidInput, RecollectError
from recollect.text.utf8 import fault, fault_of_text

EDITED: Final = "edited"
"""What a daemon wants first: that somebody edits a text."""


def run(words: Sequence[str], given: Mapping[str, str], home: Path, *, start: bool, keyed: bool) -> int | None:
    """Run a command in the daemon, print its answer and return its exit code; None where this process has to run it.

    `start` says whether the daemon is started where none is running, `keyed` whether the command takes effect once
    however often it is asked for; `given` are the settings among the words.
    """
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if any(fault_of_text(one) for one in words):  # as in the name of a file; JSON takes none of it along
        return None
    if os.name != "posix" or not all(isinstance(one, TextIOWrapper) for one in streams):
        return None
    try:
        body = request(words)
        with told_after_a_second(words):
            client = running_at(home)
            if client is None and start:
                client = _started(given)
            if client is None or client.runtime.version != __version__:
                return None
            answer = _answer(client, given, body, keyed=keyed)
        if answer.get("wanted") in ("read", "piped"):
            typed = read_input() if answer["wanted"] == "read" else piped_input()
            answer = _answer(client, given, body | {"stdin": typed, "stdin_read": True}, keyed=keyed)
        elif answer.get("wanted") == EDITED:
            both = [answer["text"], edited(answer["text"])]
            answer = _answer(client, given, body | {"edited": both}, keyed=keyed)
        return None if "wanted" in answer else _print(answer)
    except RecollectError as error:
        from recollect.doors.cli.exit_codes import fail

        return fail(error)


def _answer(client: Client, given: Mapping[str, str], body: dict[str, Any], *, keyed: bool) -> dict[str, Any]:
    """Ask the daemon, again when it is gone meanwhile, under an id by which nothing takes effect twice."""

    def ask() -> dict[str, Any]:
        nonlocal client
        try:
            return dict(client.post("/command", body))
        except Lost:
            client = _ensured(given) or client
            raise

    return persistently(ask, keyed=keyed)


def needs_pager(text: str, rows: int) -> bool:
    """Say whether a text does not fit on a terminal of so many rows; one that is too low for a pager needs none."""
    return rows >= _LEAST_ROWS and text.count("\n") >= rows


def edited(text: str) -> str | None:
    """Let somebody edit a text and return what they saved, None where they saved nothing.

    Raises `InvalidInput` without a terminal to edit in, `RecollectError` where the editor cannot be used.
    """
    named = environment.named("VISUAL") or environment.named("EDITOR")
    if not named and (sys.stdin is None or not sys.stdin.isatty()):
        raise InvalidInput("editor", "There is no terminal to edit in: set EDITOR, or use `recollect update`.")
    import click

    try:
        saved: str | None = click.edit(text, extension=".md")
    except click.ClickException as error:
        raise RecollectError(f"The editor could not be used: {error.format_message()}") from None
    return saved


def _started(given: Mapping[str, str]) -> Client | None:
    """Start the daemon and return a client of it; whatever goes wrong is met again by the command itself."""
    with suppress(RecollectError, OSError):
        return _ensured(given)
    return None


def _ensured(given: Mapping[str, str]) -> Client | None:
    """Return a client of the daemon, started when absent; None for a store that this process has to open itself."""
    from recollect.client.launch import ensure
    from recollect.settings import Settings
    from recollect.store.files import read_only

    settings = Settings(**given)
    return None if not settings.daemon or read_only(settings.database.parent) else ensure(settings)


def request(words: Sequence[str]) -> dict[str, Any]:
    """Return what the daemon must know of this process to run a command in its stead."""
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # the request refuses what is not text
    return {
        "words": list(words),
        "stdin": None,
        "stdin_read": False,
        "variables": dict(environment.variables()),
        "folder": _folder(),
        "user": environment.system_user(),
        "request_id": os.urandom(16).hex(),
        "terminal": {
            "tty": [sys.stdout.isatty(), sys.stderr.isatty()],
            "size": _size(),
            "encoding": sys.stdout.encoding,
            "variables": environment.of_terminal(),
        },
    }


def _folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # it is gone
        return os.sep


def _size() -> tuple[int, int] | None:
    for number in range(3):
        try:
            return os.get_terminal_size(number)
        except OSError:
            continue
    return None


def _print(answer: dict[str, Any]) -> int:
    size = _size() if answer["paged"] and sys.stdin.isatty() and sys.stdout.isatty() else None
    if size is not None and needs_pager(answer["out"], size[1]):
        from recollect.doors.cli.render import page

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


_LEAST_ROWS: Final = 5
_WAIT: Final = 3.0  # seconds for the first byte of a pipe: whoever inherits one into which nobody writes must not hang


def read_input() -> str:
    """Return all of it, nothing where it is closed; raise `InvalidInput` where it is not UTF-8."""
    if sys.stdin is None or not isinstance(sys.stdin, TextIOWrapper):
        return sys.stdin.read() if sys.stdin is not None else ""
    data: bytes = sys.stdin.buffer.read()
    if sys.stdin.encoding.lower() not in ("utf-8", "utf8"):
        return str(data, sys.stdin.encoding, errors="replace")
    if (wrong := fault(data)) is not None:
        raise InvalidInput("content", f"Invalid content: Standard input cannot be read. {wrong}")
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")


def piped_input() -> str | None:
    """Return what a file or a pipe on standard input holds; None for a terminal, a device, or when nothing comes."""
    if sys.stdin is None:
        return None
    try:
        number = sys.stdin.fileno()
        kind = os.fstat(number).st_mode
    except OSError:  # not a file of the system's
        return read_input() or None
    if stat.S_ISREG(kind) or ((stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)) and _comes(number)):
        return read_input() or None
    return None


def _comes(number: int) -> bool:
    """Say whether a pipe or socket has something to read, or ends, within a moment."""
    if sys.platform == "win32":  # where only sockets can be waited for
        return False
    return bool(select.select([number], [], [], _WAIT)[0])
