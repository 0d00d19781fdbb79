"""The commands that show and set the project of the working folder; those of a deployment are `cli_accounts`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recollect.domain.requests import Caller
from recollect.doors import exit_codes
from recollect.doors.operations import opened
from recollect.doors.options import Json
from recollect.errors import RecollectError
from recollect.projects import Project, find_project, set_project
from recollect.settings import Settings

cli = typer.Typer(
    invoke_without_command=True, help="Show or name the project of the working folder; manage those of a deployment."
)


@cli.callback()
def project(ctx: typer.Context, as_json: Json = False) -> None:
    """Show the project of the working folder and what told it, or manage the projects of a deployment."""
    if ctx.invoked_subcommand is None:
        _show(ctx.obj, as_json)


@cli.command("set")
def set_(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Name to give it, in `.recollect.toml` of the checkout.")],
    as_json: Json = False,
) -> None:
    """Name the project of the working folder."""
    settings: Settings = ctx.obj
    named = Caller(user=settings.user, team=settings.team, project=name).project
    file = set_project(Path.cwd(), named)
    exit_codes.show({"project": named, "source": str(file)}, as_json, f"The project is {named}; see {file}.")


def _show(settings: Settings, as_json: bool) -> None:
    found = find_project(Path.cwd())
    source = found.source if found.name == settings.project else "the setting `project`"
    sentences = [f"{settings.project} (told by {source})"]
    if count := _under_folder_name(settings, found):
        old = found.folder_name
        told = "memory is" if count == 1 else "memories are"
        sentences.append(
            f"{count} {told} filed under {old}, the name that this folder had before. To copy them here: "
            f"`recollect --project {old} export old.jsonl`, then `recollect import old.jsonl`."
        )
    body = {"project": settings.project, "source": source, "folder_name": found.folder_name, "under_folder_name": count}
    exit_codes.show(body, as_json, *sentences)


def _under_folder_name(settings: Settings, found: Project) -> int:
    """Count the memories of the project that the folder's name alone gave; 0 without a store."""
    if found.folder_name == settings.project or not (settings.folder / "memory.db").exists():
        return 0
    try:
        with opened(settings.model_copy(update={"project": found.folder_name}), model=False) as run:
            return int(run("stats", scope="project").memories)
    except RecollectError:
        return 0
