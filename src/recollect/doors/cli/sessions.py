"""The commands on sessions of coding agents: list them, show what became of their events, and correct it."""

from __future__ import annotations

import typer

from recollect.domain.lifecycle import CorrectObservation, Decision, ListSessions, Noted, ShowSession
from recollect.doors.cli import exit_codes
from recollect.doors.cli.opening import perform
from recollect.doors.cli.options import Fields, Json, from_fields
from recollect.doors.cli.render import print_line
from recollect.doors.serializers import agent_json

cli = typer.Typer()

_sessions_group = typer.Typer(invoke_without_command=True, help="Show what became of agents' sessions, and correct it.")
cli.add_typer(_sessions_group, name="session")


@_sessions_group.callback()
def session(ctx: typer.Context, as_json: Json = False) -> None:
    """Show what became of agents' sessions, and correct it; without a command list the latest."""
    if ctx.invoked_subcommand is None:
        exit_codes.answered(ctx.obj, "list_sessions", {}, as_json)


@_sessions_group.command("list")
@from_fields(ListSessions)
def list_(ctx: typer.Context, fields: Fields, as_json: bool = False) -> None:
    """List your sessions in this project, the latest first."""
    exit_codes.answered(ctx.obj, "list_sessions", fields, as_json)


@_sessions_group.command()
@from_fields(ShowSession, "session_id")
def show(ctx: typer.Context, fields: Fields, as_json: bool = False) -> None:
    """Show what was kept and dropped of a session and why; the latest session without an id."""
    exit_codes.answered(ctx.obj, "show_session", fields, as_json)


@_sessions_group.command()
@from_fields(CorrectObservation, without="keep")
def keep(ctx: typer.Context, fields: Fields, as_json: bool = False) -> None:
    """Keep an observation that was dropped: it becomes a memory."""
    _correct_observation(ctx, fields, as_json, keep=True)


@_sessions_group.command()
@from_fields(CorrectObservation, without="keep")
def drop(ctx: typer.Context, fields: Fields, as_json: bool = False) -> None:
    """Drop an observation that was kept: its memory is deleted for good."""
    _correct_observation(ctx, fields, as_json, keep=False)


def _correct_observation(ctx: typer.Context, fields: Fields, as_json: bool, *, keep: bool) -> None:
    noted: Noted = perform(ctx.obj, "correct_observation", fields | {"keep": keep}, model=keep)
    exit_codes.show(agent_json(Noted, noted), as_json, print_answer=lambda: _print_correction(noted, fields))


def _print_correction(noted: Noted, fields: Fields) -> None:
    kept = noted.decision == Decision.KEPT
    became = f"kept, as memory {noted.memory_id}" if kept else "dropped"
    print_line(f"Observation {fields['number']} of session {noted.session_id} is {became}.", "green")
