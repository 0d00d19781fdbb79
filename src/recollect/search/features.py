"""Features: from what the indexes found, the signals of each candidate by which the fusion judges it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.domain.fields import MAX_LIMIT
from recollect.domain.requests import Query
from recollect.domain.search import NeighbourSignals, QuerySignals, RankingRow, Signals, View
from recollect.search import rank
from recollect.search.budget import Proximity
from recollect.search.candidates import Found, SearchTerms, best_weight, search
from recollect.search.parse import ParsedQuery, parse
from recollect.text.terms import STOP_WORDS, questions, stem
from recollect.text.writing_systems import fold

if TYPE_CHECKING:
    from recollect.engines.embedder import Vector
    from recollect.store.vectors.exact import LateInteraction

_WORD = re.compile(r"\w+")
_FEATURED = 4_000  # characters: enough to see what kind of text it is
_NAME_PART = 8  # characters
_PROMISING = 40  # candidates whose texts are read for how close the words stand
_SUBSTRING = 0.9  # of a share that was found as whole words


@dataclass(frozen=True, slots=True)
class Candidates:
    """What was found for a query, and the signals of each candidate, in no order."""

    signals: dict[int, Signals]
    query: QuerySignals
    found: Found

    @property
    def ranking_rows(self) -> tuple[RankingRow, ...]:
        """Return what ranking needs to know of each candidate."""
        return tuple(self.found.rows[one] for one in self.signals)

    @property
    def vector(self) -> Vector | None:
        """Return the query's vector, None where vectors were not searched."""
        return self.found.embedding.vector if self.found.embedding else None


def gather(app: App, query: Query, view: View) -> Candidates:
    """Parse the query, search for it, and measure each candidate beside its neighbours."""
    parsed = parse(query.query)
    limit = query.limit if query.max_tokens is None else MAX_LIMIT  # with a budget all that is relevant is counted
    found = search(app, parsed, view, limit, newest=least_score(query, view) == 0.0)
    words = {one: frozenset(row.words.split()) for one, row in found.rows.items()}
    first = [*found.core, *(two for one in found.core for two in found.neighbours.get(one, ()))]
    late = _late_interaction(app, found, [one for one in dict.fromkeys(first) if one in found.rows])
    # By themselves, since only the best of those that are compared take part with several chunks.
    late |= _late_interaction(app, found, [one for one in found.rows if one not in late])
    stems, promising = _stems_of(found.terms, words), _promising(found, late)
    measured = _Measured(parsed, found, words, stems, late, Proximity(found.terms.weights), promising)
    return Candidates({one: measured.signals(one) for one in found.neighbours}, _query_signals(app, found), found)


def least_score(query: Query, view: View) -> float:
    """Return the score from which on a hit is shown; 0 asks for the best there is, however little it answers.

    A `min_score` of 0 that nobody gave asks for that only together with a filter.
    """
    asked = view.filtered or "min_score" in query.model_fields_set
    return query.min_score if asked else max(query.min_score, rank.PASSING)


def _promising(found: Found, late: Mapping[int, LateInteraction]) -> frozenset[int]:
    """Return the candidates that may be among the best, by what is already known of them."""
    nearness = {one: max(compared.cosine, compared.late or 0.0) for one, compared in late.items()}
    core = [one for one in found.neighbours if one in found.core]
    scores = {one: rank.saturated(found.bm25.get(one, 0.0)) + nearness.get(one, 0.0) for one in core}
    return frozenset(sorted(scores, key=lambda one: -scores[one])[:_PROMISING])


def _stems_of(terms: SearchTerms, words: Mapping[int, frozenset[str]]) -> dict[int, frozenset[str]]:
    """Return which stems of the query, or of other spellings of it, each memory holds."""
    spelt = (piece for spellings in terms.spellings.values() for one in spellings for piece in one.text.split())
    asked = terms.weights.keys() | set(map(stem, spelt))
    telling = {word: base for word in frozenset().union(*words.values()) if (base := stem(word)) in asked}
    return {one: frozenset(telling[word] for word in telling.keys() & held) for one, held in words.items()}


def _query_signals(app: App, found: Found) -> QuerySignals:
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


def _late_interaction(app: App, found: Found, ids: Sequence[int]) -> dict[int, LateInteraction]:
    """Compare the query's telling tokens with those of every memory of `ids`, the rarer words counting for more."""
    embedding, weights = found.embedding, found.terms.weights
    if embedding is None or not ids:
        return {}
    words = {place: fold(word[0]) for word in _WORD.finditer(found.text) for place in range(*word.span())}
    tokens = [words.get(start, "") for start, _ in embedding.spans]
    telling = [number for number, word in enumerate(tokens) if word and word not in STOP_WORDS]
    kept = telling or list(range(len(tokens)))
    rarest = max(weights.values(), default=1.0) or 1.0
    rarities = [weights.get(stem(tokens[number]), rarest) for number in kept]
    total = sum(rarities) or 1.0
    shares = [one / total for one in rarities]
    return app.vectors.late_interaction(embedding.vector, embedding.tokens[kept], shares, ids)


@dataclass(frozen=True, slots=True)
class _Measured:
    """What was found for a query and, for each candidate and neighbour, its words and their stems."""

    query: ParsedQuery
    found: Found
    words: dict[int, frozenset[str]]
    stems: dict[int, frozenset[str]]
    late: dict[int, LateInteraction]
    proximity: Proximity
    promising: frozenset[int]

    def signals(self, one: int) -> Signals:
        found, row, stems = self.found, self.found.rows[one], self.stems[one]
        content, weights, late = row.content, found.terms.weights, self.late.get(one)
        sides = {self._side(one, two): two for two in reversed(found.neighbours[one]) if two in found.rows}
        before = sides.get(-1)
        near = one in self.promising and not weights.keys().isdisjoint(stems)
        passage, phrase = self.proximity.shares(content) if near else (0.0, 0.0)
        return Signals(
            cosine=late.cosine if late else 0.0,
            bm25=found.bm25.get(one, 0.0),
            coverage=rank.coverage(weights, stems),
            fuzzy=self._fuzzy(one),
            speaker_named=row.speaker in found.speakers,
            late=late.late if late else None,
            rare=late.rare if late else None,
            passage=passage,
            phrase=phrase,
            around=rank.coverage(weights, stems.union(*(self.stems[two] for two in sides.values()))),
            before=self._neighbour(before),
            after=self._neighbour(sides.get(1)),
            in_session=bool(sides),
            questions=questions(content[:_FEATURED]),
            questions_before=questions(self.found.rows[before].content[:_FEATURED]) if before else 0.0,
            length=len(content),
            rarest=self._rarest(weights.keys() & stems),
            identifier=self._identifier(one, content),
        )

    def _rarest(self, held: Iterable[str]) -> float:
        """Return how rare (0–1) the rarest of some stems is, beside a word that one memory holds."""
        terms = self.found.terms
        rarest = max((terms.weights.get(word, 0.0) for word in held), default=0.0)
        return min(rarest / rank.rarity(1, max(terms.size, 2)), 1.0)

    def _identifier(self, one: int, content: str) -> float:
        """Return how rare (0–1) the rarest name is that the memory holds as it is asked for, or within a longer one.

        Names have digits, punctuation or capitals inside; a long word that nobody stored is one within a longer word.
        """
        best, words = 0.0, self.words[one]
        for phrase in self.query.identifiers:
            if words.issuperset(phrase.words) and (phrase.text in words or phrase.text in fold(content)):
                best = max(best, self._rarest(map(stem, phrase.words)))
        known = self.found.terms.known
        if parts := [word for word in self.query.words if len(word) >= _NAME_PART and stem(word) not in known]:
            text = self.found.rows[one].words
            best = max(best, _SUBSTRING * self._rarest(stem(word) for word in parts if word in text))
        return best

    def _fuzzy(self, one: int) -> float:
        """Return the share (0–1) of the query that the memory holds, other spellings and parts of words included."""
        terms, stems, substring = self.found.terms, self.stems[one], self.found.substrings.get(one, 0.0)
        if not terms.spellings and not substring:
            return 0.0
        words = self.words[one]
        spelt = {stem(word): best_weight(spellings, words, stems) for word, spellings in terms.spellings.items()}
        share = sum(weight * (1.0 if word in stems else spelt.get(word, 0.0)) for word, weight in terms.weights.items())
        return max(share / terms.total, substring * _SUBSTRING)

    def _side(self, one: int, other: int) -> int:
        """Return -1 for what came before, 1 for what came after."""
        return -1 if (self.found.rows[other].position or 0) < (self.found.rows[one].position or 0) else 1

    def _neighbour(self, one: int | None) -> NeighbourSignals:
        late = self.late.get(one or 0)
        bm25 = self.found.bm25.get(one or 0, 0.0)
        return NeighbourSignals(bm25, late.cosine if late else 0.0, late.late or 0.0 if late else 0.0)
