"""Undoes the forms that hide a secret from patterns: pieces, escapes, base64 and hexadecimal.

Only what decodes to plain text is scanned; an image or a digest does not.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

from recollect.gate.tables import pattern

_SPACES: Final = re.compile(r"\s+")
_MIN_ENCODED: Final = 12  # bytes: what happens to be text by chance is shorter
_PLAIN: Final = frozenset(range(0x20, 0x7F)) | frozenset(b"\t\r\n")
_CHECKED_CHARACTERS: Final = 64  # characters that tell whether the whole is worth decoding


def rejoined_tokens(text: str) -> Iterator[tuple[str, list[int]]]:
    """Yield each token that was split into pieces, joined again, and the offset in `text` of each character.

    Pieces are strings side by side, items of a list, or letters with spaces between them.
    """
    for spaced in pattern("spaced").finditer(text):
        yield spaced[0].replace(" ", ""), list(range(spaced.start(), spaced.end(), 2))
    last = 0
    for glue in pattern("glue").finditer(text):
        after = pattern("piece").match(text, glue.end())
        if glue.start() < last or not after or not may_be_token_piece(after[0]):
            continue
        first = glue.start()
        while first > max(last, glue.start() - 256) and (text[first - 1].isalnum() or text[first - 1] in "_-"):
            first -= 1
        spans = [(first, glue.start()), after.span()]
        while (more := pattern("glue").match(text, spans[-1][1])) and (
            after := pattern("piece").match(text, more.end())
        ):
            spans.append(after.span())
        last = spans[-1][1]
        if first < glue.start():
            yield "".join(text[start:end] for start, end in spans), [at for span in spans for at in range(*span)]


def may_be_token_piece(piece: str) -> bool:
    """Return whether a piece may be part of a token: it has digits or many capitals."""
    return any(c.isdigit() for c in piece) or sum(c.isupper() for c in piece) > len(piece) / 4


def unescaped(text: str, spelling: str = "escape") -> tuple[str, list[int]]:
    """Return the text with escapes decoded and continued lines joined, and the offset that each character had.

    The spelling is `escape`, of code and of addresses, or `quoted_printable`, of mail.

    The offsets are empty where nothing is escaped.
    """
    pieces: list[str] = []
    origin: list[int] = []
    at = 0
    for match in pattern(spelling).finditer(text):
        char = _escaped_character(match)
        if char is None:
            continue
        pieces += [text[at : match.start()], char]
        origin.extend(range(at, match.start()))
        origin.extend([match.start()] * len(char))
        at = match.end()
    if not pieces:
        return text, []
    origin.extend(range(at, len(text) + 1))
    return "".join([*pieces, text[at:]]), origin


def encoded_texts(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and the decoded text of each run of base64 or hexadecimal that decodes to plain text."""
    for spelling, decoded in (("base64", _decode_base64), ("hexadecimal", _decode_hex)):
        for match in pattern(spelling).finditer(text):
            inside = decoded(match[0])
            if len(inside) >= _MIN_ENCODED and _PLAIN.issuperset(inside):
                yield match.start(), match.end(), inside.decode("ascii")


def _escaped_character(match: re.Match[str]) -> str | None:
    """Return the character of an escape: '' for a line continuation, None for a character that is not plain text."""
    found = match.groupdict()
    if found.get("quote"):
        return match["quote"]
    if match[0][0] in "\\=" and match["hex"] is None:
        return ""
    digits = match["hex"] or match["entity"]
    code = int(digits, 16) if digits else int(match["number"])
    return chr(code) if code in _PLAIN else None


def _decode_base64(found: str) -> bytes:
    """Decode standard or URL-safe base64 up to the point where it is cut off; empty where it is not plain text."""
    body = _SPACES.sub("", found).rstrip("=").replace("-", "+").replace("_", "/")
    head = body[:_CHECKED_CHARACTERS]
    if not _PLAIN.issuperset(_padded_base64_bytes(head[: len(head) // 4 * 4])):
        return b""
    return _padded_base64_bytes(body if len(body) % 4 != 1 else body[:-1])


def _padded_base64_bytes(body: str) -> bytes:
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4))
    except (binascii.Error, ValueError):
        return b""


def _decode_hex(found: str) -> bytes:
    return bytes.fromhex(found)
