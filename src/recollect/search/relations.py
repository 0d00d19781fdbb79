"""Relations of the best memories of a query: versions, summaries and their parts, two accounts of one subject."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from recollect.app import App
from recollect.domain.enums import OF_SESSION
from recollect.domain.origin import Authority
from recollect.search import versions
from recollect.search.candidates import FIRST
from recollect.search.signals import Candidates
from recollect.text.normalization import fold
from recollect.text.writing_systems import words

_SHARED: Final = 2  # words of two memories about one subject


@dataclass(frozen=True, slots=True)
class Relations:
    """Relations by ids: the `newest` version of an older memory, and of a part the summary.

    `stated` are, for a memory of less authority, those of full authority about its subject, the nearest first.
    `denials` are pairs of versions that come from two sources, and `quotes` repeat all that was stated.
    """

    newest: Mapping[int, int] = field(default_factory=dict)
    summaries: Mapping[int, int] = field(default_factory=dict)
    stated: Mapping[int, Sequence[int]] = field(default_factory=dict)
    denials: Sequence[tuple[int, int]] = ()
    quotes: Collection[int] = ()

    def older_than(self, memory_id: int) -> int | None:
        """Return what replaces a memory: its summary, or its newest version."""
        return self.summaries.get(memory_id, self.newest.get(memory_id))

    def contradicted(self, order: Sequence[int]) -> dict[int, int]:
        """Return for each memory that may contradict others the nearest that was stated, or the first before it.

        What is not in the `order` stands before all of it.
        """
        ranks = {one: rank for rank, one in enumerate(order)}

        def rank_of(memory_id: int) -> int:
            """Return the rank of a memory, -1 for a memory without one."""
            return ranks.get(memory_id, -1)

        found: dict[int, int] = {}
        for pair in self.denials:
            high, low = sorted(pair, key=rank_of)
            found[low] = min(found.get(low, high), high, key=rank_of)
        return found | {low: stated[0] for low, stated in self.stated.items() if low not in self.quotes}


NO_RELATIONS: Final = Relations()


def relations(
    app: App, query: str, candidates: Candidates, order: Sequence[int], answering: Mapping[int, float]
) -> Relations:
    """Return the relations of the best of an order by match; versions and summaries are `answering` (0–1)."""
    asked = versions.Asked(query, candidates.found.terms.weights)
    compared = {one: answering[one] for one in order[:FIRST] if one in answering}
    rows = candidates.rows.make(list(compared))
    pairs = versions.version_pairs(asked, rows, compared)
    stated = _stated_of_subject(app, candidates, order, asked)
    return Relations(
        newest=versions.newer_by_older(pairs, rows, candidates.authority),
        summaries=_summary_by_part(candidates, order, answering),
        stated=stated,
        denials=versions.disputed_pairs(pairs, rows, candidates.authority),
        quotes=frozenset(low for low, high in stated.items() if _repeats_text(candidates, low, high[0])),
    )


def _summary_by_part(candidates: Candidates, order: Sequence[int], answering: Collection[int]) -> dict[int, int]:
    """Return, by the id of each memory that a summary has replaced, that summary, where it answers the query."""
    links = zip(order, candidates.rows.column("superseded_by", order), strict=True)
    return {one: whole for one, whole in links if whole is not None and whole in answering}


def _stated_of_subject(
    app: App, candidates: Candidates, order: Sequence[int], asked: versions.Asked
) -> dict[int, list[int]]:
    """Return, for each of the first memories, those among them that state something of its subject, nearest first.

    Two memories are about one subject where their vectors are near and they share words that carry meaning.
    """
    authority = candidates.authority
    stated = [one for one in order if authority[one] is Authority.TOLD][:FIRST]
    first = list(dict.fromkeys([*order[:FIRST], *stated]))
    if not stated or all(authority[one] is Authority.TOLD for one in first):
        return {}
    if candidates.query.semantic:
        cosines = sorted(app.vectors.similarities(first).items(), key=lambda pair: -pair[1])
        near = [pair for pair, cosine in cosines if cosine >= app.embedder.card.subject]
    else:  # no vector tells what they are about: all of them answer the query
        near = [(one, high) for one in first for high in stated]
    found: dict[int, list[int]] = {}
    contents = dict(zip(first, candidates.rows.column("content", first), strict=True))
    for pair in near:
        low, high = sorted(pair, key=authority.__getitem__)
        if authority[low] < authority[high] is Authority.TOLD and _share_subject(asked, contents[low], contents[high]):
            found.setdefault(low, []).append(high)
    return found


def _share_subject(asked: versions.Asked, content: str, other: str) -> bool:
    """Return whether two texts share words that carry meaning: two of them, or all of a shorter text."""
    words, others = asked.statement(content).said, asked.statement(other).said
    return len(words & others) >= min(_SHARED, len(words), len(others))


def _repeats_text(candidates: Candidates, low: int, high: int) -> bool:
    """Return whether a memory of the project itself repeats the text of another memory."""
    rows = candidates.rows
    if candidates.authority[low] is Authority.OUTSIDE and rows[low].type not in OF_SESSION:
        return False  # a page that repeats a rule may go on to deny it
    text, quoted = (" ".join(words(fold(rows[one].content), every=True)) for one in (low, high))
    return f" {quoted} " in f" {text} "
