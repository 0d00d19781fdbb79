"""The commands on tags: `tag` changes those of a memory, `tags` counts those of all."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from recollect.domain.enums import Scope
from recollect.domain.requests import Get, Update
from recollect.domain.results import Outcome
from recollect.doors.cli import answers, exit_codes, render
from recollect.doors.cli.opening import opened
from recollect.doors.cli.options import Fields, Json, from_fields
from recollect.doors.cli.paging import every
from recollect.doors.serializers import agent_json

cli = typer.Typer()

Private = Annotated[bool, typer.Option("--private", help="Also in private memories.")]
Secret = Annotated[bool, typer.Option("--secret", help="Also in secret memories.")]
InScope = Annotated[Scope | None, typer.Option("--scope", help="Only in this scope.", case_sensitive=False)]


@cli.command()
@from_fields(Get)
def tag(
    ctx: typer.Context,
    fields: Fields,
    tags: Annotated[list[str], typer.Argument(metavar="TAG...", help="Tags; commas part them too.")],
    remove: Annotated[bool, typer.Option("--remove", help="Take these tags away.")] = False,
    as_json: bool = False,
) -> None:
    """Add tags to a memory, or take some away."""
    wanted = [tag.strip() for text in tags for tag in text.split(",") if tag.strip()]
    Update(id=fields["id"], tags=wanted)
    folded = {tag.casefold() for tag in wanted}
    with opened(ctx.obj, model=True) as ask:
        kept = [tag for tag in ask("get_memory", **fields).tags if tag.casefold() not in folded]
        outcome: Outcome = ask("update_memory", **fields, tags=kept if remove else [*kept, *wanted])
    exit_codes.show(agent_json(Outcome, outcome), as_json, print_answer=lambda: answers.print_answer(outcome))


@cli.command()
def tags(
    ctx: typer.Context, scope: InScope = None, private: Private = False, secret: Secret = False, as_json: Json = False
) -> None:
    """List all tags with how many memories carry them."""
    levels = {"scope": scope, "allow_private": private or None, "allow_secret": secret or None, "superseded": True}
    visible = {name: value for name, value in levels.items() if value is not None}
    with opened(ctx.obj, model=False) as ask:
        found = every(ask, visible)
    counted = Counter(tag for memory in found for tag in memory.tags)
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    body = {"tags": [{"tag": tag, "count": count} for tag, count in ranked]}
    rows = [[tag, str(count)] for tag, count in ranked]
    none = () if rows else ("No memory has a tag.",)
    exit_codes.show(body, as_json, *none, print_answer=lambda: render.print_rows(rows, "tag", "memories"))
