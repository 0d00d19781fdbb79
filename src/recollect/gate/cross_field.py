"""Finds secrets that fields tell together: a title "Database password" whose content is the password.

Only short contents are read so; longer ones carry their own labels. Tokens cut in two between fields are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations
from typing import Final

from pydantic import BaseModel

from recollect.errors import InvalidInput
from recollect.gate.decoding import random_piece
from recollect.gate.labels import labels
from recollect.gate.scanner import Finding, scan
from recollect.gate.tables import lower
from recollect.gate.time_limit import ScanTooLong
from recollect.gate.tokens import tokens
from recollect.gate.walk import texts

TOO_LONG: Final = (
    "looking for secrets in it takes too long. Nothing was stored; split it, or leave out what nobody reads, such as "
    "encoded data."
)
_LONGEST: Final = 512
_MOST_WORDS: Final = 8
_MOST_PIECES: Final = 24
_NAMES: Final = ("title", "key", "subtitle", "category", "abstract", "tags")
_TRIPLE: Final = ("subject", "predicate", "object")
_NAME_KEYS: Final = frozenset({"name", "key", "label", "title", "id", "field", "variable", "property", "setting"})
_VALUE_KEYS: Final = frozenset({"value", "content", "text", "val", "default", "data", "secret"})


def secrets_in(noun: BaseModel) -> Iterator[tuple[str, str, list[Finding]]]:
    """Yield each string that holds secrets, with its field and the findings, by its own text or by another field's."""
    for field, text in texts(noun):
        try:
            findings = scan(text)
        except ScanTooLong:
            raise InvalidInput(field, f"Invalid {field}: {TOO_LONG}") from None
        if findings:
            yield field, text, findings
    for field, names, value in _labelled_values(noun):
        if findings := _by_name(names, value):
            yield field, value, findings
    yield from _pieces(noun)


def _labelled_values(noun: BaseModel) -> Iterator[tuple[str, list[str], str]]:
    """Yield the field of each value, the texts that may label it, and the value."""
    fields = dict(noun)
    subject, predicate, value = (fields.get(name) for name in _TRIPLE)
    if isinstance(subject, str) and isinstance(predicate, str) and isinstance(value, str):
        both = f"{subject} {predicate}"
        yield "object", [f"{subject}: ", f"{predicate}: ", f"{both}: ", f"{predicate} {subject}: ", f"{both} "], value
    content = fields.get("content")
    if isinstance(content, str):
        yield "content", [f"{name}: " for name in _strings(fields.get(name) for name in _NAMES)], content
    for field, value in fields.items():
        if isinstance(value, Mapping):
            yield from ((field, names, text) for names, text in _mapped(value, []))


def _mapped(value: Mapping[str, object], above: list[str]) -> Iterator[tuple[list[str], str]]:
    """Yield the strings of a mapping with the texts that name them: their key, or a name beside them."""
    named = [f"{text}: " for key, text in value.items() if isinstance(text, str) and key.lower() in _NAME_KEYS]
    for key, held in value.items():
        names = [f"{key}: ", *above] + (named if key.lower() in _VALUE_KEYS else [])
        if isinstance(held, Mapping):
            yield from _mapped(held, names)
        else:
            yield from ((names, text) for text in _strings([held]))


def _strings(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, tuple, set, frozenset)):
            yield from (text for text in value if isinstance(text, str))


def _by_name(names: Iterable[str], value: str) -> list[Finding]:
    alone = value.strip()
    if not alone or len(alone) > _LONGEST or len(alone.split()) > _MOST_WORDS or "\n" in alone:
        return []
    before = len(value) - len(value.lstrip())
    for name in names:
        if len(name) <= _LONGEST and labels(name, lower(name)):
            shift = len(name) - before
            found = [
                Finding(finding.start - shift, finding.end - shift, finding.kind) for finding in scan(name + alone)
            ]
            if secrets := [finding for finding in found if finding.start >= before]:
                return secrets
    return []


def _pieces(noun: BaseModel) -> Iterator[tuple[str, str, list[Finding]]]:
    """Yield both parts of a token with a known format cut in two: tags side by side, a title and its content."""
    single = [(field, text) for field, text in texts(noun) if 4 <= len(text) <= _LONGEST and not text.split()[1:]]
    for (field, head), (other, tail) in permutations(single[:_MOST_PIECES], 2):
        if random_piece(tail) and len(tail) >= 8:
            whole = head + tail
            for kind, start, end in tokens(whole, lower(whole)):
                if start < len(head) < end:
                    yield field, head, [Finding(start, len(head), kind)]
                    yield other, tail, [Finding(0, end - len(head), kind)]
