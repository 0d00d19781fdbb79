"""Lookalikes: the Latin letters that a text shows to a reader, whatever characters it is written with."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_CYRILLIC_GREEK: Final = {
    **dict(zip("аеорсухіјѕԁһкмтвнԛԝ", "aeopcyxijsdhkmtbhqw", strict=True)),
    **dict(zip("οαενικρτυχ", "oaevikptux", strict=True)),
    **{"ı": "i", "ɡ": "g", "ℓ": "l"},
}
_TABLE: Final = str.maketrans(_CYRILLIC_GREEK)
_WORD: Final = re.compile(r"[^\W\d_]+")
_LATIN: Final = re.compile(r"[a-zı-ɏ]")


def latin(text: str) -> str:
    """Return a folded text with Latin letters where other scripts' letters stand among Latin ones in one word."""
    if text.isascii():
        return text
    return _WORD.sub(lambda word: word[0].translate(_TABLE) if _LATIN.search(word[0]) else word[0], text)


def without_marks(text: str) -> str:
    """Return a text in lower case, in compatible characters and without accents; non-Latin scripts keep their marks."""
    apart = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFC", "".join(one for one in apart if not "\u0300" <= one <= "\u036f"))
