"""Words: what a text is made of for searching, and which of a query's words carry meaning."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from Stemmer import Stemmer

from recollect.domain import Draft

_WORD = re.compile(r"\w+")
_COMPOUND = re.compile(r"[^\W_](?:[\w./:@#+\\-]*[^\W_])?")
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
_LONGEST_WORD = 64
_MOST_PARTS = 300

STOP_WORDS = frozenset(
    """a about above after again all also am an and any are as at be because been before being below between both
    but by can could did do does doing done down during each either else ever every few for from further get gets got
    had has have having he her here hers him his how i if in into is it its itself just let like may me might mine
    more most much must my myself no nor not now of off on once one only or other our ours out over own please same
    shall she should so some such tell than that the their theirs them then there these they this those though through
    to too under until up upon us very was we were what when where whether which while who whom whose why will with
    within without would you your yours""".split()
)

_stemmer = Stemmer("porter")


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return the Porter stem, the one FTS5 uses, of a folded word."""
    return str(_stemmer.stemWord(word))


def fold(text: str) -> str:
    """Lower the case and drop the accents of Latin letters, as the text index does; other scripts keep theirs."""
    if text.isascii():
        return text.lower()
    composed = unicodedata.normalize("NFC", text.lower())
    return "".join(_plain(one) for one in composed)


@lru_cache(maxsize=10_000)
def _plain(letter: str) -> str:
    if letter.isascii():
        return letter
    if "\u0300" <= letter <= "\u036f":
        return ""
    base = unicodedata.normalize("NFD", letter)[0]
    return base.lower() if base.isascii() and base.isalpha() else letter


def parts(text: str) -> list[str]:
    """Return the words inside camelCase and snake_case names: `noImplicitAny` gives no, Implicit, Any."""
    found: list[str] = []
    for word in _WORD.findall(text):
        if len(word) <= _LONGEST_WORD and len(inner := _PARTS.findall(word)) > 1:
            found += inner
    return found


def vocabulary(texts: Iterable[str]) -> frozenset[str]:
    """Return the distinct folded words of `texts`, whole names and their parts, 2 to 64 characters long."""
    found: set[str] = set()
    for text in texts:
        found.update(_WORD.findall(fold(text)))
        found.update(fold(part) for part in parts(text))
    return frozenset(word for word in found if 1 < len(word) <= _LONGEST_WORD)


def keywords(draft: Draft) -> str:
    """Return what should find a memory beside its text: labels, files, speaker, and the parts of names in it."""
    named = [draft.key, draft.category, draft.speaker, *draft.tags, *draft.concepts]
    files = [*draft.files_read, *draft.files_modified]
    inner = [part for part in parts(draft.content) if len(part) > 1]
    words = [word for word in (*named, *files) if word]
    return " ".join(dict.fromkeys([*words, *parts(" ".join(words)), *inner[:_MOST_PARTS]]))


@dataclass(frozen=True, slots=True)
class Terms:
    """A query in words: the folded ones that carry meaning, and names with punctuation inside, such as paths."""

    words: tuple[str, ...]
    names: tuple[str, ...]


def parse(query: str) -> Terms:
    """Take a query apart; when it consists of stop words only, they are kept."""
    folded = fold(query)
    names = [one for one in _COMPOUND.findall(folded) if not one.isalnum() and len(one) <= _LONGEST_WORD * 4]
    every = [word for word in _WORD.findall(folded) if len(word) <= _LONGEST_WORD]
    telling = [word for word in every if word not in STOP_WORDS]
    return Terms(tuple(dict.fromkeys(telling or every)), tuple(dict.fromkeys(names)))
