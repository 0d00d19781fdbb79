"""The command line: answers for people, with `--json` for programs; each error has its own exit code."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.main import get_command

from recollect import __version__
from recollect.domain import calendar
from recollect.domain.enums import OnFound, OnSecret
from recollect.domain.fields import Request
from recollect.domain.requests import Draft, Filters, Get, Listing, Query, Rescan
from recollect.domain.results import JournalEntry, Listed, Memory
from recollect.domain.review import Rescanned
from recollect.domain.verbs import BY_NAME
from recollect.doors.cli import exit_codes, terminal
from recollect.doors.cli.answers import print_answer, print_memory, with_contents
from recollect.doors.cli.command_groups import FILTERS_COMMAND, Commands
from recollect.doors.cli.command_table import COMMANDS
from recollect.doors.cli.opening import opened
from recollect.doors.cli.options import Fields, MoreIds, from_fields, ids_of, projects
from recollect.doors.cli.render import out
from recollect.doors.serializers import agent_json, public_json
from recollect.environment import working_folder
from recollect.errors import InvalidInput, SecretFound
from recollect.projects import checkout_of
from recollect.settings import Settings

cli = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_NEED_STORE: Final = frozenset(
    "recall list show edit update forget undo pin unpin bury unbury tag move promote timeline by-file by-concept "
    "similar tags prompt facts stats session doctor reindex rescan purge summarize export".split()
)
"""The commands that make no store where a folder is named that holds none."""

_WITHOUT_TOKEN: Final = frozenset(("login", "logout"))
"""The commands that find the file of the token themselves, which need not be there yet."""

_SEVERAL: Final = frozenset(("undo", "pin", "unpin", "bury", "unbury", "move", "promote"))
"""Those of them that take several ids."""

_POSITIONAL: Final = {"similar": "content", "prompt": "query"}


class _AllFilters(Filters, Request):
    """All filters, to be explained."""


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(f"recollect {__version__}", highlight=False)
        raise typer.Exit


@cli.callback()
def options(
    ctx: typer.Context,
    home: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Data folder. Default: RECOLLECT_HOME, else ~/.recollect.")
    ] = None,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="User who asks. Default: the system's user.")] = None,
    team: Annotated[str | None, typer.Option(metavar="NAME", help="Team of the user.")] = None,
    project: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Project of the user. Default: that of the folder you are in.", autocompletion=projects
        ),
    ] = None,
    in_process: Annotated[bool, typer.Option("--in-process", help="Open the store here, without a daemon.")] = False,
    _json: Annotated[bool, typer.Option("--json", help="Answer as JSON, for machines; may stand anywhere.")] = False,
    _: Annotated[
        bool, typer.Option("--version", "-V", "-v", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Durable, searchable memory for AI agents and their teams.

    Try `recollect remember We deploy on Fridays`, then `recollect recall when do we ship`.
    """
    daemon = False if in_process else None
    options: dict[str, Any] = {"home": home, "user": user, "team": team, "project": project, "daemon": daemon}
    options |= {"url": "" if in_process else None, "token": "" if ctx.invoked_subcommand in _WITHOUT_TOKEN else None}
    ctx.obj = Settings(**{name: value for name, value in options.items() if value is not None})
    ctx.with_resource(calendar.in_zone(calendar.zone_named(ctx.obj.time_zone)))
    if home is not None and ctx.invoked_subcommand in _NEED_STORE and not {"-h", "--help"} & set(terminal.words()):
        _check_store(ctx.obj)


def _check_store(settings: Settings) -> None:
    """Raise `InvalidInput` where the named data folder holds no store: its name may be misspelt."""
    if not (settings.url or settings.database_url or (settings.folder / "memory.db").exists()):
        missing = shlex.quote(str(settings.folder))
        raise InvalidInput(
            "home", f"There is no store in {settings.folder}. `recollect --home {missing} init` makes one there."
        )


@cli.command()
@from_fields(Draft, without="source")
def remember(
    ctx: typer.Context,
    fields: Fields,
    as_json: bool = False,
    redact: Annotated[bool, typer.Option("--redact", help="Mask secrets instead of refusing.")] = False,
    _message: Annotated[bool, typer.Option("-m", "--message", hidden=True, help="Before the text, as in git.")] = False,
) -> None:
    """Store a memory, or update it by its key or `--id`."""
    if redact:
        ctx.obj = ctx.obj.model_copy(update={"on_secret": OnSecret.REDACT})
    exit_codes.answered(ctx.obj, "remember", fields, as_json, stored=_place_sentence(ctx.obj, fields))


def _place_sentence(settings: Settings, fields: Fields) -> str:
    """Return where a new memory is and who can read it; empty in a repository, or where a place was named."""
    if fields.keys() & {"scope", "id", "supersedes"} or "project" in settings.model_fields_set:
        return ""
    try:
        if checkout_of(working_folder()) is not None:
            return ""
    except OSError:  # the folder is gone
        return ""
    who = f"everybody on the team `{settings.team}` can read it" if settings.url else "only commands in it find it"
    if fields.get("sensitivity"):
        who = "only you can read it"
    return (
        f"It is in the project `{settings.project}`, which is this folder, as it lies in no repository: {who}. "
        "`--scope personal` stores for you alone, in every project."
    )


@cli.command()
@from_fields(Query)
def recall(
    ctx: typer.Context,
    fields: Fields,
    as_json: bool = False,
    why: Annotated[
        bool, typer.Option("--why", "--verbose", help="Also tell how the score of each hit came about.")
    ] = False,
) -> None:
    """Search by meaning, by word and by typo. Each hit says how well it matches and how it was found."""
    exit_codes.answered(ctx.obj, "recall", fields, as_json, why=why)


def _register_verb(name: str, operation: str, about: str) -> None:
    @cli.command(name, help=about)
    @from_fields(BY_NAME[operation].request, _POSITIONAL.get(name, ""))
    def run(ctx: typer.Context, fields: Fields, as_json: bool = False) -> None:
        exit_codes.answered(ctx.obj, operation, _text_as_id(fields) if name == "similar" else fields, as_json)


def _text_as_id(fields: dict[str, Any]) -> dict[str, Any]:
    """Take a number in the place of a text for the id of a memory, as every other command does."""
    number = str(fields.get("content") or "").removeprefix("#")
    if not number.isdecimal() or fields.get("id"):
        return fields
    return {name: value for name, value in fields.items() if name != "content"} | {"id": number}


def _register_for_each(name: str, operation: str, about: str) -> None:
    @cli.command(name, help=about)
    @from_fields(BY_NAME[operation].request)
    def run(ctx: typer.Context, fields: Fields, as_json: bool = False, more: MoreIds = None) -> None:
        requests = [fields | {"id": number} for number in ids_of(fields, more)]
        exit_codes.answered_each(ctx.obj, operation, requests, as_json)


for _name, (_operation, _about) in COMMANDS.items():
    (_register_for_each if _name in _SEVERAL else _register_verb)(_name, _operation, _about)


@cli.command("list")
@from_fields(Listing)
def list_(
    ctx: typer.Context,
    fields: Fields,
    as_json: bool = False,
    everything: Annotated[bool, typer.Option("--all", help="All of them, not a page.")] = False,
) -> None:
    """List memories, a page at a time."""
    if not everything:
        exit_codes.answered(ctx.obj, "list_memories", fields, as_json)
        return
    if fields.keys() & {"limit", "offset"}:
        raise InvalidInput("all", "Invalid all: Must not be given together with `--limit` or `--offset`")
    Listing(**fields)
    from recollect.doors.cli.paging import every

    with opened(ctx.obj, model=False) as run:
        found = every(run, fields)
    listed = Listed(tuple(found), len(found))
    body = with_contents(agent_json(Listed, listed), listed)
    exit_codes.show(body, as_json, print_answer=lambda: print_answer(listed))


@cli.command()
@from_fields(Get)
def show(ctx: typer.Context, fields: Fields, as_json: bool = False, more: MoreIds = None) -> None:
    """Show one memory whole, with its history, or several."""
    found: list[dict[str, Any]] = []
    with opened(ctx.obj, model=False) as run:
        for number in ids_of(fields, more):
            body = public_json(Memory, run("get_memory", **fields | {"id": number}))
            found.append(body | public_json(list[JournalEntry], run("history", **fields | {"id": number})))
    exit_codes.show(found if len(found) > 1 else found[0], as_json, print_answer=lambda: _print_each(found))


def _print_each(found: Sequence[dict[str, Any]]) -> None:
    for number, memory in enumerate(found):
        if number:
            out.print()
        print_memory({name: value for name, value in memory.items() if name != "history"}, memory["history"])


@cli.command()
@from_fields(Rescan, without="on_found")
def rescan(
    ctx: typer.Context,
    fields: Fields,
    as_json: bool = False,
    redact: Annotated[bool, typer.Option("--redact", help="Mask each secret in place.")] = False,
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="Hide each memory and fact that holds one; `undo` brings it back.")
    ] = False,
) -> None:
    """Look for secrets in what is stored. These are memories, facts and sessions; exit code 3 when any are found."""
    if redact and quarantine:
        raise InvalidInput("redact", "Invalid redact: Must not be given together with `--quarantine`")
    rule = OnFound.REDACT if redact else OnFound.QUARANTINE if quarantine else OnFound.REPORT
    found: Rescanned = exit_codes.answered(ctx.obj, "rescan", fields | {"on_found": rule}, as_json)
    if found.exposed and rule is OnFound.REPORT:
        raise typer.Exit(SecretFound.exit_code)


@cli.command(FILTERS_COMMAND, hidden=True)
@from_fields(_AllFilters)
def _filters(ctx: typer.Context, fields: Fields) -> None:
    """Explain the filters, by which `recall`, `list` and others choose among memories."""
    del fields
    out.print(ctx.get_help(), highlight=False, markup=False, soft_wrap=True)


def whole() -> Any:
    """Return the whole command line with all its parts."""
    command: Any = get_command(cli)
    for name in command.list_commands(None):
        command.get_command(None, name)
    return command


def main() -> int:
    """Run the command line to its end."""
    return exit_codes.run(cli)
