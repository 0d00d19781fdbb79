"""The terminal of a command: that of this process, or that of a client whose command the daemon runs."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TextIO

from rich.console import Console

from recollect.doors.cli.editor import EDITED
from recollect.doors.cli.editor import edited as edited_here
from recollect.doors.cli.standard_input import piped_input, read_input
from recollect.environment import LOCALE, named


class Captured(io.StringIO):
    """What a command writes for a client, which says whether it is a terminal and what it can encode."""

    def __init__(self, encoding: str, tty: bool) -> None:
        super().__init__()
        self._of, self._tty = encoding, tty

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Return the encoding of the client's stream."""
        return self._of

    def isatty(self) -> bool:
        """Say whether the client's stream is a terminal."""
        return self._tty


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTerminal:
    """A client's command line, its input and its streams; `size` is columns and lines, where it has a terminal."""

    words: Sequence[str]
    stdin: str | None
    stdin_read: bool
    edited: tuple[str, str | None] | None = None
    encoding: str
    tty: tuple[bool, bool]
    size: tuple[int, int] | None
    variables: dict[str, str]
    paged: list[bool] = field(default_factory=list)
    streams: tuple[Captured, Captured] = field(init=False)
    consoles: tuple[Console, Console] = field(init=False)

    def __post_init__(self) -> None:
        streams = [Captured(self.encoding, tty) for tty in self.tty]
        object.__setattr__(self, "streams", tuple(streams))
        object.__setattr__(self, "consoles", tuple(self._open_console(stream) for stream in streams))

    def _open_console(self, stream: Captured) -> Console:
        known = self.variables.get("COLUMNS", "").isdigit()
        width, height = (None, None) if known or self.size is None else self.size
        return Console(file=stream, width=width, height=height, _environ=self.variables, legacy_windows=False)


_client: ContextVar[ClientTerminal | None] = ContextVar("client", default=None)


@contextmanager
def of_client(terminal: ClientTerminal) -> Iterator[None]:
    """Let the block read from and write to a client's terminal."""
    token = _client.set(terminal)
    try:
        yield
    finally:
        _client.reset(token)


def client_pages() -> bool:
    """Return whether a client prints the answer; it then shows a long answer in its pager."""
    client = _client.get()
    if client is not None:
        client.paged.append(True)
    return client is not None


def locale() -> str:
    """Return the locale of the person who typed the command, an empty text where none is set."""
    client = _client.get()
    variables = {name: named(name) for name in LOCALE} if client is None else client.variables
    return next(filter(None, (variables.get(name) for name in LOCALE)), "")


def words() -> Sequence[str]:
    """Return the words of the command line, without the program's name."""
    client = _client.get()
    return sys.argv[1:] if client is None else client.words


def stdout() -> TextIO:
    """Return the stream for answers."""
    client = _client.get()
    return sys.stdout if client is None else client.streams[0]


class InputWanted(Exception):
    """A client has to read its standard input or to edit a text, as the arguments say, and to ask again."""


def read_stdin() -> str:
    """Return all of standard input."""
    client = _client.get()
    return read_input() if client is None else _of_client(client, "read") or ""


def read_piped() -> str | None:
    """Return the text of a file or a pipe on standard input; None for a terminal, a device, or when no text comes."""
    client = _client.get()
    return piped_input() if client is None else _of_client(client, "piped")


def edit_text(make_text: Callable[[], str]) -> tuple[str, str | None]:
    """Return a text to edit and the text that somebody saved, None where they saved nothing."""
    client = _client.get()
    if client is None:
        text = make_text()
        return text, edited_here(text)
    if client.edited is None:
        raise InputWanted(EDITED, make_text())
    return client.edited


def interactive() -> bool:
    """Return whether a person can be asked; for a client that is unknown here, see `leave_to_client`."""
    return _client.get() is None and sys.stdin is not None and sys.stdin.isatty()


def of_another() -> bool:
    """Say whether the command runs in a client's stead."""
    return _client.get() is not None


def leave_to_client() -> None:
    """Let a client run the command itself, since it has to ask somebody at its terminal."""
    if _client.get() is not None:
        raise InputWanted("itself")


def _of_client(client: ClientTerminal, how: str) -> str | None:
    if not client.stdin_read:
        raise InputWanted(how)
    return client.stdin


class CurrentConsole:
    """The console of whichever terminal the running command has; it offers all that `rich.console.Console` does."""

    def __init__(self, *, stderr: bool = False) -> None:
        self.stderr = stderr
        self._own = Console(stderr=stderr)

    @property
    def console(self) -> Console:
        """Return the console itself, for libraries that check its type."""
        client = _client.get()
        return self._own if client is None else client.consoles[int(self.stderr)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.console, name)

    def __enter__(self) -> Console:
        return self.console.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self.console.__exit__(*raised)
