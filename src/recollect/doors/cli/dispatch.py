"""Where a command runs: here with the standard library what needs no more, else in the daemon or the command line.

Of what the daemon does anyway, it runs the command too, and this process only prints: importing the command line would
take several times as long as the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import get_terminal_size
from pathlib import Path
from sys import stdout
from typing import Final, NamedTuple

from recollect import __version__, environment
from recollect.doors.cli.aliases import expand_alias
from recollect.doors.cli.command_table import COMMANDS
from recollect.setting_texts import SettingTexts, variables
from recollect.store_folder import DATABASE

_JSON: Final = "--json"
_WITH_VALUE: Final = ("home", "user", "team", "project")
_HELP_WANTED: Final = {"-h", "--help"}
HELP: Final = Path(__file__).with_name("help.json")
"""What `recollect COMMAND --help` prints in 80 columns, by the command; `scripts/reference.py` makes it."""
_COLUMNS: Final = 80
_NO_COMMAND: Final = 2  # exit code
_COMPLETE: Final = "_RECOLLECT_COMPLETE"  # set by a shell that asks what completes a command line
IN_DAEMON: Final = frozenset(
    (
        *COMMANDS,
        *"edit forget import inbox list recall remember rescan session show tag tags update withdraw".split(),
    )
)
"""The commands that only run operations: the daemon runs them, and is started where none is running."""
HERE: Final = frozenset(
    "completion doctor extract help hook init install login logout mcp migrate-store reindex restore serve stop "
    "uninstall version".split()
)
"""The commands that need this process. A daemon that is running answers all others, and what is no command; it is not
started for them."""


class _Typed(NamedTuple):
    """A command line: the settings before the command, the command, and the words after it."""

    options: dict[str, str]
    command: str
    rest: list[str]


def run(words: list[str]) -> int | None:
    """Run the typed command, here or in the daemon, and return its exit code; None where typer has to run it."""
    if words in (["--version"], ["-V"], ["-v"], ["version"]):
        stdout.write(f"recollect {__version__}\n")
        return 0
    shell = environment.named(_COMPLETE)
    if shell and (ended := _complete(shell)) is not None:
        return ended
    bare = not words and not shell
    if (text := _help_text(["--help"] if bare else words)) is not None:
        stdout.write(text)
        return 0 if words else _NO_COMMAND
    typed = split(words)
    if typed is None:
        return None
    if typed.command == "hook" and not _HELP_WANTED & set(typed.rest):
        from recollect.doors.hook import main as run_hook

        run_hook(typed.rest, typed.options)
    texts = SettingTexts(typed.options, variables())
    if not (texts.server or texts.shares_daemon):
        return None
    folder = Path(texts.store_folder)
    if typed.command == "mcp" and (sets := _toolsets_in(typed.rest)) is not None:
        from recollect.doors import pipe

        pipe.serve(typed.options, folder, sets, remote=bool(texts.server))
        return 0
    if texts.server or typed.command in HERE or _HELP_WANTED & set(typed.rest):
        return None
    from recollect.doors.cli import thin

    operation = typed.command in IN_DAEMON
    makes = typed.command == "remember" or "home" not in typed.options or (folder / DATABASE).exists()
    return thin.run(words, typed.options, folder, start=operation and makes, keyed=operation)


def _complete(shell: str) -> int | None:
    """Let the daemon complete the line in a shell; None where there is no such line, or no daemon runs."""
    from recollect.doors.cli import tab

    line = tab.line_from_shell(shell.removeprefix("complete_"))
    before = None if line is None else split(line.words)
    texts = SettingTexts(before.options if before else {}, variables())
    if line is None or texts.server or not texts.shares_daemon:
        return None
    return tab.complete(line, Path(texts.store_folder))


def _help_text(words: Sequence[str]) -> str | None:
    """Return the help text that the words ask for; None without such a request, or where typer has to write it."""
    asks = {*_HELP_WANTED, "help"} if words[:1] == ["help"] else _HELP_WANTED
    if not asks & set(words) or not _is_wide():
        return None
    typed = [word for word in words if word not in asks]
    typed = expand_alias(typed)
    if "--" in typed:
        return None
    from json import loads

    known: dict[str, str] = loads(HELP.read_text(encoding="utf-8"))
    whole = " ".join(typed)
    if whole in known or not typed:
        return known[whole]
    paths = [" ".join(typed[:2]), typed[0]]
    groups = {path.partition(" ")[0] for path in known if " " in path}
    return next((known[path] for path in paths if path in known and path not in groups), None)


def _is_wide() -> bool:
    """Return whether the terminal has 80 columns."""
    columns = environment.of_terminal().get("COLUMNS", "")
    try:
        return (int(columns) if columns.isdecimal() else get_terminal_size(1).columns) >= _COLUMNS
    except OSError:  # it is no terminal
        return True


def split(words: Sequence[str]) -> _Typed | None:
    """Split the settings before a command off; None where anything but settings and `--json` precedes it."""
    options: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        if rest[0] == _JSON:
            rest.pop(0)
            continue
        name, equals, value = rest.pop(0).removeprefix("--").partition("=")
        if name not in _WITH_VALUE or not (equals or rest):
            return None
        options[name] = value if equals else rest.pop(0)
    return _Typed(options, expand_alias(rest)[0], rest[1:]) if rest else None


def _toolsets_in(words: Sequence[str]) -> tuple[str, ...] | None:
    """Return the toolsets that the words after `mcp` name; None where the words hold anything else."""
    names, rest = [], list(words)
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if option != "--toolset" or not (equals or rest):
            return None
        names.append(value if equals else rest.pop(0))
    from recollect.doors.toolset_names import DEFAULT, SETS

    wanted = tuple(dict.fromkeys(names)) or DEFAULT
    return wanted if set(wanted) <= set(SETS) else None
