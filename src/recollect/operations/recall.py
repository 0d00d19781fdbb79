"""Recall: search by meaning, by word and by typo, fuse, load what the caller may see, rank and explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recollect.domain import Caller, Hit, Query, Recalled, Sensitivity, Signals, Standing, View
from recollect.policy import rank
from recollect.policy.names import named, without
from recollect.policy.terms import Terms, parse, stem
from recollect.ports import App, Term

NOTHING = "Nothing relevant found."
_TELLING = 16
_OVERFETCH = 5
_AT_LEAST = 50
_COMMON = 0.2
_MANY = 2_000
_SURE = 0.7
_PATIENCE = 2.0  # seconds: a warm start loads the model in less


def recall(app: App, query: Query, caller: Caller | None = None) -> Recalled:
    """Return the memories that answer `query`, best first, each with its score explained part by part.

    Below the model card's floor the answer is "Nothing relevant found." Whatever could not be searched is
    said in the notes; it is never an error.
    """
    caller = caller or app.caller
    view = view_of(app, query, caller)
    fetch = max(_AT_LEAST, query.limit * _OVERFETCH)
    words = _words(app, parse(query.query), view)
    lexical = app.text.search(words.terms, view, fetch) if words.terms else {}
    partial = _substrings(app, words, view, fetch)
    names = named(query.query, app.records.speakers(view))
    notes = list(words.notes)
    cosines: dict[int, float] = {}
    app.warmup.wait(_PATIENCE)
    if app.embedder.ready:
        vector = app.embedder.embed([without(query.query, names)], "query")[0]
        near = app.vectors.nearest(vector, view, fetch)
        candidates = list({*lexical, *near, *partial})
        cosines = app.vectors.cosines(vector, candidates)
        if app.records.unembedded(1):
            notes.append("Meaning is not searched everywhere yet: some memories still wait for the embedding model.")
    else:
        candidates = list({*lexical, *partial})
        notes.append(f"Meaning is not searched yet: {app.warmup.failure or 'the embedding model is still loading.'}")
    standings = app.records.standings(candidates, view)
    spoken = {one.id for one in standings if one.speaker in names}
    signals = _signals(app, words, [one.id for one in standings], cosines, lexical, partial, spoken)
    hits = _ranked(app, query, view, standings, rank.matches(signals, len(words.weights)), signals)
    if hits:
        app.later(lambda: app.records.touch([hit.memory.id for hit in hits], view.now, accessed=False))
    message = f"{len(hits)} {'memory' if len(hits) == 1 else 'memories'} found." if hits else NOTHING
    return Recalled(tuple(hits), message, tuple(notes))


def view_of(app: App, query: Query, caller: Caller) -> View:
    """Return what this query may see: the caller's namespaces, public memories, and what it asks to be let in on."""
    allowed = (Sensitivity.PRIVATE,) * query.allow_private + (Sensitivity.SECRET,) * query.allow_secret
    return View(
        namespaces=app.records.existing(caller.namespaces(query.scope)),
        now=app.clock(),
        sensitivities=(Sensitivity.PUBLIC, *allowed),
        fact_type=query.fact_type,
        category=query.category,
    )


@dataclass(frozen=True, slots=True)
class _Words:
    """A query as the text index is asked: terms, the weight of each stem, guesses for each unknown word.

    `names` are those of the query's names that no stored words make up, so that only a part may be stored.
    """

    terms: tuple[Term, ...]
    weights: dict[str, float]
    guesses: dict[str, tuple[Term, ...]]
    names: tuple[str, ...]
    notes: tuple[str, ...]


def _words(app: App, parsed: Terms, view: View) -> _Words:
    size = app.text.size(view)
    uses = app.text.frequencies(parsed.words, view)
    rare = sorted(parsed.words, key=lambda word: uses.get(word, 0))
    telling = [word for word in rare if size < _MANY or uses.get(word, 0) <= _COMMON * size] or rare
    weights: dict[str, float] = {}
    for word in rare:
        weights[stem(word)] = max(weights.get(stem(word), 0.0), rank.rarity(uses.get(word, 0), size))
    unknown = [word for word in telling[:_TELLING] if word not in uses]
    guesses = {word: tuple(app.text.similar(word, view, 3)) for word in unknown}
    guesses = {word: found for word, found in guesses.items() if found}
    names = parsed.names[:_TELLING]
    terms = [Term(word) for word in (*telling[:_TELLING], *names)]
    terms += [guess for found in guesses.values() for guess in found]
    read = [f"{word} as {found[0].text}" for word, found in guesses.items() if found[0].weight >= _SURE]
    notes = (f"Also read {', '.join(read)}.",) if read else ()
    whole = [word for word in unknown if not word.isascii()]  # languages that write words without spaces
    partial = (*(name for name in names if not uses.keys() >= set(parse(name).words)), *whole)
    return _Words(tuple(dict.fromkeys(terms)), weights, guesses, partial, notes)


def _substrings(app: App, words: _Words, view: View, limit: int) -> dict[int, float]:
    """Find the query's names, and the words that only resemble stored ones, anywhere inside the texts.

    Return for each memory the share (0–1) of the query's weight that was found so.
    """
    pieces = {*words.names, *(word for word in words.guesses if len(word) > 3)}
    total = sum(words.weights.values()) or 1.0
    found: dict[int, float] = {}
    for piece in pieces:
        share = sum(words.weights.get(stem(word), 0.0) for word in set(parse(piece).words)) / total
        for memory_id in app.text.substring(piece, view, limit):
            found[memory_id] = min(found.get(memory_id, 0.0) + share, 1.0)
    return found


def _signals(
    app: App,
    words: _Words,
    candidates: Sequence[int],
    cosines: dict[int, float],
    lexical: dict[int, float],
    partial: dict[int, float],
    spoken: set[int],
) -> dict[int, Signals]:
    held = app.text.words(candidates)
    found: dict[int, Signals] = {}
    for one in candidates:
        stems = {stem(word) for word in held.get(one, frozenset())}
        plain = rank.coverage(words.weights, stems)
        found[one] = Signals(
            cosine=cosines.get(one, 0.0),
            bm25=lexical.get(one, 0.0),
            coverage=plain,
            fuzzy=_fuzzy(words, held.get(one, frozenset()), stems, partial.get(one, 0.0)),
            spoken=one in spoken,
        )
    return found


def _fuzzy(words: _Words, held: frozenset[str], stems: set[str], partial: float) -> float:
    """Return the share of the query that the memory holds when its unknown words are read as their likeliest guess."""
    if not words.guesses and not partial:
        return 0.0
    total = sum(words.weights.values()) or 1.0
    read = {
        stem(word): max((g.weight for g in found if g.text in held), default=0.0)
        for word, found in words.guesses.items()
    }
    share = sum(weight * (1.0 if one in stems else read.get(one, 0.0)) for one, weight in words.weights.items())
    return max(share / total, partial * 0.9)


def _ranked(
    app: App,
    query: Query,
    view: View,
    standings: Sequence[Standing],
    matches: dict[int, float],
    signals: dict[int, Signals],
) -> list[Hit]:
    """Rank the candidates; where even the best match is below the model's floor, there is none."""
    if max(matches.values(), default=0.0) < app.embedder.card.floor:
        return []
    weights = rank.PROFILES[query.profile]
    ranked: list[tuple[float, float, int, dict[str, float]]] = []
    for one in standings:
        score, parts = rank.weigh(one, matches[one.id], weights, view.now)
        if score >= query.min_score:
            ranked.append((-score, -matches[one.id], one.id, parts))
    best = sorted(ranked, key=lambda found: found[:3])[: query.limit]
    memories = app.records.load([number for _, _, number, _ in best], view)
    return [
        Hit(memories[number], matches[number], -score, parts, signals[number])
        for score, _, number, parts in best
        if number in memories
    ]
