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
    """Return the arguments that a tool knows; raise `InvalidInput` for one of ours that is misspelt or withheld.

    `withheld` are names of ours that this tool does not offer: to leave out what they say would be no small thing. Of
    others one that is written as ours are, in small letters and `_`, and is much like one that the tool knows, is a
    slip. All the rest is a client's.
    """
    foreign = [name for name in sorted(arguments) if name not in known]
    for name in foreign:
        if name in withheld or (_OUR_STYLE.fullmatch(name) and get_close_matches(name, known, 1, _MISSPELT)):
            raise InvalidInput(name, unknown_name("parameter", name, known))
    if foreign:
        log.info("arguments of a client that `%s` does not take: %s", tool, ", ".join(map(repr, foreign)))
    notes = [note for name in foreign if (note := _note(name, known))]
    given = {name: value for name, value in arguments.items() if name in known}
    return Arguments(given, f"`{tool}` does not take {', '.join(notes)}: ignored." if notes else "")


def says_nothing(value: object) -> bool:
    """Return whether the value of an optional argument counts as absent: null, a blank text, or `null` as a text."""
    return value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING)


def _note(name: str, known: Collection[str]) -> str:
    """Return a name that a model may have meant, and as what; nothing for one that only a client would make."""
    if _OUR_STYLE.fullmatch(name):
        return f"`{name}`"
    ours = _CAPITAL.sub("_", name).lower()
    return f"`{name}` (did you mean `{ours}`?)" if ours in known else ""
