"""What a shell completes: names that the store holds, asked of a daemon that is running or of a team's server.

Whoever presses a key shall not wait for a store to be opened: where nobody can be asked, nothing is completed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import typer

from recollect.client import launch
from recollect.client.connection import remote
from recollect.doors.cli import opening
from recollect.errors import RecollectError
from recollect.settings import Settings

_LATEST: Final = 100
"""Memories whose tags and groups are looked at."""
_BEFORE: Final = ("home", "user", "team", "project")
"""The options before a command that make its settings."""


def projects(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the projects that the user may read."""
    found = _ask_daemon(ctx, "count_projects")
    return _with_beginning((project.project for project in found.projects), incomplete) if found else []


def tags(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the tags of the latest memories."""
    return _with_beginning((tag for memory in _latest_memories(ctx) for tag in memory.tags), incomplete)


def categories(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the groups of the latest memories."""
    return _with_beginning((memory.category for memory in _latest_memories(ctx) if memory.category), incomplete)


OF: Final[dict[str, Callable[[typer.Context, str], list[str]]]] = {
    "tags": tags,
    "category": categories,
    "to_project": projects,
}
"""What completes the option of a field."""


def _latest_memories(ctx: typer.Context) -> Iterable[Any]:
    found = _ask_daemon(ctx, "list_memories", limit=_LATEST, order="newest")
    return found.memories if found else ()


def _ask_daemon(ctx: typer.Context, verb: str, **fields: Any) -> Any:
    """Return the answer of a verb; None where no daemon is running."""
    options = ctx.find_root().params
    try:
        settings = Settings(**{name: options[name] for name in _BEFORE if options.get(name) is not None})
        if opening.is_served():
            with opening.opened(settings, model=False) as ask:
                return ask(verb, **fields)
        if not settings.url and launch.running(settings) is None:
            return None
        with remote(settings) as link:
            return link.perform(verb, **fields)
    except RecollectError:
        return None


def _with_beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted({name for name in names if name.casefold().startswith(incomplete.casefold())})
