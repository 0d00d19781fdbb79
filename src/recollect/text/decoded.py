"""Decoded text: what a text hides from people in figures, codes and other alphabets, as far as it can be read."""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote

_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_BASE32: Final = re.compile(r"\b[A-Z2-7]{16,}={0,6}")
_HEX: Final = re.compile(r"\b(?:0x)?(?:[0-9a-fA-F]{2}[ :,]?){6,}\b|(?:\\x[0-9a-fA-F]{2}){4,}")
_BINARY: Final = re.compile(r"\b[01]{8}(?:[ ,]?[01]{8}){3,}\b")
_CODES: Final = re.compile(r"\b\d{2,3}(?:[ ,;-]{1,2}\d{2,3}){5,}\b")
_MORSE: Final = re.compile(r"(?:[.\-\u00b7\u2013\u2212_]{1,5}[ /|]+){6,}[.\-\u00b7\u2013\u2212_]{1,5}")
_NATO_WORD: Final = re.compile(r"[A-Za-z-]+")
_ESCAPES: Final = re.compile(r"\\u\{?([0-9a-fA-F]{4,6})\}?|\\x([0-9a-fA-F]{2})|%u([0-9a-fA-F]{4})")
_NATO: Final = {
    word: word[0]
    for word in "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november oscar papa "
    "quebec romeo sierra tango uniform victor whiskey xray yankee zulu".split()
} | {"alfa": "a", "juliett": "j", "whisky": "w", "x-ray": "x"}
_MORSE_CODE: Final = dict(
    zip(
        ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- "
        "--..".split(),
        "abcdefghijklmnopqrstuvwxyz",
        strict=True,
    )
)


def unescaped(text: str) -> str:
    """Return a text with its entities, percent signs and escapes read."""
    text = html.unescape(unquote(text)) if "&" in text or "%" in text else text
    return _ESCAPES.sub(_character, text) if "\\" in text or "%u" in text else text


def hidden(text: str) -> Iterator[str]:
    """Yield what stands in a text in Base64 or Base32, hexadecimal, binary, codes of characters, Morse or by names."""
    readers: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
        (_BASE64, _from_base64),
        (_BASE32, _from_base32),
        (_HEX, _from_hex),
        (_BINARY, _from_binary),
        (_CODES, _from_codes),
        (_MORSE, _from_morse),
    )
    for pattern, read in readers:
        for found in pattern.findall(text):
            if said := read(found):
                yield said
    letters = [_NATO.get(word.lower(), " ") for word in _NATO_WORD.findall(text)]
    yield from (run for run in "".join(letters).split() if len(run) > 3)


def _character(match: re.Match[str]) -> str:
    number = int(match[1] or match[2] or match[3], 16)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else ""


def _text(packed: bytes) -> str:
    """Return bytes as text, or nothing where they are none."""
    try:
        said = packed.decode()
    except UnicodeDecodeError:
        return ""
    return said if said.isprintable() else ""


def _from_base64(text: str) -> str:
    bare = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return _text(base64.b64decode(bare + "=" * (-len(bare) % 4)))
    except binascii.Error:
        return ""


def _from_base32(text: str) -> str:
    bare = text.rstrip("=")
    try:
        return _text(base64.b32decode(bare + "=" * (-len(bare) % 8)))
    except binascii.Error:
        return ""


def _from_hex(text: str) -> str:
    digits = re.sub(r"0x|\\x|[ :,]", "", text)
    return _text(bytes.fromhex(digits)) if len(digits) % 2 == 0 else ""


def _from_binary(text: str) -> str:
    digits = re.sub(r"\D", "", text)
    return _text(bytes(int(digits[place : place + 8], 2) for place in range(0, len(digits) - 7, 8)))


def _from_codes(text: str) -> str:
    numbers = [int(one) for one in re.findall(r"\d+", text)]
    return "".join(map(chr, numbers)) if all(31 < one < 127 for one in numbers) else ""


def _from_morse(text: str) -> str:
    plain = re.sub(r"[\u00b7]", ".", re.sub(r"[\u2013\u2212_]", "-", text))
    words = re.split(r"\s*[/|]\s*|\s{2,}", plain)
    return " ".join("".join(_MORSE_CODE.get(one, "") for one in word.split()) for word in words)
