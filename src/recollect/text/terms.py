"""Words: what a text is made of for searching, and which of a query's words carry meaning."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import lru_cache

from Stemmer import Stemmer

from recollect.domain.requests import Draft
from recollect.domain.results import Memory
from recollect.text import writing_systems
from recollect.text.normalization import fold, index_pieces, limit_marks, same_in_index

_WORD = re.compile(r"\w+")
_SENTENCES = re.compile(r"[.!?]+")
_MONTHS = "January February March April May June July August September October November December".split()
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
LONGEST_WORD = 64
_ENDINGS = (
    *("", "s", "es", "ed", "d", "ing", "ings", "er", "ers", "ly", "ness", "ment", "ments", "ion", "ions"),
    *("e", "ate", "ates", "ated", "ating", "ation", "ations"),
)
_MOST_PARTS = 300
_MOST_UNSEEN = 4_000  # about what a text of 15,000 Chinese characters has in different pairs

STOP_WORDS = frozenset(
    """a about above after again all also am an and any are as at be because been before being below between both
    but by can could did do does doing done down during each either else ever every few for from further get gets got
    had has have having he her here hers him his how i if in into is it its itself just let like may me might mine
    more most much must my myself no nor not now of off on once one only or other our ours out over own please same
    shall she should so some such tell than that the their theirs them then there these they this those though through
    to too under until up upon us very was we were what when where whether which while who whom whose why will with
    within without would you your yours""".split()
)

_APOSTROPHE = "['’‘ʼ＇]"
_NEGATION = re.compile(rf"\b[a-z]+n{_APOSTROPHE}t\b", re.IGNORECASE)
_ENDING = rf"{_APOSTROPHE}(?:[a-z]|re|ve|ll)\b"
_CUT_OFF = re.compile(rf"(?<=\w){_ENDING}|\b(?:[a-z]|qu)(?!{_ENDING}){_APOSTROPHE}(?=[^\W\d_])", re.IGNORECASE)

_stemmer = Stemmer("porter")


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return the Porter stem, the one FTS5 uses, of a folded word."""
    return str(_stemmer.stemWord(word))


@lru_cache(maxsize=10_000)
def forms(word: str) -> tuple[str, ...]:
    """Return the likely words with the stem of a word, the word itself first: paint, paints, painted, painting."""
    base = stem(word)
    bases = (base, base[:-1] + "y", base + base[-1], base[:-1]) if base and base.isascii() else ()
    likely = dict.fromkeys([word, *(start + ending for start in bases for ending in _ENDINGS)])
    return tuple(form for form in likely if stem(form) == base)


def contracted_negations(text: str) -> list[str]:
    """Return the words of a text such as `don't`, with any of the apostrophes."""
    return _NEGATION.findall(text)


def without_contractions(text: str, *, negations: bool = True) -> str:
    """Return a text of the same length with spaces for the letters that an apostrophe separates from a word.

    These are the end of `it's`, of `we'll` and of a possessive, and the beginning of `l'avion`: no words by themselves.
    All of `don't` becomes spaces, since it carries as little meaning as `do not`; without `negations` only its end
    does.
    """
    bare = _NEGATION.sub(_spaces_for, text) if negations else text
    return _CUT_OFF.sub(_spaces_for, bare)


def _spaces_for(found: re.Match[str]) -> str:
    return " " * len(found[0])


def name_parts(text: str) -> list[str]:
    """Return the words inside camelCase and snake_case names: `noImplicitAny` gives no, Implicit, Any."""
    found: list[str] = []
    for word in _WORD.findall(text if text.isascii() else unicodedata.normalize("NFC", limit_marks(text))):
        if len(word) <= LONGEST_WORD and len(places := list(_PARTS.finditer(_ascii_shape(word)))) > 1:
            inner = (word[place.start() : place.end()] for place in places)
            found += [part for part in inner if part.isascii() or not writing_systems.is_dense(part)]
    return found


def _ascii_shape(word: str) -> str:
    """Return a name in ASCII letters of the same case, so that Größe counts as a single word."""
    if word.isascii():
        return word
    return "".join(
        char if char.isascii() else "A" if char.isupper() else "a" if char.islower() else "字" for char in word
    )


def vocabulary(texts: Iterable[str]) -> frozenset[str]:
    """Return the distinct folded words of `texts`, whole names and their parts, 2 to 64 characters long.

    Of scripts without spaces these are the pairs, and the single characters too.
    """
    found: set[str] = set()
    for text in texts:
        found.update(distinct_words(writing_systems.words(fold(text), every=True), _MOST_UNSEEN))
        found.update(fold(part) for part in name_parts(text))
        found.update(writing_systems.emoji(text))
    return frozenset(word for word in found if _is_worth_indexing(word))


def keywords(draft: Draft | Memory, title: str = "") -> str:
    """Return further words that find a memory: its labels, files and speaker, its date, the parts of names in its text.

    So should layers in other words than its content, and words of its text that the text index does not see by itself.
    """
    named = [draft.key, draft.category, draft.speaker, *draft.tags, *draft.concepts]
    named.append(date_in_words(draft.observed_at) if draft.observed_at else None)
    named += _layers_in_other_words(draft)
    files = [*draft.files_read, *draft.files_modified]
    inner = [part for part in name_parts(draft.content) if len(part) > 1]
    words = [word for word in (*named, *files) if word]
    texts = (title or draft.title or "", draft.subtitle or "", draft.content, *words)
    unseen = distinct_words((word for text in texts for word in _words_without_spaces(text)), _MOST_UNSEEN)
    return " ".join(dict.fromkeys([*words, *name_parts(" ".join(words)), *inner[:_MOST_PARTS], *unseen]))


def _layers_in_other_words(draft: Draft | Memory) -> Iterator[str]:
    """Yield the layers that have a word that the content lacks; a layer taken from the content has none."""
    content = " ".join(draft.content.split())
    layers = (" ".join(layer.split()).removesuffix("…") for layer in (draft.abstract, draft.overview) if layer)
    layers_beside = [layer for layer in layers if layer not in content]
    known = vocabulary([content]) if layers_beside else frozenset()
    yield from (layer for layer in layers_beside if vocabulary([layer]) - known)


def keywords_and_words(memory: Draft | Memory, title: str = "") -> tuple[str, frozenset[str]]:
    """Return the keywords and the vocabulary of a memory that has this title."""
    labels = keywords(memory, title)
    return labels, vocabulary([memory.content, title or memory.title or "", memory.subtitle or "", labels])


def _words_without_spaces(text: str) -> Iterator[str]:
    """Yield the words that FTS5 does not find in `text`: those without spaces, emoji, and what `fold` changes."""
    if text.isascii():
        return
    yield from writing_systems.emoji(text)
    for stretch in index_pieces(text):
        if not same_in_index(stretch) or writing_systems.holds_dense(stretch):
            yield from (word for word in writing_systems.words(fold(stretch), every=True) if _is_worth_indexing(word))


def distinct_words(words: Iterable[str], most: int) -> Iterable[str]:
    """Return the distinct words; of scripts without spaces at most `most`, since a book has endless pairs."""
    found: dict[str, None] = {}
    for word in words:
        if word not in found and (most or not writing_systems.is_dense(word)):
            found[word] = None
            most -= writing_systems.is_dense(word)
    return found


def _is_worth_indexing(word: str) -> bool:
    """Return whether a word is worth an index entry: not too long, and not a single letter of an alphabet."""
    if len(word) == 1:
        return not word.isascii() and (writing_systems.is_dense(word) or not word.isalnum())
    return len(word) <= LONGEST_WORD


def topic_words(text: str) -> frozenset[str]:
    """Return the stems of the words that carry meaning: no stop words and no bare numbers."""
    return frozenset(stem(word) for word in vocabulary([text]) if word not in STOP_WORDS and not word.isdigit())


def jaccard(words: AbstractSet[str], other: AbstractSet[str]) -> float:
    """Return the share (0–1) of the words of either set that are in both; 0 where there are none."""
    return len(words & other) / len(words | other) if words and other else 0.0


def spellings(texts: Iterable[str]) -> dict[str, str]:
    """Return, by stem, the first word of the texts that has the stem, folded."""
    spelt: dict[str, str] = {}
    for text in texts:
        for word in _WORD.findall(fold(text)):
            spelt.setdefault(stem(word), word)
    return spelt


def share_of_questions(text: str) -> float:
    """Return the share (0–1) of a text's sentences that are questions."""
    asked = text.count("?")
    return min(asked / max(len(_SENTENCES.findall(text)), 1), 1.0) if asked else 0.0


def date_in_words(moment: datetime) -> str:
    """Return a date as people write it in a query: 7 May 2023."""
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"
