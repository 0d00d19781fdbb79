"""What people see in a terminal: tables and panels, nothing that a program would parse.

Control characters in stored text never reach the terminal; visible signs replace them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from recollect.doors.cli.pager import needs_pager, page
from recollect.doors.cli.terminal import CurrentConsole, client_pages
from recollect.prompt.neutral import neutral

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
        out.print(_build_table(cells, columns, title))
        return
    texts = [[cell.plain for cell in row] for row in cells]
    if columns:
        texts = [[" ".join(text.split()) for text in row] for row in [columns, *texts]]
    lines = [title] * bool(title) + ["\t".join(row) for row in texts]
    out.file.write("".join(f"{line}\n" for line in lines))


def _build_table(cells: Sequence[Sequence[Text]], columns: Sequence[str], title: str) -> Table:
    """Return a table without borders; without columns its rows are names and values that keep their lines."""
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
    """Show the output of the block in a pager when the terminal is too small for it."""
    if client_pages() or not (out.is_terminal and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()):
        yield
        return
    with out.capture() as captured:
        yield
    text = captured.get()
    if needs_pager(text, _terminal_rows()):
        page(text)
    else:
        out.file.write(text)


def _terminal_rows() -> int:
    """Return the number of rows that the terminal reports; without a terminal, that of the console."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines
    except OSError:
        return out.height


def print_line(text: str, style: str = "dim") -> None:
    """Print a sentence."""
    out.print(sanitized(text), style=style, highlight=False, markup=False)


@contextmanager
def progress(name: str, *, hidden: bool, transient: bool = False) -> Iterator[Report]:
    """Yield a reporter that draws a progress bar on standard error from its first call on."""
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
    """Return the line on the shown part of a list, with the way to see more of it."""
    if not shown:
        return "Nothing found." if not total else f"Nothing there: {total} in all."
    left = total - offset - shown
    more = f" {left} more: add `--offset {offset + shown}`." if left > 0 else ""
    return f"{offset + 1}–{offset + shown} of {total}.{more}"
