"""The vocabulary of what is stored, and which of its words a misspelt or shortened word may stand for.

Candidates are looked up, never scanned for: every spelling one letter away in the index of words, two letters by the
spellings of the first half or by the second, parts of words by trigrams. So the cost depends on the word, hardly on
the store.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from string import ascii_lowercase
from typing import Any, Final

from rapidfuzz.distance import OSA
from sqlalchemy import BindParameter, Connection, TextClause, bindparam, text

from recollect.ports import Term

_SHORTEST: Final = 4
_TELLING: Final = 6  # letters; a shorter word may be part of a longer one by chance
_LONG: Final = 8  # letters; only words this long may have two wrong ones
_ENDLESS: Final = 24  # letters; all spellings of such a word are more than those of its first half
_HALF: Final = 6
_MOST: Final = 300
_MANY: Final = 3_000
_LAST: Final = "\U0010ffff"
_BLOCK: Final = 64  # code points: about an alphabet
_DIGITS = re.compile(r"\d+")
_LETTERS = re.compile(r"[^\W\d_]{4}")
_HEX = re.compile(r"[0-9a-f]+")

_NUMBERS: BindParameter[list[int]] = bindparam("numbers", expanding=True)
_SPELT = text(
    """SELECT text, uses FROM word
    WHERE namespace_id IN :numbers AND text IN (SELECT value FROM json_each(:spellings))"""
).bindparams(_NUMBERS)
_STARTING = text(
    """SELECT word.text, word.uses FROM json_each(:heads) AS head CROSS JOIN word
    WHERE word.namespace_id IN :numbers AND word.text > head.value AND word.text < head.value || :last
    AND length(word.text) BETWEEN :shortest AND :longest
    ORDER BY length(word.text) LIMIT :most"""
).bindparams(_NUMBERS, bindparam("last", _LAST), bindparam("most", _MOST))
_HOLDING = text(
    """SELECT word.text, word.uses
    FROM (SELECT rowid FROM word_trigram WHERE word_trigram MATCH :piece LIMIT :many) AS found
    CROSS JOIN word ON word.id = found.rowid
    WHERE word.namespace_id IN :numbers AND length(word.text) BETWEEN :shortest AND :longest
    ORDER BY length(word.text) LIMIT :most"""
).bindparams(_NUMBERS, bindparam("many", _MANY), bindparam("most", _MOST))


def similar(connection: Connection, word: str, numbers: Sequence[int], limit: int) -> list[Term]:
    """Return the stored words that `word` may be a misspelling or a part of, weighted 0–1, likeliest first.

    Short words and numbers resemble nothing, however alike they look.
    """
    if len(word) < _SHORTEST or not any(letter.isalpha() for letter in word):
        return []
    look = _Lookup(connection, list(numbers))
    found = look.holding(word) if _is_id(word) else look.spelt(word) | look.holding(word)
    if len(word) >= _TELLING and not _is_id(word):
        if not any(misspelling(word, one) for one in found):
            found |= look.twice_misspelt(word)
        if not any(likelihood(word, one) for one in found):
            found |= look.misspelt_beginning(word)
    guesses = [(likelihood(word, one), uses, one) for one, uses in found.items()]
    guesses.sort(key=lambda guess: (-guess[0], -guess[1], guess[2]))
    return [Term(one, weight) for weight, _, one in guesses[:limit] if weight > 0.0]


def likelihood(word: str, stored: str) -> float:
    """Return how likely (0–1, below 1) whoever wrote `word` meant `stored`; the formulas were set by hand."""
    return max(misspelling(word, stored), _part(word, stored), _misspelt_part(word, stored))


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


def _part(word: str, stored: str) -> float:
    """Weigh that `word` is a part of `stored`, better at its beginning; no number is a part of a longer one."""
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
    """Weigh that `stored` begins with `word` but for one letter."""
    if len(word) < _TELLING or len(stored) < len(word) + 2:
        return 0.0
    heads = [stored[: len(word) + change] for change in (-1, 0, 1)]
    near = [head for head in heads if OSA.distance(word, head, score_cutoff=1) == 1]
    return max((misspelling(word, head) * _part(head, stored) for head in near), default=0.0)


@lru_cache(maxsize=1_000)
def _is_id(word: str) -> bool:
    """Say whether `word` has digits and no stretch of letters that would make a word: a hash, a version, a ticket."""
    return _DIGITS.search(word) is not None and (_LETTERS.search(word) is None or _HEX.fullmatch(word) is not None)


class _Lookup:
    """The ways to find candidates, each with how many memories use it, in some namespaces."""

    def __init__(self, connection: Connection, numbers: list[int]) -> None:
        self._connection = connection
        self._numbers = numbers

    def spelt(self, word: str) -> dict[str, int]:
        """Find the stored words one letter away, by looking up each spelling there can be."""
        return self._found(_SPELT, spellings=_json(edited(word))) if len(word) <= _ENDLESS else {}

    def holding(self, word: str) -> dict[str, int]:
        """Find stored words that `word` is a part of, the shortest first."""
        sizes = {"shortest": len(word) + 1, "longest": max(3 * len(word), 20)}
        starting = self._found(_STARTING, heads=_json([word]), **sizes)
        return starting | self._found(_HOLDING, piece=quoted(word), **sizes)

    def twice_misspelt(self, word: str) -> dict[str, int]:
        """Find stored words two letters away: either one of the two is in the second half, or none."""
        half = min(len(word) // 2, _HALF)
        sizes = {"shortest": len(word) - 2, "longest": len(word) + 2}
        starting = self._found(_STARTING, heads=_json(edited(word[:half])), **sizes)
        return starting | self._found(_HOLDING, piece=quoted(word[half:]), **sizes)

    def misspelt_beginning(self, word: str) -> dict[str, int]:
        """Find stored words that begin with `word` but for one letter."""
        return self._found(_STARTING, heads=_json(edited(word)), shortest=len(word) + 1, longest=2 * len(word))

    def _found(self, query: TextClause, **values: Any) -> dict[str, int]:
        rows = self._connection.execute(query, values | {"numbers": self._numbers})
        return {row.text: row.uses for row in rows}


def quoted(phrase: str) -> str:
    """Make any text one FTS5 string: inside the quotes nothing is syntax."""
    return '"' + phrase.replace('"', '""') + '"'


def edited(word: str) -> set[str]:
    """Return `word` and every spelling that is one missing, extra, wrong or swapped letter away from it."""
    letters = _alphabet(word)
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


def _alphabet(word: str) -> set[str]:
    """Return the letters that may stand in a word like `word`: a–z, and the alphabets of its other letters."""
    found = set(ascii_lowercase) if any(letter.isascii() for letter in word) else set()
    for block in {ord(letter) // _BLOCK for letter in word if not letter.isascii()}:
        letters = map(chr, range(block * _BLOCK, (block + 1) * _BLOCK))
        found.update(letter for letter in letters if unicodedata.category(letter) in ("Ll", "Lo"))
    return found


def _json(texts: Iterable[str]) -> str:
    return json.dumps(list(texts), ensure_ascii=False)
