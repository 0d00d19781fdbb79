"""The commands that show and name the project of the working folder, and move memories into it."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from recollect import environment
from recollect.domain.accounts import CountProjects
from recollect.domain.enums import Scope
from recollect.domain.requests import Caller
from recollect.doors.cli import exit_codes, terminal
from recollect.doors.cli.opening import opened
from recollect.doors.cli.options import EVERY_LEVEL, Fields, Json, from_fields
from recollect.doors.cli.options import projects as completed_projects
from recollect.errors import RecollectError
from recollect.projects import Project, filed_under, find_project, set_project
from recollect.settings import Settings

projects = typer.Typer(
    invoke_without_command=True,
    help="Print the name of the working folder's project; with a command, name it, or manage those of a deployment.",
)


@projects.callback()
def project(ctx: typer.Context, as_json: Json = False) -> None:
    """Show the project of the working folder and what told it, or manage the projects of a deployment."""
    if ctx.invoked_subcommand is None:
        _show_project(ctx.obj, as_json)


@projects.command("set")
def set_(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Name to give it, in `.recollect.toml` of the checkout.")],
    take: Annotated[
        bool | None,
        typer.Option("--move/--no-move", help="Move the memories of the former name along. Default: ask."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Name the project of the working folder. It says what stays under the former name, and offers to move it."""
    settings: Settings = ctx.obj
    former, named = settings.project, Caller(user=settings.user, team=settings.team, project=name).project
    count = 0 if named == former else _memories_of(settings, former)
    asks = bool(count) and take is None and not as_json
    if asks or (count and take):
        terminal.leave_to_client()
    file = set_project(environment.working_folder(), named, settings.home)
    if asks and terminal.interactive():
        take = typer.confirm(
            f"{_memory_count(count)} {'is' if count == 1 else 'are'} filed under {former}. Move them to {named}?",
            err=True,
        )
    sentences = _filed_under(former, count)
    if count and take:
        moved = _move_all(settings.model_copy(update={"project": named}), former)
        sentences, count = (f"{_memory_count(moved)} moved from {former} to {named}.",), 0
    body = {"project": named, "source": str(file), "under_former_name": count}
    exit_codes.show(body, as_json, f"The project is {named}; see {file}.", *sentences)


@projects.command()
def rename(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="New name of this project; with NEW, the project to rename.",
            autocompletion=completed_projects,
        ),
    ],
    new: Annotated[str | None, typer.Argument(metavar="NEW", help="New name of the project NAME.")] = None,
    as_json: Json = False,
) -> None:
    """Give a project another name: this folder's, or another one, with all its memories. They get new ids."""
    settings: Settings = ctx.obj
    if new is None or name == settings.project:
        set_(ctx, new or name, True, as_json)
        return
    target = Caller(user=settings.user, team=settings.team, project=new).project
    count = _move_all(settings.model_copy(update={"project": target}), name)
    moved = f"{_memory_count(count)} moved from {name} to {target}."
    exit_codes.show({"message": moved, "project": target}, as_json, moved)


@projects.command("list")
@from_fields(CountProjects)
def list_(ctx: typer.Context, fields: Fields, as_json: bool = False) -> None:
    """List the projects that you may read, and how many memories each holds."""
    exit_codes.answered(ctx.obj, "count_projects", fields, as_json)


@projects.command()
def move(
    ctx: typer.Context,
    old: Annotated[
        str, typer.Argument(help="The project that the memories are in.", autocompletion=completed_projects)
    ],
    as_json: Json = False,
) -> None:
    """Move all memories and facts of another project into the project of the working folder.

    They get new ids. Nothing is taken out of the other project before all of it is here.
    """
    settings: Settings = ctx.obj
    count = _move_all(settings, old)
    moved = f"{_memory_count(count)} moved from {old} to {settings.project}."
    exit_codes.show({"message": moved, "memories": count}, as_json, moved)


def _move_all(settings: Settings, old: str) -> int:
    """Move all memories and facts of another project into this project, and return the number of memories."""
    terminal.leave_to_client()  # which sends a few at a time
    from recollect.doors.cli.moving import move_all  # with the readers of every format

    return move_all(settings, old)


def _show_project(settings: Settings, as_json: bool) -> None:
    """Print the project of the working folder, its source, and memories under names that it had before."""
    found = find_project(environment.working_folder(), settings.home)
    source = found.source if found.name == settings.project else "the setting `project`"
    sentences = [f"{settings.project} (from {source})"]
    if found.claimed:
        sentences.append(
            f"A file of this folder names the project {found.claimed}, which only you may say: "
            f"`recollect project set {shlex.quote(found.claimed)}`."
        )
    if count := _under_folder_name(settings, found):
        sentences += _filed_under(found.folder_name, count)
    former = {name: many for name in found.former if (many := _memories_of(settings, name))}
    for name, many in former.items():
        sentences += _filed_under(name, many)
    body = {"project": settings.project, "source": source, "folder_name": found.folder_name, "under_folder_name": count}
    body |= {"former": former} if former else {}
    body |= {"claimed": found.claimed} if found.claimed else {}
    exit_codes.show(body, as_json, *sentences)


def _filed_under(old: str, count: int) -> tuple[str, ...]:
    """Return the sentence on how to move memories under a former name of the project; none without memories."""
    return (filed_under(old, count),) if count else ()


def _memory_count(number: int) -> str:
    return f"{number} {'memory' if number == 1 else 'memories'}"


def _under_folder_name(settings: Settings, found: Project) -> int:
    """Count the memories of the project that the folder's name alone gave."""
    return 0 if found.folder_name == settings.project else _memories_of(settings, found.folder_name)


def _memories_of(settings: Settings, project: str) -> int:
    """Count the memories of a project; 0 without a store."""
    if not settings.url and not settings.database.exists():
        return 0
    try:
        with opened(settings.model_copy(update={"project": project}), model=False) as run:
            return int(run("stats", scope=Scope.PROJECT, **EVERY_LEVEL).memories)
    except RecollectError:
        return 0
