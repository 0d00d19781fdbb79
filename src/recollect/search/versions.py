"""Which memories are versions of one statement, so that the newest of them comes first; none is hidden.

A linear model judges a newer and an older memory that both answer a question: by how well each does, by which of the
question's words only one of them holds, by how much of the older one the newer says again, and by whether it says that
something changed. What names another subject, as production is beside staging, replaces nothing, however old the other
is; "We switched from Yarn to pnpm" replaces what says that Yarn is used. `evaluation.versions` fits the model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Final, NamedTuple

from recollect.domain.enums import OF_SESSION
from recollect.domain.origin import Authority
from recollect.domain.search import RankingRow
from recollect.search.word_weights import coverage
from recollect.text.normalization import fold
from recollect.text.terms import STOP_WORDS, stem
from recollect.text.writing_systems import words

BIAS: Final = 3.989
"""Fitted by `evaluation.versions`, with `WEIGHTS`, on the notes that may train what ships."""

LEAST: Final = 0.3  # of the better match: what is below does not answer the question as the other does
_READ: Final = 4_000  # characters of a memory
_NAMED: Final = 1_000  # characters of a memory in which its subject stands
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
_NOW: Final = re.compile(
    r"\b(?:now|nowadays|today|current(?:ly)?|present(?:ly)?|these days|at the moment|latest|any ?more)\b", re.IGNORECASE
)
_FIGURES: Final = re.compile(r"[\w.]+")
_WORD_OR_MARK: Final = re.compile(r"[^\W_](?:[\w'.-]*[^\W_])?|[.,;:!?()]")

_PREPOSITIONS: Final = frozenset({"at", "by", "for", "from", "in", "of", "on", "to", "with"})
_VERBS: Final = frozenset({"are", "can", "is", "may", "must", "shall", "should", "was", "were", "will"})
_LONGEST_NAME: Final = 3  # words


class Traits(NamedTuple):
    """What is known of a newer and an older memory that answer one question; shares are 0–1, of weights or of words.

    `better` is the logarithm of how many times as well the newer one matches, `worst` that of the worse match, `length`
    that of the older one's characters. `lost`, `gained` and `kept` are the shares of the question that only the older,
    only the newer and both hold; `again` and `besides` how much of the older one the newer says again, of all its words
    and of those that the question does not hold.
    """

    better: float
    worst: float
    lost: float
    gained: float
    kept: float
    again: float
    besides: float
    changed: float
    lost_unchanged: float
    asks_now: float
    other_figures: float
    length: float


WEIGHTS: Final = Traits(
    better=3.093,
    worst=1.702,
    lost=0.113,
    gained=1.554,
    kept=2.064,
    again=-0.542,
    besides=2.775,
    changed=1.43,
    lost_unchanged=0.394,
    asks_now=2.137,
    other_figures=0.159,
    length=-0.907,
)


class Subject(NamedTuple):
    """The words of a sentence up to the name in its subject, that name, the verb, and the words after the verb."""

    beginning: tuple[str, ...]
    name: tuple[str, ...]
    verb: str
    predicate: frozenset[str]


class Statement(NamedTuple):
    """What is compared of a text: its stems, its figures, and whether it says of a change."""

    said: frozenset[str]
    figures: frozenset[str]
    changed: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, how much each stem of its words weighs, and what was read of the memories that may answer it."""

    text: str
    weights: Mapping[str, float]
    _read: dict[str, Statement] = field(default_factory=dict, init=False, repr=False, compare=False)

    def statement(self, content: str) -> Statement:
        """Return what is compared of a text, which is read once."""
        if (known := self._read.get(content)) is None:
            known = Statement(
                _meaningful_stems(content), _words_with_figures(content), bool(_CHANGED.search(content[:_READ]))
            )
            self._read[content] = known
        return known


def asks_past(query: str) -> bool:
    """Say whether a query asks how something was before (in English)."""
    return bool(_PAST.search(query))


def version_pairs(asked: Asked, rows: Mapping[int, RankingRow], matches: Mapping[int, float]) -> list[tuple[int, int]]:
    """Return the pairs of memories of `matches` (0–1) that are versions of one statement, the older first.

    The authors may differ.
    """
    alone = [one for one in matches if _stands_alone(rows[one])]
    dated = sorted(alone, key=lambda one: (rows[one].dated_at, one))
    return [
        (old, new)
        for old, new in combinations(dated, 2)
        if may_be_versions(rows[new], rows[old], matches[new], matches[old])
        and is_version(traits(asked, rows[new], rows[old], matches[new], matches[old]))
        and not other_subject(asked.text, rows[old].content, rows[new].content)
        and not same_of_another(rows[old].content, rows[new].content)
    ]


def newer_by_older(
    pairs: Iterable[tuple[int, int]], rows: Mapping[int, RankingRow], authority: Mapping[int, Authority]
) -> dict[int, int]:
    """Return, by the id of each older memory of `pairs`, its newest version, leaving out versions of less authority."""
    found: dict[int, int] = {}
    for old, new in pairs:
        if authority[new] >= authority[old]:
            found[old] = max(found.get(old, new), new, key=lambda one: (rows[one].dated_at, one))
    return found


def disputed_pairs(
    pairs: Iterable[tuple[int, int]], rows: Mapping[int, RankingRow], authority: Mapping[int, Authority]
) -> list[tuple[int, int]]:
    """Return those of `pairs` whose memories come from two sources, at least one of them outside the project.

    Of two statements of the project itself the later is only newer, and nobody is asked whom to believe.
    """
    return [
        (old, new)
        for old, new in pairs
        if Authority.OUTSIDE in (authority[old], authority[new]) and rows[old].stamp.source != rows[new].stamp.source
    ]


def may_be_versions(newer: RankingRow, older: RankingRow, new_match: float, old_match: float) -> bool:
    """Say whether both memories answer and may be versions: of different times, and not of one session."""
    if min(new_match, old_match) < LEAST * max(new_match, old_match):
        return False
    if older.session_id is not None and older.session_id == newer.session_id:
        return False
    return _stands_alone(newer) and _stands_alone(older) and newer.dated_at > older.dated_at


def _stands_alone(row: RankingRow) -> bool:
    """Say whether a memory is neither a turn of a session nor its summary."""
    return row.position is None and row.type not in OF_SESSION


def traits(asked: Asked, newer: RankingRow, older: RankingRow, new_match: float, old_match: float) -> Traits:
    """Return the traits of a pair of memories by which the model judges it."""
    old, new = asked.statement(older.content), asked.statement(newer.content)
    before, after = old.said, new.said
    both, rest = before & after, before - asked.weights.keys()
    kept = coverage(asked.weights, both)
    lost = coverage(asked.weights, before) - kept
    changed = float(new.changed)
    return Traits(
        better=math.log(new_match / old_match),
        worst=math.log(min(new_match, old_match)),
        lost=lost,
        gained=coverage(asked.weights, after) - kept,
        kept=kept,
        again=len(both) / max(len(before), 1),
        besides=len(rest & after) / max(len(rest), 1),
        changed=changed,
        lost_unchanged=lost * (1.0 - changed),
        asks_now=float(bool(_NOW.search(asked.text))),
        other_figures=float(bool(old.figures and new.figures) and old.figures.isdisjoint(new.figures)),
        length=math.log(max(len(older.content), 1)),
    )


def is_version(found: Traits, weights: Sequence[float] = WEIGHTS, bias: float = BIAS) -> bool:
    """Say whether the newer memory is a version of the older one.

    It is of another subject where it lacks more of what the question names than it adds, and says of no change.
    """
    if found.lost > found.gained and not found.changed:
        return False
    return bias + sum(weight * value for weight, value in zip(weights, found, strict=True)) > 0.0


def other_subject(question: str, older: str, newer: str) -> bool:
    """Say whether the newer text has another name in the place of one that the question and the older text share.

    A place is known by the words before and after it, as in "log level is DEBUG in the production environment", or, for
    what the question puts before the same word, by that word, as in "staging gateway" beside "production gateway". What
    says of a change, as in "dropped iOS", is no name.
    """
    asked, before, after = (
        _stems_in_order(question),
        _stems_in_order(older),
        _stems_in_order(_CHANGED.sub(".", newer[:_NAMED])),
    )
    together, had, has = set(pairwise(asked)), set(before), set(after)
    places: dict[str, set[str]] = {}
    for previous, word, following in _with_neighbours(after):
        if _may_name(word) and word not in had and word not in asked:
            places.setdefault(following, set()).add(previous)
    for previous, word, following in _with_neighbours(before):
        if _may_name(word) and word in asked and word not in has and following in places:
            named = _may_name(following) and (word, following) in together
            if named or previous in places[following]:
                return True
    return False


def same_of_another(older: str, newer: str) -> bool:
    """Say whether two sentences say the same of two subjects, as "The webhook of A must …" beside "… of B must …".

    The name of a subject stands after a preposition and before the verb, and nothing else differs up to there.
    """
    before, after = _subject_of(_stems_in_order(older)), _subject_of(_stems_in_order(newer))
    if before is None or after is None:
        return False
    alike = (before.beginning, before.verb) == (after.beginning, after.verb) and before.name != after.name
    return alike and not before.predicate.isdisjoint(after.predicate)


def _subject_of(words: Sequence[str]) -> Subject | None:
    """Return the subject with which a text begins, None where it names none before its verb."""
    verb = next((place for place, word in enumerate(words) if word in _VERBS), 0)
    place = next((place for place in range(verb - 2, 0, -1) if words[place] in _PREPOSITIONS), 0)
    if not place or verb - place > _LONGEST_NAME + 1:
        return None
    predicate = frozenset(word for word in words[verb + 1 :] if word.isalnum() and word not in STOP_WORDS)
    return Subject(tuple(words[: place + 1]), tuple(words[place + 1 : verb]), words[verb], predicate)


def _stems_in_order(text: str) -> list[str]:
    """Return the words of a text and its marks: stop words and single capitals as they are, of others the stems."""
    found = (one.removesuffix("'s") for one in _WORD_OR_MARK.findall(text[:_NAMED]))
    folded = (one if len(one) == 1 else fold(one) for one in found)
    return [one if len(one) == 1 or one in STOP_WORDS else stem(one) for one in folded]


def _with_neighbours(words: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each word between its neighbours, which are empty at the ends."""
    return zip(["", *words], words, [*words[1:], ""], strict=False)


def _may_name(word: str) -> bool:
    """Say whether a word may name something, as a single capital or figure does."""
    return word.isalnum() and not word.islower() if len(word) == 1 else word[:1].isalnum() and word not in STOP_WORDS


def _meaningful_stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that carry meaning."""
    return frozenset(stem(one) for one in words(fold(text[:_READ]), every=False) if one not in STOP_WORDS)


def _words_with_figures(text: str) -> frozenset[str]:
    """Return the words of a text that begin with a figure."""
    found = (one.strip(".") for one in _FIGURES.findall(text[:_READ]))
    return frozenset(one for one in found if one[:1].isdigit())
