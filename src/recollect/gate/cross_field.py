"""Finds secrets whose label stands in another field: a title "Database password" whose content is the password.

Only a content that is a single word is read so; sentences carry their own labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pydantic import BaseModel

from recollect.gate.keyword_context import HINTS
from recollect.gate.scanner import Finding, scan
from recollect.gate.walk import texts

_LONGEST: Final = 512
_NAMES: Final = ("title", "key", "subtitle", "category", "abstract", "tags")
_TRIPLE: Final = ("subject", "predicate", "object")


def secrets_in(noun: BaseModel) -> Iterator[tuple[str, str, list[Finding]]]:
    """Yield each string that holds secrets, with its field and the findings, by its own text or by another field's."""
    for field, text in texts(noun):
        if findings := scan(text):
            yield field, text, findings
    for field, names, value in _labelled_values(noun):
        if findings := _by_name(names, value):
            yield field, value, findings


def _labelled_values(noun: BaseModel) -> Iterator[tuple[str, list[str], str]]:
    """Yield the field of each value, the texts that may label it, and the value."""
    fields = dict(noun)
    subject, predicate, told = (fields.get(name) for name in _TRIPLE)
    if isinstance(subject, str) and isinstance(predicate, str) and isinstance(told, str):
        yield "object", [subject, predicate, f"{subject} {predicate}", f"{predicate} {subject}"], told
    content = fields.get("content")
    if isinstance(content, str):
        yield "content", list(_strings(fields.get(name) for name in _NAMES)), content
    for field, value in fields.items():
        if isinstance(value, Mapping):
            yield from ((field, [key], one) for key, one in value.items() if isinstance(one, str))


def _strings(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, Sequence):
            yield from (one for one in value if isinstance(one, str))


def _by_name(names: Iterable[str], value: str) -> list[Finding]:
    alone = value.strip()
    if not alone or len(alone) > _LONGEST or len(alone.split()) > 1:
        return []
    before = len(value) - len(value.lstrip())
    for name in names:
        if any(hint in name.lower() for hint in HINTS):
            text = f"{name.strip()}: {alone}"
            shift = len(text) - len(alone)
            findings = [Finding(one.start - shift + before, one.end - shift + before, one.kind) for one in scan(text)]
            if secrets := [one for one in findings if one.start >= before]:
                return secrets
    return []
