"""Normalization: the one form in which words of memories and queries are compared, and where the text index differs.

The index (FTS5) knows Unicode 6.1: it folds case, drops the accents of Latin letters, takes a combining mark for a
gap and a symbol that is younger than itself for a letter. `fold` goes further; `same_in_index` says where both agree.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_OVERLAYS = range(0x300, 0x370)
_POINTS = 10  # combining classes from here on are accents, vowel points and tones, below it vowel signs and viramas,
_VOWELS = frozenset([84, 91, 103, 118, 129, 130, 132])  # but for these vowel signs: Telugu, Thai, Lao, Tibetan
_OWN = frozenset("йўїЙЎЇ")  # letters with a mark, not accented ones: their alphabets have them beside и, у, і
_LETTERS = {
    **{"ı": "i", "ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ħ": "h", "ŧ": "t"},
    **{"ٱ": "ا", "ى": "ي", "ی": "ي", "ک": "ك", "ة": "ه", "ـ": ""},  # as the Arabic normalisation of Lucene has it
    "\u093c": "",  # the dot of Hindi's borrowed letters, which few people type
    **dict.fromkeys("\u00ad\u200d\u200e\u200f\u2060\ufeff", ""),  # unseen characters inside a word
}
_GAP = r"\x00-/:-@\[-\^`{-\x7f\u00a0-\u00a9\u00ab-\u00ac\u00ae-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7"
_GAP += r"\u2000-\u200b\u2010-\u205e\u3000-\u3003\u3008-\u301f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
_RUN = re.compile(r"[\x00-\x7f]+|[^\x00-\x7f]+")
_STRETCH = re.compile(f"[^{_GAP}]+")
_MOST_MARKS = 30
_MANY_MARKS = re.compile(rf"[^\w\s\x00-\x7f]{{{_MOST_MARKS + 1},}}")  # may be marks, and may be a row of other signs


def limit_marks(text: str) -> str:
    """Return the text, to be normalized next, with at most 30 combining marks in a row.

    Normalization sorts the marks of a letter, which takes the square of their number. The limit is that of Unicode's
    stream-safe text format (UAX #15, 13).
    """
    return text if text.isascii() else _MANY_MARKS.sub(_first_of_marks, text)


def _first_of_marks(run: re.Match[str]) -> str:
    """Return a run of characters with the first 30 of the combining marks that follow each other."""
    kept, row = [], 0
    for character in run[0]:
        row = row + 1 if unicodedata.combining(character) else 0
        if row <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)


def fold(text: str) -> str:
    """Return the form in which words are compared: no case, accents or vowel points, no full or half width."""
    if text.isascii():
        return text.lower()
    runs = _RUN.findall(unicodedata.normalize("NFC", limit_marks(text)))
    folded = "".join(run.lower() if run.isascii() else "".join(map(_fold_letter, run)) for run in runs)
    return unicodedata.normalize("NFC", folded)


def index_pieces(text: str) -> list[str]:
    """Return the pieces of a text between characters that every version of Unicode treats as gaps."""
    return _STRETCH.findall(text)


@lru_cache(maxsize=100_000)
def same_in_index(stretch: str) -> bool:
    """Return whether the index, by itself, makes the same words of a piece as `fold` does."""
    return stretch.isascii() or (
        all(map(_is_same_in_index, stretch)) and fold(stretch) == "".join(map(_fold_letter, stretch))
    )


@lru_cache(maxsize=20_000)
def _fold_letter(letter: str) -> str:
    """Return the folded form of a letter; '' for a mark, several letters for a letter such as æ."""
    if letter.isascii() or letter in _OWN:
        return letter.lower()
    before, after = "", letter
    while after != before:
        before, after = after, "".join(map(_bare_letter, _decomposed(after)))
    return after


def _decomposed(text: str) -> str:
    """Return letters and digits decomposed, also those of other widths and styles, but no symbols: ™ is not tm."""
    wide = unicodedata.normalize("NFKD", text)
    alike = text.isalnum() and all(character.isalnum() or _is_mark(character) for character in wide)
    return unicodedata.normalize("NFD", (wide if alike else text).casefold())


def _bare_letter(letter: str) -> str:
    """Return a decomposed letter as it is compared; '' for a mark that does not count."""
    if letter.isdecimal():
        return str(unicodedata.decimal(letter))
    mark = unicodedata.combining(letter)
    if (mark >= _POINTS and mark not in _VOWELS) or ord(letter) in _OVERLAYS:
        return ""
    return _LETTERS.get(letter, letter)


def _is_mark(letter: str) -> bool:
    return unicodedata.category(letter).startswith("M")


@lru_cache(maxsize=20_000)
def _is_same_in_index(letter: str) -> bool:
    """Return whether the index and `fold` make the same of a letter."""
    if letter.isascii():
        return True
    category, folded = unicodedata.category(letter), _fold_letter(letter)
    if category in ("Cn", "Co") or category != unicodedata.ucd_3_2_0.category(letter):
        return False  # the index may have it among the letters, the gaps or what is yet to come
    base = unicodedata.normalize("NFD", letter)[0]
    if base.isascii():
        return folded == base.lower() and letter not in "Ǡǡ"
    return folded == (letter.lower() if letter.isalnum() else letter)
