"""What people see in a terminal: tables and panels, nothing a machine would parse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from recollect.domain import Done, Hit, Index, Layer, Outcome, Recalled
from recollect.doors.shape import why_json
from recollect.ports import Check


def outcome(console: Console, done: Outcome) -> None:
    """Print how a write ended."""
    console.print(done.message, style="yellow" if done.done is Done.NOT_FOUND else "green", highlight=False)
    for note in done.notes:
        console.print(note, style="dim", highlight=False)


def recalled(console: Console, answer: Recalled) -> None:
    """Print the index if there is one, then each hit with its score part by part and how it was found."""
    if answer.index is not None and answer.index.lines:
        console.print(_index(answer.index))
    for hit in answer.hits:
        console.print(_hit(hit))
    console.print(answer.message, style="dim", highlight=False)
    if answer.index is not None and answer.index.omitted:
        lacking = f"Without details: {answer.index.omitted}. Not even listed: {answer.index.unlisted}."
        console.print(lacking, style="dim", highlight=False)
    for note in answer.notes:
        console.print(note, style="dim", highlight=False)


def memory(console: Console, body: dict[str, Any], history: Sequence[dict[str, Any]]) -> None:
    """Print one memory's fields and what happened to it."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in body.items():
        table.add_row(name, escape(", ".join(map(str, value)) if isinstance(value, list) else str(value)))
    console.print(table)
    past = Table("when", "what", "who", title="History", title_justify="left", box=None, pad_edge=False)
    for line in history:
        past.add_row(line["at"], escape(line["action"]), escape(line["actor"]))
    console.print(past)


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
    console.print(table)


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
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in rows.items():
        table.add_row(Text(name, style="dim"), escape(str(value)))
    console.print(table)


def _index(index: Index) -> Table:
    table = Table("id", "score", "memory", title="Index", title_justify="left", box=None, pad_edge=False)
    for line in index.lines:
        table.add_row(Text(str(line.id), style="bold"), f"{line.score:.2f}", escape(line.abstract))
    return table


def _hit(hit: Hit) -> Panel:
    why = why_json(hit)
    found = ", ".join(why.pop("found_by"))
    parts = "  ".join(f"{name} {value:.2f}" for name, value in why.items())
    one = hit.memory
    part = () if hit.layer is Layer.CONTENT else (f"{hit.layer} only",)
    labels = [*part, str(one.fact_type), str(one.scope), *filter(None, (one.key, one.category)), *one.tags]
    foot = Text(f"score {hit.score:.2f} = {parts}   found by {found or 'meaning'}", style="dim")
    head = f"[bold]{one.id}[/bold]  [dim]{escape(' · '.join(labels))}[/dim]"
    return Panel(Text.assemble(hit.text, "\n", foot), title=head, title_align="left", border_style="blue")
