"""Search: asks every index for the memories that may answer a query, and the store for their neighbours."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, repeat
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.domain.enums import ObservationType
from recollect.domain.requests import Caller, Query
from recollect.domain.search import View
from recollect.errors import ModelMismatch, ModelUnusable
from recollect.search.parse import ParsedQuery, Phrase, parse
from recollect.search.spelling import expansions, joined_words, short_form_expansions
from recollect.search.visibility import view_of
from recollect.search.word_weights import rarity, saturated
from recollect.spans import spanned
from recollect.store.text.index import Term
from recollect.store.vectors.index import SCANNED_AWAY
from recollect.text import short_forms
from recollect.text.languages import is_english
from recollect.text.short_forms import plural_of
from recollect.text.speaker_names import named_speakers, transcript_speakers, without_names
from recollect.text.terms import forms, stem
from recollect.text.writing_systems import is_dense, is_latin, word_probability

if TYPE_CHECKING:
    import numpy as np

    from recollect.engines.embedder import TokenEmbeddings
    from recollect.store.sql.candidate_rows import CandidateRows
else:
    from recollect.engines import arrays as np

FIRST = 10
"""The best so many are chosen from the same candidates, whatever the limit."""
_CORE = 50  # of each index, asked for by themselves: the candidates for the first
_OVERFETCH = 5
_DEEP = 500  # bm25 is wanted of the neighbours of the best too
_EXPANDED = 20
_TRANSCRIPTS = 10
_NO_VECTORS = {
    "moved": "the store has just switched to another embedding model.",
    "unreadable": "the stored vectors are damaged; run `recollect reindex`.",
}
_MOST_TERMS = 16
_COMMON = 0.2  # share of a large store; a word in more memories than that tells little
_LARGE = 2_000
_SURE = 0.7
_ANSWERED = 0.75  # share of the query: where memories hold that much of its words, they answer while the model loads
_FEWEST = 2
_PATIENCE = 2.0  # seconds: a warm start loads the model in less
_WAITED_FOR = 8  # memories
_MOST_RANKED = 10_000  # memories that one full-text search may rank


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """What the text index is asked for: terms, the weight of each stem (its idf), other spellings of unknown words.

    `known` are the stems that some memory holds. `partial` may be stored as a part of something longer: compounds of
    words that are not all stored, and unknown words of languages that write them without spaces. `corrections` are
    sure spellings: as the query has it, and as it is stored. `size` is how many memories the view's namespaces hold.
    `speakers` are those whom the query names; `unembedded` says whether memories wait for the model.
    """

    terms: tuple[Term, ...]
    weights: dict[str, float]
    known: frozenset[str]
    speakers: frozenset[str]
    unembedded: bool
    spellings: dict[str, tuple[Term, ...]]
    partial: tuple[Phrase, ...]
    corrections: tuple[tuple[str, str], ...]
    size: int

    @property
    def total(self) -> float:
        """Return the weight of the whole query, 1 where it has none."""
        return sum(self.weights.values()) or 1.0

    @property
    def covered(self) -> float:
        """Return the share (0–1) of the query's weight that lies in words which some memory holds."""
        return sum(weight for stem, weight in self.weights.items() if stem in self.known) / self.total


@dataclass(frozen=True, slots=True)
class Found:
    """What the indexes found: by memory, its bm25, its share (0–1) of the query as substrings, its cosine.

    `further_bm25` is that of candidates outside of `core`; no other candidate is judged by theirs, as a neighbour.
    `text` is the query as the model read it, `embedding` None where the vectors were not searched. `speakers` are
    those whom the query names. `neighbours` holds each candidate, what was found and what stands beside the best of
    it, with its own neighbours in its session; `rows` has all of these. Those in `core` are the same for any limit.
    """

    terms: SearchTerms
    bm25: dict[int, float]
    further_bm25: dict[int, float]
    speakers: frozenset[str]
    substrings: dict[int, float]
    text: str
    embedding: TokenEmbeddings | None
    rows: CandidateRows
    neighbours: dict[int, tuple[int, ...]]
    core: frozenset[int]
    notes: tuple[str, ...]


@contextmanager
def snapshot_for(app: App, query: Query, caller: Caller) -> Iterator[View]:
    """Yield the view of the caller in one read transaction, while the model embeds queries before documents.

    Where no memory holds the words of the query, wait a moment for the model and the few memories that wait for it;
    a transaction that began before would not see what is embedded meanwhile.
    """
    if not (app.embedder.ready and app.embedder.wait(0.0)):
        terms = search_terms(app, parse(query.query), view_of(app, query, caller))
        if terms.weights and terms.covered < _ANSWERED:
            wait_for_model(app)
    with app.embedder.queries_first(), app.records.snapshot():
        yield view_of(app, query, caller, existing=False)


def wait_for_model(app: App) -> bool:
    """Wait a moment for the embedding model, and for the few memories that waited for it; return whether it is ready.

    Where many memories wait nobody waits for them: they are found by their words meanwhile.
    """
    model = app.embedder
    embeddings = app.records.embeddings
    if not model.ready or not (model.wait(0.0) or len(embeddings.unembedded(_WAITED_FOR + 1)) > _WAITED_FOR):
        model.wait(_PATIENCE)
    return model.ready


@spanned("search.candidates")
def search(app: App, query: ParsedQuery, view: View, limit: int, *, newest: bool) -> Found:
    """Search by words, substrings and vectors; with `newest`, fill up to `limit` with what was stored last.

    What could not be searched is said in the notes; it is never an error.
    """
    terms, pool = search_terms(app, query, view), Pool(app, view)
    bm25 = _best_by_words(app, terms, view)
    substrings = _substring_shares(app, terms, view, _CORE)
    text, embedding, note = _embed_query(app, query, terms, pool, list(bm25)[:_CORE])
    near = app.vectors.nearest(embedding.vector, view, _CORE, partial(pool.nearest_visible, bm25)) if embedding else {}
    words = pool.first(list(bm25), _CORE)
    if len(words) < _CORE and len(bm25) == _DEEP:  # most of what holds the words is hidden
        bm25 = app.text.search(terms.terms, view, _DEEP)
        words = pool.first(list(bm25), _CORE)
    scores = _rough_scores(bm25, near, dict.fromkeys([*words, *near, *substrings]))
    if newest and len(scores) < FIRST:
        scores = dict.fromkeys(app.records.newest(view, _CORE), 0.0) | scores
    further: dict[int, float] = {}
    if limit > FIRST:
        further = _further_scores(app, pool, scores, bm25, terms, embedding, limit, newest=newest)
    pool.read(scores, further)
    if len(scores) >= _CORE and 2 * pool.unapproved(scores) > len(scores):
        told = view.model_copy(update={"told": True})  # of which what comes from outside may have crowded out some
        held = app.text.search(terms.terms, told, _CORE) if terms.terms else {}
        nearest = app.vectors.nearest(embedding.vector, told, _CORE) if embedding else {}
        bm25, scores = bm25 | held, dict.fromkeys([*held, *nearest], 0.0) | scores
        pool.read(scores, further)
    neighbours, core = pool.with_neighbours(scores, further)
    return Found(
        terms=terms,
        bm25=bm25,
        further_bm25={one: score for one, score in further.items() if one not in core},
        speakers=terms.speakers,
        substrings=substrings,
        text=text,
        embedding=embedding,
        rows=pool.rows,
        neighbours=neighbours,
        core=core,
        notes=tuple(filter(None, (_note_on_spellings(terms), note))),
    )


class Pool:
    """The rows that were read for one query: those of what was found, and of what stands beside it."""

    def __init__(self, app: App, view: View) -> None:
        self._app, self.view = app, view
        self.rows = app.records.candidates(view)
        self._asked: set[int] = set()
        self._far: set[int] = set()

    def first(self, ids: Sequence[int], limit: int, far: Collection[int] = ()) -> list[int]:
        """Return the first `limit` of these memories that the view may see; read more rows until there are enough."""
        found: list[int] = []
        start, step = 0, limit
        while len(found) < limit and start < len(ids):
            some = ids[start : start + step]
            self._read_rows(some, far)
            read = self.rows.ids
            found += [one for one in some if one in read]
            start, step = start + step, 2 * step
        return found[:limit]

    def nearest_visible(self, bm25: Mapping[int, float], near: Mapping[int, float]) -> frozenset[int]:
        """Return the memories of `near` that the view may see; read the rows of the best of `bm25` with them."""
        words, nearest = list(bm25)[:_CORE], list(near)
        first = {one: near[one] for one in nearest[:_CORE]}
        best = _best_ids(_rough_scores(bm25, first, dict.fromkeys([*words, *first])), _EXPANDED)
        self._read_rows([*words, *first], best)
        return frozenset(self.first(nearest, _CORE))

    def read(self, scores: Mapping[int, float], further: Collection[int]) -> None:
        """Read what was found, and all that `with_neighbours` looks at."""
        self._read_rows([*scores, *further], _best_ids(scores, _EXPANDED))

    def with_neighbours(
        self, scores: Mapping[int, float], further: Collection[int]
    ) -> tuple[dict[int, tuple[int, ...]], frozenset[int]]:
        """Return the neighbours of what was read as found, and of what stands beside the best of `scores`.

        Return also which of these depend on `scores` alone. Other rows go for good, so this is the last that is asked.
        """
        best = _best_ids(scores, _EXPANDED)
        neighbours = self.rows.neighbours([*scores, *further])
        beside = [two for one in best if one in neighbours for two in neighbours[one] if two not in scores]
        neighbours |= self.rows.neighbours(beside)
        found = dict.fromkeys([*scores, *beside, *further])
        # What a checkpoint says, the memories that it quotes say themselves.
        if self.view.type is not ObservationType.CHECKPOINT:
            self.rows.drop(ObservationType.CHECKPOINT)
        ids = self.rows.ids
        kept = {one: neighbours[one] if one in neighbours else () for one in found if one in ids}  # noqa: SIM401
        self.rows.keep([*kept, *[two for beside in kept.values() for two in beside if two in ids]])
        return kept, frozenset(scores) | frozenset(beside)

    def unapproved(self, ids: Iterable[int]) -> int:
        """Return how many of these memories came from outside and wait for approval."""
        read = self.rows.ids
        return len(self.rows.unapproved([one for one in ids if one in read]))

    def _read_rows(self, ids: Collection[int], far: Collection[int]) -> None:
        """Read the missing rows, and those up to two places from the `far` memories in their sessions."""
        new = {one: None for one in ids if one not in self._asked} | {one: None for one in far if one not in self._far}
        if new:
            self._app.records.read_candidates(self.rows, new, far)
            self._asked |= new.keys()
            self._far |= {*far}


def _best_by_words(app: App, terms: SearchTerms, view: View) -> dict[int, float]:
    """Return, by memory id, the best bm25 for the words; with filters, only of memories that pass them."""
    if not terms.terms:
        return {}
    return (app.text.search if view.filtered else app.text.ranked)(terms.terms, view, _DEEP)


def _rough_scores(bm25: Mapping[int, float], near: Mapping[int, float], ids: Iterable[int]) -> dict[int, float]:
    """Return, by memory id, its bm25 (0–1) plus its cosine: how promising it is before the fusion judges it."""
    known = list(ids)
    words = np.array(list(map(bm25.get, known, repeat(0.0))))
    cosines = np.array(list(map(near.get, known, repeat(min(near.values(), default=0.0)))))
    return dict(zip(known, (saturated(words) + np.maximum(cosines, 0.0)).tolist(), strict=True))


def _further_scores(
    app: App,
    pool: Pool,
    scores: Mapping[int, float],
    bm25: Mapping[int, float],
    terms: SearchTerms,
    embedding: TokenEmbeddings | None,
    limit: int,
    *,
    newest: bool,
) -> dict[int, float]:
    """Return the bm25 of more memories for a limit above `FIRST`, from queries of their own: they are the same first.

    An approximate index varies, and of the best by words most may be hidden.
    """
    fetch = limit * _OVERFETCH
    near = app.vectors.nearest(embedding.vector, pool.view, fetch) if embedding else {}
    words = {one: bm25[one] for one in pool.first(list(bm25), fetch)}
    if len(words) < fetch and len(bm25) == _DEEP:
        words = app.text.search(terms.terms, pool.view, fetch)
    found = {one: words.get(one, 0.0) for one in dict.fromkeys([*words, *near]) if one not in scores}
    if newest and len(scores) + len(found) < limit:
        found |= {one: 0.0 for one in app.records.newest(pool.view, fetch) if one not in found}
    return found


def search_terms(app: App, query: ParsedQuery, view: View) -> SearchTerms:
    """Choose the terms to search, weigh every stem by how rare it is, and look for spellings of unknown words.

    A word is used wherever another form of it stands.
    """
    alike = {word: forms(word) for word in query.words}
    joined, others = joined_words(query), short_forms.other_forms(query.text)
    pieces = {
        piece: (*forms(piece), plural_of(piece)) for found in others.values() for one in found for piece in one.split()
    }
    asked = [*joined, *(one for found in (*alike.values(), *pieces.values()) for one in found)]
    facts = app.records.query_facts(asked, query.name_words, view)
    size, stored = app.text.size(view), facts.uses
    uses = {word: count for word, found in alike.items() if (count := sum(stored.get(one, 0) for one in found))}
    held = {piece: sum(stored.get(one, 0) for one in found) for piece, found in pieces.items()}
    shortened = short_form_expansions(query, others, held)
    for one in shortened:  # a short form is as rare as what it is short for
        uses |= {word: one.uses for word in one.words if word not in uses}
    rare = sorted(query.words, key=lambda word: uses.get(word, 0))
    sure = [word for word in rare if word in uses or not is_dense(word)]
    telling = [word for word in sure if size < _LARGE or uses.get(word, 0) <= _COMMON * size]
    # Vectors rank what all share.
    telling = telling or (rare if size < _LARGE or _why_unsearchable(app, query, patient=True) else [])
    telling = _rarest_words(telling, uses)[:_MOST_TERMS]
    weights: dict[str, float] = {}
    for word in rare:
        weight = rarity(uses.get(word, 0), size) * word_probability(word, word in uses)
        weights[stem(word)] = max(weights.get(stem(word), 0.0), weight)
    unknown = [word for word in telling if word not in uses]
    joined = {word: phrase for word, phrase in joined.items() if word in stored}
    expanded = expansions(app, query, unknown, joined, view)
    compounds = query.compounds[:_MOST_TERMS]
    terms = [Term(text) for text in (*telling, *(one.text for one in compounds))]
    terms += [one for expansion in (*shortened, *expanded) for one in expansion.spellings]
    partial = [one for one in compounds if not uses.keys() >= set(one.words)]
    partial += [Phrase(word, (word,)) for word in unknown if not word.isascii()]
    corrections = [(expansion.written, expansion.spellings[0]) for expansion in expanded]
    certain = [(written, meant.text) for written, meant in corrections if meant.weight >= _SURE]
    visible = app.text.held([meant for _, meant in certain], _unfiltered(view)) if certain else ()
    return SearchTerms(
        terms=tuple(dict.fromkeys(terms)),
        weights=weights,
        known=frozenset(stem(word) for word in rare if word in uses),
        speakers=named_speakers(query.name_words, facts.speakers),
        unembedded=facts.unembedded,
        spellings={word: one.spellings for one in reversed((*shortened, *expanded)) for word in one.words},
        size=size,
        partial=tuple({one.text: one for one in partial}.values()),
        corrections=tuple((written, meant) for written, meant in certain if meant in visible),
    )


def _rarest_words(telling: Sequence[str], uses: Mapping[str, int]) -> list[str]:
    """Return the rarest of the words, as many as one search may cost: bm25 looks at each memory that holds a word."""
    costs = list(accumulate(uses.get(word, 0) for word in telling))
    return list(telling[: max(sum(cost <= _MOST_RANKED for cost in costs), _FEWEST)])


def _unfiltered(view: View) -> View:
    """Return a view of all that the caller may see: no spelling tells of hidden or expired memories."""
    return View(namespaces=view.namespaces, now=view.now, sensitivities=view.sensitivities, superseded=view.superseded)


def _best_ids(scores: Mapping[int, float], most: int) -> list[int]:
    """Return the ids of the `most` highest scores, the highest first."""
    return sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:most]


def _substring_shares(app: App, terms: SearchTerms, view: View, limit: int) -> dict[int, float]:
    """Return, by memory id, the share (0–1) of the query that the memory holds as a part of something longer."""
    found: dict[int, float] = {}
    for phrase in terms.partial:
        share = sum(terms.weights.get(stem(word), 0.0) for word in phrase.words) / terms.total
        for memory_id in app.text.substring(phrase.text, view, limit):
            found[memory_id] = min(found.get(memory_id, 0.0) + share, 1.0)
    return found


def _note_on_spellings(terms: SearchTerms) -> str:
    """Return the note that names the corrected spellings, an empty string where nothing was corrected."""
    spelt = ", ".join(f'"{meant}" (spelling of "{written}")' for written, meant in terms.corrections)
    return f"Also searched for {spelt}." if spelt else ""


def _embed_query(
    app: App, query: ParsedQuery, terms: SearchTerms, pool: Pool, best: Sequence[int]
) -> tuple[str, TokenEmbeddings | None, str]:
    """Embed the query with its spelling corrected and without the names of speakers, which would drown its topic.

    The names are looked for in the memories that hold the words `best`. Return the text, its embedding, and a note on
    what cannot be found by it.
    """
    if not terms.weights:  # punctuation alone asks for nothing
        return query.text, None, ""
    if why := _why_unsearchable(app, query) or _why_not_scanned(app, pool.view):
        return query.text, None, f"Vector search skipped: {why}"
    seen = pool.first(best, _CORE) if query.name_words else []  # of the best some may be hidden
    transcripts = pool.rows.column("content", seen[:_TRANSCRIPTS])
    speaking = named_speakers(query.name_words, {name for one in transcripts for name in transcript_speakers(one)})
    text = without_names(query.model_text, terms.speakers | speaking)
    for written, meant in terms.corrections:
        text = re.sub(rf"(?<!\w){re.escape(written)}(?!\w)", meant, text, flags=re.IGNORECASE)
    try:
        embedding = app.embedder.read([text], "query")[0]
    except (ModelUnusable, ModelMismatch) as error:  # a server that embeds for us is away
        return text, None, f"Vector search skipped: {error}"
    waiting = terms.unembedded and app.records.embeddings.unembedded(1, pool.view)
    return text, embedding, "Some memories have no embeddings yet." if waiting else ""


def _why_not_scanned(app: App, view: View) -> str:
    """Return the note that there are too many vectors for a full scan while their index is away."""
    away = app.vectors.state == "away" and app.text.size(view) > SCANNED_AWAY
    return "the vector index does not answer." if away else ""


def _why_unsearchable(app: App, query: ParsedQuery, *, patient: bool = False) -> str:
    """Return why the vectors cannot be searched, an empty string where they can; wait for a model where `patient`."""
    if not (wait_for_model(app) if patient else app.embedder.ready):
        return app.embedder.failure or "the embedding model is still loading."
    if not (app.embedder.card.multilingual or is_latin(query.model_text)):
        return "the model does not support this writing system."
    if not (app.embedder.card.multilingual or is_english(query.model_text)):
        return "the model does not support this language."
    return _NO_VECTORS.get(app.vectors.state, "")
