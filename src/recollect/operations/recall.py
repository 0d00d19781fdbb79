"""Recall: search by meaning, by word and by typo, fuse, load what the caller may see, rank and explain."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.domain import Caller, Hit, Query, Recalled, Signals, Standing, View
from recollect.operations import wording
from recollect.operations.view import view_of
from recollect.operations.wording import Words
from recollect.policy import rank
from recollect.policy.names import named, without
from recollect.policy.terms import parse, stem
from recollect.ports import App

NOTHING = "Nothing relevant found."
_OVERFETCH = 5
_AT_LEAST = 50
_PATIENCE = 2.0  # seconds: a warm start loads the model in less


def recall(app: App, query: Query, caller: Caller | None = None) -> Recalled:
    """Return the memories that answer `query`, best first, each with its score explained part by part.

    Below the model card's floor the answer is "Nothing relevant found." Whatever could not be searched is
    said in the notes; it is never an error.
    """
    caller = caller or app.caller
    view = view_of(app, query, caller)
    fetch = max(_AT_LEAST, query.limit * _OVERFETCH)
    words = wording.read(app, parse(query.query), view)
    lexical = app.text.search(words.terms, view, fetch) if words.terms else {}
    partial = wording.substrings(app, words, view, fetch)
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


def _signals(
    app: App,
    words: Words,
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
            fuzzy=wording.fuzzy(words, held.get(one, frozenset()), stems, partial.get(one, 0.0)),
            spoken=one in spoken,
        )
    return found


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
