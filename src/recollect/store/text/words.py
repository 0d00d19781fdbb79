"""The words of a text index: how much a found word weighs (BM25), and which stored words a misspelt one may stand for.

Every spelling one letter away is looked up, two letters by the spellings of the first half or by the second, parts of
words by what they hold.

bm25 over what a caller may see: the counts come from the database, the formula is FTS5's, whatever the database.

Which stored words a misspelt or shortened word may stand for, and how likely.

The vocabulary of what is stored, which every database keeps in the same tables: counts of words, and their rebuild.

A text index adds what each database searches in its own way.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import islice
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np
from rapidfuzz.distance import OSA
from sqlalchemy import Connection, bindparam, delete, func, select, update
from Stemmer import Stemmer

from recollect.domain.results import Memory
from recollect.domain.search import View
from recollect.store.sql import mapping
from recollect.store.sql.database import Database
from recollect.store.sql.dialect import Listed, any_of, in_batches, insert_all
from recollect.store.sql.mapping import IDS, put_words
from recollect.store.sql.tables import memory, memory_words, word
from recollect.store.sql.visibility import HERE, LEVELS, run_visible, size, values_of
from recollect.store.text.index import Term

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    found = stored.among(edited(word)) if size <= _LONGEST_EDITED and not _is_id(word) else {}
    found |= _around(stored, [word], word, size + 1, max(3 * size, 20))
    if size >= _TELLING and not _is_id(word):
        if not any(misspelling(word, one) for one in found):  # of two wrong letters one is in the second half, or none
            half = min(size // 2, _HALF)
            found |= _around(stored, edited(word[:half]), word[half:], size - 2, size + 2)
        if not any(likelihood(word, one) for one in found):
            found |= stored.starting(edited(word), size + 1, 2 * size)
    guesses = [(likelihood(word, one), uses, one) for one, uses in found.items()]
    guesses.sort(key=lambda guess: (-guess[0], -guess[1], guess[2]))
    return [Term(one, weight) for weight, _, one in guesses[:limit] if weight > 0.0]


def _around(stored: StoredWords, heads: Iterable[str], piece: str, shortest: int, longest: int) -> dict[str, int]:
    """Find stored words that begin with one of `heads` or hold `piece`."""
    return stored.starting(heads, shortest, longest) | stored.containing(piece, shortest, longest)


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


_FREQUENCIES = (
    select(word.c.text, func.sum(word.c.uses))
    .where(any_of(word.c.namespace_id, HERE), any_of(word.c.sensitivity, LEVELS))
    .where(any_of(word.c.text, bindparam("words", type_=Listed())))
    .group_by(word.c.text)
)


class SqlVocabulary:
    """The part of a text index that only reads and rebuilds the tables of words."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def frequencies(self, words: Sequence[str], view: View) -> dict[str, int]:
        """Return in how many memories of the view's namespaces and levels each word stands; unknown ones are absent."""
        with self._database.reading() as connection:
            values = values_of(connection, view) | {"words": words}
            return {text: int(uses) for text, uses in connection.execute(_FREQUENCIES, values)} if words else {}

    def size(self, view: View) -> int:
        """Return how many memories of its levels the view's namespaces hold, but for what sums up a session."""
        with self._database.reading() as connection:
            return size(connection, view)

    def rebuild(self, worded: Callable[[Memory], tuple[str, frozenset[str]]] | None = None) -> None:
        """Build the whole index and the vocabulary again from the memories.

        `worded`, when given, says which keywords and words each memory has today; those it was stored with go.
        """
        if worded is not None:
            self._rewrite_words(worded)
        with self._database.exclusive() as connection:
            connection.execute(delete(word))
            counted = word_uses(connection)
            names = ("namespace_id", "sensitivity", "text")
            rows = [dict(zip(names, place, strict=True)) | {"uses": uses} for place, uses in counted.items()]
            insert_all(connection, word, rows)
            self._rebuild_index(connection)

    def _rebuild_index(self, connection: Connection) -> None:
        """Build again what the database searches beside the tables of words; nothing, unless a text index says so."""

    def _rewrite_words(self, worded: Callable[[Memory], tuple[str, frozenset[str]]]) -> None:
        """Give every memory its keywords and words anew, in short steps so that writers get by."""
        with self._database.reading() as connection:
            ids = connection.execute(select(memory.c.id)).scalars().all()
        for batch in in_batches(ids):
            with self._database.exclusive() as connection:
                for one in mapping.load(connection, memory.c.id.in_(batch), ()):
                    keywords, words = worded(one)
                    changed = (memory.c.id == one.id) & (memory.c.keywords != keywords)
                    connection.execute(update(memory).where(changed).values(keywords=keywords))
                    shown = one.deleted_at is None and one.merged_into is None
                    kept = " ".join(sorted(frozenset(" ".join(words).split()))) if shown else ""
                    put_words(connection, one.id, kept)


def word_uses(connection: Connection) -> Counter[tuple[int, str, str]]:
    """Count in how many memories of a namespace and level each word stands, from the memories' own lists of words."""
    counted: Counter[tuple[int, str, str]] = Counter()
    query = select(memory.c.namespace_id, memory_words.c.sensitivity, memory_words.c.words)
    for number, level, words in connection.execute(query.join(memory, memory.c.id == memory_words.c.memory_id)):
        counted.update((number, level, text) for text in words.split())
    return counted


LONGEST: Final = 1 << 20
"""Characters of a text; a longer one counts as this long. Also what a memory's id is shifted by in a place."""

_BY_ID = select(memory.c.id).where(any_of(memory.c.id, IDS))
_LOOKED_AT: Final = 20
_LEAST_WORTH: Final = 1e-6
_LONGEST_STEMMED: Final = 64  # characters
_stemmer = Stemmer("porter")


class Holders(NamedTuple):
    """The texts that hold one term of a query, of some weight: places int64[n], and how often it stands in each.

    A place is the id of a memory × `LONGEST` + the length of its text.
    """

    weight: float
    places: NDArray[np.int64]
    times: NDArray[np.int64]


class Ranked(NamedTuple):
    """Ids of memories int64[n] and their bm25, best first."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]


def stemmed(word: str) -> str:
    """Return a plain English word as the index stems it, or an empty string for what is none."""
    plain = word.isascii() and word.isalnum() and len(word) <= _LONGEST_STEMMED
    return str(_stemmer.stemWord(word.lower())) if plain else ""


def numbers(listed: str | None) -> NDArray[np.int64]:
    """Read whole numbers with commas between."""
    return np.fromstring(listed, np.int64, sep=",") if listed else np.zeros(0, np.int64)


def counted(places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the different places, and how often each is there."""
    return np.unique(places, return_counts=True)


def bm25(holders: Iterable[Holders], memories: int, average: float, uncounted: Sequence[int] = ()) -> Ranked:
    """Return what holds any term, best first: k1 1.2, b 0.75.

    `memories` and `average` are how many texts there are, and their mean length in characters. How rare a term is
    does not depend on the `uncounted` ones.
    """
    every_text = memories - len(uncounted)
    ids: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    scores: list[NDArray[np.float64]] = [np.zeros(0)]
    for weight, known, times in holders:
        if len(known):
            uses = len(known) - int(np.isin(known // LONGEST, uncounted).sum()) if uncounted else len(known)
            worth = weight * max(math.log((max(every_text - uses, 0) + 0.5) / (uses + 0.5)), _LEAST_WORTH)
            ids.append(known // LONGEST)
            scores.append(worth * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * (known % LONGEST) / average)))
    every, which = np.unique(np.concatenate(ids), return_inverse=True)
    total = np.bincount(which, np.concatenate(scores), len(every)).astype(np.float64)
    order = np.lexsort((every, -total))
    return Ranked(every[order], total[order])


def best_visible(connection: Connection, view: View, ranked: Ranked, limit: int) -> dict[int, float]:
    """Return the best `limit` of what a view may see, with their bm25, best first.

    Each look takes twice as many as the one before it: where few may be seen, most of them are looked at.
    """
    found: dict[int, float] = {}
    step, start = max(limit, _LOOKED_AT), 0
    while start < len(ranked.ids):
        parts = (part[start : start + step].tolist() for part in ranked)
        some = dict(zip(*parts, strict=True))
        seen = set(run_visible(connection, _BY_ID, view, ids=some).scalars())
        found |= {one: score for one, score in some.items() if one in seen}
        if len(found) >= limit:
            break
        start, step = start + step, 2 * step
    return dict(islice(found.items(), limit))
