"""Finds secrets in one text, with our detectors, labels and sentences, private keys, and detect-secrets' plugins.

Zero-width characters, full-width letters, escapes, base64 and hexadecimal hide nothing. Findings are character offsets
into the text as it was passed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from recollect.gate import heuristics
from recollect.gate.decoding import encoded_texts, rejoined_tokens, unescaped
from recollect.gate.keyword_context import labelled_secrets
from recollect.gate.labels import labels
from recollect.gate.look_alikes import without_look_alikes
from recollect.gate.plugins import plugin_secrets
from recollect.gate.private_keys import private_keys
from recollect.gate.sentences import sentence_secrets
from recollect.gate.structure import call_secrets, client_secrets, column_secrets
from recollect.gate.tables import lower
from recollect.gate.tokens import opaque_tokens, tokens

_UNUSUAL: Final = re.compile(r"[^\t\n\r\x20-\x7e]")
_INVISIBLE: Final = frozenset({"Cf", "Cc", "Mn", "Me"})
_FILLERS: Final = frozenset("ᅟᅠㅤﾠ⠀឴឵")
_LONGEST_EXPANSION: Final = 4
_MAX_CACHED: Final = 64  # characters of a text that may come again


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Where a secret starts and ends in a text, and of what kind it is; never its value."""

    start: int
    end: int
    kind: str


class _SecretsFound(Exception):
    """Secrets were found, so that nothing is kept of the text."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("secrets were found")
        self.findings = findings


def scan(text: str) -> list[Finding]:
    """Return the secrets in `text`, in order; overlapping findings are merged and get the most precise detector's kind.

    Names, categories and tags come again and again: of short texts it is remembered that they hold no secret.
    """
    if len(text) > _MAX_CACHED:
        return _all_findings(text)
    try:
        _check_short_text(text)
    except _SecretsFound as found:
        return found.findings
    return []


@lru_cache(maxsize=4_096)
def _check_short_text(text: str) -> None:
    """Raise `_SecretsFound` for a text with secrets; errors are not cached, so no secret stays in memory."""
    if text and (findings := _all_findings(text)):
        raise _SecretsFound(findings)


def _all_findings(text: str) -> list[Finding]:
    """Return the secrets of a text as it stands, and after it is rejoined, normalized and decoded."""
    found = [Finding(start, end, kind) for kind, start, end in _detect(text)]
    for piece, origin in rejoined_tokens(text):
        found += [Finding(origin[start], origin[end - 1] + 1, kind) for kind, start, end in tokens(piece, lower(piece))]
    plain, origin = normalized(text)
    if origin:
        found += [Finding(origin[start], origin[end - 1] + 1, kind) for kind, start, end in _detect(plain)]
    for spelling in ("escape", *(("quoted_printable",) if "=\n" in text or "=\r\n" in text else ())):
        spelt, origin = unescaped(text, spelling)
        if origin:
            found += [Finding(origin[start], origin[end], kind) for kind, start, end in _detect(spelt)]
    for first, last, inside in encoded_texts(text):
        found += [Finding(first, last, kind) for kind, _, _ in _detect(inside)]
    return _merge_overlapping(
        [finding for finding in found if not heuristics.is_documented_example(text[finding.start : finding.end])]
    )


def normalized(text: str) -> tuple[str, list[int]]:
    """Return the text in NFKC without invisible characters, and the offset that each character had.

    The offsets are empty where the text does not change.
    """
    unusual = set(_UNUSUAL.findall(text))
    if all(_normalized_character(char) == char for char in unusual) and without_look_alikes(text) is text:
        return text, []
    pieces: list[str] = []
    origin: list[int] = []
    at = 0
    for match in _UNUSUAL.finditer(text):
        place = match.start()
        shown = _normalized_character(match[0])
        pieces += (text[at:place], shown)
        origin += range(at, place)
        origin += [place] * len(shown)
        at = place + 1
    pieces.append(text[at:])
    origin += range(at, len(text))
    plain = without_look_alikes("".join(pieces))
    return (text, []) if plain == text else (plain, origin)


@cache
def _normalized_character(char: str) -> str:
    """Return the NFKC form of a character, a plain space for white space, '' for an invisible character."""
    if char.isspace():
        return " " if unicodedata.category(char) == "Zs" else char
    if char in _FILLERS or unicodedata.category(char) in _INVISIBLE:
        return ""
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) <= _LONGEST_EXPANSION else char


def _detect(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each finding; the most precise detectors come first."""
    lowered = lower(text)
    if "private key" in lowered or "putty" in lowered:
        for start, end in private_keys(text):
            yield "private key", start, end
    yield from tokens(text, lowered)
    yield from opaque_tokens(text)
    names = labels(text, lowered)
    if names:
        yield from labelled_secrets(text, names)
        yield from column_secrets(text, names)
        yield from sentence_secrets(text, names)
    yield from call_secrets(text, lowered)
    yield from client_secrets(text, lowered)
    yield from plugin_secrets(text)


def _merge_overlapping(found: list[Finding]) -> list[Finding]:
    """Return the findings in order, overlapping findings merged; the most precise detector names the kind."""
    rank = {finding: place for place, finding in reversed(list(enumerate(found)))}
    merged: list[Finding] = []
    surest = 0
    for finding in sorted(rank):
        if merged and finding.start < merged[-1].end:
            last = merged[-1]
            kind = finding.kind if rank[finding] < surest else last.kind
            surest = min(surest, rank[finding])
            merged[-1] = Finding(last.start, max(last.end, finding.end), kind)
        elif finding.end > finding.start:
            merged.append(finding)
            surest = rank[finding]
    return merged
