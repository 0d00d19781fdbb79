"""Signals: what is measured of each candidate beside its neighbours, in columns, by which the fusion judges it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any

from recollect.app import App
from recollect.domain.enums import Source
from recollect.domain.fields import MAX_LIMIT
from recollect.domain.origin import Authority
from recollect.domain.requests import Query
from recollect.domain.search import QuerySignals, Signals, View
from recollect.engines.signal_columns import LateInteraction, SignalColumns
from recollect.search.candidates import Found, SearchTerms, search
from recollect.search.parse import ParsedQuery, parse
from recollect.search.passages import Proximity
from recollect.search.scores import PASSING
from recollect.search.spelling import best_weight
from recollect.search.word_weights import rarity, saturated
from recollect.spans import spanned
from recollect.text.normalization import fold
from recollect.text.terms import STOP_WORDS, share_of_questions, stem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.engines.embedder import Vector
    from recollect.engines.signal_columns import Numbers
    from recollect.store.sql.candidate_rows import CandidateRows
else:
    from recollect.engines import arrays as np

_WORD = re.compile(r"\w+")
_NOTED = (Source.HOOK, Source.COMPRESSION)
_FEATURED = 4_000  # characters: enough to see what kind of text it is
_NAME_PART = 8  # characters
_PROMISING = 40  # candidates whose texts are read for how close the words stand
_SUBSTRING = 0.9  # of a share that was found as whole words


@dataclass(frozen=True)
class Candidates:
    """What was found for a query: the ids of the candidates, in no order, and their signals, in columns.

    `rows` has what ranking needs to know of each; a row is made only of the best.
    """

    ids: list[int]
    columns: SignalColumns
    query: QuerySignals
    found: Found

    @property
    def rows(self) -> CandidateRows:
        """Return the rows."""
        return self.found.rows

    @cached_property
    def places(self) -> dict[int, int]:
        """Return the place of each candidate in the columns."""
        return {one: place for place, one in enumerate(self.ids)}

    @cached_property
    def authority(self) -> dict[int, Authority]:
        """Return what each candidate may do unasked."""
        return self.found.rows.authority(self.ids)

    @cached_property
    def unapproved(self) -> frozenset[int]:
        """Return the candidates that came from outside and that nobody approved."""
        return self.found.rows.unapproved(self.ids)

    @cached_property
    def drafts(self) -> frozenset[int]:
        """Return the candidates that a hook noted and nobody decided about."""
        noted = [
            one for one, source in zip(self.ids, self.rows.column("source", self.ids), strict=True) if source in _NOTED
        ]
        return frozenset([one for one, row in self.rows.make(noted).items() if row.is_draft])

    @property
    def vector(self) -> Vector | None:
        """Return the query's vector, None where vectors were not searched."""
        return self.found.embedding.vector if self.found.embedding else None

    def signals_of(self, ids: Sequence[int]) -> list[Signals]:
        """Return the signals of these candidates."""
        return self.columns.signals([self.places[one] for one in ids])


@spanned("search.signals")
def gather(app: App, query: Query, view: View) -> Candidates:
    """Parse the query, search for it, and measure each candidate beside its neighbours."""
    parsed = parse(query.query)
    limit = query.limit if query.max_tokens is None else MAX_LIMIT  # with a budget all that is relevant is counted
    found = search(app, parsed, view, limit, newest=least_score(query, view) == 0.0)
    core = [one for one in found.neighbours if one in found.core]
    first = [*core, *[two for one in core for two in found.neighbours[one]]]
    read = found.rows.ids
    compared = {one: None for one in first if one in read}
    near = [_late_interaction(app, found, list(compared))]
    # By themselves, since only the best of those that are compared take part with several chunks.
    near.append(_late_interaction(app, found, [one for one in read if one not in compared]))
    return Candidates(
        list(found.neighbours), _Measured(parsed, found, near).columns(), _query_signals(app, found), found
    )


def least_score(query: Query, view: View) -> float:
    """Return the score from which on a hit is shown; 0 asks for the best there is, however little it answers.

    A `min_score` of 0 that nobody gave asks for that only together with a filter.
    """
    asked = view.filtered or "min_score" in query.model_fields_set
    return query.min_score if asked else max(query.min_score, PASSING)


class _Measured:
    """What was found for a query, and columns over all rows: the candidates first, then what only stands beside them.

    `_held` says which stems of the query, by their places in its weights, each row holds: bool[rows, stems].
    """

    def __init__(self, query: ParsedQuery, found: Found, near: Sequence[LateInteraction]) -> None:
        self._query, self._found = query, found
        self._count = len(found.neighbours)
        self._ids = [*found.neighbours, *[one for one in found.rows.ids if one not in found.neighbours]]
        self._contents: list[str] = found.rows.column("content", self._ids)
        self._spelt: list[str] = found.rows.column("words", self._ids)
        self._words = dict(zip(self._ids, map(frozenset, map(str.split, self._spelt)), strict=True))
        self._places = {one: place for place, one in enumerate(self._ids)}
        self._bm25 = _numbers(map(found.bm25.get, self._ids, repeat(0.0)))
        self._own_bm25 = _numbers(map(found.further_bm25.get, self._ids[: self._count], self._bm25.tolist()))
        self._cosine, self._late, self._rare = self._vector_signals(near)
        self._weights = np.fromiter(found.terms.weights.values(), np.float64, len(found.terms.weights))
        self._stems = _stems_of(found.terms, self._words.values())
        numbers = {base: number for number, base in enumerate(found.terms.weights)}
        of_query = {word: numbers[base] for word, base in self._stems.items() if base in numbers}
        held = [
            (place, of_query[word])
            for place, words in enumerate(self._words.values())
            for word in words
            if word in of_query
        ]
        self._held = np.zeros((len(self._ids), len(self._weights)), dtype=bool)
        self._held[tuple(zip(*held, strict=True))] = bool(held)

    def columns(self) -> SignalColumns:
        """Return the signals of the candidates."""
        found, contents = self._found, self._contents
        before, after = self._session_sides()
        bm25, cosine, late, rare = self._bm25, self._cosine, self._late, self._rare
        speakers = found.rows.column("speaker", self._ids[: self._count])
        asked = _numbers([share_of_questions(text[:_FEATURED]) if "?" in text else 0.0 for text in contents])
        near = np.zeros((self._count, 2))
        holds = frozenset(np.flatnonzero(self._held.any(axis=1)).tolist())
        if promising := [place for place in self._promising_places() if place in holds]:
            near[promising] = Proximity(found.terms.weights).shares([contents[place] for place in promising])
        own = slice(self._count)
        return SignalColumns(
            cosine=cosine[own],
            bm25=self._own_bm25,
            coverage=self._weight_shares(self._held[own]),
            fuzzy=self._fuzzy(),
            speaker_named=_numbers([speaker in found.speakers for speaker in speakers]),
            late=late[own],
            rare=rare[own],
            passage=near[:, 0],
            phrase=near[:, 1],
            around=self._weight_shares(
                self._held[own] | _values_at_places(self._held, before) | _values_at_places(self._held, after)
            ),
            before_bm25=_values_at_places(bm25, before),
            before_cosine=_values_at_places(cosine, before),
            before_late=_values_at_places(np.nan_to_num(late), before),
            after_bm25=_values_at_places(bm25, after),
            after_cosine=_values_at_places(cosine, after),
            after_late=_values_at_places(np.nan_to_num(late), after),
            in_session=((before >= 0) | (after >= 0)).astype(np.float64),
            questions=asked[own],
            questions_before=_values_at_places(asked, before),
            length=_numbers(map(len, contents[own])),
            rarest=np.minimum(
                (self._held[own] * self._weights).max(axis=1, initial=0.0) / self._single_use_weight, 1.0
            ),
            identifier=self._identifiers(),
        )

    def _vector_signals(self, near: Sequence[LateInteraction]) -> tuple[Numbers, Numbers, Numbers]:
        """Return the cosine of each row, and its late interaction, plain and by rarity; 0 and NaN without vectors."""
        cosine, late, rare = np.zeros(len(self._ids)), *np.full((2, len(self._ids)), np.nan)
        for some in near:
            places = [self._places[one] for one in some.ids]
            cosine[places], late[places], rare[places] = some.cosine, some.late, some.rare
        return cosine, late, rare

    def _session_sides(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the places of what came before and after each candidate in its session, -1 where there is none."""
        positions = self._found.rows.column("position", self._ids)
        before, after = [-1] * self._count, [-1] * self._count
        for place, beside in enumerate(self._found.neighbours.values()):
            for two in beside[::-1]:
                if two in self._places:
                    other = self._places[two]
                    earlier = (positions[other] or 0) < (positions[place] or 0)
                    (before if earlier else after)[place] = other
        return np.array(before, dtype=np.intp), np.array(after, dtype=np.intp)

    def _weight_shares(self, held: NDArray[np.bool]) -> Numbers:
        """Return the share (0–1) of the query's weight that lies in the stems which each row holds."""
        total = self._weights.sum()
        shares: Numbers = (held * self._weights).sum(axis=1) / (total or 1.0)
        return shares

    def _promising_places(self) -> list[int]:
        """Return the places of the candidates that may be among the best, by what is already known of them."""
        core = [place for place, one in enumerate(self._ids[: self._count]) if one in self._found.core]
        scores = saturated(self._bm25[core]) + np.maximum(self._cosine, np.nan_to_num(self._late))[core]
        best = np.argsort(-scores, kind="stable")[:_PROMISING].tolist()
        return [core[place] for place in best]

    @property
    def _single_use_weight(self) -> float:
        """Return the weight of a word that one memory holds."""
        return rarity(1, max(self._found.terms.size, 2))

    def _rarest_share(self, words: Sequence[str]) -> float:
        """Return how rare (0–1) the rarest of some words is, 1 for a word that a single memory holds."""
        weights = self._found.terms.weights
        return min(max((weights.get(stem(one), 0.0) for one in words), default=0.0) / self._single_use_weight, 1.0)

    def _identifiers(self) -> Numbers:
        """Return how rare (0–1) the rarest name is that each candidate holds as it is asked for, or in a longer one.

        Names have digits, punctuation or capitals inside; a long word that nobody stored is one within a longer word.
        """
        best, known = np.zeros(self._count), self._found.terms.known
        for phrase in self._query.identifiers:
            rare, parts = self._rarest_share(phrase.words), frozenset(phrase.words)
            for place, one in enumerate(self._ids[: self._count]):
                words = self._words[one]
                if parts <= words and (phrase.text in words or phrase.text in fold(self._contents[place])):
                    best[place] = max(best[place], rare)
        for part in (word for word in self._query.words if len(word) >= _NAME_PART and stem(word) not in known):
            rare = _SUBSTRING * self._rarest_share([part])
            for place in range(self._count):
                if part in self._spelt[place]:
                    best[place] = max(best[place], rare)
        return best

    def _fuzzy(self) -> Numbers:
        """Return the share (0–1) of the query that each candidate holds, with other spellings and parts of words."""
        if not self._found.terms.spellings and not self._found.substrings:
            return np.zeros(self._count)
        return _numbers(map(self._share_by_spellings, self._ids[: self._count]))

    def _share_by_spellings(self, one: int) -> float:
        """Return the share (0–1) of the query that a candidate holds, by other spellings and parts of words too."""
        terms, words, substring = self._found.terms, self._words[one], self._found.substrings.get(one, 0.0)
        stems = frozenset([self._stems[word] for word in self._stems.keys() & words])
        spelt = {stem(word): best_weight(spellings, words, stems) for word, spellings in terms.spellings.items()}
        share = sum(weight * (1.0 if word in stems else spelt.get(word, 0.0)) for word, weight in terms.weights.items())
        return max(share / terms.total, substring * _SUBSTRING)


def _numbers(values: Iterable[float]) -> Numbers:
    return np.fromiter(values, np.float64)


def _values_at_places(values: NDArray[Any], places: NDArray[np.intp]) -> NDArray[Any]:
    """Return the values at these places, zeros where a place is -1."""
    if not len(values):
        return values
    found = values[places]
    found[places < 0] = 0
    return found


def _stems_of(terms: SearchTerms, words: Iterable[frozenset[str]]) -> dict[str, str]:
    """Return, by word, its stem, for those words whose stem is in the query or in another spelling of it."""
    spelt = (piece for spellings in terms.spellings.values() for one in spellings for piece in one.text.split())
    asked = terms.weights.keys() | set(map(stem, spelt))
    first = {one[:1] for one in asked if one}  # no stem begins otherwise than its word
    every = [word for word in frozenset().union(*words) if word[:1] in first]
    return {word: base for word, base in zip(every, map(stem, every), strict=True) if base in asked}


def _query_signals(app: App, found: Found) -> QuerySignals:
    """Return the signals of the query itself, which are the same for every candidate."""
    weights, known, embedding = found.terms.weights, found.terms.known, found.embedding
    return QuerySignals(
        words=min(len(weights), len(found.text.split())),  # one for a run without spaces
        rarest=max((weights[one] for one in known), default=0.0),
        unknown=sum(weight for one, weight in weights.items() if one not in known) / found.terms.total,
        semantic=found.embedding is not None,
        weight=sum(weights[one] for one in known),
        size=found.terms.size,
        asks=app.fusion.asks(embedding.vector, app.embedder.card.id) if embedding else 0.0,
    )


def _late_interaction(app: App, found: Found, ids: Sequence[int]) -> LateInteraction:
    """Compare the query's telling tokens with those of every memory of `ids`, the rarer words counting for more."""
    embedding, weights = found.embedding, found.terms.weights
    if embedding is None or not ids:
        return LateInteraction.none()
    words = {place: fold(word[0]) for word in _WORD.finditer(found.text) for place in range(*word.span())}
    tokens = [words.get(start, "") for start, _ in embedding.spans]
    telling = [number for number, word in enumerate(tokens) if word and word not in STOP_WORDS]
    kept = telling or list(range(len(tokens)))
    rarest = max(weights.values(), default=1.0) or 1.0
    rarities = [weights.get(stem(tokens[number]), rarest) for number in kept]
    total = sum(rarities) or 1.0
    shares = [one / total for one in rarities]
    return app.vectors.late_interaction(embedding.vector, embedding.tokens[kept], shares, ids)
