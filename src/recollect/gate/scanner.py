"""Finds secrets in one text, with our detectors, labels and sentences, private keys, and detect-secrets' plugins.

Zero-width characters, full-width letters, escapes, base64 and hexadecimal hide nothing. Findings are character offsets
into the text as it was given.

Asks detect-secrets' own plugins, called directly: no settings, no filters, no pragma comments, no network.

The library is imported once, on the first scan; nothing else in Recollect imports it. `tokens.toml` names the plugins.
Entropy, keywords, public addresses and basic auth raise alarms on ordinary notes; OpenAI's and npm's patterns are
quadratic: the gate has stricter or linear ones of its own for all of them.

Finds private keys of several lines: PEM, OpenSSH, PGP, SSH2 and PuTTY, with or without their last line.

A finding covers the whole block, so that redaction leaves nothing of the body.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from threading import Lock
from typing import Any, Final

from recollect.gate import heuristics
from recollect.gate.decoding import encoded_texts, rejoined, unescaped, without_look_alikes
from recollect.gate.keyword_context import labelled
from recollect.gate.labels import labels
from recollect.gate.sentences import sentences
from recollect.gate.structure import calls, clients, columns
from recollect.gate.tables import lower, table
from recollect.gate.time_limit import check_time
from recollect.gate.tokens import opaque, tokens

_UNUSUAL: Final = re.compile(r"[^\t\n\r\x20-\x7e]")
_INVISIBLE: Final = frozenset({"Cf", "Cc", "Mn", "Me"})
_FILLERS: Final = frozenset("ᅟᅠㅤﾠ⠀឴឵")
_LONGEST_EXPANSION: Final = 4
_SHORT: Final = 64  # characters of a text that may come again


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Where a secret starts and ends in a text, and of what kind it is; never its value."""

    start: int
    end: int
    kind: str


class _Found(Exception):
    """Secrets were found, so that nothing is kept of the text."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("secrets were found")
        self.findings = findings


def scan(text: str) -> list[Finding]:
    """Return the secrets in `text`, in order; findings that overlap are one, of the most precise detector's kind.

    Names, categories and tags come again and again: of short texts it is remembered that they hold no secret.
    """
    if len(text) > _SHORT:
        return _scanned(text)
    try:
        _check_short(text)
    except _Found as found:
        return found.findings
    return []


@lru_cache(maxsize=4_096)
def _check_short(text: str) -> None:
    """Raise `_Found` for a text with secrets; an error is not cached, so that no secret stays in memory."""
    if text and (findings := _scanned(text)):
        raise _Found(findings)


def _scanned(text: str) -> list[Finding]:
    found = [Finding(start, end, kind) for kind, start, end in _find(text)]
    for piece, origin in rejoined(text):
        found += [Finding(origin[start], origin[end - 1] + 1, kind) for kind, start, end in tokens(piece, lower(piece))]
    plain, origin = normalized(text)
    if origin:
        found += [Finding(origin[start], origin[end - 1] + 1, kind) for kind, start, end in _find(plain)]
    for spelling in ("escape", *(("quoted_printable",) if "=\n" in text or "=\r\n" in text else ())):
        spelt, origin = unescaped(text, spelling)
        if origin:
            found += [Finding(origin[start], origin[end], kind) for kind, start, end in _find(spelt)]
    for first, last, inside in encoded_texts(text):
        found += [Finding(first, last, kind) for kind, _, _ in _find(inside)]
    return _merge([one for one in found if not heuristics.example(text[one.start : one.end])])


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
    if char.isspace():
        return " " if unicodedata.category(char) == "Zs" else char
    if char in _FILLERS or unicodedata.category(char) in _INVISIBLE:
        return ""
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) <= _LONGEST_EXPANSION else char


def _find(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end; the most precise detectors come first."""
    lowered = lower(text)
    if "private key" in lowered or "putty" in lowered:
        for start, end in private_keys(text):
            yield "private key", start, end
    yield from tokens(text, lowered)
    yield from opaque(text)
    names = labels(text, lowered)
    if names:
        yield from labelled(text, names)
        yield from columns(text, names)
        yield from sentences(text, names)
    yield from calls(text, lowered)
    yield from clients(text, lowered)
    yield from library(text)


def _merge(found: list[Finding]) -> list[Finding]:
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


_LOADING: Final = Lock()  # its modules import each other in a circle: a second thread would meet half of one
_WINDOW: Final = 1_024
_OVERLAP: Final = 256
_TOKEN_LIMIT: Final = 4_096
_GAP: Final = re.compile(r"(?<=[ \t]{3})[ \t]+")
_TOKEN_AFTER: Final = re.compile(r"[\w+/=.~\-]*")
_BEFORE_END: Final = re.compile(r"[^\w+/.~\-]")


def library(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of what the library's plugins find."""
    for offset, window in _windows(text):
        check_time()
        piece = _without_gaps(window)
        lowered = piece.lower()
        with _LOADING:
            plugins = _plugins()
        for kind, hints, loose, plugin in plugins:
            values = list(plugin.analyze_string(piece)) if any(hint in lowered for hint in hints) else []
            if not values or (loose and not any(heuristics.key(value.strip(' "=:')) for value in values)):
                continue
            last = 0
            for match in (match for denied in plugin.denylist for match in denied.finditer(piece)):
                if offset + match.end() > last:
                    first, last = _widened(text, offset + match.start(), offset + match.end())
                    if heuristics.real_token(text[first:last]):
                        yield kind, first, last


def _without_gaps(window: str) -> str:
    """Cover what follows three blanks in a row: several patterns are cubic in a run of them."""
    return _GAP.sub(lambda gap: "\0" * len(gap[0]), window)


@cache
def _plugins() -> tuple[tuple[str, tuple[str, ...], bool, Any], ...]:
    """Return kind, hints, whether what it finds must look like a key, and the plugin."""
    found = []
    for kind, hints, path, *loose in table("tokens")["plugins"]:
        module, _, name = path.partition(".")
        plugin = getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
        found.append((kind, tuple(hints.split(" ")), bool(loose), plugin))
    return tuple(found)


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """Cut the text where white space allows, so that no plugin's pattern meets more than a window at a time."""
    start = 0
    while start < len(text):
        end = min(len(text), start + _WINDOW)
        space = max(text.rfind("\n", start + _OVERLAP, end), text.rfind(" ", end - _OVERLAP, end))
        if end < len(text) and space > 0:
            yield start, text[start:space]
            start = space
            continue
        yield start, text[start:end]
        if end == len(text):
            return
        start = end - _OVERLAP


def _widened(text: str, start: int, end: int) -> tuple[int, int]:
    """Stretch a span over the whole token: several plugins report only the first part of what they found."""
    reversed_before = text[max(0, start - _OVERLAP) : start][::-1]
    stopped = _BEFORE_END.search(reversed_before)
    after = _TOKEN_AFTER.match(text, end, end + _TOKEN_LIMIT)
    stop = end + len(after[0].rstrip(".")) if after else end
    return start - (stopped.start() if stopped else len(reversed_before)), stop


_NAME: Final = r"(?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?(?: ?-{2,8})?"
_BEGIN: Final = re.compile(rf"(?:-{{2,8}} ?)?BEGIN {_NAME}")
_END: Final = re.compile(rf"END {_NAME}")
_PUTTY: Final = re.compile(r"PuTTY-User-Key-File-\d")
_PUTTY_END: Final = re.compile(r"Private-MAC: *[0-9a-fA-F]*")
_BODY: Final = re.compile(
    r"""(?x)(?:[\s"'\\,]{0,12}+(?:[A-Za-z][A-Za-z\-]{2,20}:[ ][^\n]{1,200}+|[A-Za-z0-9+/]{20,}+={0,2}))*+
        (?:[\s"'\\,]{0,12}+[A-Za-z0-9+/]{1,76}+={0,2}(?=["'\n]|\s*$))?"""
)
_FARTHEST: Final = 65_536
_PUTTY_FARTHEST: Final = 8_192


def private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each private key starts and ends."""
    yield from _spans(text, _BEGIN, _END, _FARTHEST)
    yield from _spans(text, _PUTTY, _PUTTY_END, _PUTTY_FARTHEST)


def _spans(text: str, begin: re.Pattern[str], end: re.Pattern[str], farthest: int) -> Iterator[tuple[int, int]]:
    heads = [match.span() for match in begin.finditer(text)]
    if not heads:
        return
    tails = [match.span() for match in end.finditer(text)]
    starts = [start for start, _ in tails]
    for start, stop in heads:
        place = bisect_left(starts, stop)
        if place < len(tails) and tails[place][0] - stop <= farthest:
            yield start, tails[place][1]
        else:
            body = _BODY.match(text, stop)
            yield start, body.end() if body else stop
