"""A query taken apart, once, before anything is searched: its words, its names, and what kind of thing it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from recollect.search.periods import RELATIVE_TO_NOW
from recollect.spans import spanned
from recollect.text import writing_systems
from recollect.text.normalization import fold
from recollect.text.speaker_names import name_words
from recollect.text.terms import LONGEST_WORD, STOP_WORDS, contracted_negations, distinct_words, without_contractions

_COMPOUND = re.compile(r"[^\W_](?:[\w./:@#+\\-]*[^\W_])?")
_IDENTIFIER = re.compile(r"[_/\\#@]|::|[a-z]{2}\.[a-z]|[a-z][A-Z]|[^\W\d_]\W?\d|\d\W?[^\W\d_]|\d{4}")
_DATE_LIKE = re.compile(r"(?:19|20)\d\d(?:-\d\d){0,2}|\d+(?:st|nd|rd|th)", re.IGNORECASE)
_PAIR = re.compile(r"(?=\b(\w+ \w+)\b)")
_MOST_WORDS = 400  # of scripts without spaces
_MOST_PAIRS = 64


@dataclass(frozen=True, slots=True)
class Phrase:
    """A folded stretch of a query, and the words that it has by itself."""

    text: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query as it was typed (`text`), as an embedding model reads it (`model_text`), and in folded parts.

    `words` carry meaning; where no word does, they are all of its words. `compounds` are names with punctuation
    inside, such as paths, stretches of scripts without spaces, and emoji by name; `pairs` are any two words with one
    space between them. A speaker may be named by any of `name_words`. `identifiers` are names with digits, underscores,
    slashes, dots or capitals inside.
    """

    text: str
    model_text: str
    words: tuple[str, ...]
    compounds: tuple[Phrase, ...]
    pairs: tuple[Phrase, ...]
    name_words: frozenset[str]
    identifiers: tuple[Phrase, ...] = ()


@spanned("search.parse")
def parse(query: str) -> ParsedQuery:
    """Take a query apart."""
    folded = _without_time(fold(query))
    words, emoji = _query_words(folded), writing_systems.emoji(query)
    names = [one for one in _COMPOUND.findall(folded) if not one.isalnum() and len(one) <= LONGEST_WORD * 4]
    names += [run for run in writing_systems.dense_runs(folded) if len(run) <= LONGEST_WORD]
    names += emoji if words else ()
    names += () if _meaningful_words(without_contractions(folded)) else contracted_negations(folded)
    return ParsedQuery(
        text=query,
        model_text=writing_systems.emoji_as_words(query),
        words=tuple(dict.fromkeys(words or emoji)),
        compounds=_phrases(names),
        pairs=_phrases(_PAIR.findall(folded), _MOST_PAIRS),
        name_words=name_words(query),
        identifiers=_phrases(
            [fold(one) for one in _COMPOUND.findall(query) if _IDENTIFIER.search(one) and not _DATE_LIKE.fullmatch(one)]
        ),
    )


def _without_time(folded: str) -> str:
    """Return a query without a time relative to now, which no memory says, unless it asks for nothing else."""
    timeless = RELATIVE_TO_NOW.sub(" ", folded)
    return timeless if _meaningful_words(without_contractions(timeless)) else folded


def _query_words(folded: str) -> list[str]:
    """Return the distinct words that carry meaning; all words where none does.

    A piece cut off by an apostrophe is left out where it would weigh as much as all other words. Beside more words it
    stays: the fusion's coefficients were fitted with it.
    """
    every, whole = _meaningful_words(folded), _meaningful_words(without_contractions(folded))
    if 2 * len(whole) > len(every):
        return every
    bare = without_contractions(folded, negations=False)
    return whole or _meaningful_words(bare) or _distinct_words(bare)


def _meaningful_words(folded: str) -> list[str]:
    """Return the distinct words that carry meaning."""
    return [
        word
        for word in _distinct_words(folded)
        if word not in STOP_WORDS and (word.isascii() or not writing_systems.is_single_kana(word))
    ]


def _distinct_words(folded: str) -> list[str]:
    """Return the distinct words of a folded text, without those that are too long."""
    found = distinct_words(writing_systems.words(folded, every=False), _MOST_WORDS)
    return [word for word in found if not word[LONGEST_WORD:]]


def _phrases(texts: Iterable[str], most: int | None = None) -> tuple[Phrase, ...]:
    """Return the distinct phrases, the first `most` of them."""
    found = list(dict.fromkeys(texts))[:most]
    return tuple(Phrase(text, tuple(_query_words(text) or writing_systems.emoji(text))) for text in found)
