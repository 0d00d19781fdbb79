"""Finds commands by name or alias, imports the part that has the one wanted, and prints the help in groups."""

from __future__ import annotations

import json
from copy import copy
from difflib import get_close_matches
from typing import Any, Final

import typer
from typer.completion import shell_complete
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.main import get_group

from recollect.doors.cli.aliases import IN_GROUPS, NEAREST, expand_alias
from recollect.doors.cli.dispatch import HELP
from recollect.doors.cli.options import FILTERS

GROUPS: Final = {
    "Every day": "remember recall list show edit update forget undo",
    "Put in order": "pin unpin bury unbury tag tags move promote",
    "Other ways to look": "timeline by-file by-concept similar prompt fact facts stats session page",
    "Set up": "init install uninstall project",
    "Look after the store": (
        "doctor status start stop settings reindex rescan inbox withdraw purge summarize backup migrate-store"
    ),
    "In and out": "import export extract",
    "For programs": "mcp serve hook",
    "Teams": "login logout me user team token hold retention audit",
}
"""The commands in the order of the help."""

PARTS: Final = {
    "backup": "backup restore",
    "daemon": "start status stop",
    "doctor": "doctor",
    "edit": "edit update",
    "forget": "forget",
    "login": "login logout",
    "page": "page",
    "review": "inbox withdraw",
    "serve": "mcp serve",
    "sessions": "session",
    "settings": "settings",
    "setup": "hook init install uninstall",
    "store": "migrate-store reindex",
    "tags": "tag tags",
    "team": "audit hold me project retention team token user",
    "transfer": "export extract import",
}
"""The commands of each further module of this folder, which is imported once one of them is wanted."""
_PART_OF: Final = {name: part for part, names in PARTS.items() for name in names.split()}

_EITHER_PLACE: Final = frozenset(("--user", "--team", "--project"))
"""The options of the caller that may stand behind a command too."""
FILTERS_COMMAND: Final = "filters"
"""The command that explains all filters."""
DAILY: Final = frozenset("scope fact_type category tags file since until".split())
"""The filters that the help of each command explains."""
_WHOLE: Final = 200


class _Argument(TyperArgument):
    """An argument whose help names no type of Python."""

    def display_type(self, _ctx: Any) -> str:
        """Return an empty text: name and help of an argument tell its type already."""
        return ""


class _Command(TyperCommand):
    """A command whose help has a section for each panel of its options, and of the filters only those in daily use."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options, and the panels of further options."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        others: list[str] = []
        for option in self.get_params(ctx):
            title = (
                "Arguments"
                if isinstance(option, TyperArgument)
                else getattr(option, "rich_help_panel", None) or "Options"
            )
            if title == FILTERS and self.name != FILTERS_COMMAND and option.name not in DAILY:
                others.append(option.opts[0])
            elif (record := option.get_help_record(ctx)) is not None:
                sections.setdefault(title, []).append(record)
        if others:
            sections[FILTERS].append(("more", f"{', '.join(others)}: see `recollect {FILTERS_COMMAND}`."))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class _Group(TyperGroup):
    """A group of commands that knows what newcomers type for them."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command by its name or that alias."""
        name = IN_GROUPS.get(args[0], args[0])
        return super().resolve_command(ctx, [name, *args[1:]] if name in self.commands else args)


def _without_types(command: Any) -> None:
    """Let no argument of a command, or of its subcommands, show its type."""
    if type(command) is TyperCommand:
        command.__class__ = _Command
    elif type(command) is TyperGroup:
        command.__class__ = _Group
    for parameter in command.params:
        if isinstance(parameter, TyperArgument):
            parameter.__class__ = _Argument
    for below in getattr(command, "commands", {}).values():
        _without_types(below)


def _import_part(name: str) -> typer.Typer:
    """Import and return a further part of the command line."""
    match name:
        case "backup":
            from recollect.doors.cli.backup import cli as part
        case "daemon":
            from recollect.doors.cli.daemon import cli as part
        case "doctor":
            from recollect.doors.cli.doctor import cli as part
        case "edit":
            from recollect.doors.cli.edit import cli as part
        case "forget":
            from recollect.doors.cli.forget import cli as part
        case "login":
            from recollect.doors.cli.login import cli as part
        case "page":
            from recollect.doors.cli.page import cli as part
        case "review":
            from recollect.doors.cli.review import cli as part
        case "serve":
            from recollect.doors.cli.serve import cli as part
        case "sessions":
            from recollect.doors.cli.sessions import cli as part
        case "settings":
            from recollect.doors.cli.settings import cli as part
        case "setup":
            from recollect.doors.cli.setup import cli as part
        case "store":
            from recollect.doors.cli.store import cli as part
        case "tags":
            from recollect.doors.cli.tags import cli as part
        case "team":
            from recollect.doors.cli.team import cli as part
        case _:
            from recollect.doors.cli.transfer import cli as part
    return part


class Commands(TyperGroup):
    """The commands in groups, with their whole first sentence, and `help COMMAND` for `COMMAND --help`.

    Only the part that has the wanted command is imported.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        _without_types(self)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name, None where there is none."""
        if cmd_name not in self.commands and cmd_name in _PART_OF:
            part = _import_part(_PART_OF[cmd_name])
            part.rich_markup_mode = self.rich_markup_mode
            built = get_group(part)
            _without_types(built)
            self.commands.update(built.commands)
        return super().get_command(ctx, cmd_name)

    def list_commands(self, _ctx: Any) -> list[str]:
        """Return the names of all commands, and import none."""
        return [*dict.fromkeys((*self.commands, *_PART_OF))]

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the commands that begin with the typed text, with their help and without importing any command."""
        known = json.loads(HELP.read_text(encoding="utf-8"))
        abouts = {name: known[name].split("\n\n")[1] for name in " ".join(GROUPS.values()).split()}
        described = {name: TyperCommand(name, help=" ".join(about.split())) for name, about in abouts.items()}
        ctx.command = copy(self)  # a daemon runs the commands of this one
        ctx.command.commands = {
            **self.commands,
            **{name: described[name] for name in described if name not in self.commands},
        }
        return super().shell_complete(ctx, incomplete)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the same help into a terminal and into a pipe."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Write a section for each group."""
        for title, names in GROUPS.items():
            with formatter.section(title):
                found = [(name, self.get_command(_ctx, name)) for name in names.split()]
                rows = [(name, command.get_short_help_str(_WHOLE)) for name, command in found]
                formatter.write_dl(rows, col_max=15)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take `help`, `version` and `completion` for options, and `--help COMMAND` for `COMMAND --help`."""
        if args[:1] in (["help"], ["--help"], ["-h"]):
            args = [*args[1:], "--help"]
        if len(args) == 2 and args[0] in ("completion", "--show-completion"):
            raise typer.Exit(shell_complete(self, {}, "recollect", "_RECOLLECT_COMPLETE", f"source_{args[1]}"))
        known = {"version": "--version", "completion": "--show-completion"}
        return super().parse_args(ctx, [known[args[0]]] if len(args) == 1 and args[0] in known else args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command by its name or an alias; for an unknown name raise an error with the nearest names."""
        known = expand_alias(args)
        names = self.list_commands(ctx)
        if known[0] not in names and not known[0].startswith("-"):
            near = [NEAREST[args[0]]] if args[0] in NEAREST else get_close_matches(args[0], names)
            close = f" Did you mean {', '.join(f'`{name}`' for name in near)}?" if near else ""
            ctx.fail(f"No such command `{args[0]}`.{close}")
        name, command, rest = super().resolve_command(ctx, known)
        return name, command, _before_command(ctx, command, list(rest))


def _before_command(ctx: Any, command: Any, args: list[str]) -> list[str]:
    """Apply `--user`, `--team` and `--project` behind a command as if they stood before it; return the other words.

    A command that has such an option itself keeps it.
    """
    own = {
        option
        for known in (command, *getattr(command, "commands", {}).values())
        for each in known.params
        for option in each.opts
    }
    rest: list[str] = []
    while args:
        word = args.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            return [*rest, word, *args]
        if name not in _EITHER_PLACE or name in own or not (equals or args):
            rest.append(word)
        else:
            ctx.params[name.removeprefix("--")] = value if equals else args.pop(0)
    return rest
