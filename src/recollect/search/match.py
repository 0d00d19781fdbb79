"""Match: the probability that a memory answers a query, and the words for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from recollect.app import App
from recollect.domain.enums import Certainty
from recollect.domain.search import View
from recollect.search.rerank import passages, reranked
from recollect.search.signals import Candidates
from recollect.spans import spanned

STRONG: Final = 0.5
"""From this match on more than half of the hits answer their query."""

SURE: Final = 0.7
"""Of hits with this match more than half answer their query; of those at `STRONG` two in five do."""

LIKELY: Final = 0.2

_BESIDE: Final = 0.08  # of the best match: what is worse beside it does not answer


@spanned("search.match")
def matches_of(app: App, query: str, view: View, candidates: Candidates) -> tuple[dict[int, float], tuple[str, ...]]:
    """Return the matches (0–1) of the candidates that any limit would find, and a note where none was reranked."""
    core = [place for place, one in enumerate(candidates.ids) if one in candidates.found.core]
    columns = candidates.columns if len(core) == len(candidates.ids) else candidates.columns.at(core)
    found = app.fusion.matches(columns, candidates.query).tolist()
    matches = dict(zip([candidates.ids[place] for place in core], found, strict=True))
    return reranked(app, query, matches, partial(passages, app, view, candidates.vector))


def all_matches(app: App, candidates: Candidates, known: Mapping[int, float]) -> dict[int, float]:
    """Return the matches (0–1) of all candidates; the `known` matches stay as they are."""
    found = app.fusion.matches(candidates.columns, candidates.query).tolist()
    return {**dict(zip(candidates.ids, found, strict=True)), **known}


def least_match(floor: float, best: float) -> float:
    """Return the lowest match with which a memory answers: none does unless the `best` reaches the model's floor."""
    return best * _BESIDE if best >= floor else floor


def certainty(match: float) -> Certainty:
    """Return how sure a hit of a match (0–1) is, in a word."""
    return Certainty.STRONG if match >= STRONG else Certainty.LIKELY if match >= LIKELY else Certainty.WEAK
