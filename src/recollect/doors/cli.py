"""The command line: every answer for people by default, for machines with `--json`; errors end with their own code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import recollect
from recollect.domain import OnSecret, Outcome, Profile, Recalled, Scope
from recollect.doors import cli_exchange, cli_store, cli_upkeep, ending, render
from recollect.doors import options as o
from recollect.doors.daemon import launch
from recollect.doors.diagnosis import diagnose
from recollect.doors.shape import journal_json, memory_json, recalled_json
from recollect.errors import InvalidInput
from recollect.operations.table import BY_NAME, perform
from recollect.policy.budget import printed
from recollect.settings import Settings

out = Console()
err = Console(stderr=True)
cli = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False
)

_READ_BY_MODEL = {
    "remember",
    "recall",
    "update_memory",
    "restore",
    "find_similar",
    "format_for_prompt",
    "summarize_old",
}


class _Options:
    """The settings of this run, as the options before the command say."""

    settings: Settings


def _told_version(wanted: bool) -> None:
    if wanted:
        out.print(f"recollect {version('recollect')}", highlight=False)
        raise typer.Exit


@cli.callback()
def options(
    home: Annotated[Path | None, typer.Option(help="Data folder. Default: RECOLLECT_HOME, else ~/.recollect.")] = None,
    user: Annotated[str | None, typer.Option(help="Who speaks.")] = None,
    team: Annotated[str | None, typer.Option(help="Team of the caller.")] = None,
    project: Annotated[str | None, typer.Option(help="Project of the caller. Default: the git checkout here.")] = None,
    in_process: Annotated[bool, typer.Option("--in-process", help="Open the store here, without a daemon.")] = False,
    _: Annotated[
        bool, typer.Option("--version", callback=_told_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """Durable, searchable memory for AI agents and their teams.

    **Try:** `recollect remember "We deploy on Fridays"`, then `recollect recall "when do we ship?"`
    """
    given: dict[str, Any] = {"home": home, "user": user, "team": team, "project": project}
    given["daemon"] = False if in_process else None
    _Options.settings = Settings(**{name: value for name, value in given.items() if value is not None})


@cli.command()
def remember(
    content: Annotated[str, typer.Argument(help="What to remember; `-` reads standard input.")],
    key: o.Key = None,
    title: o.Title = None,
    subtitle: o.Subtitle = None,
    fact_type: o.FactType = None,
    type: o.Type = None,
    category: o.Category = None,
    tags: o.Tagged = None,
    concepts: o.About = None,
    importance: o.Importance = None,
    confidence: o.Confidence = None,
    trust: o.Trust = None,
    sensitivity: o.Sensitivity = None,
    files_read: o.FilesRead = None,
    files_modified: o.FilesModified = None,
    session_id: o.OfSession = None,
    project: o.OfProject = None,
    discovery_tokens: o.Cost = None,
    observed_at: o.Observed = None,
    speaker: o.Speaker = None,
    ttl_days: o.Lifetime = None,
    scope: o.Shared = Scope.PROJECT,
    redact: Annotated[bool, typer.Option("--redact", help="Mask secrets instead of refusing.")] = False,
    as_json: o.Json = False,
) -> None:
    """Store a memory, or update the one with the same key."""
    if redact:
        _Options.settings = _Options.settings.model_copy(update={"on_secret": OnSecret.REDACT})
    text = o.typed_or_piped(content)
    given: dict[str, Any] = {"key": key, "title": title, "subtitle": subtitle, "fact_type": fact_type, "type": type}
    given |= {"category": category, "importance": importance, "confidence": confidence, "trust": trust}
    given |= {"sensitivity": sensitivity, "session_id": session_id, "project": project, "speaker": speaker}
    given |= {"discovery_tokens": discovery_tokens, "observed_at": observed_at, "ttl_days": ttl_days}
    lists = {"tags": tags, "concepts": concepts, "files_read": files_read, "files_modified": files_modified}
    given |= {name: values or None for name, values in lists.items()}
    outcome: Outcome = _perform("remember", {"content": text, "scope": scope} | given)
    cli_store.ended(out, _show, outcome, as_json)


@cli.command()
def recall(
    query: Annotated[str, typer.Argument(help="A question, or key words; typos are forgiven.")],
    limit: Annotated[int, typer.Option(help="At most so many.")] = 10,
    scope: o.Where = None,
    fact_type: o.FactType = None,
    category: o.Category = None,
    type: o.Type = None,
    tags: o.Tags = None,
    concepts: o.Concepts = None,
    project: o.ItsProject = None,
    session_id: o.Session = None,
    file: o.File = None,
    since: o.Since = None,
    until: o.Until = None,
    private: o.Private = False,
    secret: o.Secret = False,
    sensitivity: o.Level = None,
    profile: Annotated[Profile, typer.Option(help="How hits are ranked.")] = Profile.BALANCED,
    min_score: Annotated[float, typer.Option(help="Leave out hits below this score, 0.0-1.0.")] = 0.35,
    max_tokens: Annotated[
        int | None, typer.Option(help="Bound the whole JSON answer: a line for each match, then details as they fit.")
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Search by meaning, by word and by typo, and say why each memory was found."""
    given = {"query": query, "limit": limit, "scope": scope, "fact_type": fact_type, "category": category}
    given |= {"type": type, "tags": tags, "concepts": concepts, "project": project, "session_id": session_id}
    given |= {"file": file, "since": since, "until": until, "sensitivity": sensitivity}
    given |= {"allow_private": private, "allow_secret": secret}
    given |= {"profile": profile, "min_score": min_score, "max_tokens": max_tokens}
    recalled: Recalled = _perform("recall", given)
    _show(recalled_json(recalled), as_json, lambda: render.recalled(out, recalled), brief=max_tokens is not None)


@cli.command()
def forget(
    memory_id: o.Id,
    scope: o.Where = None,
    soft: Annotated[bool, typer.Option("--soft", help="Only hide it, so that `undo` can bring it back.")] = False,
    fact: Annotated[bool, typer.Option("--fact", help="The id is that of a fact.")] = False,
    as_json: o.Json = False,
) -> None:
    """Delete a memory and every trace of its text, or a fact. Exit code 4 when there is none."""
    if soft and fact:
        raise InvalidInput("soft", "Invalid soft: Facts cannot be hidden, only ended by another or deleted")
    name = "memory_forget" if soft else "forget_fact" if fact else "forget"
    cli_store.ended(out, _show, _perform(name, {"id": memory_id, "scope": scope}, start=False), as_json)


@cli.command()
def show(
    memory_id: o.Id,
    private: Annotated[bool, typer.Option("--private", help="Also when it is private.")] = False,
    secret: Annotated[bool, typer.Option("--secret", help="Also when it is secret.")] = False,
    as_json: o.Json = False,
) -> None:
    """Show one memory whole, with its history."""
    fields = {"id": memory_id, "allow_private": private, "allow_secret": secret}
    body = memory_json(_perform("get_memory", fields, start=False))
    history = [journal_json(line) for line in _perform("history", fields, start=False)]
    _show(body | {"history": history}, as_json, lambda: render.memory(out, body, history))


@cli.command()
def doctor(as_json: o.Json = False) -> None:
    """Look at the store, the model, the indexes and the versions, and say what to do about each problem."""
    checks = diagnose(_Options.settings, lambda: _perform("doctor", {}, start=False))
    body = [asdict(one) if not one.well else {"name": one.name, "well": True, "seen": one.seen} for one in checks]
    _show(body, as_json, lambda: render.checks(out, checks))
    if not all(one.well for one in checks):
        raise typer.Exit(1)


@cli.command()
def mcp(
    toolset: Annotated[
        list[str] | None, typer.Option(help="Tools to offer: memory (default), store, dual or more; repeat it.")
    ] = None,
) -> None:
    """Serve the `memory` tool, or other tools, to an MCP client over stdin and stdout."""
    door = import_module("recollect.doors.stdio")  # the SDK: half a second no other command pays
    door.serve(_Options.settings, toolset or ())


@cli.command()
def serve(
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Also listen here on loopback: MCP over HTTP at `/mcp`.")
    ] = None,
) -> None:
    """Own the store and serve it to every other process of yours. Started on demand; rarely typed."""
    daemon = import_module("recollect.doors.daemon.main")
    daemon.log_to_file(_Options.settings)
    said = f"Serving {_Options.settings.folder}; log: {launch.log_file(_Options.settings)}"
    daemon.serve(_Options.settings, port, lambda: err.print(said, highlight=False, markup=False, soft_wrap=True))


@cli.command()
def stop(as_json: o.Json = False) -> None:
    """Ask the daemon to finish; the next call starts it again."""
    stopped = launch.stop(_Options.settings)
    said = "The memory daemon has stopped." if stopped else "No memory daemon was running."
    _show({"stopped": stopped}, as_json, lambda: out.print(said))


@cli.command()
def status(as_json: o.Json = False) -> None:
    """Say who owns the store, since when, and with how much memory."""
    client = launch.running(_Options.settings)
    body = {"running": False} if client is None else {"running": True} | client.post("/status", {})
    owner = launch.owner_role(_Options.settings.folder) if client is None else ""
    _show(body, as_json, lambda: render.status(out, body, owner))


def _perform(name: str, given: dict[str, Any], *, start: bool = True) -> Any:
    """Run an operation where it is quickest: in the daemon, started when that pays, else in this process."""
    settings, operation = _Options.settings, BY_NAME[name]
    fields = {field: value for field, value in given.items() if value is not None}
    operation.request(**fields)
    if settings.daemon and (start or launch.running(settings) is not None):
        with recollect.connect(settings) as link:
            return link.perform(name, **fields)
    with recollect.open_app(settings, wait=name in _READ_BY_MODEL, background=False) as app:
        return perform(app, name, fields, None)


def _show(body: Any, as_json: bool, otherwise: Callable[[], None], *, brief: bool = False) -> None:
    """Print an answer; a `brief` one exactly as its tokens were counted, where the terminal knows its characters."""
    if as_json and brief and "utf" in sys.stdout.encoding.lower():
        sys.stdout.write(printed(body) + "\n")
    elif as_json:
        ending.write_json(body)
    else:
        otherwise()


cli_store.register(cli, out, _perform, _show)
cli_upkeep.register(cli, lambda: _Options.settings)
cli_exchange.register(cli, lambda: _Options.settings)


def main() -> None:
    """Run the command line to its end."""
    sys.exit(ending.run(cli))
