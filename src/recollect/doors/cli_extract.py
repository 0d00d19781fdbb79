"""The command `recollect extract`: memories out of a conversation's file, by a language model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recollect.domain.transfer import Extracted, ExtractMemories, ImportFormat
from recollect.doors.operations import opened
from recollect.doors.options import Given, from_fields
from recollect.doors.render import err, out
from recollect.doors.serializers import public_json
from recollect.doors.transcripts import requests_of
from recollect.transfer.formats import recognised

cli = typer.Typer()


@cli.command(name="extract")
@from_fields(ExtractMemories, without="messages session_id")
def _extract(
    ctx: typer.Context,
    given: Given,
    file: Annotated[Path, typer.Argument(help="A transcript of Claude Code or Codex, or an exported conversation.")],
    format: Annotated[ImportFormat | None, typer.Option(help="What wrote the file; default: found out.")] = None,
    as_json: bool = False,
) -> None:
    """Let a language model make memories of a conversation; it needs RECOLLECT_CHAT_MODEL."""
    total = Extracted()
    requests = requests_of(file, recognised(file, format).format)
    with opened(ctx.obj, model=True) as ask:
        for some in requests:
            total = _added(total, ask("extract_memories", **given, **some))
    if as_json:
        out.print_json(data=public_json(Extracted, total))
        return
    out.print(f"{total.new} new, {total.updated} updated, {total.left_out} left out; {total.known} parts known before.")
    for one in total.problems:
        err.print(f"{one.where}: {one.why}", markup=False, highlight=False)
    if total.unread:
        err.print(f"{total.unread} parts were not read: {total.why}", highlight=False)


def _added(one: Extracted, other: Extracted) -> Extracted:
    counts = ("new", "updated", "left_out", "parts", "known", "unread")
    sums = {name: getattr(one, name) + getattr(other, name) for name in counts}
    return Extracted(**sums, why=other.why or one.why, problems=(*one.problems, *other.problems))
