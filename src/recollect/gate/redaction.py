"""Replaces each secret by `[redacted: kind]`, in every field of a request where its value stands.

It repeats until a scan finds nothing, so that the result always passes the gate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from recollect.domain.fields import explain
from recollect.errors import InvalidInput
from recollect.gate.cross_field import secrets_in
from recollect.gate.scanner import Finding, normalized, scan
from recollect.gate.time_limit import ScanTooLong, limit_scan_time
from recollect.gate.walk import rewritten_fields

_T = TypeVar("_T", bound=BaseModel)
_MAX_ROUNDS: Final = 4
_SECONDS: Final = 3.0  # of processor time for one text
_MIN_ANYWHERE: Final = 6
_MIN_LINE: Final = 16


def redacted(noun: _T) -> _T:
    """Return the request without its secrets; the same object where there are none."""
    for attempt in range(_MAX_ROUNDS + 1):
        secrets = [(text, findings) for _, text, findings in secrets_in(noun)]
        if not secrets:
            return noun
        values = _secret_values(secrets)
        kinds = {text: findings[0].kind for text, findings in secrets}
        if attempt < _MAX_ROUNDS:
            noun = _rebuild_request(noun, lambda text, values=values: _with_redactions(text, values))  # type: ignore[misc]
        else:
            noun = _rebuild_request(noun, lambda text, kinds=kinds: _mark_for(kinds[text]) if text in kinds else text)  # type: ignore[misc]
    return noun


def masked(text: str) -> str:
    """Return a text without its secrets; for texts that are derived from another before the gate sees it."""
    try:
        with limit_scan_time(_SECONDS):
            findings = scan(text)
            return _with_redactions(text, _secret_values([(text, findings)])) if findings else text
    except ScanTooLong:
        return _mark_for("text that takes too long to read")


def _mark_for(kind: str) -> str:
    return f"[redacted: {kind}]"


def _secret_values(found: Iterable[tuple[str, list[Finding]]]) -> dict[str, str]:
    """Return the kind of each secret by its value, as written and normalized, and by each long line of the value."""
    values: dict[str, str] = {}
    for text, findings in found:
        for finding in findings:
            value = text[finding.start : finding.end]
            for form in (value, normalized(value)[0]):
                lines = [line for line in form.splitlines() if len(line) >= _MIN_LINE]
                for piece in (form, *lines):
                    values.setdefault(piece.strip(), finding.kind)
    values.pop("", None)
    return values


def _with_redactions(text: str, values: dict[str, str]) -> str:
    """Return the text with a redaction mark in place of its own secrets and of the known secret values."""
    spans = scan(text)
    plain, origin = normalized(text)
    for value, kind in values.items():
        spans += [Finding(start, end, kind) for start, end in _spans_of_value(text, value)]
        if origin:
            spans += [Finding(origin[start], origin[end - 1] + 1, kind) for start, end in _spans_of_value(plain, value)]
    pieces: list[str] = []
    at = 0
    for finding in sorted(spans, key=lambda span: (span.start, -span.end)):
        if finding.start >= at:
            pieces += [text[at : finding.start], _mark_for(finding.kind)]
        at = max(at, finding.end)
    return "".join([*pieces, text[at:]])


def _spans_of_value(text: str, value: str) -> list[tuple[int, int]]:
    """Return the spans of a value in a text; a short value counts only as a whole word."""
    before, after = (r"(?<!\w)", r"(?!\w)") if len(value) < _MIN_ANYWHERE else ("", "")
    return [match.span() for match in re.finditer(before + re.escape(value) + after, text)]


def _rebuild_request(noun: _T, change: Callable[[str], str]) -> _T:
    """Return the request with every string changed; a field that became too long is cut to its former length."""
    data = rewritten_fields(noun, change)
    short = rewritten_fields(noun, lambda text: text if change(text) == text else change(text)[: len(text)])
    cut: set[str] = set()
    while True:
        try:
            return type(noun)(**data)
        except InvalidInput as error:
            field = error.field
        except ValidationError as error:
            field = explain(error, type(noun).model_fields).field
        if field in cut or field not in data:
            raise InvalidInput(field, f"Invalid {field}: cannot be redacted; leave the secret out")
        cut.add(field)
        data[field] = short[field]
