"""bm25 over what a caller may see: the counts come from the database, the formula is FTS5's, whatever the database."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from sqlalchemy import Connection, select
from Stemmer import Stemmer

from recollect.domain.search import View
from recollect.store.sql.expressions import any_of
from recollect.store.sql.mapping import IDS
from recollect.store.sql.tables import memory
from recollect.store.sql.visibility import run_visible
from recollect.store.text.index import Term

if TYPE_CHECKING:
    from numpy.typing import NDArray

LONGEST: Final = 1 << 20
"""Characters of a text; a longer one counts as this long. Also what a memory's id is shifted by in a place."""

_BY_ID = select(memory.c.id).where(any_of(memory.c.id, IDS))
_LOOKED_AT: Final = 20
_LEAST_WORTH: Final = 1e-6
_LONGEST_STEMMED: Final = 64  # characters
_stemmer = Stemmer("porter")


class Holders(NamedTuple):
    """The texts that hold one term of a query: places int64[n], and how often it stands in each.

    A place is the id of a memory × `LONGEST` + the length of its text. The `terms` are those of the query that are one
    for the index.
    """

    terms: Sequence[Term]
    places: NDArray[np.int64]
    times: NDArray[np.int64]

    @property
    def weight(self) -> float:
        """Return the greatest weight of the terms."""
        return max(term.weight for term in self.terms)


class Ranked(NamedTuple):
    """Ids of memories int64[n] and their bm25, best first."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]


def stemmed(word: str) -> str:
    """Return a plain English word as the index stems it, or an empty string for what is none."""
    plain = word.isascii() and word.isalnum() and len(word) <= _LONGEST_STEMMED
    return str(_stemmer.stemWord(word.lower())) if plain else ""


def numbers(listed: str | None) -> NDArray[np.int64]:
    """Read whole numbers with commas between."""
    return np.fromstring(listed, np.int64, sep=",") if listed else np.zeros(0, np.int64)


def counted(places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the different places, and how often each is there; equal places follow each other."""
    if not len(places):
        return places, places
    later = (places[1:] != places[:-1]).nonzero()[0] + 1
    bounds = np.concatenate(([0], later, [len(places)]))
    return places[bounds[:-1]], bounds[1:] - bounds[:-1]


def bm25(holders: Iterable[Holders], memories: int, average: float, uncounted: Sequence[int] = ()) -> Ranked:
    """Return what holds any term, best first: k1 1.2, b 0.75.

    `memories` and `average` are how many texts there are, and their mean length in characters. How rare a term is
    does not depend on the `uncounted` ones.
    """
    every_text = memories - len(uncounted)
    ids: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    scores: list[NDArray[np.float64]] = [np.zeros(0)]
    for holder in holders:
        known, times = holder.places, holder.times
        if len(known):
            uses = len(known) - int(np.isin(known // LONGEST, uncounted).sum()) if uncounted else len(known)
            worth = holder.weight * max(math.log((max(every_text - uses, 0) + 0.5) / (uses + 0.5)), _LEAST_WORTH)
            ids.append(known // LONGEST)
            scores.append(worth * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * (known % LONGEST) / average)))
    every, which = np.unique(np.concatenate(ids), return_inverse=True)
    total = np.bincount(which, np.concatenate(scores), len(every)).astype(np.float64)
    order = np.lexsort((every, -total))
    return Ranked(every[order], total[order])


def best_visible(connection: Connection, view: View, ranked: Ranked, limit: int) -> dict[int, float]:
    """Return the best `limit` of what a view may see, with their bm25, best first.

    Each look takes twice as many as the one before it: where few may be seen, most of them are looked at.
    """
    found: dict[int, float] = {}
    step, start = max(limit, _LOOKED_AT), 0
    while start < len(ranked.ids):
        parts = (part[start : start + step].tolist() for part in ranked)
        some = dict(zip(*parts, strict=True))
        seen = set(run_visible(connection, _BY_ID, view, ids=some).scalars())
        found |= {one: score for one, score in some.items() if one in seen}
        if len(found) >= limit:
            break
        start, step = start + step, 2 * step
    return dict(islice(found.items(), limit))


def visibly_held(connection: Connection, view: View, holders: Iterable[Holders]) -> frozenset[str]:
    """Return the terms that a memory holds which a view may see, as the query has them.

    A few memories of each term are looked at, then twice as many of those for which none was seen.
    """
    found: list[str] = []
    left = [(one.terms, (one.places // LONGEST).tolist()) for one in holders]
    step, start = _LOOKED_AT, 0
    while left := [(terms, ids) for terms, ids in left if start < len(ids)]:
        some = {one for _, ids in left for one in ids[start : start + step]}
        seen = set(run_visible(connection, _BY_ID, view, ids=some).scalars())
        stands = [not seen.isdisjoint(ids[start : start + step]) for _, ids in left]
        found += [one.text for (terms, _), here in zip(left, stands, strict=True) if here for one in terms]
        left = [one for one, here in zip(left, stands, strict=True) if not here]
        start, step = start + step, 2 * step
    return frozenset(found)
