"""Find the stored words that a misspelt or shortened word may stand for, and weigh how likely each is.

Every spelling one letter away is looked up, two letters by the spellings of the first half or by the second, parts of
words by what they hold.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from string import ascii_lowercase
from typing import Final, Protocol

from rapidfuzz.distance import OSA

from recollect.store.text.index import Term

_SHORTEST: Final = 4
_TELLING: Final = 6  # letters; a shorter word may be part of a longer one by chance
_LONG: Final = 8  # letters; only words this long may have two wrong ones
_LONGEST_EDITED: Final = 24  # letters; all spellings of such a word are more than those of its first half
_HALF: Final = 6
_BLOCK: Final = 64  # code points: about an alphabet
_DIGITS = re.compile(r"\d+")
_LETTERS = re.compile(r"[^\W\d_]{4}")
_HEX = re.compile(r"[0-9a-f]+")


class StoredWords(Protocol):
    """Where a text index looks up stored words, each with how many memories use it; sizes are in letters."""

    def among(self, spellings: Iterable[str]) -> dict[str, int]:
        """Find the stored words that are one of these."""

    def starting(self, heads: Iterable[str], shortest: int, longest: int) -> dict[str, int]:
        """Find stored words that begin with one of `heads` and go on, the shortest first."""

    def containing(self, piece: str, shortest: int, longest: int) -> dict[str, int]:
        """Find stored words that `piece` stands in, the shortest first."""


def similar(stored: StoredWords, word: str, limit: int) -> list[Term]:
    """Return the stored words that `word` may be a misspelling or a part of, weighted 0–1, likeliest first.

    Short words and numbers resemble nothing, however alike they look.
    """
    size = len(word)
    if size < _SHORTEST or not any(letter.isalpha() for letter in word):
        return []
    found = stored.among(one_edit_away(word)) if size <= _LONGEST_EDITED and not _is_id(word) else {}
    found |= _words_around(stored, [word], word, size + 1, max(3 * size, 20))
    if size >= _TELLING and not _is_id(word):
        if not any(misspelling(word, one) for one in found):  # of two wrong letters one is in the second half, or none
            half = min(size // 2, _HALF)
            found |= _words_around(stored, one_edit_away(word[:half]), word[half:], size - 2, size + 2)
        if not any(likelihood(word, one) for one in found):
            found |= stored.starting(one_edit_away(word), size + 1, 2 * size)
    guesses = [(likelihood(word, one), uses, one) for one, uses in found.items()]
    guesses.sort(key=lambda guess: (-guess[0], -guess[1], guess[2]))
    return [Term(one, weight) for weight, _, one in guesses[:limit] if weight > 0.0]


def _words_around(stored: StoredWords, heads: Iterable[str], piece: str, shortest: int, longest: int) -> dict[str, int]:
    """Find stored words that begin with one of `heads` or hold `piece`."""
    return stored.starting(heads, shortest, longest) | stored.containing(piece, shortest, longest)


def likelihood(word: str, stored: str) -> float:
    """Return how likely (0–1, below 1) whoever wrote `word` meant `stored`; the formulas were set by hand."""
    return max(misspelling(word, stored), _part_weight(word, stored), _misspelt_part(word, stored))


def misspelling(word: str, stored: str) -> float:
    """Weigh one wrong letter, in a long word two; never in a number, nor in what may be an identifier."""
    if word == stored or _is_id(word) or _DIGITS.findall(word) != _DIGITS.findall(stored):
        return 0.0
    longer = max(len(word), len(stored))
    allowed = 1 if longer < _LONG else 2
    edits = OSA.distance(word, stored, score_cutoff=allowed)
    if edits > allowed:
        return 0.0
    same_letters = edits == 1 and (sorted(word) == sorted(stored) or set(word) == set(stored))
    cost = edits + 0.25 * (word[0] != stored[0]) - 0.25 * same_letters
    return max(1.0 - 1.2 * cost / longer, 0.0)


def _part_weight(word: str, stored: str) -> float:
    """Return how likely (0–1) `word` is a part of `stored`, likelier at its beginning; 0 for numbers."""
    at = stored.find(word)
    if at < 0 or word == stored:
        return 0.0
    before, after = stored[:at][-1:], stored[at + len(word) :][:1]
    torn = (before.isdigit() and word[0].isdigit()) or (after.isdigit() and word[-1].isdigit())
    if torn and not (at == 0 and _is_id(word)):
        return 0.0
    share = len(word) / len(stored)
    if len(word) >= _TELLING:  # hardly by chance
        return 0.7 + 0.25 * share if at == 0 else 0.65 + 0.25 * share
    return 0.5 + 0.45 * share if at == 0 else 0.3 + 0.6 * share


def _misspelt_part(word: str, stored: str) -> float:
    """Return how likely (0–1) `stored` begins with `word` with one wrong letter."""
    if len(word) < _TELLING or len(stored) < len(word) + 2:
        return 0.0
    heads = [stored[: len(word) + change] for change in (-1, 0, 1)]
    near = [head for head in heads if OSA.distance(word, head, score_cutoff=1) == 1]
    return max((misspelling(word, head) * _part_weight(head, stored) for head in near), default=0.0)


@lru_cache(maxsize=1_000)
def _is_id(word: str) -> bool:
    """Say whether `word` has digits and no stretch of letters that would make a word: a hash, a version, a ticket."""
    return _DIGITS.search(word) is not None and (_LETTERS.search(word) is None or _HEX.fullmatch(word) is not None)


def one_edit_away(word: str) -> set[str]:
    """Return `word` and every spelling that is one missing, extra, wrong or swapped letter away from it."""
    letters = _possible_letters(word)
    found = {word}
    for at in range(len(word) + 1):
        head, tail = word[:at], word[at:]
        found.update(head + letter + tail for letter in letters)
        if tail:
            found.add(head + tail[1:])
            found.update(head + letter + tail[1:] for letter in letters)
        if len(tail) > 1:
            found.add(head + tail[1] + tail[0] + tail[2:])
    return found


def _possible_letters(word: str) -> set[str]:
    """Return the letters that may stand in a word like `word`: a–z, and the alphabets of its other letters."""
    found = set(ascii_lowercase) if any(letter.isascii() for letter in word) else set()
    for block in {ord(letter) // _BLOCK for letter in word if not letter.isascii()}:
        letters = map(chr, range(block * _BLOCK, (block + 1) * _BLOCK))
        found.update(letter for letter in letters if unicodedata.category(letter) in ("Ll", "Lo"))
    return found
