"""What `recollect init` offers of what agents have remembered already: a preview, a yes, and the work behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

import recollect
from recollect.client import launch
from recollect.doors.agents.filling import take_in
from recollect.doors.cli import render
from recollect.doors.cli.render import out
from recollect.settings import Settings
from recollect.transfer.remembered import Found, Plan, Remembered, What, find_remembered

Tell = Callable[[str], None]
_HOW = "`recollect init --take-in`"


def offer(
    settings: Settings, root: Path, wanted: bool | None, *, asked: bool, quiet: bool, tell: Tell
) -> dict[str, Any]:
    """Show what agents remember, and take it in where that is `wanted`; with None ask the person if `asked`.

    Return the files found and the state of their import.
    """
    found = find_remembered(root, settings.home)
    plan = Plan(settings.folder)
    new = plan.new(found.files)
    body = {"files": len(new), "bytes": sum(file.size for file in new), "older_sessions": found.older}
    if not new:
        if found.files:
            tell("All that agents here remember is taken in.")
        return body | {"state": "nothing new"}
    if not quiet:
        _print_preview(new, found)
    if wanted is None and asked:
        wanted = typer.confirm("Take this in? It is read here, in the background, and sent nowhere.", err=True)
    if not wanted:
        count, size = len(new), _size_text(body["bytes"])
        tell(f"What agents here remember ({count} files, {size}) was left alone; {_HOW} takes it in.")
        return body | {"state": "left alone"}
    return body | {"state": _take_in(settings, plan, new, tell, quiet=quiet)}


def _take_in(settings: Settings, plan: Plan, new: Sequence[Remembered], tell: Tell, *, quiet: bool) -> str:
    """Let the daemon take the files in, or do it here where no daemon is used; return the state."""
    if settings.daemon:
        files = [asdict(file) for file in new]
        client = launch.ensure(settings)
        client.post("/take-in", {"files": files, "user": settings.user, "team": settings.team})
        tell("Taking it in; `recollect status` says how far it is.")
        return "begun"
    with recollect.open_app(settings, background=False) as app, render.progress("Taking in", hidden=quiet) as report:
        plan.add(new, settings.user, settings.team)
        take_in(app, plan, report=report)
    tell(f"{plan.message}.")
    return "taken in"


def _print_preview(new: Sequence[Remembered], found: Found) -> None:
    """Print a row for each kind of file of each agent."""
    rows = []
    for agent, what in dict.fromkeys((file.agent, file.what) for file in new):
        some = [file for file in new if (file.agent, file.what) == (agent, what)]
        about = sorted({file.project or "all projects" for file in some})
        named = ", ".join(about[:2]) + (f" and {len(about) - 2} more" if len(about) > 2 else "")
        rows.append([agent, what, str(len(some)), _size_text(sum(file.size for file in some)), named])
    render.print_rows(rows, "Of", "What", "Files", "Size", "About", title="Agents here remember already")
    if found.older and any(file.what is What.SESSION for file in new):
        out.print(f"{found.older} older sessions are left out.", highlight=False)


def _size_text(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(size / 1e3, 0.1):.1f} kB"
