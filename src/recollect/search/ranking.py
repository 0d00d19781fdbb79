"""Ranking: candidates become hits, each with its score explained part by part."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from recollect.app import App
from recollect.domain.enums import Profile
from recollect.domain.origin import Authority
from recollect.domain.requests import Query
from recollect.domain.results import Hit
from recollect.domain.search import RankingRow, View
from recollect.search import periods, precedence, rank, versions
from recollect.search.candidates import FIRST
from recollect.search.features import Candidates, gather, least_score
from recollect.search.rerank import passages, reranked

_BESIDE = 0.15  # of the best match: what is worse beside it does not answer
_BESIDE_NAMED = 0.35  # the same for a query of few words, which names what it wants
_FEW_WORDS = 3
_ERROR = 0.02  # share of a match: what is closer is ordered by how much of the query it holds, then by its score
_OF_PERIOD = 0.1  # of a score: as much as full trust
_IN_PERIOD = 0.55  # of what answers a query that names a period, how much is of that period
_MOST_LOSS = 2.0  # log-odds: a period in which little lies makes no answer of what is about something else
_ROUNDING = 1e-9  # a memory at the floor passes by its match alone


class Ranked(NamedTuple):
    """A candidate: its id, match (0–1), score, the parts of that, a newer version, and what a person told instead."""

    id: int
    match: float
    score: float
    parts: dict[str, float]
    older_than: int | None = None
    contradicts: int | None = None


class Ranking(NamedTuple):
    """The best hits of a query, all that is ranked (best first), what could not be searched, and the candidates.

    `nearest` is the best of what is not relevant, where nothing is.
    """

    hits: tuple[Hit, ...]
    ranked: Sequence[Ranked]
    notes: tuple[str, ...]
    candidates: Candidates
    nearest: Hit | None = None


def ranking_of(app: App, query: Query, view: View) -> Ranking:
    """Search, fuse and rank; the hits are the best memories that the view shows, as many as the query's limit."""
    candidates = gather(app, query, view)
    core = {one: signals for one, signals in candidates.signals.items() if one in candidates.found.core}
    matches = app.fusion.matches(core, candidates.query)
    matches, notes = reranked(app, query.query, matches, partial(passages, app, view, candidates.vector))
    every = _ranked(app, query, view, candidates, matches)
    least = least_score(query, view) - _ROUNDING
    ranked = [one for one in every if one.score >= least]
    hits = _hits(app, view, candidates, ranked[: query.limit])
    irrelevant = [one for one in every[:1] if not hits and one.match < app.embedder.card.floor]
    nearest = next(iter(_hits(app, view, candidates, irrelevant)), None) if irrelevant else None
    return Ranking(hits, ranked, (*candidates.found.notes, *notes), candidates, nearest)


def _hits(app: App, view: View, candidates: Candidates, best: Sequence[Ranked]) -> tuple[Hit, ...]:
    memories = app.records.load([one.id for one in best], view)
    return tuple(
        Hit(
            memories[one.id],
            one.match,
            one.score,
            one.parts,
            candidates.signals[one.id],
            rank.certainty(one.match),
            older_than=one.older_than if one.older_than in memories else None,
            contradicts=one.contradicts if one.contradicts in memories else None,
        )
        for one in best
        if one.id in memories
    )


def _compared(
    question: str, candidates: Candidates, matches: Mapping[int, float], ids: Sequence[int]
) -> tuple[versions.Asked, Mapping[int, RankingRow], Mapping[int, float]]:
    """Return what tells which memories of `ids` are versions of one statement."""
    rows = {one.id: one for one in candidates.ranking_rows}
    asked = versions.Asked(question, candidates.found.terms.weights)
    return asked, rows, {one: matches[one] for one in ids if one in rows}


def _disputes(pairs: Sequence[tuple[int, int]], order: Sequence[int]) -> dict[int, int]:
    """Return for each memory that another source denies the first of those that stand before it."""
    place = {one: at for at, one in enumerate(order)}
    found: dict[int, int] = {}
    for pair in pairs:
        high, low = sorted(pair, key=lambda one: place[one])
        found[low] = min(found.get(low, high), high, key=lambda one: place[one])
    return found


def _contradicted(app: App, candidates: Candidates, ids: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Return for each memory of `ids` what somebody told of its subject among them, the nearest first."""
    rank_of = {one.id: one.authority for one in candidates.ranking_rows}
    known = [one for one in ids if one in rank_of]
    told = tuple(one for one in known if rank_of[one] is Authority.TOLD)
    if not told or len(told) == len(known):
        return {}
    if not candidates.query.semantic:  # no vector tells what they are about: all of them answer the query
        return {one: told for one in known if one not in told}
    found: dict[int, tuple[int, ...]] = {}
    cosines = sorted(app.vectors.similarities(known).items(), key=lambda pair: -pair[1])
    for pair, cosine in cosines:
        low, high = sorted(pair, key=lambda one: rank_of[one])
        if cosine >= app.embedder.card.subject and high in told and low not in told:
            found[low] = (*found.get(low, ()), high)
    return found


def _ahead(
    candidates: Candidates,
    order: Sequence[int],
    matches: Mapping[int, float],
    same: Mapping[int, Sequence[int]],
    shown: float,
) -> dict[int, set[int]]:
    """Return what was told and goes ahead of each memory that has less authority.

    That is what is about the `same` subject. Ahead of drafts, and of what comes from outside and nobody approved, also
    goes what is a likely answer, and what is among the first, or the best that was told, and matches about as well;
    where a draft or what comes from outside does not answer more likely than not, it is all of these of at least the
    match that is `shown`.
    """
    rows = {one.id: one for one in candidates.ranking_rows}
    ahead = {low: set(high) for low, high in same.items()}
    told = [one for one in order if rows[one].authority is Authority.TOLD]
    decided = [one for one in told if not rows[one].is_draft]
    for low in (one for one in order if rows[one].unapproved or rows[one].is_draft):
        before = decided if rows[low].authority is Authority.TOLD else told
        likely = {one for one in before if matches[one] >= rank.LIKELY}
        near = {*before[:1], *(one for one in before if one in order[:FIRST])}
        as_well = {one for one in near if matches[one] >= rank.AS_WELL * matches[low]}
        unsure = {one for one in near if matches[one] >= shown} if matches[low] < rank.SURE else set()
        ahead[low] = ahead.get(low, set()) | likely | as_well | unsure
    return ahead


def _ranked(app: App, query: Query, view: View, candidates: Candidates, matches: dict[int, float]) -> list[Ranked]:
    """Rank the candidates, the best first, with scores that fall from one to the next.

    Only those of `matches` are among the first; what a higher limit has found besides comes behind those.
    """
    period = periods.named_period(query.query, view.now)
    rows = {one.id: one for one in candidates.ranking_rows}
    zone = view.now.tzinfo  # in which the days of a period begin
    fits = {one: periods.fit(period, rank.dated(row).astimezone(zone)) for one, row in rows.items()} if period else {}
    own = {one: match for one, match in matches.items() if not rows[one].unapproved}
    # What comes from outside does not raise the bar for all else.
    answers = {outside: _least_match(app, candidates, matches if outside else own) for outside in (False, True)}
    scored = partial(_scored, app, query, view, candidates, fits, answers)
    losses = _losses(fits, matches) if fits else {}
    ranked = _by_match(query, candidates, scored(matches), losses)
    order = [one.id for one in ranked]
    answering = [one for one in order[:FIRST] if matches[one] >= answers[rows[one].unapproved]]
    compared = _compared(query.query, candidates, matches, answering)
    newer = versions.newer_by_older(*compared)
    order = precedence.in_order(order, newer, past=versions.asks_past(query.query), fits=fits)
    if not view.superseded:
        links = ((one, rows[one].superseded_by or 0) for one in matches)
        summaries = {one: two for one, two in links if two in matches and matches[two] >= answers[rows[two].unapproved]}
        order, newer = precedence.in_order(order, summaries), newer | summaries
    told = [one for one in order if rows[one].authority is Authority.TOLD][:FIRST]
    same = _contradicted(app, candidates, list(dict.fromkeys([*order[:FIRST], *told])))
    least = least_score(query, view) - _ROUNDING
    shown = answers[False] if least > 0.0 else 0.0
    order = precedence.behind(order, _ahead(candidates, order, matches, same, shown))
    nearest = _disputes(versions.disputed(*compared), order) | {low: high[0] for low, high in same.items()}
    known = {one.id: one._replace(older_than=newer.get(one.id), contradicts=nearest.get(one.id)) for one in ranked}
    ranked = _falling([known[one] for one in order])
    if len(matches) == len(candidates.signals):
        return ranked
    first = [one for one in ranked[:FIRST] if one.score >= least]
    if len(first) < min(FIRST, len(ranked)):
        return ranked  # where not all of the first answer, nothing behind them does
    further = app.fusion.matches(candidates.signals, candidates.query) | matches
    for one in first:
        del further[one.id]
    rest = {one.id: one for one in _by_match(query, candidates, scored(further), losses)}
    order = precedence.behind(list(rest), _ahead(candidates, list(rest), further, same, shown))
    return _falling(first + [rest[one] for one in order], down=True)


def _least_match(app: App, candidates: Candidates, matches: Mapping[int, float]) -> float:
    """Return the match from which on a memory answers: the model's floor, and not far below the best."""
    beside = _BESIDE_NAMED if candidates.query.words <= _FEW_WORDS else _BESIDE
    return max(app.embedder.card.floor, max(matches.values(), default=0.0) * beside)


def _scored(
    app: App,
    query: Query,
    view: View,
    candidates: Candidates,
    fits: Mapping[int, float],
    answers: Mapping[bool, float],
    matches: Mapping[int, float],
) -> list[Ranked]:
    """Score the candidates of these matches; what does not answer has a score below `rank.PASSING`, by its match."""
    weights, floor = rank.PROFILES[query.profile], app.embedder.card.floor
    found = []
    for row in candidates.ranking_rows:
        if (match := matches.get(row.id)) is None:
            continue
        score, parts = rank.weigh(row, rank.grade(match, floor, weights.match), weights, view.now)
        if match < (least := answers[row.unapproved]):
            share = rank.PASSING * match / least / score if score else 0.0
            score, parts = share * score, {name: share * part for name, part in parts.items()}
        elif (gain := min(_OF_PERIOD * fits.get(row.id, 0.0), 1.0 - score)) > 0:
            score, parts = score + gain, parts | {"period": gain}
        found.append(Ranked(row.id, match, score, parts))
    return found


def _losses(fits: Mapping[int, float], among: Iterable[int]) -> dict[int, float]:
    """Return how much each match's log-odds are lowered, by how well (0–1) the memory fits the period of the query.

    The fewer of the memories `among` are of that period, the more all others lose; where most are, none loses anything.
    """
    share = (sum(known := [fits[one] for one in among]) + 0.5) / (len(known) + 1.0)
    tells = math.log(_IN_PERIOD / (1.0 - _IN_PERIOD)) - math.log(share / (1.0 - share))
    most = min(max(tells, 0.0), _MOST_LOSS)
    return {one: most * (1.0 - fit) for one, fit in fits.items()}


def _by_match(query: Query, candidates: Candidates, scored: list[Ranked], losses: Mapping[int, float]) -> list[Ranked]:
    """Order by match, and what that cannot tell apart by what it holds of the query, then by score.

    A match counts less by the `losses` of its log-odds. The profile of habits is ordered by its scores.
    """
    signals = candidates.signals

    def held(one: Ranked) -> float:
        return max(signals[one.id].coverage, signals[one.id].fuzzy)

    if query.profile is Profile.HABIT:
        return sorted(scored, key=lambda one: (-one.score, -one.match, one.id))
    found: list[Ranked] = []
    lowered = ((_lowered(one.match, losses.get(one.id, 0.0)), one) for one in scored)
    ahead = sorted(lowered, key=lambda one: -one[0])
    while ahead:
        least = ahead[0][0] * (1.0 - _ERROR)
        alike = [one for match, one in ahead if match >= least]
        ahead = ahead[len(alike) :]
        found += sorted(alike, key=lambda one: (-held(one), -one.score, -one.match, one.id))
    return found


def _lowered(match: float, loss: float) -> float:
    """Return a probability with its log-odds lowered by so much."""
    times = math.exp(-loss)
    return match * times / (1.0 - match + match * times)


def _falling(order: list[Ranked], *, down: bool = False) -> list[Ranked]:
    """Return hits in their order with no score above one before it: raised to the next, or taken `down` to the last."""
    found: list[Ranked] = []
    for one in order if down else reversed(order):
        gain = (min if down else max)(one.score, found[-1].score) - one.score if found else 0.0
        parts = one.parts | {"order": one.parts.get("order", 0.0) + gain} if gain else one.parts
        found.append(one._replace(score=one.score + gain, parts=parts))
    return found if down else found[::-1]
