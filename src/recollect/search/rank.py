"""How hits are ordered: match, recency, importance and trust, and which version of a statement counts.

Ranking: the calibrated match is one part of a named profile of weights; and the small sums it is made from.

Currency: which memories are versions of one statement, and that the newest of them comes first; none is hidden.

A newer memory is a version of an older one where it says again at least half of what that says, answers the question
about as well, and names whatever the question names of the older one. So of staging and production neither replaces the
other, however old it is. A newer one that names less is a version where it says that something changed and repeats what
the question does not name, a name or two words: "We switched from Yarn to pnpm." So it is, with two names, where it
says little again but is near by its vector.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from statistics import median
from typing import Final

from recollect.domain.enums import OF_SESSION, POLICIES, Certainty, Profile
from recollect.domain.origin import Authority
from recollect.domain.results import Memory
from recollect.domain.search import RankingRow
from recollect.text.terms import STOP_WORDS, stem
from recollect.text.writing_systems import fold, words

_DAY = 86_400.0
_OFTEN = math.log1p(20)


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each part counts; the weights of a profile sum to one."""

    match: float
    recency: float = 0.0
    importance: float = 0.0
    trust: float = 0.0
    frequency: float = 0.0


STRONG: Final = 0.5
"""From this match on more than half of the hits answer their query."""

LIKELY: Final = 0.2

PASSING: Final = 0.35
"""The least score that is shown by default; a memory at the floor reaches it by its match alone, in every profile."""

PROFILES: dict[Profile, Weights] = {
    Profile.BALANCED: Weights(match=0.55, recency=0.20, importance=0.15, trust=0.10),
    Profile.HABIT: Weights(match=0.40, recency=0.20, importance=0.30, frequency=0.10),
    Profile.RELEVANCE: Weights(match=1.0),
}


def grade(match: float, floor: float, weight: float) -> float:
    """Return how a match (0–1) enters a score: at the floor as much as passes alone, in between on two straight lines.

    With a weight of 0.55 the floor lies at 0.35 / 0.55. Age, importance and trust then order what is relevant, and
    neither hide nor admit it.
    """
    passing = min(PASSING / weight, 1.0)
    if match >= floor:
        return passing + (1.0 - passing) * (match - floor) / (1.0 - floor) if floor < 1.0 else 1.0
    return passing * match / floor


def certainty(match: float) -> Certainty:
    """Return how sure a hit of a match (0–1) is, in a word."""
    return Certainty.STRONG if match >= STRONG else Certainty.LIKELY if match >= LIKELY else Certainty.WEAK


def saturated(bm25: float) -> float:
    """Bring bm25 (≥ 0, unbounded) to 0–1."""
    return bm25 / (bm25 + 20.0)


def rarity(uses: int, size: int) -> float:
    """Return the inverse document frequency of a word that stands in `uses` of `size` memories (> 0)."""
    return math.log(1.0 + (size - min(uses, size) + 0.5) / (min(uses, size) + 0.5))


def coverage(weights: Mapping[str, float], held: Collection[str]) -> float:
    """Return the share (0–1) of the query's weight whose words (stems) a memory holds."""
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in held) / total if total else 0.0


def recency(memory: RankingRow | Memory, now: datetime) -> float:
    """Return 1 for a memory of now, falling by half with each half-life of its kind (21 days mostly).

    It is of the time when it was observed, as an imported note is, else when it was written.
    """
    age = max((now - (memory.observed_at or memory.updated_at)).total_seconds(), 0.0) / _DAY
    return float(0.5 ** (age / POLICIES[memory.fact_type].half_life))


def frequency(memory: RankingRow | Memory) -> float:
    """Return 0–1: how often a memory was used, on a logarithmic scale that is full at twenty uses."""
    return min(math.log1p(memory.accessed_count + memory.recalled_count) / _OFTEN, 1.0)


def weigh(
    memory: RankingRow | Memory, graded: float, weights: Weights, now: datetime
) -> tuple[float, dict[str, float]]:
    """Return the score (0–1) and what each part gave to it, the match by its grade; the parts sum to the score."""
    parts = {
        "match": weights.match * graded,
        "recency": weights.recency and weights.recency * recency(memory, now),
        "importance": weights.importance * memory.importance,
        "trust": weights.trust * memory.trust,
        "frequency": weights.frequency and weights.frequency * frequency(memory),
    }
    given = {name: part for name, part in parts.items() if getattr(weights, name)}
    return sum(given.values()), given


_STANDING_OUT: Final = 0.2  # above the median of the pairs
AS_WELL: Final = 0.65  # of the other's match: both answer the query
_AGAIN: Final = 0.5  # of the words of the older memory
_REPEATED: Final = 2  # words or names
_READ: Final = 4_000  # characters of a memory
_PAST = re.compile(
    r"\b(?:used to|previous(?:ly)?|former(?:ly)?|original(?:ly)?|initially|earlier|back then|in the past|at first|"
    r"historically|no longer)\b|\bbefore(?: (?:that|then|now|this|the (?:change|switch|move|migration)))?\s*[?.!]*$",
    re.IGNORECASE,
)
_CHANGED: Final = re.compile(
    r"\b(?:no longer|any ?more|gone|retired|deprecated|obsolete|outdated|superseded|replac\w+|remov\w+|dropped|forget|"
    r"instead of|rather than|moved|migrated|switch(?:ed|ing|es)?|renamed|changed|used to|from now on|as of|now|"
    r"was wrong|correction|until (?:now|then)|went from|tak(?:es|en) over|took over|is history|the old)\b",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_TOKEN: Final = re.compile(r"[^\W_](?:[\w./:@#+\\-]*[^\W_])?")
_FIGURES: Final = re.compile(r"[\w.]+")
_MARKED: Final = re.compile(r"\d|\w\W|\w[A-Z]")  # within a name
_OPENS: Final = (".", "!", "?", ":", ";")


def asks_past(query: str) -> bool:
    """Say whether a query asks how something was before (in English)."""
    return bool(_PAST.search(query))


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question names: the stems of its words, and its words with a figure."""

    stems: frozenset[str]
    figures: frozenset[str]

    @classmethod
    def of(cls, question: str, stems: Iterable[str]) -> Asked:
        """Read a question whose words have these stems."""
        return cls(frozenset(stems), _figures(question))

    def named(self, row: RankingRow) -> frozenset[str]:
        """Return what the question and a memory both name."""
        figures = self.figures & _figures(row.content[:_READ]) if self.figures else frozenset()
        return figures | self.stems.intersection(map(stem, row.words.split()))


def of_one_subject(cosines: Mapping[tuple[int, int], float], least: float) -> list[tuple[int, int]]:
    """Return the pairs of memories that are about one subject, by the cosine of each pair (-1–1).

    That is at least `least`, and stands out among several: answers that are all alike, such as the facts about one
    person, are not of one subject for that.
    """
    usual = median(cosines.values()) + _STANDING_OUT if len(cosines) > 1 else least
    return [pair for pair, cosine in cosines.items() if cosine >= max(least, usual)]


def newer_by_older(
    asked: Asked, rows: Mapping[int, RankingRow], matches: Mapping[int, float], near: Set[tuple[int, int]]
) -> dict[int, int]:
    """Return for each memory of `matches` (0–1) of which there is a newer version the newest of those.

    `near` are the pairs whose vectors are near each other.
    """
    found: dict[int, int] = {}
    for old, new in _versions(asked, rows, matches, near):
        if rows[new].authority >= rows[old].authority:
            found[old] = max(found.get(old, new), new, key=lambda one: (dated(rows[one]), one))
    return found


def disputed(
    asked: Asked, rows: Mapping[int, RankingRow], matches: Mapping[int, float], near: Set[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the pairs of `matches` that would be versions of one statement, but come from two sources.

    At least one of them is from outside: what a project shows of itself is only newer, and whom to believe is told.
    """
    pairs = _versions(asked, rows, matches, near)
    return [(old, new) for old, new in pairs if _of_two_sources(rows[old], rows[new])]


def _of_two_sources(one: RankingRow, other: RankingRow) -> bool:
    outside = Authority.OUTSIDE in (one.authority, other.authority)
    return outside and one.stamp.source != other.stamp.source


def _versions(
    asked: Asked, rows: Mapping[int, RankingRow], matches: Mapping[int, float], near: Set[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Yield the older and the newer of each two memories that say something else of the same, whoever says it."""
    said = {one: _said(rows[one].content) for one in matches}
    for pair in combinations(matches, 2):
        old, new = sorted(pair, key=lambda one: (dated(rows[one]), one))
        as_well = min(matches[old], matches[new]) >= AS_WELL * max(matches[old], matches[new])
        again = as_well and len(said[old] & said[new]) >= _AGAIN * len(said[old])
        alike = again or not near.isdisjoint((pair, pair[::-1]))
        if alike and _may_replace(rows[new], rows[old]) and replaces(asked, rows[new], rows[old], again=again):
            yield old, new


def replaces(asked: Asked, newer: RankingRow, older: RankingRow, *, again: bool) -> bool:
    """Say whether the newer of two memories is a version of the older one, which it says `again` or is only near to."""
    if again and asked.named(older) <= asked.named(newer):
        return True
    changed = _changed(newer.content[:_READ])
    names = len(_names(older.content[:_READ], asked) & changed)
    if again:
        return names > 0 or len((_said(older.content) - asked.stems) & changed) >= _REPEATED
    return names >= _REPEATED


def _may_replace(newer: RankingRow, older: RankingRow) -> bool:
    """Say whether one may be a version of the other: not in a session, nor at the same time."""
    if older.session_id is not None and older.session_id == newer.session_id:
        return False
    apart = any(one.position is not None or one.type in OF_SESSION for one in (older, newer))
    return not apart and dated(newer) > dated(older)


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
    places = {one: place for place, one in enumerate(order)}
    last = {one: max((places[high] for high in ahead.get(one, ()) if high in places), default=0) for one in order}
    return sorted(order, key=lambda one: (max(places[one], last[one]), last[one] > places[one], places[one]))


def dated(row: RankingRow) -> datetime:
    """Return when a memory was true: when it was observed, else when it was written."""
    return row.observed_at or row.updated_at


def _figures(text: str) -> frozenset[str]:
    """Return the words of a text that hold a figure."""
    found = (one.strip(".") for one in _FIGURES.findall(fold(text)))
    return frozenset(one for one in found if any(map(str.isdigit, one)))


def _said(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that carry meaning."""
    return frozenset(stem(one) for one in words(fold(text[:_READ]), every=False) if one not in STOP_WORDS)


def _changed(text: str) -> frozenset[str]:
    """Return the stems of the sentences that say that something changed, and of those after them."""
    sentences = _SENTENCE.split(text)
    said = (" ".join(sentences[place : place + 2]) for place, one in enumerate(sentences) if _CHANGED.search(one))
    return frozenset(stem(word) for one in said for word in _TOKEN.findall(fold(one)))


def _names(text: str, asked: Asked) -> frozenset[str]:
    """Return the stems of the names and figures of a text that are not asked for."""
    found = set()
    for token in _TOKEN.finditer(text):
        opens = not (before := text[max(token.start() - 3, 0) : token.start()].rstrip()) or before.endswith(_OPENS)
        if _MARKED.search(token[0]) or (token[0][0].isupper() and not opens):
            found.add(stem(fold(token[0])))
    return frozenset(found) - asked.stems
