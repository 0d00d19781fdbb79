"""Order: which memory comes first, by the named steps of `search/steps.py`, taken once after another."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

from recollect.app import App
from recollect.domain.requests import Query
from recollect.domain.search import View
from recollect.search import periods, versions
from recollect.search.candidates import FIRST
from recollect.search.match import all_matches, least_match
from recollect.search.relations import Relations, relations
from recollect.search.scores import BY_SCORE, PROFILES, Scores, merits_of, scores_of
from recollect.search.signals import Candidates
from recollect.search.steps import BY_RELATION, STEPS, Evidence, Order, Step, score_alone
from recollect.spans import spanned

if TYPE_CHECKING:
    import numpy as np

    from recollect.engines.signal_columns import Numbers
    from recollect.search.steps import Places
else:
    from recollect.engines import arrays as np

_OF_PERIOD: Final = 0.55  # of what answers a query that names a period, how much is of that period
_MOST_LOSS: Final = 2.0  # log-odds: a period in which little lies makes no answer of what is about something else


class Ranked(NamedTuple):
    """A candidate: its id, match and score (0–1) with its parts, a newer version, and what it may contradict."""

    id: int
    match: float
    score: float
    parts: dict[str, float]
    older_than: int | None = None
    contradicts: int | None = None


@dataclass(frozen=True)
class Ranking:
    """Candidates in an order, the best first, by their `places` (intp[n]); an object is made only of the best.

    `contradicted` says what each may contradict, by ids.
    """

    evidence: Evidence
    places: Places
    contradicted: Mapping[int, int]

    @classmethod
    def of(cls, evidence: Evidence, places: Places) -> Ranking:
        """Return candidates in the order of these places."""
        return cls(evidence, places, evidence.relations.contradicted(_ids_of_places(evidence, places)))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.places)

    @property
    def ids(self) -> list[int]:
        """Return the ids of the memories."""
        return _ids_of_places(self.evidence, self.places)

    @property
    def matches(self) -> list[float]:
        """Return the match (0–1) of each."""
        found: list[float] = self.evidence.matches[self.places].tolist()
        return found

    def at_least(self, score: float) -> Ranking:
        """Return those with at least this score, in the same order."""
        return replace(self, places=self.places[self.evidence.scores.totals[self.places] >= score])

    def best(self, count: int) -> list[Ranked]:
        """Return the first so many."""
        first = replace(self, places=self.places[:count])
        scores, older_than = self.evidence.scores, self.evidence.relations.older_than
        parts = map(scores.parts_at, first.places.tolist())
        rows = zip(first.ids, first.matches, scores.totals[first.places].tolist(), parts, strict=True)
        return [Ranked(*row, older_than(row[0]), self.contradicted.get(row[0])) for row in rows]


@spanned("search.order")
def ordered(
    app: App,
    query: Query,
    view: View,
    candidates: Candidates,
    matches: Mapping[int, float],
    least: float,
    steps: Sequence[Step] = STEPS,
) -> Ranking:
    """Order the candidates by these steps, the best first; a score of `least` is shown.

    Only those of `matches` are among the first; what a higher limit has found besides comes behind those. A profile
    that is ordered by its scores takes no step but that.
    """
    steps = (score_alone,) if query.profile in BY_SCORE else steps
    evidence = _gather_evidence(app, query, view, candidates, matches, all_shown=least <= 0.0)
    order = _take_steps([step for step in steps if step not in BY_RELATION], evidence, _order_of_ids(evidence, matches))
    evidence = replace(evidence, relations=_relations_of_best(app, query, view, evidence, order))
    order = _take_steps([step for step in steps if step in BY_RELATION], evidence, order)
    first = order.places[:FIRST]
    if len(matches) == len(candidates.ids) or (evidence.scores.totals[first] < least).any():
        return Ranking.of(evidence, order.places)  # where not all of the first answer, nothing behind them does
    every = all_matches(app, candidates, matches)
    known = np.array([every[one] for one in candidates.ids])
    scores = _score_candidates(app, query, view, candidates, known, evidence.least, evidence.fits)
    further = replace(evidence, matches=known, scores=scores)
    rest = _order_of_ids(further, every.keys() - frozenset(_ids_of_places(evidence, first)))
    return Ranking.of(further, np.concatenate([first, _take_steps(steps, further, rest).places]))


def _take_steps(steps: Iterable[Step], evidence: Evidence, order: Order) -> Order:
    """Return the order that these steps, taken one after another, make of `order`."""
    return reduce(lambda taken, step: step(evidence, taken), steps, order)


def _order_of_ids(evidence: Evidence, ids: Collection[int]) -> Order:
    """Return an order of the candidates with these ids."""
    places = evidence.candidates.places
    return Order(np.array([places[one] for one in sorted(ids)], dtype=np.intp), evidence.matches)


def _ids_of_places(evidence: Evidence, places: Places) -> list[int]:
    """Return the memory ids of the candidates at these places."""
    ids = evidence.candidates.ids
    return [ids[place] for place in places.tolist()]


def _relations_of_best(app: App, query: Query, view: View, evidence: Evidence, order: Order) -> Relations:
    """Return the relations of the best of an order by match."""
    ids = _ids_of_places(evidence, order.places)
    matches, answers = evidence.matches[order.places].tolist(), evidence.answers[order.places].tolist()
    answering = {one: match for one, match, answer in zip(ids, matches, answers, strict=True) if answer}
    found = relations(app, query.query, evidence.candidates, ids, answering)
    return replace(found, summaries={}) if view.superseded else found


def _gather_evidence(
    app: App, query: Query, view: View, candidates: Candidates, matches: Mapping[int, float], *, all_shown: bool
) -> Evidence:
    """Return what the steps need to know of the candidates with these matches."""
    unknown = np.nan
    known = np.array([matches[one] if one in matches else unknown for one in candidates.ids])  # noqa: SIM401 - no call
    fits = _fits_to_period(query, view, candidates)
    least = _least_matches(app.embedder.card.floor, candidates, known)
    return Evidence(
        candidates,
        known,
        least,
        all_shown,
        _score_candidates(app, query, view, candidates, known, least, fits),
        fits,
        0.0 if fits is None else _loss_outside_period(fits[~np.isnan(known)]),
        versions.asks_past(query.query),
    )


def _least_matches(floor: float, candidates: Candidates, matches: Numbers) -> Numbers:
    """Return, by place, the lowest match with which a candidate answers; memories from outside raise only their own."""
    outside = np.array([one in candidates.unapproved for one in candidates.ids], dtype=bool)
    own, every = (np.nanmax(some, initial=0.0) for some in (matches[~outside], matches))
    return np.where(outside, least_match(floor, float(every)), least_match(floor, float(own)))


def _score_candidates(
    app: App,
    query: Query,
    view: View,
    candidates: Candidates,
    matches: Numbers,
    least: Numbers,
    fits: Numbers | None,
) -> Scores:
    """Score the candidates by their matches, by place."""
    merits = merits_of(candidates.rows, candidates.ids, view.now)
    fits = np.zeros(len(matches)) if fits is None else fits
    return scores_of(merits, matches, least, fits, app.embedder.card.floor, PROFILES[query.profile])


def _fits_to_period(query: Query, view: View, candidates: Candidates) -> Numbers | None:
    """Return how well (0–1) each candidate fits the period that the query names, None where it names none."""
    period = periods.named_period(query.query, view.now)
    if period is None:
        return None
    zone = view.now.tzinfo  # in which the days of a period begin
    moments = (datetime.fromtimestamp(one, zone) for one in candidates.rows.seconds(candidates.ids).tolist())
    return np.array([periods.fit(period, moment) for moment in moments])


def _loss_outside_period(fits: Numbers) -> float:
    """Return how much the log-odds of a match are lowered if the candidate does not fit the named period.

    The fewer of the candidates are of that period, the more all others lose; where most are, none loses anything.
    """
    share = (float(fits.sum()) + 0.5) / (len(fits) + 1.0)
    tells = math.log(_OF_PERIOD / (1.0 - _OF_PERIOD)) - math.log(share / (1.0 - share))
    return min(max(tells, 0.0), _MOST_LOSS)
