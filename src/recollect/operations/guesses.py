"""Guesses: what may be stored for words of a query that are not: misspelt, cut short, written together or apart.

A guess never weighs as much as a word that is stored. Numbers and short words are never guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from recollect.domain import View
from recollect.policy.terms import STOP_WORDS, Terms, parse, stem
from recollect.ports import App, Term

_WORDS = 8
_EACH = 8
_MARGIN = 0.2
_COMPOUND = 0.95
_REJOINED = 0.8
_RESPACED = 0.9
_DOUBT = 0.5
_INFLECTED = 0.9
_WAYS = 8
_PIECES = 4
_PAIRS = 64
_SHORTEST, _LONGEST = 5, 40
_GAP = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Guess:
    """What a query's `words`, `written` so in it, may be read as: likeliest first, each of a weight below 1."""

    written: str
    words: tuple[str, ...]
    read: tuple[Term, ...]


def guesses(app: App, parsed: Terms, unknown: Sequence[str], view: View) -> list[Guess]:
    """Return what words of the query may be read as.

    Words that the embedding model has a token of their own for are not misspelt, though nobody stored them: they are
    read as others only where nothing of the query is stored, and then half as likely.
    """
    found = _joined(app, parsed, frozenset(unknown), view)
    read = {word for guess in found for word in guess.words}
    left = [word for word in unknown if word not in read][:_WORDS]
    counted = app.embedder.counter() if left else None
    lost = len(unknown) == len(parsed.words)
    for word in left:
        doubt = 0.0 if counted is None or counted(word) > 1 else _DOUBT
        near = [] if doubt and not lost else _near(app, word, view, doubt)
        if phrase := _apart(app, word, view):
            near = [Term(phrase, _RESPACED), *near]
        if near:
            likely = tuple(one for one in near if one.weight >= near[0].weight - _MARGIN)
            found.append(Guess(word, (word,), likely))
    return found


def held(read: Iterable[Term], words: frozenset[str], stems: Collection[str]) -> float:
    """Return the weight of the likeliest guess that a memory holds; another form of it counts a little less."""
    best = 0.0
    for guess in read:
        pieces = [piece for piece in guess.text.split() if len(piece) > 1]
        if words.issuperset(pieces):
            best = max(best, guess.weight)
        elif all(stem(piece) in stems for piece in pieces):
            best = max(best, guess.weight * _INFLECTED)
    return best


def _joined(app: App, parsed: Terms, unknown: frozenset[str], view: View) -> list[Guess]:
    """Read what is written apart as the one stored word it makes, unless it is stored as it is written."""
    compounds = {"".join(_GAP.split(name)): name for name in (*parsed.names, *parsed.words) if _GAP.search(name)}
    pairs = {pair.replace(" ", ""): pair for pair in parsed.pairs[:_PAIRS]}
    written = {whole: apart for whole, apart in (pairs | compounds).items() if not whole.isdigit()}
    stored = app.text.frequencies(list(written), view) if written else {}
    found: list[Guess] = []
    for whole in stored:
        words = tuple(word for word in parse(written[whole]).words if word in parsed.words)
        sure = bool(unknown.intersection(words))
        if whole not in STOP_WORDS and (sure or not app.text.search([Term(written[whole])], view, 1)):
            weight = _COMPOUND if sure or whole in compounds else _REJOINED
            found.append(Guess(written[whole], words, (Term(whole, weight),)))
    return found


def _near(app: App, word: str, view: View, doubt: float) -> list[Term]:
    """Guess at what `word` is a misspelling or a part of; it may be stored in another form, and is none then."""
    found = [guess for guess in app.text.similar(word, view, _EACH) if guess.text not in STOP_WORDS]
    if not found or "_" in word:
        return found
    if any(stem(guess.text) == stem(word) for guess in found):
        return []
    if app.text.search([Term(word)], view, 1):
        doubt = _DOUBT
    return [Term(guess.text, guess.weight * (1.0 - doubt)) for guess in found]


def _apart(app: App, word: str, view: View) -> str:
    """Find the stored phrase that `word` is when written without its spaces, hyphens or underscores."""
    if not _SHORTEST <= len(word) <= _LONGEST:
        return ""
    if "_" in word:
        ways = [tuple(piece for piece in word.split("_") if piece)]
    else:
        cuts = {word[start:end] for start in range(len(word)) for end in range(start + 2, len(word) + 1)}
        known = app.text.frequencies(list(cuts), view)
        ways = sorted(_ways(word, known), key=lambda way: (len(way), -min(map(len, way))))
    for way in ways[:_WAYS]:
        if len(way) > 1 and app.text.search([Term(" ".join(way))], view, 1):
            return " ".join(way)
    return ""


def _ways(word: str, known: Mapping[str, int], before: int = 0) -> list[tuple[str, ...]]:
    """Return the ways in which `word` is made of a few known words, the first of which may be one letter."""
    if not word:
        return [()]
    ends = range(1 if before == 0 else 2, len(word) + 1) if before < _PIECES else range(0)
    whole = [end for end in ends if end == len(word) or not word[end - 1 : end + 1].isdigit()]
    heads = [word[:end] for end in whole if end == 1 or word[:end] in known]
    return [(head, *rest) for head in heads for rest in _ways(word[len(head) :], known, before + 1)]
