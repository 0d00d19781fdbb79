"""The Tab key: a daemon that is running says what completes a command line, so that nothing is imported for it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

from recollect import __version__, environment
from recollect.client.daemon import running_at
from recollect.doors.cli import thin
from recollect.errors import RecollectError

_BASH: Final = "bash"
_SHELLS: Final = (_BASH, "zsh", "fish")
_LINE: Final = "_TYPER_COMPLETE_ARGS"
_ACTION: Final = "_TYPER_COMPLETE_FISH_ACTION"


class Line(NamedTuple):
    """What a shell asks about: its finished words without the program, and the word that is being typed."""

    shell: str
    words: list[str]
    incomplete: str


def line_from_shell(shell: str) -> Line | None:
    """Return the line that a shell asks about; None for a shell that is not known here."""
    if shell not in _SHELLS:
        return None
    if shell == _BASH:
        words, place = _split_words(environment.named("COMP_WORDS")), int(environment.named("COMP_CWORD") or 0)
        return Line(shell, words[1:place], words[place] if place < len(words) else "")
    line = environment.named(_LINE)
    words = _split_words(line)[1:]
    finished = not words or line.endswith(" ")
    return Line(shell, words if finished else words[:-1], "" if finished else words[-1])


def complete(line: Line, home: Path) -> int | None:
    """Print the completions of a line and return the exit code; None where no daemon of this version runs."""
    about = {"shell": line.shell, "incomplete": line.incomplete, "action": environment.named(_ACTION)}
    try:
        client = running_at(home)
        if client is None or client.runtime.version != __version__:
            return None
        answer: dict[str, Any] = dict(client.post("/command", thin.request(line.words) | {"completing": about}))
    except RecollectError:
        return None
    if "wanted" in answer:
        return None
    sys.stdout.write(answer["out"])
    return int(answer["code"])


def _split_words(line: str) -> list[str]:
    """Return the words of a line as a shell takes them; the last may have a quote that is not closed yet."""
    parser = shlex.shlex(line, posix=True)
    parser.whitespace_split, parser.commenters = True, ""
    found: list[str] = []
    try:
        found.extend(parser)
    except ValueError:
        found.append(parser.token)
    return found
