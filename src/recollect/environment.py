"""What surrounds whoever is served: this process, or a client whose command the daemon runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final, NamedTuple

from recollect import process, setting_texts

LOCALE: Final = ("LC_ALL", "LC_TIME", "LANG")
"""What tells a program how dates are written; what is set first counts."""
_TERMINAL: Final = frozenset(
    (
        *("COLORTERM", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "TERM", "TZ", "TTY_COMPATIBLE"),
        *("TTY_INTERACTIVE", *LOCALE),
    )
)
"""What tells a program how to print, by which clock, and how dates are written."""


class Surroundings(NamedTuple):
    """What surrounds a client whose command the daemon runs: its variables of ours, working folder and user."""

    variables: Mapping[str, str]
    folder: Path
    user: str


_client: ContextVar[Surroundings | None] = ContextVar("surroundings", default=None)


@contextmanager
def surrounded(client: Surroundings) -> Iterator[None]:
    """Let what runs here see a client's surroundings in place of this process's own."""
    token = _client.set(client)
    try:
        yield
    finally:
        _client.reset(token)


def working_folder() -> Path:
    """Return the working folder; raise `OSError` when it is gone."""
    client = _client.get()
    return Path.cwd() if client is None else client.folder


def system_user() -> str:
    """Return the system's name of the user."""
    client = _client.get()
    return process.user() if client is None else client.user


def variables() -> Mapping[str, str]:
    """Return the variables of ours that are set, those in files too; an empty one counts as absent."""
    client = _client.get()
    return setting_texts.variables() if client is None else client.variables


def named(name: str) -> str:
    """Return the variable of another program, or an empty text."""
    return process.named(name)


def of_terminal() -> dict[str, str]:
    """Return the variables by which a program prints for a terminal."""
    return process.of(_TERMINAL)
