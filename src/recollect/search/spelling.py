"""Other spellings for words of a query that nobody stored: misspelt, cut short, written together or apart.

Another spelling never weighs as much as a word that is stored. Numbers and short words have none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from recollect.app import App
from recollect.domain.search import View
from recollect.search.parse import ParsedQuery, Phrase
from recollect.store.text.index import Term
from recollect.text.terms import STOP_WORDS, stem

_MOST_WORDS = 8  # that are looked up
_MOST_SIMILAR = 8
_MARGIN = 0.2  # below the likeliest spelling of a word
_COMPOUND = 0.95
_JOINED = 0.8
_SPLIT = 0.9
_DOUBT = 0.5
_INFLECTED = 0.9
_SHORT_FORM = 0.9
_MOST_SPLITS = 8
_MOST_PIECES = 4
_SHORTEST, _LONGEST = 5, 40
_GAP = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Expansion:
    """How `words` of a query, `written` so in it, may be spelt in the store: likeliest first, weights below 1.

    `uses` says of a short form in how many memories its other form may stand.
    """

    written: str
    words: tuple[str, ...]
    spellings: tuple[Term, ...]
    uses: int = 0


def joined_words(query: ParsedQuery) -> dict[str, Phrase]:
    """Return the words that parts of the query would make if they were written together."""
    compounds = {_GAP.sub("", one.text): one for one in query.compounds if _GAP.search(one.text)}
    compounds |= {_GAP.sub("", word): Phrase(word, (word,)) for word in query.words if _GAP.search(word)}
    found = {one.text.replace(" ", ""): one for one in query.pairs} | compounds
    return {joined: phrase for joined, phrase in found.items() if not joined.isdigit()}


def short_form_expansions(
    query: ParsedQuery, others: Mapping[str, Sequence[str]], held: Mapping[str, int]
) -> list[Expansion]:
    """Return the expansions of short forms, and of what has one, to their other forms that are stored.

    `others` has these forms by what is written, `held` in how many memories each of their words stands.
    """
    found = []
    for written, forms_of in others.items():
        uses = {one: min(held[piece] for piece in one.split()) for one in forms_of}
        spellings = tuple(Term(one, _SHORT_FORM) for one, count in uses.items() if count)
        words = tuple(word for word in written.split() if word in query.words)
        if words and spellings:
            found.append(Expansion(written, words, spellings, max(uses.values())))
    return found


def expansions(
    app: App, query: ParsedQuery, unknown: Sequence[str], joined: Mapping[str, Phrase], view: View
) -> list[Expansion]:
    """Return other spellings of words of the query, above all of those that are `unknown`; `joined` are stored ones.

    Words that the embedding model has a token of their own for are not misspelt, though nobody stored them: they get
    other spellings only where nothing of the query is stored, at half the weight.
    """
    found = _join_words(app, query, frozenset(unknown), joined, view)
    expanded = {word for one in found for word in one.words}
    left = [word for word in unknown if word not in expanded][:_MOST_WORDS]
    if not left:
        return found
    tokens = app.embedder.counter()
    doubted = {word for word in left if tokens is not None and tokens(word) <= 1}
    corrected = left if len(unknown) == len(query.words) else [word for word in left if word not in doubted]
    similar = {word: _similar_terms(app, word, view) for word in corrected}
    splits = _possible_splits(app, left, view)
    asked = {word for word, terms in similar.items() if terms and "_" not in word}
    held = app.text.held({*asked, *(phrase for phrases in splits.values() for phrase in phrases)}, view)
    for word in left:
        trust = 1.0 - _DOUBT if "_" not in word and (word in doubted or word in held) else 1.0
        split = [Term(phrase, _SPLIT) for phrase in splits[word] if phrase in held][:1]
        spellings = [*split, *(Term(one.text, one.weight * trust) for one in similar.get(word, ()))]
        if spellings:
            likely = tuple(one for one in spellings if one.weight >= spellings[0].weight - _MARGIN)
            found.append(Expansion(word, (word,), likely))
    return found


def best_weight(spellings: Iterable[Term], words: frozenset[str], stems: Collection[str]) -> float:
    """Return the weight of the likeliest spelling that a memory holds; another form of it counts a little less."""
    best = 0.0
    for one in spellings:
        pieces = [piece for piece in one.text.split() if len(piece) > 1]
        if words.issuperset(pieces):
            best = max(best, one.weight)
        elif all(stem(piece) in stems for piece in pieces):
            best = max(best, one.weight * _INFLECTED)
    return best


def _join_words(
    app: App, query: ParsedQuery, unknown: frozenset[str], joined: Mapping[str, Phrase], view: View
) -> list[Expansion]:
    """Return the stored words that words of the query make when they are written together, unless both are stored."""
    joined = {word: phrase for word, phrase in joined.items() if word not in STOP_WORDS}
    words = {word: tuple(one for one in phrase.words if one in query.words) for word, phrase in joined.items()}
    sure = {word for word, some in words.items() if not unknown.isdisjoint(some)}
    doubtful = [phrase.text for word, phrase in joined.items() if word not in sure]
    held = app.text.held(doubtful, view) if doubtful else ()
    return [
        Expansion(
            phrase.text,
            words[word],
            (Term(word, _JOINED if phrase in query.pairs and word not in sure else _COMPOUND),),
        )
        for word, phrase in joined.items()
        if word in sure or phrase.text not in held
    ]


def _similar_terms(app: App, word: str, view: View) -> list[Term]:
    """Return the stored terms that `word` may misspell or be a part of, none where another form of it is stored."""
    found = [one for one in app.text.similar(word, view, _MOST_SIMILAR) if one.text not in STOP_WORDS]
    if "_" not in word and any(stem(one.text) == stem(word) for one in found):
        return []
    return found


def _possible_splits(app: App, words: Sequence[str], view: View) -> dict[str, list[str]]:
    """Return the phrases that each word may be without spaces, hyphens or underscores, likeliest first."""
    long = [word for word in words if _SHORTEST <= len(word) <= _LONGEST]
    cuts = {piece for word in long if "_" not in word for piece in _pieces_of(word)}
    known = app.text.frequencies(list(cuts), view)
    found: dict[str, list[str]] = {word: [] for word in words}
    for word in long:
        ways = [tuple(filter(None, word.split("_")))] if "_" in word else _ways_to_split(word, known)
        ways.sort(key=lambda pieces: (len(pieces), -min(map(len, pieces), default=0)))
        found[word] = [" ".join(pieces) for pieces in ways[:_MOST_SPLITS] if len(pieces) > 1]
    return found


def _pieces_of(word: str) -> set[str]:
    """Return each stretch of at least two letters of a word."""
    return {word[start:end] for start in range(len(word)) for end in range(start + 2, len(word) + 1)}


def _ways_to_split(word: str, known: Mapping[str, int], before: int = 0) -> list[tuple[str, ...]]:
    """Return the ways in which `word` is made of a few known words, the first of which may be one letter."""
    if not word:
        return [()]
    ends = range(1 if before == 0 else 2, len(word) + 1) if before < _MOST_PIECES else range(0)
    whole = [end for end in ends if end == len(word) or not word[end - 1 : end + 1].isdigit()]
    heads = [word[:end] for end in whole if end == 1 or word[:end] in known]
    return [(head, *rest) for head in heads for rest in _ways_to_split(word[len(head) :], known, before + 1)]
