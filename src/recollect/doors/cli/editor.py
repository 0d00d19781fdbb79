"""Opens a text in the editor of whoever types, and returns what they saved."""

from __future__ import annotations

import sys
from typing import Final

from recollect import environment
from recollect.errors import InvalidInput, RecollectError

EDITED: Final = "edited"
"""What a daemon wants first: that somebody edits a text."""


def edited(text: str) -> str | None:
    """Let somebody edit a text and return the saved text, None where they saved nothing.

    Raises `InvalidInput` without a terminal to edit in, `RecollectError` where the editor cannot be used.
    """
    named = environment.named("VISUAL") or environment.named("EDITOR")
    if not named and (sys.stdin is None or not sys.stdin.isatty()):
        raise InvalidInput("editor", "There is no terminal to edit in: set EDITOR, or use `recollect update`.")
    import click

    try:
        saved: str | None = click.edit(text, extension=".md")
    except click.ClickException as error:
        raise RecollectError(f"The editor could not be used: {error.format_message()}") from None
    return saved
