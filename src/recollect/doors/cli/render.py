"""What people see in a terminal: tables and panels, nothing that a program would parse.

Control characters in stored text never reach the terminal; visible signs replace them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from recollect.domain import results
from recollect.domain.compact import quoted
from recollect.domain.enums import Layer
from recollect.doors.cli.terminal import CurrentConsole, client_pages, stdout
from recollect.prompt.neutral import neutral

Report = Callable[[int, int], None]
"""Takes how much of a long work is done, and how much there is."""

out = cast(Console, CurrentConsole())
err = cast(Console, CurrentConsole(stderr=True))

_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))  # of bidirectional text
_SIGNS = dict.fromkeys((*range(0x80, 0xA0), *_DIRECTIONS), 0xFFFD) | _PICTURES
_LAYERS = ("title", "abstract", "overview")
_STYLES = {"id": "bold", "labels": "dim", "changed": "dim", "cosine": "dim"}
_CUT = frozenset({"labels", "subject", "predicate"})
"""The columns that take at most a quarter of the room."""
_WIDE = frozenset({"memory", "object", "what it says"})
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
    if text.count("\n") < out.height:
        out.file.write(text)
    else:
        page(text)


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


def answer(result: Any, offset: int = 0, *, why: bool = False) -> None:
    """Print what an operation answered; `offset` is where a page of a list begins, `why` adds the parts of scores."""
    match result:
        case results.Recalled():
            _recalled(result, why=why)
        case results.Outcome():
            message, *notes = result.sentences("--supersedes")
            print_line(message, "yellow" if result.status is results.WriteStatus.NOT_FOUND else "green")
            for note in notes:
                print_line(note)
        case results.Listed():
            memories(result.memories)
            print_line(page_line(len(result.memories), result.total, offset))
            _notes(result.notes)
        case results.FactsFound():
            _facts(result)
            print_line(page_line(len(result.facts), result.total, offset))
        case results.Stats():
            _stats(result)
            _notes(result.notes)
        case results.Rescanned():  # where secrets are stored and of which kinds, never what they are
            rows = [[one.what, str(one.id), one.field, ", ".join(one.kinds)] for one in result.exposed]
            print_rows(rows, "what", "id", "field", "kinds")
            print_line(result.message, "yellow" if result.exposed else "green")
        case results.Prompt():
            stdout().write(result.text and f"{result.text}\n")  # for pipes: no colours, no folding
        case results.Purged() | results.Summarized():
            print_line(result.message, "")
        case []:
            print_line("No similar memory found.")
        case _:
            similar: Sequence[results.Similar] = result
            _memories([one.memory for one in similar], "cosine", [f"{one.cosine:.2f}" for one in similar])


def named_here(outcome: results.Outcome) -> results.Outcome:
    """Name in the notes of an outcome the command that does what other doors call `restore`."""
    undo = f"`recollect undo {outcome.id}` brings"
    return replace(
        outcome,
        notes=tuple(
            note.replace("`restore` brings", undo).replace("`find_similar`", "`recollect similar`")
            for note in outcome.notes
        ),
    )


def memory(body: dict[str, Any], history: Sequence[dict[str, Any]]) -> None:
    """Print one memory's fields, without layers that only repeat its content, and what happened to it."""
    repeated = {name for name in _LAYERS if body.get(name) == body["content"]}
    print_fields({name: _value(value) for name, value in body.items() if name not in repeated})
    rows = [[line["at"], _action(line), line["actor"]] for line in history]
    print_rows(rows, "when", "what", "who", title="History")


def _action(line: Mapping[str, Any]) -> str:
    """Return what a line of the journal tells of; a change of importance with both values."""
    weighed = line.get("importance") if line["action"] == "consolidate" else None
    return "importance {:.2f} → {:.2f}".format(*weighed) if weighed else str(line["action"])


def print_fields(fields: Mapping[str, str]) -> None:
    """Print names and their values."""
    print_rows([[Text(name, style="dim"), value] for name, value in fields.items()])


def checks(found: Sequence[results.Check]) -> None:
    """Print the doctor's report, with advice under each problem."""
    rows: list[list[str | Text]] = []
    for one in found:
        mark = Text("✓", style="green") if one.well else Text("✗", style="red")
        seen = sanitized(one.seen)
        problem = Text.assemble((seen, "red"), "\n", sanitized(one.advice))
        rows.append([mark, Text(one.name, style="bold", no_wrap=True), seen if one.well else problem])
    print_rows(rows)


def status(body: dict[str, Any]) -> None:
    """Print what a running daemon says of itself."""
    print_fields(
        {
            "process": f"{body['pid']} (recollect {body['version']}), since {body['since']}",
            "listens on": body["socket"] or f"127.0.0.1:{body['port']}",
            "MCP over HTTP": body["url"] or "off; `recollect serve --port 8765` turns it on",
            **({"token": "`recollect status --token` prints it"} if body["url"] else {}),
            "memory": f"{body['memory_bytes'] / 1e6:.0f} MB",
            "model": body["model"],
            "vector index": body["vector_index"],
            "hooks": f"{body.get('events_waiting', 0)} events wait, {body.get('events_lost', 0)} were lost",
            "requests": f"{body['requests']}, the last one {body['idle_seconds']:.0f} s ago",
        }
    )


def _recalled(found: results.Recalled, *, why: bool) -> None:
    """Print the index if there is one, then each hit, a long one by its passage, and how it was found."""
    if found.index is not None:
        rows = [[str(line.id), f"{line.score:.2f}", line.abstract] for line in found.index.lines]
        print_rows(rows, "id", "score", "memory", title="Index")
    long = [found.index is None and bool(hit.passage) for hit in found.hits]
    for hit, cut in zip(found.hits, long, strict=True):
        _hit(replace(hit, layer=Layer.PASSAGE) if cut else hit, why=why)
    print_line(found.message)
    if any(long):
        print_line("`recollect show ID` shows a memory whole.")
    if found.index is not None and found.index.omitted:
        print_line(f"Without details: {found.index.omitted}. Not even listed: {found.index.unlisted}.")
    _notes(found.notes)


def _notes(notes: Sequence[str]) -> None:
    for note in notes:
        print_line(
            f"{note} `recall` and `list` look there with `--everywhere`."
            if note.startswith(results.ELSEWHERE)
            else note
        )


def _hit(hit: results.Hit, *, why: bool) -> None:
    parts = hit.why
    found = ", ".join(parts.pop("found_by"))
    one = hit.memory
    part = () if hit.layer is Layer.CONTENT else (f"{hit.layer} only",)
    labels = [*part, str(one.fact_type), str(one.scope), *filter(None, (one.project, one.key, one.category)), *one.tags]
    label = sanitized(" · ".join(labels))
    older = f"   older than {hit.older_than}" if hit.older_than is not None else ""
    sure = f"{hit.certainty} ({hit.match:.0%}){older}   found by {found or 'meaning'}"
    if why:
        sure += f"\nscore {hit.score:.2f} = " + " + ".join(f"{name} {value:.2f}" for name, value in parts.items())
    foot = Text(sure, style="dim")
    if out.is_terminal:
        head = f"[bold]{one.id}[/bold]  [dim]{escape(label)}[/dim]"
        body = Text.assemble(sanitized(quoted(hit)), "\n", foot)
        out.print(Panel(body, title=head, title_align="left", border_style="blue"))
    else:
        out.print(Text(f"{one.id}  {label}\n{sanitized(quoted(hit))}"), foot, "", sep="\n", soft_wrap=True)


def _memories(memories: Sequence[results.Memory], last: str, values: Sequence[str]) -> None:
    """Print memories with their labels, and a last column of `values`."""
    rows: list[list[str | Text]] = []
    for one, value in zip(memories, values, strict=True):
        labels = [
            str(one.fact_type),
            str(one.type or ""),
            one.project or "",
            one.category or "",
            *one.tags,
            *one.concepts,
        ]
        title, preview = sanitized(one.title), sanitized(results.preview_of(one.content))
        text = Text(preview) if one.title in one.content else Text.assemble((title, "bold"), " ", (preview, ""))
        rows.append([str(one.id), text, " · ".join(filter(None, labels)), value])
    print_rows(rows, "id", "memory", "labels", last)


def memories(found: Sequence[results.Memory]) -> None:
    """Print memories, each with its labels and the day of its last change."""
    _memories(found, "changed", [one.updated_at.date().isoformat() for one in found])


def _facts(found: results.FactsFound) -> None:
    rows = []
    for one in found.facts:
        end = one.valid_to.date().isoformat() if one.valid_to else ""
        holds = f"{one.valid_from.date().isoformat()} – {end}"
        rows.append([str(one.id), one.subject, one.predicate, one.object, f"{one.confidence:.2f}", holds])
    print_rows(rows, "id", "subject", "predicate", "object", "sure", "holds")


def _stats(counted: results.Stats) -> None:
    span = [one.date().isoformat() for one in (counted.oldest_at, counted.newest_at) if one is not None]
    groups = {
        "by scope": counted.by_scope,
        "by kind": counted.by_fact_type,
        "by type": counted.by_type,
        "by category": counted.by_category,
    }
    fields = {"memories": f"{counted.memories}" + (f", {' – '.join(span)}" if span else "")}
    fields |= {name: ", ".join(f"{key} {count}" for key, count in one.items()) for name, one in groups.items() if one}
    fields["facts"] = f"{counted.facts}, ended ones too"
    fields["not shown"] = (
        f"{counted.superseded} superseded, {counted.merged} merged, {counted.deleted} hidden, {counted.expired} expired"
    )
    if used := counted.model_tokens:
        spent = f"{used['hour']} tokens this hour, {used['day']} today"
        fields["language model"] = f"{used['questions']} questions, {spent}"
    print_fields(fields)


def page_line(shown: int, total: int, offset: int) -> str:
    """Say which part of a list is shown, and how to see more of it."""
    if not shown:
        return "Nothing found." if not total else f"Nothing there: {total} in all."
    left = total - offset - shown
    more = f" {left} more: add `--offset {offset + shown}`." if left > 0 else ""
    return f"{offset + 1}–{offset + shown} of {total}.{more}"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return f"{value['entity']} ({value['entity_type']})" if isinstance(value, dict) else str(value)
