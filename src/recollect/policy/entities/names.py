"""Identifiers by their shape: CamelCase, snake_case, dotted.names, calls(), --flags, hashes, numbered standards."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recollect.policy.entities.words import DUNDER, HOST_ENDINGS, NO_IDENTIFIER
from recollect.policy.terms import STOP_WORDS

_EXACT = re.compile(
    r"(?<![\w@])@[a-z0-9][\w.-]{0,60}/[a-z0-9][\w.-]{0,100}(?<![.-])"
    r"|(?<![\w-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![\w-])"
    r"|(?<![\w-])(?=[a-f]{0,39}\d)(?=\d{0,39}[a-f])[0-9a-f]{7,40}(?![\w-])"
    r"|(?<![\w-])(?:RFC|PEP|CVE|CWE|ISO)[ -]?\d{1,5}(?:-\d{1,7})?(?![\w-])"
    r"|(?<![\w-])--[A-Za-z][\w-]{2,63}(?<!-)"
)
_NAME = re.compile(r"(?<![\w@#])[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_CAMEL = re.compile(r"[a-z][A-Z]")
_ACRONYM = re.compile(r"[A-Z]{3,}[a-z]{2,}\w*")
_LOWER = re.compile(r"[a-z]{2}")
_SURNAME = re.compile(r"(?:Mc|Mac|Fitz|De|Di|Du|Le|La|Van|Von|O)[A-Z][a-z]+")
_LONGEST = 128


def identifiers(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of each identifier, and False for what looks like one but is a product's or host's name."""
    taken = 0
    exact = _EXACT.finditer(text)
    coming = next(exact, None)
    for place in _NAME.finditer(text):
        while coming is not None and coming.start() <= place.start():
            yield coming.start(), coming.end(), True
            taken, coming = coming.end(), next(exact, None)
        start, end = place.span()
        if start < taken or end - start > _LONGEST:
            continue
        if coming is not None and end > coming.start():
            continue
        kind = _kind(place[0], text[end : end + 2])
        if kind is not None:
            yield *_bare(place[0], start, end), kind
    while coming is not None:
        if coming.start() >= taken:
            yield coming.start(), coming.end(), True
        coming = next(exact, None)


def _bare(name: str, start: int, end: int) -> tuple[int, int]:
    """Leave out the underscores of Markdown's emphasis."""
    emphasis = name[0] == name[-1] == "_" and not name.startswith("__")
    return (start + 1, end - 1) if emphasis else (start, end)


def _kind(name: str, after: str) -> bool | None:
    if "." in name:
        return _dotted(name.split("."), after)
    if name.strip("_") and "_" in name.strip("_"):
        return True
    if name.startswith("__") and name.endswith("__"):
        return True if name.strip("_") in DUNDER else None
    return True if _is_camel(name) or (after == "()" and len(name) > 1) else None


def _dotted(steps: list[str], after: str) -> bool | None:
    """Say whether words joined by dots are a name in code, a host (False) or a sentence without its space (None)."""
    called = after.startswith("(")
    if ".".join(steps).lower() in NO_IDENTIFIER or (steps[-1].lower() in HOST_ENDINGS and not called):
        return False
    if any("_" in one.strip("_") or _is_camel(one) for one in steps) or (called and len(steps[-1]) > 1):
        return True
    plain = all(len(one) > 1 and one == one.lower() and one not in STOP_WORDS for one in steps)
    return True if plain and all(one.isascii() for one in steps) else None


def _is_camel(name: str) -> bool:
    if name.lower() in NO_IDENTIFIER or len(name) < 4 or _SURNAME.fullmatch(name):
        return False
    if name[0] in "ie" and name[1].isupper():
        return False
    return bool(_LOWER.search(name) and (_CAMEL.search(name) or _ACRONYM.fullmatch(name)))
