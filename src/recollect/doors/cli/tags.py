"""The commands on tags: `tag` changes those of one memory, `tags` lists, renames and merges those of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from recollect.domain.enums import Scope
from recollect.domain.requests import Get, Update
from recollect.domain.results import Memory, Outcome
from recollect.doors.cli import answers, exit_codes, render
from recollect.doors.cli.opening import opened
from recollect.doors.cli.options import Given, Json, from_fields
from recollect.doors.cli.paging import Ask, every
from recollect.doors.serializers import agent_json
from recollect.errors import InvalidInput, NotFound, RecollectError, SecretFound

cli = typer.Typer()

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say how many memories would change.")]
Private = Annotated[bool, typer.Option("--private", help="Also in private memories.")]
Secret = Annotated[bool, typer.Option("--secret", help="Also in secret memories.")]
InScope = Annotated[Scope | None, typer.Option("--scope", help="Only in this scope.", case_sensitive=False)]

_tags = typer.Typer(invoke_without_command=True, help="List all tags with their counts, or rename and merge them.")
cli.add_typer(_tags, name="tags")


@cli.command()
@from_fields(Get)
def tag(
    ctx: typer.Context,
    given: Given,
    tags: Annotated[list[str], typer.Argument(metavar="TAG...", help="Tags; commas part them too.")],
    remove: Annotated[bool, typer.Option("--remove", help="Take these tags away.")] = False,
    as_json: bool = False,
) -> None:
    """Add tags to a memory, or take some away."""
    wanted = [one.strip() for text in tags for one in text.split(",") if one.strip()]
    Update(id=given["id"], tags=wanted)
    folded = {one.casefold() for one in wanted}
    with opened(ctx.obj, model=True) as ask:
        kept = [one for one in ask("get_memory", **given).tags if one.casefold() not in folded]
        outcome: Outcome = ask("update_memory", **given, tags=kept if remove else [*kept, *wanted])
    exit_codes.show(agent_json(Outcome, outcome), as_json, print_answer=lambda: answers.print_answer(outcome))


@_tags.callback()
def tags(
    ctx: typer.Context, scope: InScope = None, private: Private = False, secret: Secret = False, as_json: Json = False
) -> None:
    """List all tags with how many memories carry them; or rename and merge them."""
    if ctx.invoked_subcommand is not None:
        return
    with opened(ctx.obj, model=False) as ask:
        found = every(ask, _visible(scope, private, secret))
    counted = Counter(tag for one in found for tag in one.tags)
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    body = {"tags": [{"tag": tag, "count": count} for tag, count in ranked]}
    rows = [[tag, str(count)] for tag, count in ranked]
    none = () if rows else ("No memory has a tag.",)
    exit_codes.show(body, as_json, *none, print_answer=lambda: render.print_rows(rows, "tag", "memories"))


@_tags.command()
def rename(
    ctx: typer.Context,
    old: Annotated[str, typer.Argument(help="A tag, in any letter case.")],
    new: Annotated[str, typer.Argument(help="What it is called from now on.")],
    dry_run: DryRun = False,
    scope: InScope = None,
    private: Private = False,
    secret: Secret = False,
    as_json: Json = False,
) -> None:
    """Rename a tag in every memory that you may see. Exit code 4 when no memory has it."""
    _replace_tags(ctx, [old], new, _visible(scope, private, secret), as_json, dry_run=dry_run)


@_tags.command()
def merge(
    ctx: typer.Context,
    tags: Annotated[list[str], typer.Argument(metavar="TAG... INTO", help="Tags, and last the one that they become.")],
    dry_run: DryRun = False,
    scope: InScope = None,
    private: Private = False,
    secret: Secret = False,
    as_json: Json = False,
) -> None:
    """Make one tag of several, in every memory that you may see. Exit code 4 when no memory has any of them."""
    if len(tags) < 2:
        raise InvalidInput("tags", "Invalid tags: Must name the tags to merge, and last the one that they become")
    _replace_tags(ctx, tags[:-1], tags[-1], _visible(scope, private, secret), as_json, dry_run=dry_run)


def _visible(scope: Scope | None, private: bool, secret: bool) -> dict[str, Any]:
    given = {"scope": scope, "allow_private": private or None, "allow_secret": secret or None, "superseded": True}
    return {name: value for name, value in given.items() if value is not None}


def _replace_tags(
    ctx: typer.Context, old: Sequence[str], new: str, visible: dict[str, Any], as_json: bool, *, dry_run: bool
) -> None:
    new = Update(id="1", tags=[new]).tags[0] if new.strip() else ""  # type: ignore[attr-defined]
    if not new or not all(one.strip() for one in old):
        raise InvalidInput("tags", "Invalid tags: Must not be empty")
    allowed = {name: value for name, value in visible.items() if name.startswith("allow_")}
    refused: dict[int, str] = {}
    with opened(ctx.obj, model=not dry_run) as ask:
        carriers = {one.id: one for tag in old for one in every(ask, visible | {"tags": [tag.strip()]})}
        changes = {id: after for id, one in carriers.items() if (after := _renamed(one, old, new)) != one.tags}
        if not dry_run:
            refused = _update_tags(ask, changes, allowed)
    if not carriers:
        raise NotFound(f"No memory has the tag {' or '.join(old)}.")
    ids = [str(id) for id in changes if id not in refused]
    does = "would change" if dry_run else "changed"
    message = f"{len(ids)} {'memory' if len(ids) == 1 else 'memories'} {does}."
    failures = [f"Memory {id} keeps its tags: {why}" for id, why in refused.items()]
    body = {"message": message, "ids": ids, "dry_run": dry_run} | ({"refused": failures} if failures else {})
    exit_codes.show(body, as_json, message, *failures)
    if failures:
        raise typer.Exit(SecretFound.exit_code)


def _renamed(one: Memory, old: Sequence[str], new: str) -> tuple[str, ...]:
    folded = {tag.strip().casefold() for tag in old}
    return tuple(dict.fromkeys(new if tag.casefold() in folded else tag for tag in one.tags))


def _update_tags(ask: Ask, changes: dict[int, tuple[str, ...]], allowed: dict[str, Any]) -> dict[int, str]:
    """Write the tags of each memory and return why some were refused; what is gone meanwhile has none any more."""
    refused: dict[int, str] = {}
    for id, after in changes.items():
        try:
            _: Outcome = ask("update_memory", id=str(id), tags=list(after), **allowed)
        except NotFound:
            refused[id] = "it is not there any more."
        except RecollectError as error:
            refused[id] = str(error)
    return refused
