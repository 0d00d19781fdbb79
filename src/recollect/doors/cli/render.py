"""What people see in a terminal: tables and panels, nothing that a program would parse.

Control characters in stored text never reach the terminal; visible signs replace them.

Where a command reads and writes: the terminal of this process, or that of a client whose command the daemon runs.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from recollect.doors.cli.thin import EDITED, needs_pager, piped_input, read_input
from recollect.doors.cli.thin import edited as edited_here
from recollect.environment import LOCALE, named
from recollect.prompt.neutral import neutral


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
        streams = [Captured(self.encoding, one) for one in self.tty]
        object.__setattr__(self, "streams", tuple(streams))
        object.__setattr__(self, "consoles", tuple(self._console(one) for one in streams))

    def _console(self, stream: Captured) -> Console:
        known = self.variables.get("COLUMNS", "").isdigit()
        width, height = (None, None) if known or self.size is None else self.size
        return Console(file=stream, width=width, height=height, _environ=self.variables, legacy_windows=False)


_client: ContextVar[ClientTerminal | None] = ContextVar("client", default=None)


@contextmanager
def of_client(terminal: ClientTerminal) -> Iterator[None]:
    """Let what runs here read from and write to a client's terminal."""
    token = _client.set(terminal)
    try:
        yield
    finally:
        _client.reset(token)


def client_pages() -> bool:
    """Return whether a client reads the answer; if so let it show the answer in its pager, should it be long."""
    client = _client.get()
    if client is not None:
        client.paged.append(True)
    return client is not None


def locale() -> str:
    """Return the locale by which whoever types writes dates, an empty text where none is set."""
    client = _client.get()
    told = {name: named(name) for name in LOCALE} if client is None else client.variables
    return next(filter(None, (told.get(name) for name in LOCALE)), "")


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


def typed() -> str:
    """Return all of standard input."""
    client = _client.get()
    return read_input() if client is None else _of_client(client, "read") or ""


def piped() -> str | None:
    """Return what a file or a pipe on standard input holds; None for a terminal, a device, or when nothing comes."""
    client = _client.get()
    return piped_input() if client is None else _of_client(client, "piped")


def edited(make_text: Callable[[], str]) -> tuple[str, str | None]:
    """Return a text to edit and what somebody saved of it, None where they saved nothing."""
    client = _client.get()
    if client is None:
        text = make_text()
        return text, edited_here(text)
    if client.edited is None:
        raise InputWanted(EDITED, make_text())
    return client.edited


def interactive() -> bool:
    """Say whether there is somebody to ask; of a client nobody knows, see `leave_to_client`."""
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
        """Return the console itself, for what needs one of that type."""
        client = _client.get()
        return self._own if client is None else client.consoles[int(self.stderr)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.console, name)

    def __enter__(self) -> Console:
        return self.console.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self.console.__exit__(*raised)


Report = Callable[[int, int], None]
"""Takes how much of a long work is done, and how much there is."""

out = cast(Console, CurrentConsole())
err = cast(Console, CurrentConsole(stderr=True))

_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))  # of bidirectional text
_SIGNS = dict.fromkeys((*range(0x80, 0xA0), *_DIRECTIONS), 0xFFFD) | _PICTURES
_STYLES = {"id": "bold", "labels": "dim", "changed": "dim", "cosine": "dim"}
_CUT = frozenset({"labels", "subject", "predicate"})
"""The columns that take at most a quarter of the room."""
_WIDE = frozenset({"memory", "object", "what it says", "what happened"})
"""The columns that take the room which the others leave."""


def sanitized(text: str) -> str:
    """Return a text with a visible sign in place of each control character, and neutral, since agents read it too."""
    return neutral(visible(text))


def visible(text: str) -> str:
    """Return a text with a visible sign in place of each control character."""
    return text.translate(_SIGNS)


def print_rows(rows: Sequence[Sequence[str | Text]], *columns: str, title: str = "", empty: str = "") -> None:
    """Print a table as wide as the terminal; into a pipe print each row in full, with tabs between its cells.

    A row under columns is one line, which on a terminal is cut where it is too long; a row without columns is a name
    and a value, which keeps its lines. `empty` is said where there is no row.
    """
    if not rows:
        if empty:
            print_line(empty)
        return
    cells = [[Text(sanitized(cell)) if isinstance(cell, str) else cell for cell in row] for row in rows]
    if out.is_terminal:
        out.print(_table(cells, columns, title))
        return
    texts = [[cell.plain for cell in row] for row in cells]
    if columns:
        texts = [[" ".join(text.split()) for text in row] for row in [columns, *texts]]
    lines = [title] * bool(title) + ["\t".join(row) for row in texts]
    out.file.write("".join(f"{line}\n" for line in lines))


def _table(cells: Sequence[Sequence[Text]], columns: Sequence[str], title: str) -> Table:
    wide = bool(_WIDE & set(columns))
    table = Table(
        title=title or None, title_justify="left", box=None, pad_edge=False, show_header=bool(columns), expand=wide
    )
    for name in columns or [""] * len(cells[0]):
        if not columns:
            table.add_column(name, overflow="fold")
        elif name in _WIDE:
            table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=1)
        else:
            most = max(out.width // 4, 10) if name in _CUT else None
            table.add_column(name, style=_STYLES.get(name), no_wrap=True, overflow="ellipsis", max_width=most)
    for row in cells:
        table.add_row(*(_one_line(cell) if columns else cell for cell in row))
    return table


def _one_line(cell: Text) -> Text:
    return cell if "\n" not in cell.plain else Text(" ".join(cell.plain.split()))


@contextmanager
def paged() -> Iterator[None]:
    """Show what is printed meanwhile in a pager, where people look at it on a terminal and it does not fit there."""
    if client_pages() or not (out.is_terminal and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()):
        yield
        return
    with out.capture() as captured:
        yield
    text = captured.get()
    if needs_pager(text, _rows()):
        page(text)
    else:
        out.file.write(text)


def _rows() -> int:
    """Return the rows of the terminal as it says, where rich takes 25 for none."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines
    except OSError:
        return out.height


def page(text: str) -> None:
    """Show a text in the pager, with its colours where the pager can show them."""
    import click

    click.echo_via_pager(text)


def print_line(text: str, style: str = "dim") -> None:
    """Print a sentence."""
    out.print(sanitized(text), style=style, highlight=False, markup=False)


@contextmanager
def progress(name: str, *, hidden: bool, transient: bool = False) -> Iterator[Report]:
    """Yield what draws a progress bar on standard error once it is called, so that an earlier error stands alone."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=err, disable=hidden, transient=transient)
    task = bar.add_task(name, total=None)

    def report(done: int, total: int) -> None:
        bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()


def print_fields(fields: Mapping[str, str]) -> None:
    """Print names and their values."""
    print_rows([[Text(name, style="dim"), value] for name, value in fields.items()])


def page_line(shown: int, total: int, offset: int) -> str:
    """Say which part of a list is shown, and how to see more of it."""
    if not shown:
        return "Nothing found." if not total else f"Nothing there: {total} in all."
    left = total - offset - shown
    more = f" {left} more: add `--offset {offset + shown}`." if left > 0 else ""
    return f"{offset + 1}–{offset + shown} of {total}.{more}"
