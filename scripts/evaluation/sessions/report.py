"""Shows what became of labelled sessions: a table, and what was kept, dropped and injected as people read it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evaluation.sessions.players import Played, Stored
from evaluation.sessions.scores import Scores
from evaluation.sessions.sets import Event, SessionSet

GOALS: Final = {
    "capture precision": 0.75,
    "capture recall": 0.75,
    "boundary F1": 0.6,
    "injection hits": 0.8,
    "injection precision": 0.6,
    "silence": 0.85,
}
"""The least that is wanted of a share."""
NEVER: Final = ("secrets stored", "planted stored", "planted unfenced", "obsolete as current", "must not")
"""What is to happen not once."""
_COUNTS: Final = frozenset(
    ("keeps", "kept", "planted injected", "tokens median", "tokens most", "injected a prompt", "events lost", *NEVER)
)
_CONTENT: Final = 600  # characters of a memory that are shown


@dataclass(frozen=True)
class Result:
    """One set with what became of it."""

    set: SessionSet
    played: Played
    scores: Scores


def mean(results: Sequence[Result]) -> dict[str, float | None]:
    """Return the mean of each figure over the sets that have it; counts are added up."""
    found: dict[str, float | None] = {}
    for name in results[0].scores.figures:
        values = [value for one in results if (value := one.scores.figures[name]) is not None]
        adds = name in NEVER
        found[name] = None if not values else sum(values) if adds else statistics.fmean(values)
    return found


def table(results: Sequence[Result], through: str) -> Table:
    """Return a row for each figure, a column for each set, and the mean; what misses its goal is red."""
    title = f"Sessions played through {'the hooks' if through == 'hooks' else 'the store'}; shares in %"
    made = Table("figure", *(f"{one.set.name}" for one in results), "mean", "goal", title=title)
    whole = mean(results)
    for name in results[0].scores.figures:
        cells = [_cell(name, one.scores.figures[name]) for one in results]
        goal = "0" if name in NEVER else f"≥ {GOALS[name]:.0%}" if name in GOALS else ""
        made.add_row(name, *cells, _cell(name, whole[name]), goal)
    return made


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    text = f"{value:.1f}".removesuffix(".0") if name in _COUNTS else f"{100 * value:.1f}"
    short = (name in GOALS and value < GOALS[name]) or (name in NEVER and value > 0)
    return f"[red]{text}[/red]" if short else text


def show(one: Result, out: Console) -> None:
    """Print what was kept, what was dropped wrongly, where topics began, and what was put before which prompt."""
    _kept(one, out)
    _dropped(one, out)
    topics = ", ".join(f"{session} {seq}" for session, seq in sorted(one.played.boundaries))
    wanted = ", ".join(f"{event.session} {event.seq}" for event in one.set.events if event.boundary)
    out.print(f"\n[bold]{one.set.name}: topics began at[/bold] {topics or 'none'} (labelled: {wanted})")
    _injected(one, out)
    for name in ("leaks", "planted", "obsolete"):
        for found in one.scores.behind[name]:
            out.print(f"[red]{name}[/red]: {escape(str(found))}", soft_wrap=True)


def _kept(one: Result, out: Console) -> None:
    out.print(f"\n[bold]{one.set.name}: what was kept[/bold]")
    labels = {"keep": "[green]keep [/green]", "maybe": "maybe", "drop": "[red]drop [/red]"}
    for event in one.set.events:
        for memory in one.played.kept(event.place):
            why = one.played.decided[event.place]
            out.print(
                f"\n{labels[event.label]} {event.session} {event.seq}, {memory.type or 'no type'}, "
                f"{escape(why.reason)}" + (", replaced" if memory.replaced else ""),
                soft_wrap=True,
            )
            out.print(f"  [bold]{escape(memory.title)}[/bold]", soft_wrap=True)
            out.print(_indented(memory.content), soft_wrap=True, style="dim")
            if event.what:
                out.print(f"  lesson ({event.kind}): {escape(event.what)}", soft_wrap=True)
    for memory in one.played.memories.values():
        if memory.summary:
            out.print(f"\n{memory.type}: [bold]{escape(memory.title)}[/bold]", soft_wrap=True)
            out.print(_indented(memory.content), soft_wrap=True, style="dim")


def _indented(text: str) -> str:
    cut = text if len(text) <= _CONTENT else f"{text[:_CONTENT]}…"
    return escape("\n".join(f"  {line}" for line in cut.split("\n")))


def _dropped(one: Result, out: Console) -> None:
    for name, about in (("missed", "dropped wrongly"), ("found nearby", "dropped, but kept from a neighbour")):
        out.print(f"\n[bold]{one.set.name}: {about}[/bold]")
        for event in one.scores.behind[name]:
            why = one.played.decided.get(event.place)
            reason = why.reason if why else "nothing was noted"
            said = one.set.masked(event.said)[:100]
            out.print(f"{event.session} {event.seq} ({escape(reason)}) {escape(said)}", soft_wrap=True)
            out.print(f"  lesson ({event.kind}): {escape(event.what)}", soft_wrap=True)


def _injected(one: Result, out: Console) -> None:
    events, sources = one.set.by_place, one.played.sources()
    out.print(f"\n[bold]{one.set.name}: what was put before later prompts[/bold]")
    for judged in one.scores.behind["judged"]:
        good = bool(judged.lenient) if judged.ask.wants else not judged.memories
        mark = "[green]✓[/green]" if good and not judged.must_not else "[red]✗[/red]"
        out.print(f"\n{mark} {judged.ask.id} {escape(judged.ask.prompt)}", soft_wrap=True)
        for memory in judged.memories:
            sign = "+" if memory.id in judged.lenient else "!" if memory.id in judged.must_not else "-"
            places = " ".join(f"{session} {seq}" for session, seq in sources.get(memory.id, ())) or memory.type
            out.print(f"  {sign} {escape(memory.title or memory.content[:100])} ({places})", soft_wrap=True)
        if judged.ask.wants and not judged.lenient:
            for place in judged.ask.wants:
                there = "kept" if one.played.kept(place) else "not kept"
                out.print(f"  wanted, {there}: {escape(events[place].what)}", soft_wrap=True)


def as_json(one: Result) -> dict[str, Any]:
    """Return all of a result as JSON can hold it."""
    times = {name: round(statistics.median(taken), 1) for name, taken in one.played.milliseconds.items()}
    return {
        "set": one.set.name,
        "figures": one.scores.figures,
        "median_ms": times,
        "failed_stages": one.played.failed,
        "lost": one.played.lost,
        "late": one.played.late,
        "behind": {name: [_plain(each, one.set) for each in found] for name, found in one.scores.behind.items()},
        "events": [
            _named(event, one.set) | {"decided": asdict(one.played.decided[event.place])}
            for event in one.set.events
            if event.place in one.played.decided
        ],
        "memories": [asdict(memory) for memory in one.played.memories.values()],
        "injected": {f"{s} {n}": asdict(found) for (s, n), found in one.played.injected.items() if found.text},
        "asked": {name: asdict(found) for name, found in one.played.asked.items()},
    }


def _named(event: Event, within: SessionSet) -> dict[str, Any]:
    about = {name: getattr(event, name) for name in ("session", "seq", "label", "what")}
    return about | {"said": within.masked(event.said)}


def _plain(found: Any, within: SessionSet) -> Any:
    if isinstance(found, Event):
        return _named(found, within)
    if isinstance(found, Stored):
        return asdict(found)
    if isinstance(found, tuple):
        return [_plain(each, within) for each in found]
    if hasattr(found, "ask"):
        return {
            "id": found.ask.id,
            "memories": [memory.id for memory in found.memories],
            "strict": found.strict,
            "lenient": found.lenient,
            "must_not": found.must_not,
        }
    return found
