"""Finds secrets that fields tell together: a title "Database password" whose content is the password.

Only short contents are read so; longer ones carry their own labels. Tokens cut in two between fields are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations
from typing import Final

from pydantic import BaseModel

from recollect.errors import InvalidInput
from recollect.gate.decoding import may_be_token_piece
from recollect.gate.labels import labels
from recollect.gate.scanner import Finding, scan
from recollect.gate.tables import lower
from recollect.gate.time_limit import ScanTooLong
from recollect.gate.tokens import tokens
from recollect.gate.walk import strings_of

TOO_LONG: Final = (
    "looking for secrets in it takes too long. Nothing was stored; split it, or leave out what nobody reads, such as "
    "encoded data."
)
_MAX_CHARACTERS: Final = 512
_MAX_WORDS: Final = 8
_MAX_PIECES: Final = 24
_NAMES: Final = ("title", "key", "subtitle", "category", "abstract", "tags")
_TRIPLE: Final = ("subject", "predicate", "object")
_NAME_KEYS: Final = frozenset({"name", "key", "label", "title", "id", "field", "variable", "property", "setting"})
_VALUE_KEYS: Final = frozenset({"value", "content", "text", "val", "default", "data", "secret"})


def secrets_in(noun: BaseModel) -> Iterator[tuple[str, str, list[Finding]]]:
    """Yield each string that holds secrets, with its field and the findings, from its own text or another field's."""
    for field, text in strings_of(noun):
        try:
            findings = scan(text)
        except ScanTooLong:
            raise InvalidInput(field, f"Invalid {field}: {TOO_LONG}") from None
        if findings:
            yield field, text, findings
    for field, names, value in _labelled_values(noun):
        if findings := _secrets_beside_name(names, value):
            yield field, value, findings
    yield from _split_tokens(noun)


def _labelled_values(noun: BaseModel) -> Iterator[tuple[str, list[str], str]]:
    """Yield the field of each value, the texts that may label it, and the value."""
    fields = dict(noun)
    subject, predicate, value = (fields.get(name) for name in _TRIPLE)
    if isinstance(subject, str) and isinstance(predicate, str) and isinstance(value, str):
        both = f"{subject} {predicate}"
        yield "object", [f"{subject}: ", f"{predicate}: ", f"{both}: ", f"{predicate} {subject}: ", f"{both} "], value
    content = fields.get("content")
    if isinstance(content, str):
        yield "content", [f"{name}: " for name in _strings_among(fields.get(name) for name in _NAMES)], content
    for field, value in fields.items():
        if isinstance(value, Mapping):
            yield from ((field, names, text) for names, text in _labelled_in_mapping(value, []))


def _labelled_in_mapping(value: Mapping[str, object], above: list[str]) -> Iterator[tuple[list[str], str]]:
    """Yield the strings of a mapping, each after the texts that label it: its key, or a name field of the mapping."""
    named = [f"{text}: " for key, text in value.items() if isinstance(text, str) and key.lower() in _NAME_KEYS]
    for key, held in value.items():
        names = [f"{key}: ", *above] + (named if key.lower() in _VALUE_KEYS else [])
        if isinstance(held, Mapping):
            yield from _labelled_in_mapping(held, names)
        else:
            yield from ((names, text) for text in _strings_among([held]))


def _strings_among(values: Iterable[object]) -> Iterator[str]:
    """Yield the strings among the values, and those in their lists."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, tuple, set, frozenset)):
            yield from (text for text in value if isinstance(text, str))


def _secrets_beside_name(names: Iterable[str], value: str) -> list[Finding]:
    """Return the secrets in a value that stands beside these names; empty for a long value and for several lines."""
    alone = value.strip()
    if not alone or len(alone) > _MAX_CHARACTERS or len(alone.split()) > _MAX_WORDS or "\n" in alone:
        return []
    before = len(value) - len(value.lstrip())
    for name in names:
        if len(name) <= _MAX_CHARACTERS and labels(name, lower(name)):
            shift = len(name) - before
            found = [
                Finding(finding.start - shift, finding.end - shift, finding.kind) for finding in scan(name + alone)
            ]
            if secrets := [finding for finding in found if finding.start >= before]:
                return secrets
    return []


def _split_tokens(noun: BaseModel) -> Iterator[tuple[str, str, list[Finding]]]:
    """Yield both fields that hold the parts of a token cut in two, each with its text and its finding.

    The parts may be two tags, or a title and its content.
    """
    single = [
        (field, text) for field, text in strings_of(noun) if 4 <= len(text) <= _MAX_CHARACTERS and not text.split()[1:]
    ]
    for (field, head), (other, tail) in permutations(single[:_MAX_PIECES], 2):
        if may_be_token_piece(tail) and len(tail) >= 8:
            whole = head + tail
            for kind, start, end in tokens(whole, lower(whole)):
                if start < len(head) < end:
                    yield field, head, [Finding(start, len(head), kind)]
                    yield other, tail, [Finding(0, end - len(head), kind)]
