"""Steps of the order: each takes an order of the candidates and returns one, and its name says what it puts first.

An order names candidates by their places in the columns of signals. No step changes a match or a score, and none
leaves a candidate out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from recollect.domain.origin import Authority
from recollect.search.candidates import FIRST
from recollect.search.match import LIKELY, SURE
from recollect.search.relations import NO_RELATIONS, Relations
from recollect.search.scores import Scores
from recollect.search.signals import Candidates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.engines.signal_columns import Numbers

    Places = NDArray[np.intp]
else:
    from recollect.engines import arrays as np

_ERROR: Final = 0.02  # share of a match: what is closer is no difference


class Order(NamedTuple):
    """The places of candidates, the best first (intp[m]), and by place the match (0–1) that orders them."""

    places: Places
    matches: Numbers


@dataclass(frozen=True)
class Evidence:
    """What the steps know of the candidates, by place: matches (0–1, NaN where unknown), scores, fit to the period.

    `least` are the matches from which on each answers; with `all_shown` what does not is shown too. `fits` is None
    where the query names no period, `loss` what the log-odds of a match lose where it fits none of it. `asks_past`
    says whether it asks how something was before.
    """

    candidates: Candidates
    matches: Numbers
    least: Numbers
    all_shown: bool
    scores: Scores
    fits: Numbers | None
    loss: float
    asks_past: bool
    relations: Relations = NO_RELATIONS

    @property
    def answers(self) -> NDArray[np.bool]:
        """Return which candidates answer the query."""
        return self.matches >= self.least

    @cached_property
    def stated(self) -> NDArray[np.bool]:
        """Return which candidates a person or an agent stated."""
        authority = self.candidates.authority
        return np.array([authority[one] is Authority.TOLD for one in self.candidates.ids], dtype=bool)

    @cached_property
    def drafts(self) -> NDArray[np.bool]:
        """Return which candidates a hook noted and nobody decided about."""
        return np.array([one in self.candidates.drafts for one in self.candidates.ids], dtype=bool)

    @cached_property
    def unapproved(self) -> NDArray[np.bool]:
        """Return which candidates came from outside and were approved by nobody."""
        return np.array([one in self.candidates.unapproved for one in self.candidates.ids], dtype=bool)


Step = Callable[[Evidence, Order], Order]


def best_match(_: Evidence, order: Order) -> Order:
    """Put the better match first."""
    return _sorted_by_keys(order, -order.matches)


def named_period(evidence: Evidence, order: Order) -> Order:
    """Where the query names a period, lower the log-odds of each match by how badly the candidate fits it."""
    if evidence.fits is None:
        return order
    kept = np.exp(-evidence.loss * (1.0 - evidence.fits))
    lowered = order.matches * kept / (1.0 - order.matches + order.matches * kept)
    return _sorted_by_keys(Order(order.places, lowered), -lowered)


def better_score(evidence: Evidence, order: Order) -> Order:
    """Among matches that are too close to differ, put the higher score first."""
    return _among_close(order, -evidence.scores.totals)


def score_alone(evidence: Evidence, order: Order) -> Order:
    """Put the higher score first, whatever else is known."""
    order = _sorted_by_keys(order, -order.matches)
    return _sorted_by_keys(order, -evidence.scores.totals)


def newer_version(evidence: Evidence, order: Order) -> Order:
    """Put the newest version of a statement before the older ones.

    The older one comes first if the query asks for the past, or names a period which the older one fits better.
    """
    places, fits = evidence.candidates.places, evidence.fits
    ahead = []
    for older, newer in ((places[old], places[new]) for old, new in evidence.relations.newest.items()):
        gain = 0.0 if fits is None else fits[older] - fits[newer]
        older_first = gain > 0.0 or (evidence.asks_past and gain == 0.0)
        ahead.append((older, newer) if older_first else (newer, older))
    return moved_up(order, ahead)


def whole_before_parts(evidence: Evidence, order: Order) -> Order:
    """Put a summary before the memories that it sums up."""
    places = evidence.candidates.places
    return moved_up(order, [(places[whole], places[part]) for part, whole in evidence.relations.summaries.items()])


def stated_of_subject(evidence: Evidence, order: Order) -> Order:
    """Put what was stated of a subject before what has less authority and is about the same."""
    places, ranks = evidence.candidates.places, _ranks_by_place(order)
    last = np.full(len(ranks), -1)
    for low, stated in evidence.relations.stated.items():
        found = (ranks[places[one]] for one in stated)
        last[places[low]] = max((rank for rank in found if rank < len(order.places)), default=-1)
    return moved_back(order, last)


def stated_before_drafts_and_pages(evidence: Evidence, order: Order) -> Order:
    """Put what was stated before drafts, and before what came from outside and nobody approved.

    Likely answers go ahead of all of these. Whatever was stated and is among the first goes ahead of those that do not
    surely answer themselves.
    """
    low = (evidence.drafts | evidence.unapproved)[order.places]
    if not low.any():
        return order
    ranks, matches = _ranks_by_place(order), evidence.matches
    last = np.full(len(ranks), -1)
    for of_stated in (False, True):
        stated = evidence.stated & ~evidence.drafts if of_stated else evidence.stated
        ahead = order.places[stated[order.places]]
        likely = ahead[matches[ahead] >= LIKELY]
        near = ahead[(ranks[ahead] < FIRST) | (ranks[ahead] == ranks[ahead[:1]])]
        shown = near[evidence.answers[near] | evidence.all_shown]
        for place in order.places[low & (evidence.stated[order.places] == of_stated)]:
            before = likely if matches[place] >= SURE else np.concatenate([likely, shown])
            last[place] = ranks[before].max(initial=-1)
    return moved_back(order, last)


BY_MATCH: Final[tuple[Step, ...]] = (best_match, named_period, better_score)
"""Steps by what is known of each candidate alone."""

BY_RELATION: Final[tuple[Step, ...]] = (
    newer_version,
    whole_before_parts,
    stated_of_subject,
    stated_before_drafts_and_pages,
)
"""Steps by what candidates are to one another."""

STEPS: Final = (*BY_MATCH, *BY_RELATION)


def moved_up(order: Order, ahead: Iterable[tuple[int, int]]) -> Order:
    """Return an order in which the first of each pair in `ahead` has moved up to the second, if it was behind."""
    leaders: dict[int, set[int]] = {}
    for first, second in ahead:
        leaders.setdefault(second, set()).add(first)
    if not leaders:
        return order
    places = order.places.tolist()
    found: dict[int, None] = {}

    def put(place: int) -> None:
        """Put a candidate into the order, before it those that are to lead it."""
        waiting = leaders.pop(place, set())
        for leader in (other for other in places if other in waiting):
            put(leader)
        found.setdefault(place)

    for place in places:
        put(place)
    return order._replace(places=np.array(list(found), dtype=np.intp))


def moved_back(order: Order, last: Places) -> Order:
    """Return an order in which each place has moved back behind the rank `last[place]` (intp[n], -1 for none)."""
    own = np.arange(len(order.places))
    behind = last[order.places]
    return order._replace(places=order.places[np.lexsort((own, behind > own, np.maximum(own, behind)))])


def _sorted_by_keys(order: Order, keys: Numbers) -> Order:
    """Return an order by keys of the places, the lowest first; equal ones stay as they are."""
    return order._replace(places=order.places[np.argsort(keys[order.places], kind="stable")])


def _among_close(order: Order, keys: Numbers) -> Order:
    """Return an order by keys within each run of matches that are too close to differ."""
    runs = [0] * len(order.places)
    best, run = np.inf, 0
    for rank, match in enumerate(np.sort(order.matches[order.places])[::-1].tolist()):
        if match < best * (1.0 - _ERROR):
            best, run = match, rank
        runs[rank] = run
    return order._replace(places=order.places[np.lexsort((keys[order.places], np.array(runs)))])


def _ranks_by_place(order: Order) -> Places:
    """Return the rank of each place, by place: intp[n]; the number of ranks for what is not in the order."""
    ranks = np.full(len(order.matches), len(order.places))
    ranks[order.places] = np.arange(len(order.places))
    return ranks
