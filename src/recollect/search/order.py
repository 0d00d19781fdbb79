"""Order: which memory comes first, by steps that each take an order and return one.

The match orders; then newer versions come before older ones, summaries before their parts, and what was told before
what came from outside. No step changes a match or a score.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from recollect.app import App
from recollect.domain.enums import Profile
from recollect.domain.origin import Authority
from recollect.domain.requests import Query
from recollect.domain.search import View
from recollect.search import periods, versions
from recollect.search.candidates import FIRST
from recollect.search.match import AS_WELL, LIKELY, SURE, all_matches, least_match
from recollect.search.scores import BY_SCORE, PROFILES, Scores, scores_of
from recollect.search.signals import Candidates

if TYPE_CHECKING:
    import numpy as np
else:
    from recollect.engines import arrays as np

_ERROR = 0.02  # share of a match: what is closer is ordered by how much of the query it holds, then by its score
_IN_PERIOD = 0.55  # of what answers a query that names a period, how much is of that period
_SHARED = 2  # words of two memories about one subject
_MOST_LOSS = 2.0  # log-odds: a period in which little lies makes no answer of what is about something else


class Ranked(NamedTuple):
    """A candidate: its id, match (0–1), the scores that hold its own, a newer version, and what was told instead."""

    id: int
    match: float
    scores: Scores
    older_than: int | None = None
    contradicts: int | None = None

    @property
    def score(self) -> float:
        """Return its score (0–1)."""
        return self.scores.totals[self.id]

    @property
    def parts(self) -> dict[str, float]:
        """Return the parts of its score."""
        return self.scores.parts(self.id)


@dataclass(frozen=True, slots=True)
class Judged:
    """What the steps know of the candidates: their matches and scores, and how well (0–1) each `fits` the period.

    `least` are the matches from which on what is from outside, and all else, answers. `losses` lower the log-odds of a
    match where the query names a period.
    """

    candidates: Candidates
    matches: Mapping[int, float]
    scores: Scores
    least: Mapping[bool, float]
    fits: Mapping[int, float]
    losses: Mapping[int, float]

    def answers(self, one: int) -> bool:
        """Say whether a memory answers the query."""
        return self.matches[one] >= self.least[one in self.candidates.unapproved]


def ordered(
    app: App, query: Query, view: View, candidates: Candidates, matches: Mapping[int, float], least: float
) -> list[Ranked]:
    """Order the candidates, the best first; a score of `least` is shown.

    Only those of `matches` are among the first; what a higher limit has found besides comes behind those. A profile
    that is ordered by its scores takes no step after that.
    """
    by_score = query.profile in BY_SCORE
    period, zone = periods.named_period(query.query, view.now), view.now.tzinfo  # in which the days of a period begin
    days = {one: candidates.rows[one].dated_at.astimezone(zone) for one in candidates.ids} if period else {}
    fits = {one: periods.fit(period, day) for one, day in days.items()} if period else {}
    own = {one: match for one, match in matches.items() if one not in candidates.unapproved}
    # What comes from outside does not raise the bar for all else.
    answers = {outside: least_match(app, candidates, matches if outside else own) for outside in (False, True)}
    scored = partial(_scored, app, query, view, candidates, fits, answers)
    judged = Judged(candidates, matches, scored(matches), answers, fits, _losses(fits, matches))
    order = by_match(judged, query.profile)
    compared = [one for one in order[:FIRST] if judged.answers(one)]
    asked = versions.Asked(query.query, candidates.found.terms.weights)
    pairs = versions.version_pairs(asked, candidates.rows, {one: matches[one] for one in compared})
    newer = versions.newer_by_older(pairs, candidates.rows, candidates.authority)
    summaries = {} if view.superseded else _summaries(judged)
    if not by_score:
        order = in_order(order, newer, past=versions.asks_past(query.query), fits=judged.fits)
        order = in_order(order, summaries)
    newer |= summaries
    same = _contradicted(app, judged, order, asked)
    shown = judged.least[False] if least > 0.0 else 0.0
    order = order if by_score else behind(order, _ahead(judged, order, same, shown))
    denied = _disputes(versions.disputed(pairs, candidates.rows, candidates.authority), order)
    denied |= {low: high[0] for low, high in same.items()}
    scores = judged.scores
    ranked = [Ranked(one, matches[one], scores, newer.get(one), denied.get(one)) for one in order]
    first = [one for one in ranked[:FIRST] if one.score >= least]
    if len(matches) == len(candidates.ids) or len(first) < min(FIRST, len(ranked)):
        return ranked  # where not all of the first answer, nothing behind them does
    rest = all_matches(app, candidates, matches)
    for one in first:
        del rest[one.id]
    further = replace(judged, matches=rest, scores=scored(rest))
    order = by_match(further, query.profile)
    order = order if by_score else behind(order, _ahead(further, order, same, shown))
    return first + [Ranked(one, rest[one], further.scores) for one in order]


def _scored(
    app: App,
    query: Query,
    view: View,
    candidates: Candidates,
    fits: Mapping[int, float],
    least: Mapping[bool, float],
    matches: Mapping[int, float],
) -> Scores:
    """Score the candidates of these matches."""
    return scores_of(
        [candidates.rows[one] for one in matches],
        np.array(list(matches.values())),
        np.array([least[one in candidates.unapproved] for one in matches]),
        np.array([fits.get(one, 0.0) for one in matches]),
        app.embedder.card.floor,
        PROFILES[query.profile],
        view.now,
    )


def by_match(judged: Judged, profile: Profile) -> list[int]:
    """Order by match, and what that cannot tell apart by what it holds of the query, then by score.

    A match counts less by the `losses` of its log-odds. Some profiles are ordered by their scores alone.
    """
    matches, scores, places = judged.matches, judged.scores.totals, judged.candidates.places
    if profile in BY_SCORE:
        return sorted(matches, key=lambda one: (-scores[one], -matches[one], one))
    held = judged.candidates.columns.held
    found: list[int] = []
    lowered = {one: _lowered(match, judged.losses.get(one, 0.0)) for one, match in matches.items()}
    ahead = sorted(lowered, key=lowered.__getitem__, reverse=True)
    while ahead:
        least = lowered[ahead[0]] * (1.0 - _ERROR)
        count = next((at for at, one in enumerate(ahead) if lowered[one] < least), len(ahead))
        alike, ahead = ahead[:count], ahead[count:]
        if count > 1:
            alike.sort(key=lambda one: (-held[places[one]], -scores[one], -matches[one], one))
        found += alike
    return found


def in_order(
    order: Sequence[int], newer: Mapping[int, int], *, past: bool = False, fits: Mapping[int, float] | None = None
) -> list[int]:
    """Return `order` with each memory that comes before others moved up to the first of those.

    The newer comes before the older. With `past` the older comes before the newer, and so it does where it fits the
    period that the query names better, by `fits` (0–1).
    """
    fits = fits or {}
    ahead: dict[int, list[int]] = {}
    for older, new in newer.items():
        earlier, later = fits.get(older, 0.0), fits.get(new, 0.0)
        first, second = (older, new) if earlier > later or (past and earlier == later) else (new, older)
        ahead.setdefault(second, []).append(first)
    if not ahead:
        return list(order)
    found: dict[int, None] = {}

    def place(one: int) -> None:
        leaders = set(ahead.pop(one, ()))
        for leader in (two for two in order if two in leaders):
            place(leader)
        found.setdefault(one)

    for one in order:
        place(one)
    return list(found)


def behind(order: Sequence[int], ahead: Mapping[int, Collection[int]]) -> list[int]:
    """Return `order` with each memory moved back behind the last of those that go ahead of it."""
    if not ahead:
        return list(order)
    places = {one: place for place, one in enumerate(order)}
    last = {one: max((places[high] for high in ahead.get(one, ()) if high in places), default=0) for one in order}
    return sorted(order, key=lambda one: (max(places[one], last[one]), last[one] > places[one], places[one]))


def _summaries(judged: Judged) -> dict[int, int]:
    """Return for each memory that a summary has replaced that summary, where it is found and answers."""
    links = ((one, judged.candidates.rows[one].superseded_by or 0) for one in judged.matches)
    return {one: two for one, two in links if two in judged.matches and judged.answers(two)}


def _disputes(pairs: Sequence[tuple[int, int]], order: Sequence[int]) -> dict[int, int]:
    """Return for each memory that another source denies the first of those that stand before it."""
    place = {one: at for at, one in enumerate(order)} if pairs else {}
    found: dict[int, int] = {}
    for pair in pairs:
        high, low = sorted(pair, key=place.__getitem__)
        found[low] = min(found.get(low, high), high, key=place.__getitem__)
    return found


def _contradicted(app: App, judged: Judged, order: Sequence[int], asked: versions.Asked) -> dict[int, tuple[int, ...]]:
    """Return for each of the first memories what was told of its subject among them, the nearest first.

    Two memories are about one subject where their vectors are near and they share words that carry meaning.
    """
    authority, rows = judged.candidates.authority, judged.candidates.rows
    first = [one for one in order if authority[one] is Authority.TOLD][:FIRST]
    known = list(dict.fromkeys([*order[:FIRST], *first]))
    told = tuple(one for one in known if authority[one] is Authority.TOLD)
    if not told or len(told) == len(known):
        return {}
    if judged.candidates.query.semantic:
        cosines = sorted(app.vectors.similarities(known).items(), key=lambda pair: -pair[1])
        near = [pair for pair, cosine in cosines if cosine >= app.embedder.card.subject]
    else:  # no vector tells what they are about: all of them answer the query
        near = [(one, high) for one in known for high in told]
    found: dict[int, tuple[int, ...]] = {}
    for pair in near:
        low, high = sorted(pair, key=authority.__getitem__)
        if high in told and low not in told and _shares_words(asked, rows[low].content, rows[high].content):
            found[low] = (*found.get(low, ()), high)
    return found


def _shares_words(asked: versions.Asked, one: str, other: str) -> bool:
    """Say whether two texts share words that carry meaning: two of them, or all of a shorter text."""
    words, others = asked.statement(one).said, asked.statement(other).said
    return len(words & others) >= min(_SHARED, len(words), len(others))


def _ahead(
    judged: Judged, order: Sequence[int], same: Mapping[int, Sequence[int]], shown: float
) -> dict[int, set[int]]:
    """Return what was told and goes ahead of each memory that has less authority.

    That is what is about the `same` subject. Ahead of drafts, and of what comes from outside and nobody approved, also
    goes what is a likely answer, and what is among the first, or the best that was told, and matches about as well;
    where a draft or what comes from outside does not answer more likely than not, it is all of these of at least the
    match that is `shown`.
    """
    candidates, matches = judged.candidates, judged.matches
    ahead = {low: set(high) for low, high in same.items()}
    told = [one for one in order if candidates.authority[one] is Authority.TOLD]
    decided = [one for one in told if one not in candidates.drafts]
    first = set(order[:FIRST])
    for low in (one for one in order if one in candidates.unapproved or one in candidates.drafts):
        before = decided if candidates.authority[low] is Authority.TOLD else told
        likely = {one for one in before if matches[one] >= LIKELY}
        near = {*before[:1], *(one for one in before if one in first)}
        as_well = {one for one in near if matches[one] >= AS_WELL * matches[low]}
        unsure = {one for one in near if matches[one] >= shown} if matches[low] < SURE else set()
        ahead[low] = ahead.get(low, set()) | likely | as_well | unsure
    return ahead


def _losses(fits: Mapping[int, float], among: Iterable[int]) -> dict[int, float]:
    """Return how much each match's log-odds are lowered, by how well (0–1) the memory fits the period of the query.

    The fewer of the memories `among` are of that period, the more all others lose; where most are, none loses anything.
    """
    if not fits:
        return {}
    share = (sum(known := [fits[one] for one in among]) + 0.5) / (len(known) + 1.0)
    tells = math.log(_IN_PERIOD / (1.0 - _IN_PERIOD)) - math.log(share / (1.0 - share))
    most = min(max(tells, 0.0), _MOST_LOSS)
    return {one: most * (1.0 - fit) for one, fit in fits.items()}


def _lowered(match: float, loss: float) -> float:
    """Return a probability with its log-odds lowered by so much."""
    times = math.exp(-loss)
    return match * times / (1.0 - match + match * times)
