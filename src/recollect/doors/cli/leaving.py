"""The commands for people who leave: deletion with a preview and a question, and the export of all that is theirs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from recollect.domain.leaving import DeleteUser, Departure, ExportUser, SetRetention
from recollect.domain.transfer import Page
from recollect.domain.verbs import ADMIN_BY_NAME
from recollect.doors.cli import exit_codes, terminal
from recollect.doors.cli.answers import print_answer
from recollect.doors.cli.opening import administering
from recollect.doors.cli.options import Fields, from_fields
from recollect.doors.cli.render import err, print_line
from recollect.doors.serializers import public_json
from recollect.environment import working_folder
from recollect.errors import Conflict, InvalidInput
from recollect.settings import Settings
from recollect.transfer.export_file import save
from recollect.transfer.recollect_jsonl import export_lines

me = typer.Typer(no_args_is_help=True, help="What is yours in a deployment.")
holds = typer.Typer(no_args_is_help=True, help="Set, list and release legal holds, which nothing deletes against.")
retention = typer.Typer(no_args_is_help=True, help="Say after how many days a team's memories are removed.")

_STDOUT: Final = Path("-")
_File = Annotated[Path, typer.Argument(help="Where to; `-` is standard output.")]
_Force = Annotated[bool, typer.Option("--force", help="Overwrite the file when it exists.")]
_Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@from_fields(DeleteUser)
def delete_user(ctx: typer.Context, fields: Fields, yes: _Yes = False, as_json: bool = False) -> None:
    """Delete a user: their account ends at once, and their memories go where you choose. It counts first, and asks.

    Exits with 15 while something is left; the same command then goes on.
    """
    DeleteUser(**fields)
    done: Departure | None = _confirmed(ctx.obj, "delete_user", fields, yes, as_json)
    if done is not None and done.signed is not None and not done.signed.proven:
        raise typer.Exit(Conflict.exit_code)


@retention.command("set")
@from_fields(SetRetention)
def set_retention(ctx: typer.Context, fields: Fields, yes: _Yes = False, as_json: bool = False) -> None:
    """Set the days after which memories of a team that are not pinned are removed. It counts first, and asks."""
    SetRetention(**fields)
    _confirmed(ctx.obj, "set_retention", fields, yes, as_json)


def _confirmed(settings: Settings, name: str, fields: Fields, yes: bool, as_json: bool) -> Any:
    """Run an operation once somebody has agreed to what it would do; return its answer, None after a dry run."""
    dry = bool(fields.get("dry_run"))
    if not (yes or dry):
        terminal.leave_to_client()
    with administering(settings) as perform:
        if not yes:
            preview = perform(name, **fields | {"dry_run": True})
            if dry:
                _show(name, preview, as_json)
                return None
            if as_json or sys.stdin is None or not sys.stdin.isatty():
                raise InvalidInput("yes", f"{preview.message} Add `--yes` to do it, or `--dry-run` to see this alone")
            print_line(preview.message)
            typer.confirm("Do it?", abort=True, err=True)
        done = perform(name, **fields)
    _show(name, done, as_json)
    return done


def _show(name: str, answer: Any, as_json: bool) -> None:
    body = public_json(ADMIN_BY_NAME[name].answer, answer)
    exit_codes.show(body, as_json, print_answer=lambda: print_answer(answer))


def export_user(
    ctx: typer.Context,
    user: Annotated[str, typer.Argument(help="Whose data.")],
    file: _File = _STDOUT,
    force: _Force = False,
) -> None:
    """Write all that is a user's, but what is private or secret, to a file; the journal tells that you did."""
    _export(ctx.obj, {"user": user}, file, force=force)


@me.command("export")
def export_me(ctx: typer.Context, file: _File = _STDOUT, force: _Force = False) -> None:
    """Write all that is yours to a file: account, tokens' names, sessions, memories, facts, and the journal on you."""
    _export(ctx.obj, {}, file, force=force)


def _export(settings: Settings, fields: dict[str, Any], file: Path, *, force: bool) -> None:
    """Write the export of a person, a page after the other."""
    ExportUser(**fields)
    place = file if file == _STDOUT else working_folder() / file
    if file != _STDOUT and place.exists() and not force:
        raise InvalidInput("file", f"{file} exists already; name another file, or overwrite it with --force.")
    with administering(settings) as perform:
        pieces = export_lines(_pages(perform, fields))
        if file == _STDOUT:
            terminal.stdout().writelines(pieces)
            return
        save(place, pieces)
    err.print(f"Exported to {file}.", highlight=False)


def _pages(perform: Callable[..., Page], fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every line of the export of a person."""
    page = perform("export_user", **fields)
    yield from page.lines
    while page.after:
        page = perform("export_user", **fields, after=page.after)
        yield from page.lines
