"""The console script: does with the standard library what needs no more, and hands all else to the command line."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from sys import argv, exit
from typing import Final, NamedTuple

from recollect import environment

_WITH_VALUE: Final = ("home", "user", "team", "project")


class _Typed(NamedTuple):
    """A command line: the settings before the command, the command, and the words after it."""

    given: dict[str, str]
    command: str
    rest: list[str]


def main() -> None:
    """Run what was typed."""
    typed = _split(argv[1:])
    if typed is not None and environment.daemon_wanted() and typed.command == "mcp":
        sets = _toolsets(typed.rest)
        if sets is not None:
            pipe = import_module("recollect.doors.pipe")
            pipe.serve(typed.given, environment.home(typed.given.get("home", "")), sets)
            return
    exit(import_module("recollect.doors.cli").main())


def _split(words: Sequence[str]) -> _Typed | None:
    """Take the settings that stand before a command; None where anything else does."""
    given: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        name, equals, value = rest.pop(0).removeprefix("--").partition("=")
        if name not in _WITH_VALUE or not (equals or rest):
            return None
        given[name] = value if equals else rest.pop(0)
    return _Typed(given, rest[0], rest[1:]) if rest else None


def _toolsets(words: Sequence[str]) -> tuple[str, ...] | None:
    """Return the toolsets that the words after `mcp` ask for; None where they say anything else."""
    names, rest = [], list(words)
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if option != "--toolset" or not (equals or rest):
            return None
        names.append(value if equals else rest.pop(0))
    known = import_module("recollect.doors.toolset_names")
    wanted = tuple(dict.fromkeys(names)) or known.DEFAULT
    return wanted if set(wanted) <= set(known.SETS) else None
