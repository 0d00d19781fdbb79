"""What a call of a tool hands over: arguments of ours, those that a client added, and those that say nothing.

Clients put names of their own beside a model's arguments (`toolCallId`, `sessionId`, `_meta`). They are left out, and
the answer notes those that a model may have meant. A misspelt argument of ours is an error.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from recollect.domain.fields import unknown_name
from recollect.errors import InvalidInput

log = logging.getLogger(__name__)

_OUR_STYLE: Final = re.compile(r"[a-z]{1,20}(?:_[a-z]{1,20}){0,3}")
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MISSPELT: Final = 0.8  # likeness from which a name is one of ours with a slip in it
_NOTHING: Final = ("", "null", "none", "undefined")


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a tool takes of a call, and a note for whoever called; the note is mostly empty."""

    given: Mapping[str, Any]
    note: str = ""


def taken(tool: str, arguments: Mapping[str, Any], known: Collection[str], withheld: Collection[str]) -> Arguments:
    """Return the arguments that a tool knows; raise `InvalidInput` for a misspelt or withheld name.

    `withheld` are names of ours that this tool does not offer; to ignore them would change the meaning of the call. An
    unknown name in our style that resembles a known name is misspelt. Every other name is the client's own.
    """
    foreign = [name for name in sorted(arguments) if name not in known]
    for name in foreign:
        if name in withheld or (_OUR_STYLE.fullmatch(name) and get_close_matches(name, known, 1, _MISSPELT)):
            raise InvalidInput(name, unknown_name("parameter", name, known))
    if foreign:
        log.info("arguments of a client that `%s` does not take: %s", tool, ", ".join(map(repr, foreign)))
    notes = [note for name in foreign if (note := _ignored_name(name, known))]
    given = {name: value for name, value in arguments.items() if name in known}
    return Arguments(given, f"`{tool}` does not take {', '.join(notes)}: ignored." if notes else "")


def says_nothing(value: object) -> bool:
    """Return whether the value of an optional argument counts as absent: null, a blank text, or `null` as a text."""
    return value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING)


def _ignored_name(name: str, known: Collection[str]) -> str:
    """Return an ignored name with the name that was meant, if any; empty for a name that only a client sends."""
    if _OUR_STYLE.fullmatch(name):
        return f"`{name}`"
    ours = _CAPITAL.sub("_", name).lower()
    return f"`{name}` (did you mean `{ours}`?)" if ours in known else ""
