"""Evidence: everything the searchers find for a query, gathered per memory before anything is ranked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.domain import Asked, Near, Query, Signals, Standing, View
from recollect.operations import wording
from recollect.operations.wording import Words
from recollect.policy import rank, traits
from recollect.policy.names import named, naming, without
from recollect.policy.passages import Passages
from recollect.policy.scripts import in_words, is_latin
from recollect.policy.terms import STOP_WORDS, fold, parse, stem
from recollect.ports import App, Closeness

if TYPE_CHECKING:
    from recollect.ports import Reading, Vector

_WORD = re.compile(r"\w+")
_OVERFETCH = 5
_AT_LEAST = 50
_DEEP = 300  # bm25 is wanted of the neighbours of the best too
_EXPANDED = 20
_TRANSCRIPTS = 10
_SHOWN = 4_000  # characters: enough to see what kind of text it is
_PATIENCE = 2.0  # seconds: a warm start loads the model in less


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of each candidate, in no order; `vector` is the query's, None where meaning was not searched."""

    found: dict[int, Signals]
    asked: Asked
    standings: tuple[Standing, ...]
    vector: Vector | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Search:
    """The first searches: bm25 and substrings by memory, who is named, what is near in meaning."""

    text: str
    words: Words
    lexical: dict[int, float]
    partial: dict[int, float]
    names: frozenset[str]
    reading: Reading | None
    near: dict[int, float]


def gather(app: App, query: Query, view: View) -> Evidence:
    """Search by word, by substring and by meaning, and look closely at what was found and at its neighbours.

    Whatever could not be searched is said in the notes; it is never an error.
    """
    search, notes = _search(app, query, view)
    first = _first(search, max(_AT_LEAST, query.limit * _OVERFETCH))
    if view.filtered and query.min_score == 0.0 and len(first) < query.limit:
        first = dict.fromkeys(app.records.newest(view, query.limit * _OVERFETCH), 0.0) | first
    best = sorted(first, key=lambda one: (-first[one], one))[:_EXPANDED]
    beside = app.records.neighbours(best, view)
    candidates = list({**first, **dict.fromkeys(two for pair in beside.values() for two in pair)})
    around = app.records.neighbours(candidates, view)
    every = list({*candidates, *(two for pair in around.values() for two in pair)})
    standings = {one.id: one for one in app.records.standings(every, view)}
    close = _closeness(app, search, list(standings))
    held = _held(app, search.words, standings, frozenset(candidates), view)
    wish = _wish(query.query)
    found = {
        one: _signals(search, wish, standings, around.get(one, ()), close, held, one)
        for one in candidates
        if one in standings
    }
    return Evidence(
        found=found,
        asked=_asked(search),
        standings=tuple(standings[one] for one in found),
        vector=None if search.reading is None else search.reading.vector,
        notes=(*search.words.notes, *notes),
    )


def _search(app: App, query: Query, view: View) -> tuple[_Search, list[str]]:
    words = wording.read(app, parse(query.query), view)
    lexical = app.text.search(words.terms, view, _DEEP) if words.terms else {}
    fetch = max(_AT_LEAST, query.limit * _OVERFETCH)
    partial = wording.substrings(app, words, view, fetch)
    speakers = named(query.query, app.records.speakers(view, naming(query.query)))
    if not words.terms:  # marks alone ask for nothing
        return _Search(query.query, words, {}, {}, frozenset(), None, {}), []
    app.warmup.wait(_PATIENCE)
    if not app.embedder.ready:
        why = f"Meaning is not searched yet: {app.warmup.failure or 'the embedding model is still loading.'}"
        return _Search(query.query, words, lexical, partial, speakers, None, {}), [why]
    if not (app.embedder.card.multilingual or is_latin(in_words(query.query))):
        why = "Meaning is not searched: the embedding model does not read this script."
        return _Search(query.query, words, lexical, partial, speakers, None, {}), [why]
    if app.vectors.state == "moved":
        why = "Meaning is not searched: the store has just moved to another embedding model."
        return _Search(query.query, words, lexical, partial, speakers, None, {}), [why]
    names = speakers | _voices(app, query.query, lexical, view)
    text = wording.respelt(without(in_words(query.query), names), words)
    reading = app.embedder.read([text], "query")[0]
    near = app.vectors.nearest(reading.vector, view, fetch)
    notes = []
    if app.records.unembedded(1, view.namespaces):
        notes.append("Meaning is not searched everywhere yet: some memories still wait for the embedding model.")
    return _Search(text, words, lexical, partial, speakers, reading, near), notes


def _asked(search: _Search) -> Asked:
    weights, known = search.words.weights, search.words.known
    total = sum(weights.values()) or 1.0
    return Asked(
        words=min(len(weights), len(search.text.split())),  # one for a run without spaces
        rarest=max((weights[one] for one in known), default=0.0),
        unknown=sum(weight for one, weight in weights.items() if one not in known) / total,
        semantic=search.reading is not None,
    )


def _voices(app: App, query: str, lexical: Mapping[int, float], view: View) -> frozenset[str]:
    """Return who is named in the query and speaks in the transcripts among what its words found."""
    if not naming(query):
        return frozenset()
    best = sorted(lexical, key=lambda one: (-lexical[one], one))[:_TRANSCRIPTS]
    return named(query, {name for text in app.records.contents(best, view).values() for name in traits.voices(text)})


def _first(search: _Search, fetch: int) -> dict[int, float]:
    """Return the candidates of each searcher with a first guess at their worth."""
    lexical = sorted(search.lexical, key=lambda one: (-search.lexical[one], one))[:fetch]
    unseen = min(search.near.values(), default=0.0)
    return {
        one: rank.saturated(search.lexical.get(one, 0.0)) + max(search.near.get(one, unseen), 0.0)
        for one in dict.fromkeys([*lexical, *search.near, *search.partial])
    }


def _closeness(app: App, search: _Search, ids: Sequence[int]) -> dict[int, Closeness]:
    """Compare the query's telling tokens with those of every memory of `ids`, the rarer words counting for more."""
    if search.reading is None:
        return {}
    reading, weights = search.reading, search.words.weights
    starts = {place: fold(word[0]) for word in _WORD.finditer(search.text) for place in range(*word.span())}
    words = [starts.get(start, "") for start, _ in reading.spans]
    kept = [number for number, word in enumerate(words) if word and word not in STOP_WORDS] or list(range(len(words)))
    rarest = max(weights.values(), default=1.0) or 1.0
    rarities = [weights.get(stem(words[number]), rarest) for number in kept]
    total = sum(rarities) or 1.0
    return app.vectors.closeness(reading.vector, reading.tokens[kept], [one / total for one in rarities], ids)


@dataclass(frozen=True, slots=True)
class _Held:
    """What a memory's text shows: its words, their stems, and the traits that matter to some queries."""

    words: frozenset[str]
    stems: frozenset[str]
    passage: float
    phrase: float
    time: bool
    number: bool
    asking: float
    length: int


def _held(app: App, words: Words, ids: Iterable[int], candidates: frozenset[int], view: View) -> dict[int, _Held]:
    """Look into the texts of `ids`; those that are only neighbours are not searched for passages."""
    wanted = list(ids)
    vocabularies, texts = app.text.words(wanted), app.records.contents(wanted, view)
    passages = Passages(words.weights)
    found: dict[int, _Held] = {}
    for one in wanted:
        vocabulary, text = vocabularies.get(one, frozenset()), texts.get(one, "")
        stems = frozenset(map(stem, vocabulary))
        sought = one in candidates and not words.weights.keys().isdisjoint(stems)
        passage, phrase = passages.shares(text) if sought else (0.0, 0.0)
        time, number, asking = traits.told(text[:_SHOWN])
        found[one] = _Held(
            words=vocabulary,
            stems=stems,
            passage=passage,
            phrase=phrase,
            time=time,
            number=number,
            asking=asking,
            length=len(text),
        )
    return found


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a query asks for beside its words: a time, a number, what happened on a date."""

    time: bool
    number: bool
    date: tuple[int | None, int, int | None] | None


def _wish(query: str) -> _Wish:
    return _Wish(traits.asks_when(query), traits.asks_how_many(query), traits.named_date(query))


def _signals(
    search: _Search,
    wish: _Wish,
    standings: Mapping[int, Standing],
    around: Sequence[int],
    close: Mapping[int, Closeness],
    held: Mapping[int, _Held],
    one: int,
) -> Signals:
    standing, mine, words = standings[one], held[one], search.words
    sides = {_side(standing, standings[two]): two for two in reversed(around) if two in standings}
    stems = mine.stems.union(*(held[two].stems for two in sides.values()))
    nearness = close.get(one)
    before = sides.get(-1)
    return Signals(
        cosine=nearness.cosine if nearness else 0.0,
        bm25=search.lexical.get(one, 0.0),
        coverage=rank.coverage(words.weights, mine.stems),
        fuzzy=wording.fuzzy(words, mine.words, set(mine.stems), search.partial.get(one, 0.0)),
        spoken=standing.speaker in search.names,
        late=nearness.late if nearness else None,
        rare=nearness.rare if nearness else None,
        passage=mine.passage,
        phrase=mine.phrase,
        around=rank.coverage(words.weights, stems),
        before=_near(search, close, before),
        after=_near(search, close, sides.get(1)),
        in_session=bool(sides),
        dated=traits.nearness(wish.date, standing.observed_at),
        timed=mine.time and wish.time,
        counted=mine.number and wish.number,
        asking=mine.asking,
        asked=held[before].asking if before is not None else 0.0,
        length=mine.length,
    )


def _side(one: Standing, other: Standing) -> int:
    """Return -1 for what came before, 1 for what came after."""
    return -1 if (other.position or 0) < (one.position or 0) else 1


def _near(search: _Search, close: Mapping[int, Closeness], one: int | None) -> Near:
    if one is None:
        return Near()
    nearness = close.get(one)
    cosine = nearness.cosine if nearness else 0.0
    late = nearness.late or 0.0 if nearness else 0.0
    return Near(search.lexical.get(one, 0.0), cosine, late)
