"""Wording: a query's words as the text index is asked for them, with guesses for those that nobody stored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from recollect.domain import View
from recollect.operations import guesses as guess
from recollect.policy import rank
from recollect.policy.scripts import certainty, is_dense
from recollect.policy.terms import Terms, forms, parse, stem
from recollect.ports import App, Term

_TELLING = 16
_COMMON = 0.2
_MANY = 2_000
_SURE = 0.7
_FEWEST = 2
_COST = 30_000  # memories that one full-text search may rank


@dataclass(frozen=True, slots=True)
class Words:
    """A query as the text index is asked: terms, the weight of each stem, guesses for each unknown word.

    `known` are the stems that some memory holds, `names` those of the query's names that no stored words make up, so
    that only a part may be stored, `readings` what is almost surely misspelt or written otherwise, as it was written
    and as it is meant.
    """

    terms: tuple[Term, ...]
    weights: dict[str, float]
    known: frozenset[str]
    guesses: dict[str, tuple[Term, ...]]
    names: tuple[str, ...]
    readings: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def read(app: App, parsed: Terms, view: View) -> Words:
    """Choose the terms to search, weigh every stem by how rare it is, and guess at the words nobody stored."""
    size = app.text.size(view)
    uses = _uses(app, parsed, view)
    rare = sorted(parsed.words, key=lambda word: uses.get(word, 0))
    sure = [word for word in rare if word in uses or not is_dense(word)]
    telling = [word for word in sure if size < _MANY or uses.get(word, 0) <= _COMMON * size] or rare
    telling = _affordable(telling, uses)
    weights: dict[str, float] = {}
    for word in rare:
        weight = rank.rarity(uses.get(word, 0), size) * certainty(word, word in uses)
        weights[stem(word)] = max(weights.get(stem(word), 0.0), weight)
    unknown = [word for word in telling[:_TELLING] if word not in uses]
    guesses = guess.guesses(app, parsed, unknown, view)
    read = {word: one.read for one in reversed(guesses) for word in one.words}
    sure_ones = [(one.written, one.read[0].text) for one in guesses if one.read[0].weight >= _SURE]
    readings = tuple((written, meant) for written, meant in sure_ones if _seen(app, meant, view))
    names = parsed.names[:_TELLING]
    terms = [Term(word) for word in (*telling[:_TELLING], *names)]
    terms += [one for guessed in guesses for one in guessed.read]
    said = ", ".join(f"{written} as {meant}" for written, meant in readings)
    notes = (f"Also read {said}.",) if said else ()
    whole = [word for word in unknown if not word.isascii()]  # languages that write words without spaces
    partial = (*(name for name in names if not uses.keys() >= set(parse(name).words)), *whole)
    known = frozenset(stem(word) for word in rare if word in uses)
    return Words(tuple(dict.fromkeys(terms)), weights, known, read, partial, readings, notes)


def _seen(app: App, word: str, view: View) -> bool:
    """Say whether the caller may see a memory with the word, so that no guess tells of what is hidden or expired."""
    anywhere = View(view.namespaces, view.now, view.sensitivities, superseded=view.superseded)
    return bool(app.text.search([Term(word)], anywhere, 1))


def _affordable(telling: Sequence[str], uses: Mapping[str, int]) -> list[str]:
    """Return the rarest of the words, as many as one search may cost: ranking looks at each memory that holds one."""
    costs = list(accumulate(uses.get(word, 0) for word in telling))
    return list(telling[: max(sum(cost <= _COST for cost in costs), _FEWEST)])


def _uses(app: App, parsed: Terms, view: View) -> dict[str, int]:
    """Return in how many memories each word or another form of it stands; words of unknown stems are absent."""
    alike = {word: forms(word) for word in parsed.words}
    stored = app.text.frequencies([one for found in alike.values() for one in found], view)
    uses = {word: sum(stored.get(one, 0) for one in found) for word, found in alike.items()}
    return {word: count for word, count in uses.items() if count}


def respelt(text: str, words: Words) -> str:
    """Return the query's text with its `readings` in the place of what was written."""
    for written, meant in words.readings:
        text = re.sub(rf"(?<!\w){re.escape(written)}(?!\w)", meant, text, flags=re.IGNORECASE)
    return text


def substrings(app: App, words: Words, view: View, limit: int) -> dict[int, float]:
    """Find the query's names anywhere inside the texts.

    Return for each memory the share (0–1) of the query's weight that was found so.
    """
    total = sum(words.weights.values()) or 1.0
    found: dict[int, float] = {}
    for piece in dict.fromkeys(words.names):
        share = sum(words.weights.get(stem(word), 0.0) for word in set(parse(piece).words)) / total
        for memory_id in app.text.substring(piece, view, limit):
            found[memory_id] = min(found.get(memory_id, 0.0) + share, 1.0)
    return found


def fuzzy(words: Words, held: frozenset[str], stems: set[str], partial: float) -> float:
    """Return the share (0–1) of the query that the memory holds when unknown words are read as guessed."""
    if not words.guesses and not partial:
        return 0.0
    total = sum(words.weights.values()) or 1.0
    read = {stem(word): guess.held(found, held, stems) for word, found in words.guesses.items()}
    share = sum(weight * (1.0 if one in stems else read.get(one, 0.0)) for one, weight in words.weights.items())
    return max(share / total, partial * 0.9)
