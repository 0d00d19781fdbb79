"""What people see in a terminal: tables and panels, nothing a machine would parse.

What was remembered never steers the terminal: its control characters are shown as signs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from recollect.domain import (
    Done,
    FactsFound,
    Hit,
    Index,
    Layer,
    Listed,
    Memory,
    Outcome,
    Recalled,
    Rescanned,
    Similar,
    Stats,
)
from recollect.doors.shape import preview_of, why_json
from recollect.ports import Check

_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))  # which way letters run
_SIGNS = dict.fromkeys((*range(0x80, 0xA0), *_TURNING), 0xFFFD) | _PICTURES


def still(text: str) -> str:
    """Return a text in which whatever would steer a terminal is a sign one can see."""
    return text.translate(_SIGNS)


def lay(console: Console, table: Table) -> None:
    """Print a table as wide as its terminal; into a pipe each row goes whole, with tabs between its cells.

    There a list has one line for each row; what stands beside a name keeps its lines.
    """
    if console.is_terminal:
        console.print(table)
        return
    cells = [[_plain(cell) for cell in column.cells] for column in table.columns]
    rows = [list(row) for row in zip(*cells, strict=True)]
    if table.show_header:
        rows.insert(0, [_plain(column.header) for column in table.columns])
        rows = [[" ".join(cell.split()) for cell in row] for row in rows]
    lines = [str(table.title)] * bool(table.title) + ["\t".join(row) for row in rows]
    console.file.write("".join(f"{line}\n" for line in lines))


def outcome(console: Console, done: Outcome) -> None:
    """Print how a write ended."""
    style = "yellow" if done.done is Done.NOT_FOUND else "green"
    console.print(still(done.message), style=style, highlight=False, markup=False)
    for note in done.notes:
        console.print(still(note), style="dim", highlight=False, markup=False)


def recalled(console: Console, answer: Recalled) -> None:
    """Print the index if there is one, then each hit with its score part by part and how it was found."""
    if answer.index is not None and answer.index.lines:
        lay(console, _index(answer.index))
    for hit in answer.hits:
        _show_hit(console, hit)
    console.print(answer.message, style="dim", highlight=False)
    if answer.index is not None and answer.index.omitted:
        lacking = f"Without details: {answer.index.omitted}. Not even listed: {answer.index.unlisted}."
        console.print(lacking, style="dim", highlight=False)
    for note in answer.notes:
        console.print(still(note), style="dim", highlight=False, markup=False)


def memory(console: Console, body: dict[str, Any], history: Sequence[dict[str, Any]]) -> None:
    """Print one memory's fields and what happened to it."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in body.items():
        table.add_row(name, Text(still(_told(value))))
    lay(console, table)
    past = Table("when", "what", "who", title="History", title_justify="left", box=None, pad_edge=False)
    for line in history:
        past.add_row(line["at"], escape(line["action"]), Text(still(line["actor"])))
    lay(console, past)


def listed(console: Console, page: Listed, offset: int) -> None:
    """Print a page of memories, a line or two each, and which part of all of them it is."""
    if page.memories:
        table = Table("id", "memory", "labels", "changed", box=None, pad_edge=False)
        for one in page.memories:
            table.add_row(*_line(one), one.updated_at.date().isoformat())
        lay(console, table)
    console.print(_page(len(page.memories), page.total, offset), style="dim", highlight=False)


def similar(console: Console, found: Sequence[Similar]) -> None:
    """Print what resembles something, nearest first."""
    if not found:
        console.print("Nothing says nearly the same.", style="dim", highlight=False)
        return
    table = Table("id", "memory", "labels", "cosine", box=None, pad_edge=False)
    for one in found:
        table.add_row(*_line(one.memory), f"{one.cosine:.2f}")
    lay(console, table)


def facts(console: Console, found: FactsFound, offset: int) -> None:
    """Print a page of facts, and since when until when each holds."""
    if found.facts:
        table = Table("id", "subject", "predicate", "object", "sure", "holds", box=None, pad_edge=False)
        for one in found.facts:
            end = one.valid_to.date().isoformat() if one.valid_to else ""
            parts = (Text(still(part)) for part in (one.subject, one.predicate, one.object))
            holds = f"{one.valid_from.date().isoformat()} – {end}"
            table.add_row(Text(str(one.id), style="bold"), *parts, f"{one.confidence:.2f}", holds)
        lay(console, table)
    console.print(_page(len(found.facts), found.total, offset), style="dim", highlight=False)


def stats(console: Console, counted: Stats) -> None:
    """Print how much of what there is."""
    span = [one.date().isoformat() for one in (counted.oldest_at, counted.newest_at) if one is not None]
    rows = {
        "memories": f"{counted.memories}" + (f", {' – '.join(span)}" if span else ""),
        **{
            name: ", ".join(f"{key} {count}" for key, count in counts.items())
            for name, counts in (
                ("by scope", counted.by_scope),
                ("by kind", counted.by_fact_type),
                ("by type", counted.by_type),
                ("by category", counted.by_category),
            )
            if counts
        },
        "facts": f"{counted.facts}, ended ones too",
        "not shown": f"{counted.other_sensitivity} of other sensitivity, {counted.superseded} superseded, "
        f"{counted.merged} merged, {counted.deleted} hidden, {counted.expired} expired",
    }
    _rows(console, rows)


def rescanned(console: Console, found: Rescanned) -> None:
    """Print where secrets are stored and of which kinds, never what they are."""
    table = Table("what", "id", "field", "kinds", box=None, pad_edge=False)
    for one in found.exposed:
        table.add_row(one.what, str(one.id), escape(one.field), escape(", ".join(one.kinds)))
    if found.exposed:
        lay(console, table)
    console.print(found.message, style="yellow" if found.exposed else "green", highlight=False)


def checks(console: Console, found: Sequence[Check]) -> None:
    """Print the doctor's report, with advice under whatever is not well."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(width=2)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for one in found:
        mark = Text("✓", style="green") if one.well else Text("✗", style="red")
        seen = escape(one.seen) if one.well else f"[red]{escape(one.seen)}[/red]\n{escape(one.advice)}"
        table.add_row(mark, one.name, seen)
    lay(console, table)


def status(console: Console, body: dict[str, Any], owner: str) -> None:
    """Print who owns the store, or that nobody serves it."""
    if not body["running"]:
        held = f" It is held by `{owner}`." if owner else ""
        console.print(f"No memory daemon is running.{held}", highlight=False)
        return
    where = body["socket"] or f"127.0.0.1:{body['port']}"
    rows = {
        "process": f"{body['pid']} (recollect {body['version']}), since {body['since']}",
        "listens on": where,
        "memory": f"{body['memory_bytes'] / 1e6:.0f} MB",
        "model": body["model"],
        "vector index": body["vector_index"],
        "requests": f"{body['requests']}, the last one {body['idle_seconds']:.0f} s ago",
    }
    _rows(console, rows)


def _plain(cell: Any) -> str:
    return Text.from_markup(cell).plain if isinstance(cell, str) else str(cell)


def _rows(console: Console, rows: Mapping[str, object]) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in rows.items():
        table.add_row(Text(name, style="dim"), Text(still(str(value))))
    lay(console, table)


def _line(memory: Memory) -> tuple[Text, Text, Text]:
    """Return the id of a memory, what it says in short, and its labels."""
    labels = [str(memory.fact_type), str(memory.type or ""), memory.category or "", *memory.tags, *memory.concepts]
    title, preview = still(memory.title), still(preview_of(memory.content))
    short = Text(preview) if memory.title in memory.content else Text.assemble((title, "bold"), "\n", (preview, ""))
    return Text(str(memory.id), style="bold"), short, Text(still(" · ".join(filter(None, labels))), style="dim")


def _page(shown: int, total: int, offset: int) -> str:
    if not shown:
        return "Nothing found." if not total else f"Nothing there: {total} in all."
    return f"{offset + 1}–{offset + shown} of {total}."


def _told(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_told, value))
    return f"{value['entity']} ({value['entity_type']})" if isinstance(value, dict) else str(value)


def _index(index: Index) -> Table:
    table = Table("id", "score", "memory", title="Index", title_justify="left", box=None, pad_edge=False)
    for line in index.lines:
        table.add_row(Text(str(line.id), style="bold"), f"{line.score:.2f}", Text(still(line.abstract)))
    return table


def _show_hit(console: Console, hit: Hit) -> None:
    why = why_json(hit)
    found = ", ".join(why.pop("found_by"))
    parts = "  ".join(f"{name} {value:.2f}" for name, value in why.items())
    one = hit.memory
    part = () if hit.layer is Layer.CONTENT else (f"{hit.layer} only",)
    labels = [*part, str(one.fact_type), str(one.scope), *filter(None, (one.key, one.category)), *one.tags]
    said = still(" · ".join(labels))
    foot = Text(f"score {hit.score:.2f} = {parts}   found by {found or 'meaning'}", style="dim")
    if console.is_terminal:
        head = f"[bold]{one.id}[/bold]  [dim]{escape(said)}[/dim]"
        body = Text.assemble(still(hit.text), "\n", foot)
        console.print(Panel(body, title=head, title_align="left", border_style="blue"))
    else:
        console.print(Text(f"{one.id}  {said}\n{still(hit.text)}"), foot, "", sep="\n", soft_wrap=True)
