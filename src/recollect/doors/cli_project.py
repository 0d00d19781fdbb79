"""The commands that show and set the project of the working folder; those of a deployment are `cli_accounts`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import typer

from recollect.domain.enums import Scope
from recollect.domain.requests import Caller
from recollect.domain.transfer import ExportFormat, ExportPage, ImportBatch, Imported
from recollect.doors import exit_codes
from recollect.doors.operations import opened
from recollect.doors.options import Json
from recollect.errors import InvalidInput, NotFound, RecollectError
from recollect.projects import Project, find_project, set_project
from recollect.settings import Settings
from recollect.transfer.export_page import pages, save
from recollect.transfer.formats import WRITERS
from recollect.transfer.import_client import Import
from recollect.transfer.import_paths import find_files

_EVERY_LEVEL: Final = {"allow_private": True, "allow_secret": True}

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
    file = set_project(Path.cwd(), named, settings.home)
    count = 0 if named == settings.project else _memories_of(settings, settings.project)
    body = {"project": named, "source": str(file), "under_former_name": count}
    exit_codes.show(body, as_json, f"The project is {named}; see {file}.", *_filed_under(settings.project, count))


@cli.command()
def move(
    ctx: typer.Context,
    old: Annotated[str, typer.Argument(help="The project that the memories are in.")],
    as_json: Json = False,
) -> None:
    """Move all memories and facts of another project into the project of the working folder.

    They get new ids. Nothing is taken out of the other project before all of it is here.
    """
    settings: Settings = ctx.obj
    if old == settings.project:
        raise InvalidInput("old", f"{old} is the project of the working folder already.")
    with opened(settings.model_copy(update={"project": old}), model=False) as there:
        whole = ExportPage(scope=Scope.PROJECT, **_EVERY_LEVEL)
        lines = list(pages(whole, lambda page: there("export_page", **dict(page))))
    found = {kind: [str(line[kind]["id"]) for line in lines if kind in line] for kind in ("memory", "fact")}
    if not any(found.values()):
        raise NotFound(f"No memory is filed under {old}.")
    with opened(settings, model=True) as here:
        total = _imported(lines, lambda batch: here("import_batch", **dict(batch)))
    if lost := total.counts["failed"] + total.counts["refused"]:
        raise InvalidInput("old", f"{lost} could not be stored here, so that all stay in {old} too. {total.message}")
    with opened(settings.model_copy(update={"project": old}), model=False) as there:
        for fact in found["fact"]:
            there("forget_fact", id=fact, scope=Scope.PROJECT, **_EVERY_LEVEL)
        for memory in found["memory"]:
            there("forget", id=memory, scope=Scope.PROJECT, **_EVERY_LEVEL)
    moved = f"{_count(len(found['memory']))} moved from {old} to {settings.project}."
    exit_codes.show({"message": moved, "memories": len(found["memory"])}, as_json, moved)


def _imported(lines: Iterable[dict[str, Any]], send: Callable[[ImportBatch], Imported]) -> Imported:
    """Store the lines of an export, by way of a file that nobody else can read."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "moved.jsonl"
        save(file, WRITERS[ExportFormat.JSONL](iter(lines)))
        importing = Import(send, {})
        importing.run(find_files([file], None, transcripts=False, instructions=False).files, lambda *_: None)
    return importing.total()


def _show(settings: Settings, as_json: bool) -> None:
    found = find_project(Path.cwd(), settings.home)
    source = found.source if found.name == settings.project else "the setting `project`"
    sentences = [f"{settings.project} (from {source})"]
    if found.claimed:
        sentences.append(
            f"A file of this folder names the project {found.claimed}, which only you may say: "
            f"`recollect project set {shlex.quote(found.claimed)}`."
        )
    if count := _under_folder_name(settings, found):
        sentences += _filed_under(found.folder_name, count)
    body = {"project": settings.project, "source": source, "folder_name": found.folder_name, "under_folder_name": count}
    body |= {"claimed": found.claimed} if found.claimed else {}
    exit_codes.show(body, as_json, *sentences)


def _filed_under(old: str, count: int) -> tuple[str, ...]:
    """Say how the memories get here that are filed under a name that this folder had before."""
    told = f"{_count(count)} {'is' if count == 1 else 'are'} filed under {old}, the name that this folder had before."
    return (f"{told} `recollect project move {shlex.quote(old)}` moves them here.",) if count else ()


def _count(number: int) -> str:
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
            return int(run("stats", scope=Scope.PROJECT, **_EVERY_LEVEL).memories)
    except RecollectError:
        return 0
