"""Replaces each secret by `[redacted: kind]`, in every field of a request where its value stands.

It repeats until a scan finds nothing, so that what it returns always passes the gate.

Finds secrets that fields tell together: a title "Database password" whose content is the password.

Only short contents are read so; longer ones carry their own labels. Tokens cut in two between fields are joined.

Reads or rewrites every string of a request, whatever the nesting.

A value that is neither text nor a known harmless type is refused, so that nothing passes the gate unread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import permutations
from typing import Any, Final, TypeVar
from uuid import UUID

from pydantic import BaseModel, ValidationError

from recollect.domain.fields import explain
from recollect.errors import InvalidInput
from recollect.gate.decoding import random_piece
from recollect.gate.labels import labels
from recollect.gate.scanner import Finding, normalized, scan
from recollect.gate.tables import lower
from recollect.gate.time_limit import ScanTooLong, at_most
from recollect.gate.tokens import tokens

_HARMLESS: Final = (type(None), bool, int, float, complex, Decimal, date, time, timedelta, UUID, Enum)
_SEQUENCES: Final = (list, tuple, set, frozenset)


def texts(noun: BaseModel) -> Iterator[tuple[str, str]]:
    """Yield each string with the dotted name of its field; raise `TypeError` for a value that cannot be read."""
    yield from _walk(noun, "")


def _walk(value: object, field: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, _HARMLESS):
        return
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, BaseModel):
        declared = type(value).model_fields
        for name, part in value:
            if name not in declared:
                yield field or "extra", name
            label = name if name in declared else "extra"
            yield from _walk(part, f"{field}.{label}" if field else label)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _walk(key, field)
            yield from _walk(part, field)
    elif type(value) in _SEQUENCES:
        for part in value:  # type: ignore[attr-defined]  # one of `_SEQUENCES`
            yield from _walk(part, field)
    else:
        raise TypeError(f"the gate cannot read `{field}`: {type(value).__name__} is not text, a number or a time")


def rewrite(value: Any, change: Callable[[str], str]) -> Any:
    """Return the value with every string changed; nested models are built again, so that they are validated."""
    if isinstance(value, _HARMLESS):
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, BaseModel):
        return type(value)(**parts(value, change))
    if isinstance(value, Mapping):
        return {rewrite(key, change): rewrite(part, change) for key, part in value.items()}
    return type(value)(rewrite(part, change) for part in value)


def parts(noun: BaseModel, change: Callable[[str], str]) -> dict[str, Any]:
    """Return the fields that were given when the model was built, with every string changed."""
    given = noun.model_fields_set | set(noun.model_extra or {})
    return {
        name if name in type(noun).model_fields else change(name): rewrite(part, change)
        for name, part in noun
        if name in given
    }


_T = TypeVar("_T", bound=BaseModel)
_ROUNDS: Final = 4
_SECONDS: Final = 3.0  # of processor time for one text
_LONG: Final = 6
_LINE: Final = 16


def redacted(noun: _T) -> _T:
    """Return the request without its secrets; the same object where there are none."""
    for attempt in range(_ROUNDS + 1):
        secrets = [(text, findings) for _, text, findings in secrets_in(noun)]
        if not secrets:
            return noun
        values = _values(secrets)
        kinds = {text: findings[0].kind for text, findings in secrets}
        if attempt < _ROUNDS:
            noun = _rebuild(noun, lambda text, values=values: _cover(text, values))  # type: ignore[misc]
        else:
            noun = _rebuild(noun, lambda text, kinds=kinds: _mark(kinds[text]) if text in kinds else text)  # type: ignore[misc]
    return noun


def masked(text: str) -> str:
    """Return one text without its secrets; for what is derived from a text before the gate sees it."""
    try:
        with at_most(_SECONDS):
            findings = scan(text)
            return _cover(text, _values([(text, findings)])) if findings else text
    except ScanTooLong:
        return _mark("text that takes too long to read")


def _mark(kind: str) -> str:
    return f"[redacted: {kind}]"


def _values(found: Iterable[tuple[str, list[Finding]]]) -> dict[str, str]:
    """Return each secret's value, as written and normalized, with its kind; long lines of a block also alone."""
    values: dict[str, str] = {}
    for text, findings in found:
        for finding in findings:
            value = text[finding.start : finding.end]
            for form in (value, normalized(value)[0]):
                lines = [line for line in form.splitlines() if len(line) >= _LINE]
                for piece in (form, *lines):
                    values.setdefault(piece.strip(), finding.kind)
    values.pop("", None)
    return values


def _cover(text: str, values: dict[str, str]) -> str:
    spans = scan(text)
    plain, origin = normalized(text)
    for value, kind in values.items():
        spans += [Finding(start, end, kind) for start, end in _places(text, value)]
        if origin:
            spans += [Finding(origin[start], origin[end - 1] + 1, kind) for start, end in _places(plain, value)]
    pieces: list[str] = []
    at = 0
    for finding in sorted(spans, key=lambda one: (one.start, -one.end)):
        if finding.start >= at:
            pieces += [text[at : finding.start], _mark(finding.kind)]
        at = max(at, finding.end)
    return "".join([*pieces, text[at:]])


def _places(text: str, value: str) -> list[tuple[int, int]]:
    """Return where a value stands; a short one only where it is a whole word."""
    before, after = (r"(?<!\w)", r"(?!\w)") if len(value) < _LONG else ("", "")
    return [match.span() for match in re.finditer(before + re.escape(value) + after, text)]


def _rebuild(noun: _T, change: Callable[[str], str]) -> _T:
    """Build the request again; a field that the marks made too long is cut to the length it had."""
    data = parts(noun, change)
    short = parts(noun, lambda text: text if change(text) == text else change(text)[: len(text)])
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
    subject, predicate, told = (fields.get(name) for name in _TRIPLE)
    if isinstance(subject, str) and isinstance(predicate, str) and isinstance(told, str):
        said = f"{subject} {predicate}"
        yield "object", [f"{subject}: ", f"{predicate}: ", f"{said}: ", f"{predicate} {subject}: ", f"{said} "], told
    content = fields.get("content")
    if isinstance(content, str):
        yield "content", [f"{name}: " for name in _strings(fields.get(name) for name in _NAMES)], content
    for field, value in fields.items():
        if isinstance(value, Mapping):
            yield from ((field, names, one) for names, one in _mapped(value, []))


def _mapped(value: Mapping[str, object], above: list[str]) -> Iterator[tuple[list[str], str]]:
    """Yield the strings of a mapping with what names them: their key, or a name beside them."""
    named = [f"{one}: " for key, one in value.items() if isinstance(one, str) and key.lower() in _NAME_KEYS]
    for key, one in value.items():
        names = [f"{key}: ", *above] + (named if key.lower() in _VALUE_KEYS else [])
        if isinstance(one, Mapping):
            yield from _mapped(one, names)
        else:
            yield from ((names, text) for text in _strings([one]))


def _strings(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, tuple, set, frozenset)):
            yield from (one for one in value if isinstance(one, str))


def _by_name(names: Iterable[str], value: str) -> list[Finding]:
    alone = value.strip()
    if not alone or len(alone) > _LONGEST or len(alone.split()) > _MOST_WORDS or "\n" in alone:
        return []
    before = len(value) - len(value.lstrip())
    for name in names:
        if len(name) <= _LONGEST and labels(name, lower(name)):
            shift = len(name) - before
            found = [Finding(one.start - shift, one.end - shift, one.kind) for one in scan(name + alone)]
            if secrets := [one for one in found if one.start >= before]:
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
