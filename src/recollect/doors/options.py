"""The options that several commands share, each explained once; what a command does with them is its own affair."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Annotated, Any, cast

import typer

from recollect.domain import Scope

Json = Annotated[bool, typer.Option("--json", help="Answer as JSON, for machines.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The memory's id, as recall shows it.")]
Where = Annotated[Scope | None, typer.Option(help="Only in this scope; default: everywhere you may see.")]
Shared = Annotated[Scope, typer.Option(help="Who shares it.")]
Most = Annotated[int, typer.Option(help="At most so many, 1-100.")]
Skipped = Annotated[int, typer.Option(help="Skip so many, which an earlier page has shown.")]

FactType = Annotated[str | None, typer.Option(help="Kind of knowledge, such as decision or preference.")]
Category = Annotated[str | None, typer.Option(help="Free-form group.")]
Type = Annotated[str | None, typer.Option(help="Kind of observation, such as bugfix or discovery.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only what carries this tag; repeat it to ask for more.")]
Concepts = Annotated[
    list[str] | None, typer.Option("--concept", help="Only what carries this concept, such as gotcha; repeat it too.")
]
Entity = Annotated[str | None, typer.Option(help="Only what names this person, file, address or ticket.")]
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
Superseded = Annotated[bool, typer.Option("--superseded", help="Also what a later memory has put right or condensed.")]

Key = Annotated[str | None, typer.Option(help="Unique name: the same key again updates that memory.")]
Confidence = Annotated[float | None, typer.Option(help="How sure it is, 0.0-1.0; default 0.5.")]
Importance = Annotated[float | None, typer.Option(help="How much it matters, 0.0-1.0; default 0.5.")]
Trust = Annotated[float | None, typer.Option(help="How far its source is trusted, 0.0-1.0; default 0.5.")]
Sensitivity = Annotated[str | None, typer.Option(help="Who may read it back: public (default), private or secret.")]
Title = Annotated[str | None, typer.Option(help="Heading; made from the content when absent.")]
Subtitle = Annotated[str | None, typer.Option(help="Second heading of one line.")]
Lifetime = Annotated[float | None, typer.Option("--ttl-days", help="Expires after so many days.")]
Tagged = Annotated[list[str] | None, typer.Option("--tag", help="A label of it; repeat it for more.")]
About = Annotated[list[str] | None, typer.Option("--concept", help="What it is about, such as gotcha; repeat it too.")]
FilesRead = Annotated[list[str] | None, typer.Option("--file-read", help="A file that was read for it; repeat it.")]
FilesModified = Annotated[
    list[str] | None, typer.Option("--file-modified", help="A file that was modified with it; repeat it.")
]
OfSession = Annotated[str | None, typer.Option("--session", help="Id of the session it comes from.")]
OfProject = Annotated[str | None, typer.Option("--project-field", help="Its own field `project`.")]
Cost = Annotated[int | None, typer.Option("--discovery-tokens", help="How many tokens it took to find out.")]
Observed = Annotated[str | None, typer.Option("--observed-at", help="When it happened: a day, or a time in ISO 8601.")]
Speaker = Annotated[str | None, typer.Option(help="Who said or did it.")]


def typed_or_piped(text: str) -> str:
    """Return a text as it was typed, or for `-` what standard input holds; nothing where that is closed."""
    return text if text != "-" else sys.stdin.read() if sys.stdin is not None else ""


def _filters(
    scope: Where = None,
    fact_type: FactType = None,
    category: Category = None,
    type: Type = None,
    tags: Tags = None,
    concepts: Concepts = None,
    entity: Entity = None,
    project: ItsProject = None,
    session_id: Session = None,
    file: File = None,
    since: Since = None,
    until: Until = None,
    allow_private: Private = False,
    allow_secret: Secret = False,
    sensitivity: Level = None,
    superseded: Superseded = False,
) -> None:
    """Narrow a list: the signature is all that counts here."""


def filtered(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command every option that narrows a list, but those named, and hand them to it as `filters`."""

    def widened(command: Callable[..., None]) -> Callable[..., None]:
        own = dict(inspect.signature(command, eval_str=True).parameters)
        del own["filters"]
        added = dict(inspect.signature(_filters, eval_str=True).parameters)
        added = {name: one for name, one in added.items() if name not in without}
        last = {"as_json": own.pop("as_json")}

        def run(**given: Any) -> None:
            filters = {name: given.pop(name) for name in added}
            command(**given, filters={name: value for name, value in filters.items() if value not in (None, False, [])})

        whole = own | added | last
        known = cast(Any, run)
        known.__name__, known.__doc__ = command.__name__, command.__doc__
        known.__signature__ = inspect.Signature(
            [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in whole.values()]
        )
        known.__annotations__ = {name: one.annotation for name, one in whole.items()}
        return run

    return widened
