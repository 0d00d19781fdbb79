"""What people type: texts in several words or through a pipe, and dates in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from recollect.doors import terminal
from recollect.errors import InvalidInput
from recollect.search.periods import named_moment

_ISO: Final = re.compile(r"\s*\d{4}-\d\d-\d\d")
_EXAMPLES: Final = (
    "Must be a day or a time, such as `2026-05-07` or `2026-05-07T13:30`, or words such as `yesterday`, `last week`, "
    "`3 days ago` or `March 2026`"
)
_AHEAD: Final = (
    "Must be a day or a time to come, such as `2027-05-07`, or words such as `tomorrow`, `next week` or `in 3 months`"
)


def text(name: str, typed: Sequence[str] | str | None, *, required: bool) -> str | None:
    """Return the words that were typed as one text, or for `-` alone standard input.

    Where a `required` text has no words it is what was piped in; raises `InvalidInput` where that is nothing.
    """
    words = [typed] if isinstance(typed, str) else typed
    if words:
        return terminal.typed().rstrip("\r\n") if list(words) == ["-"] else " ".join(words)
    if not required:
        return None
    piped = terminal.piped()
    if piped is None:
        raise InvalidInput(name, f"Missing {name}: Type the text, or pipe it in; `--help` tells more")
    return piped.rstrip("\r\n")  # the program before the pipe ended its last line with it


def moment(name: str, typed: str, *, end: bool = False, ahead: bool = False) -> str:
    """Return a date as the request reads it: ISO as it is, words as the moment that they mean by the local clock.

    A day in words begins where it begins here; with `end` it is meant to its end.
    """
    if not typed.strip() or _ISO.match(typed):
        return typed
    found = named_moment(typed, datetime.now().astimezone(), end=end, ahead=ahead)
    if found is None:
        raise InvalidInput(name, f"Invalid {name}: {_EXAMPLES}")
    return found.isoformat()


def days_left(typed: str, ttl_days: object) -> float:
    """Return the days from now until the end of the day that was typed, or until the time in it."""
    if ttl_days is not None:
        raise InvalidInput("expires", "Invalid expires: Must not be given together with `--ttl-days`")
    now = datetime.now().astimezone()
    left = (_end(typed, now) - now) / timedelta(days=1)
    if left <= 0:
        raise InvalidInput("expires", f"Invalid expires: {_AHEAD}")
    return left


def _end(typed: str, now: datetime) -> datetime:
    if not _ISO.match(typed):
        found = named_moment(typed, now, end=True, ahead=True)
    else:
        try:
            found = datetime.fromisoformat(typed.strip())
        except ValueError:
            found = None
        if found is not None:
            found = found if found.tzinfo else found.replace(tzinfo=UTC)
            found += timedelta(days=1) if len(typed.strip()) == len("2027-05-07") else timedelta()
    if found is None:
        raise InvalidInput("expires", f"Invalid expires: {_AHEAD}")
    return found
