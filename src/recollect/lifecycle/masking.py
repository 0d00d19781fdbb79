"""Masking: what the session's own tables keep of an event, with `[redacted: kind]` for each secret."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from recollect.domain.enums import OnSecret
from recollect.domain.fields import Request
from recollect.gate import clear
from recollect.policy.observations.occurrence import Occurrence

_LONGEST = 20_000  # characters of one text that are looked at


class _Said(Request):
    text: str


class _Given(Request):
    given: dict[str, Any]


def masked(text: str) -> str:
    """Return the beginning of a text with its secrets masked."""
    return clear(_Said(text=text[:_LONGEST]), OnSecret.REDACT).value.text


def masked_occurrence(one: Occurrence) -> Occurrence:
    """Return an occurrence with its secrets masked, before any part of it is cut or loses the words around it.

    `mysql --password X` without its option, or the first half of a token, is no secret to the gate any more.
    """
    text = clear(_Said(text=one.text), OnSecret.REDACT).value.text
    return replace(one, text=text, input=clear(_Given(given=dict(one.input)), OnSecret.REDACT).value.given)
