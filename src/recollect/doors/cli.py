"""The command line: every answer for people by default, for machines with `--json`; errors end with their own code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

import recollect
from recollect.domain import Done, OnSecret, Outcome, Profile, Recalled, Scope
from recollect.doors import render
from recollect.doors.daemon import launch
from recollect.doors.diagnosis import diagnose
from recollect.doors.shape import journal_json, memory_json, outcome_json, recalled_json
from recollect.errors import NotFound, RecollectError
from recollect.operations.table import BY_NAME, perform
from recollect.policy.budget import printed
from recollect.settings import Settings

out = Console()
err = Console(stderr=True)
cli = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False
)

Json = Annotated[bool, typer.Option("--json", help="Answer as JSON, for machines.")]
Where = Annotated[Scope | None, typer.Option(help="Only in this scope; default: everywhere you may see.")]
FactType = Annotated[str | None, typer.Option(help="Kind of knowledge, such as decision or preference.")]
Category = Annotated[str | None, typer.Option(help="Free-form group.")]
Type = Annotated[str | None, typer.Option(help="Kind of observation, such as bugfix or discovery.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only what carries this tag; repeat it to ask for more.")]
Concepts = Annotated[
    list[str] | None, typer.Option("--concept", help="Only what carries this concept, such as gotcha; repeat it too.")
]
ItsProject = Annotated[
    str | None, typer.Option("--project-field", help="Only what says this in its own field `project`.")
]
Session = Annotated[str | None, typer.Option("--session", help="Only what was written in the session with this id.")]
File = Annotated[
    str | None, typer.Option(help="Only what read or modified this file: a path, the end of one, or a folder.")
]
Since = Annotated[
    str | None, typer.Option(help="Only what happened then or later: a day, or a time in ISO 8601; UTC unless it says.")
]
Until = Annotated[str | None, typer.Option(help="Only what happened then or earlier; a day counts to its end.")]
Level = Annotated[
    str | None, typer.Option(help="Only public, private (with --private) or secret (with --secret) memories.")
]
Private = Annotated[bool, typer.Option("--private", help="Also private memories.")]
Secret = Annotated[bool, typer.Option("--secret", help="Also secret memories.")]


class _Options:
    """The settings of this run, as the options before the command say."""

    settings: Settings


@cli.callback()
def options(
    home: Annotated[Path | None, typer.Option(help="Data folder. Default: RECOLLECT_HOME, else ~/.recollect.")] = None,
    user: Annotated[str | None, typer.Option(help="Who speaks.")] = None,
    team: Annotated[str | None, typer.Option(help="Team of the caller.")] = None,
    project: Annotated[str | None, typer.Option(help="Project of the caller. Default: the git checkout here.")] = None,
    in_process: Annotated[bool, typer.Option("--in-process", help="Open the store here, without a daemon.")] = False,
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
    key: Annotated[str | None, typer.Option(help="Unique name: the same key again updates that memory.")] = None,
    fact_type: FactType = None,
    category: Category = None,
    confidence: Annotated[float | None, typer.Option(help="0.0-1.0; default 0.5.")] = None,
    scope: Annotated[Scope, typer.Option(help="Who shares it.")] = Scope.PROJECT,
    redact: Annotated[bool, typer.Option("--redact", help="Mask secrets instead of refusing.")] = False,
    as_json: Json = False,
) -> None:
    """Store a memory, or update the one with the same key."""
    if redact:
        _Options.settings = _Options.settings.model_copy(update={"on_secret": OnSecret.REDACT})
    text = sys.stdin.read() if content == "-" else content
    given = {"key": key, "fact_type": fact_type, "category": category, "confidence": confidence}
    outcome: Outcome = _perform("remember", {"content": text, "scope": scope} | given)
    _show(outcome_json(outcome), as_json, lambda: render.outcome(out, outcome))


@cli.command()
def recall(
    query: Annotated[str, typer.Argument(help="A question, or key words; typos are forgiven.")],
    limit: Annotated[int, typer.Option(help="At most so many.")] = 10,
    scope: Where = None,
    fact_type: FactType = None,
    category: Category = None,
    type: Type = None,
    tags: Tags = None,
    concepts: Concepts = None,
    project: ItsProject = None,
    session_id: Session = None,
    file: File = None,
    since: Since = None,
    until: Until = None,
    private: Private = False,
    secret: Secret = False,
    sensitivity: Level = None,
    profile: Annotated[Profile, typer.Option(help="How hits are ranked.")] = Profile.BALANCED,
    min_score: Annotated[float, typer.Option(help="Leave out hits below this score, 0.0-1.0.")] = 0.35,
    max_tokens: Annotated[
        int | None, typer.Option(help="Bound the whole JSON answer: a line for each match, then details as they fit.")
    ] = None,
    as_json: Json = False,
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
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="The memory's id, as recall shows it.")],
    scope: Where = None,
    as_json: Json = False,
) -> None:
    """Delete a memory and every trace of its text. Exit code 4 when there is none."""
    outcome: Outcome = _perform("forget", {"id": memory_id, "scope": scope}, start=False)
    _show(outcome_json(outcome), as_json, lambda: render.outcome(out, outcome))
    if outcome.done is Done.NOT_FOUND:
        raise typer.Exit(NotFound.exit_code)


@cli.command()
def show(
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="The memory's id, as recall shows it.")],
    private: Annotated[bool, typer.Option("--private", help="Also when it is private.")] = False,
    secret: Annotated[bool, typer.Option("--secret", help="Also when it is secret.")] = False,
    as_json: Json = False,
) -> None:
    """Show one memory whole, with its history."""
    fields = {"id": memory_id, "allow_private": private, "allow_secret": secret}
    body = memory_json(_perform("get_memory", fields, start=False))
    history = [journal_json(line) for line in _perform("history", fields, start=False)]
    _show(body | {"history": history}, as_json, lambda: render.memory(out, body, history))


@cli.command()
def doctor(as_json: Json = False) -> None:
    """Look at the store, the model, the indexes and the versions, and say what to do about each problem."""
    checks = diagnose(_Options.settings, lambda: _perform("doctor", {}, start=False))
    body = [asdict(one) if not one.well else {"name": one.name, "well": True, "seen": one.seen} for one in checks]
    _show(body, as_json, lambda: render.checks(out, checks))
    if not all(one.well for one in checks):
        raise typer.Exit(1)


@cli.command()
def reindex(as_json: Json = False) -> None:
    """Embed everything anew with the configured model and rebuild the vector index."""
    launch.stop(_Options.settings)
    opened = recollect.open_app(_Options.settings, background=False, other_model=True)
    with opened as app, Progress(console=err, disable=as_json) as progress:
        task = progress.add_task("Embedding", total=None)
        count = recollect.reindex(app, lambda done, total: progress.update(task, completed=done, total=total))
    _show({"memories": count}, as_json, lambda: out.print(f"{count} memories embedded with {_Options.settings.model}."))


@cli.command()
def mcp() -> None:
    """Serve the `memory` tool to an MCP client over stdin and stdout."""
    import_module("recollect.doors.stdio").serve(_Options.settings)  # the SDK: half a second no other command pays


@cli.command()
def serve(
    port: Annotated[int | None, typer.Option(help="Also listen here on loopback: MCP over HTTP at `/mcp`.")] = None,
) -> None:
    """Own the store and serve it to every other process of yours. Started on demand; rarely typed."""
    daemon = import_module("recollect.doors.daemon.main")
    daemon.log_to_file(_Options.settings)
    err.print(f"Serving {_Options.settings.folder}; log: {launch.log_file(_Options.settings)}", highlight=False)
    daemon.serve(_Options.settings, port)


@cli.command()
def stop(as_json: Json = False) -> None:
    """Ask the daemon to finish; the next call starts it again."""
    stopped = launch.stop(_Options.settings)
    said = "The memory daemon has stopped." if stopped else "No memory daemon was running."
    _show({"stopped": stopped}, as_json, lambda: out.print(said))


@cli.command()
def status(as_json: Json = False) -> None:
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
    model = name in ("remember", "recall")
    with recollect.open_app(settings, wait=model, background=False) as app:
        return perform(app, name, fields, None)


def _show(body: Any, as_json: bool, otherwise: Callable[[], None], *, brief: bool = False) -> None:
    """Print an answer; a `brief` one exactly as its tokens were counted, where the terminal knows its characters."""
    if as_json:
        plain = "utf" not in sys.stdout.encoding.lower()
        text = printed(body) if brief and not plain else json.dumps(body, ensure_ascii=plain, indent=2)
        sys.stdout.write(text + "\n")
    else:
        otherwise()


def main() -> None:
    """Run the command line; an error of ours is one sentence on standard error and its own exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode gets question marks, not a traceback
    try:
        cli()
    except RecollectError as error:
        err.print(f"recollect: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
