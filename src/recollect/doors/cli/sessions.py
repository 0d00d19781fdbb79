"""The commands on sessions of coding agents: which there were, what became of their events, and putting that right."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import typer
from rich.text import Text

from recollect.domain.lifecycle import (
    CorrectObservation,
    Decision,
    ListSessions,
    Noted,
    SessionList,
    SessionSummary,
    ShownObservation,
    ShownSession,
    ShowSession,
)
from recollect.domain.verbs import BY_NAME
from recollect.doors.cli import exit_codes, render
from recollect.doors.cli.opening import opened
from recollect.doors.cli.options import Given, Json, from_fields
from recollect.doors.cli.render import sanitized
from recollect.doors.serializers import agent_json

_STYLES: Final[dict[str, str]] = {Decision.KEPT: "green", Decision.DROPPED: "dim", Decision.REFUSED: "yellow"}
_COLUMNS: Final = ("no", "time", "tool", "became", "why", "score", "memory id", "what it says")

cli = typer.Typer()
_sessions_group = typer.Typer(invoke_without_command=True, help="Show what became of agents' sessions, and correct it.")
cli.add_typer(_sessions_group, name="session")


@_sessions_group.callback()
def session(ctx: typer.Context, as_json: Json = False) -> None:
    """Show what became of agents' sessions, and correct it; without a command list the latest."""
    if ctx.invoked_subcommand is None:
        _answer(ctx, "list_sessions", {}, as_json, lambda found: _sessions(found, 0))


@_sessions_group.command("list")
@from_fields(ListSessions)
def list_(ctx: typer.Context, given: Given, as_json: bool = False) -> None:
    """List your sessions in this project, the latest first."""
    _answer(ctx, "list_sessions", given, as_json, lambda found: _sessions(found, given.get("offset", 0)))


@_sessions_group.command()
@from_fields(ShowSession, "session_id")
def show(ctx: typer.Context, given: Given, as_json: bool = False) -> None:
    """Show what was kept and dropped of a session and why; the latest session without an id."""
    _answer(ctx, "show_session", given, as_json, lambda found: _session(found, given.get("offset", 0)))


@_sessions_group.command()
@from_fields(CorrectObservation, without="keep")
def keep(ctx: typer.Context, given: Given, as_json: bool = False) -> None:
    """Keep an observation that was dropped: it becomes a memory."""
    _answer(ctx, "correct_observation", given | {"keep": True}, as_json, lambda noted: _corrected(noted, given))


@_sessions_group.command()
@from_fields(CorrectObservation, without="keep")
def drop(ctx: typer.Context, given: Given, as_json: bool = False) -> None:
    """Drop an observation that was kept: its memory is deleted for good."""
    _answer(ctx, "correct_observation", given | {"keep": False}, as_json, lambda noted: _corrected(noted, given))


def _answer(ctx: typer.Context, name: str, given: Given, as_json: bool, printed: Callable[[Any], None]) -> None:
    """Run an operation and print its answer."""
    BY_NAME[name].request(**given)  # report invalid input before anything is started
    with opened(ctx.obj, model=given.get("keep", False)) as run:
        found = run(name, **given)
    exit_codes.show(agent_json(BY_NAME[name].answer, found), as_json, print_answer=lambda: printed(found))


def _sessions(found: SessionList, offset: int) -> None:
    rows = [
        [one.session_id, one.agent, _minute(one.started_at), _ended(one), str(one.kept), str(one.dropped)]
        for one in found.sessions
    ]
    render.print_rows(rows, "session", "agent", "began", "ended", "kept", "dropped")
    render.print_line(render.page_line(len(rows), found.total, offset))


def _session(found: ShownSession, offset: int) -> None:
    one = found.session
    lasted = f"{_minute(one.started_at)} – {_ended(one)} (UTC)"
    counts = f"{one.kept} kept, {one.dropped} dropped"
    fields = {"session": one.session_id, "agent": one.agent, "time": lasted, "observations": counts}
    render.print_fields({name: value for name, value in fields.items() if value})
    if render.out.is_terminal:
        render.print_rows([_short(each) for each in found.observations], "no", "time", "tool", "became", "what it says")
    else:
        render.print_rows([_whole(each) for each in found.observations], *_COLUMNS)
    render.print_rows([[line] for line in found.boundaries], title="New topics, with their first words")
    for stage, count in found.failures.items():
        times = "once" if count == 1 else f"{count} times"
        render.print_line(f"The stage {stage} failed {times}; the log of the daemon says why.", "yellow")
    render.print_line(render.page_line(len(found.observations), found.total, offset))


def _short(one: ShownObservation) -> list[str | Text]:
    """Return a line for a terminal: what was kept is named by its memory; of what was not, the first reason leads."""
    kept = one.decision == Decision.KEPT
    became = f"{one.decision} {one.memory_id}" if kept else one.decision
    why = "" if kept else one.reason.partition(",")[0] + " · " * bool(one.summary)
    said = Text.assemble((sanitized(why), "dim"), sanitized(one.summary))
    return [str(one.number), f"{one.at:%H:%M}", one.tool or one.event, Text(became, style=_STYLES[one.decision]), said]


def _whole(one: ShownObservation) -> list[str | Text]:
    score = "" if one.score is None else f"{one.score:.2f}"
    first = [str(one.number), f"{one.at:%Y-%m-%d %H:%M}", one.tool or one.event, one.decision, one.reason]
    return [*first, score, one.memory_id or "", one.summary]


def _corrected(noted: Noted, given: Given) -> None:
    kept = noted.decision == Decision.KEPT
    became = f"kept, as memory {noted.memory_id}" if kept else "dropped"
    render.print_line(f"Observation {given['number']} of session {noted.session_id} is {became}.", "green")


def _ended(one: SessionSummary) -> str:
    return _minute(one.ended_at) if one.ended_at else "goes on"


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"
