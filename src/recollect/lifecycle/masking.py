"""Masking: what the session's own tables keep of an event, with `[redacted: kind]` for each secret."""

from __future__ import annotations

from recollect.domain.enums import OnSecret
from recollect.domain.fields import Request
from recollect.gate import clear

_LONGEST = 20_000  # characters of one text that are looked at


class _Said(Request):
    text: str


def masked(text: str) -> str:
    """Return the beginning of a text with its secrets masked."""
    return clear(_Said(text=text[:_LONGEST]), OnSecret.REDACT).value.text
