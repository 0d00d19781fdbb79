"""People and organisations by capital letters and the company they keep: titles, given names, suffixes, speech."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recollect.domain import EntityType
from recollect.policy.entities.marks import Found
from recollect.policy.entities.words import (
    BEFORE_PERSON,
    BEFORE_THING,
    DOING,
    GIVEN,
    LEGAL,
    NO_PERSON,
    NO_SINGLE,
    OF,
    PARTICLES,
    PLACES,
    SAYING,
    SUFFIXES,
    TITLES,
)
from recollect.policy.letters import fold
from recollect.policy.terms import STOP_WORDS
from recollect.policy.traits import voices

_ORGANISATION = EntityType.ORGANISATION
_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_OWN = re.compile(r"['’]s?$")
_LONGEST_CHAIN = 8
_OPENERS = frozenset("\0.!?:;\"“”„«»'‘’()[]*-–—•>#|\t")
_GIVEN = frozenset(map(fold, GIVEN))
_NONE = NO_PERSON | STOP_WORDS
_FIRST_OF_THINGS = (NO_PERSON | PLACES) - STOP_WORDS
_ROLES = frozenset("user assistant system human ai tool".split())
_HEADING = 3  # words


class Word(NamedTuple):
    """One word of a line, folded too; `owning` says that an 's was taken off."""

    start: int
    end: int
    text: str
    folded: str
    owning: bool

    @property
    def capital(self) -> bool:
        """Say whether the word begins with a capital."""
        return self.text[0].isupper() and self.text[:2] not in ("I'", "I’")

    @property
    def loud(self) -> bool:
        """Say whether the word is an abbreviation in capitals."""
        return len(self.text) > 1 and self.text.isupper()


def people(prose: str) -> Iterator[Found]:
    """Yield the people and organisations that a text without its code names."""
    for name in voices(prose):
        if fold(name) not in _ROLES | NO_PERSON:
            start = prose.find(f"{name}:")
            yield _found(start, start + len(name), EntityType.PERSON)
    at = 0
    for line in prose.splitlines(keepends=True):
        words = [_word(place, at) for place in _WORD.finditer(line)]
        if any(one.capital for one in words):
            yield from _Line(prose, words, at).names()
        at += len(line)


def _word(place: re.Match[str], at: int) -> Word:
    owner = _OWN.search(place[0])
    text = place[0][: owner.start()] if owner else place[0]
    return Word(at + place.start(), at + place.start() + len(text), text, fold(text), owner is not None)


def _found(start: int, end: int, kind: EntityType) -> Found:
    return Found(start, end, kind, (start, end))


class _Line:
    """The words of one line and what stands between them."""

    def __init__(self, prose: str, words: Sequence[Word], start: int) -> None:
        self._prose = prose
        self._words = words
        self._start = start
        self._last = -1  # where the last person's name ended
        plain = any(not one.capital and one.folded not in STOP_WORDS for one in words)
        self._heading = len(words) >= _HEADING and not plain

    def names(self) -> Iterator[Found]:
        at = 0
        while at < len(self._words):
            if not self._words[at].capital:
                at += 1
                continue
            end = self._chain(at)
            institution = self._institution(at, end)
            if institution:
                yield _found(self._words[institution[0]].start, self._words[institution[1] - 1].end, _ORGANISATION)
                end = max(end, institution[1])
            else:
                yield from self._judged(at, end)
            at = end

    def _gap(self, at: int) -> str:
        """Return what stands between a word and the next one."""
        return self._prose[self._words[at].end : self._words[at + 1].start]

    def _chain(self, at: int) -> int:
        """Return where the capitalised words from `at` on end: joined by a space, an initial's stop, a particle, &."""
        end = at + 1
        while end < len(self._words) and end - at < _LONGEST_CHAIN and not self._words[end - 1].owning:
            last, following, gap = self._words[end - 1], self._words[end], self._gap(end - 1)
            initial = gap == ". " and (len(last.text) == 1 or last.folded in TITLES)
            legal = gap == ", " and following.folded in LEGAL and following.capital
            if not (gap in (" ", " & ") or initial or legal):
                break
            if following.capital:
                end += 1
            elif following.folded in PARTICLES and self._particles(end):
                end = self._particles(end)
            else:
                break
        return end

    def _particles(self, at: int) -> int:
        """Return the place after the capitalised word that particles lead to, 0 when they lead to none."""
        for place in range(at, min(at + 3, len(self._words))):
            if place > at and self._gap(place - 1) != " ":
                return 0
            if self._words[place].capital:
                return place + 1
            if self._words[place].folded not in PARTICLES:
                return 0
        return 0

    def _institution(self, at: int, end: int) -> tuple[int, int] | None:
        """Return the span of "University of Oslo", where the chain is the beginning of one."""
        joined = end + 1 < len(self._words) and self._words[end].text in ("of", "for")
        if not joined or self._words[end - 1].folded not in OF or self._gap(end - 1) != " " or self._gap(end) != " ":
            return None
        if not self._words[end + 1].capital:
            return None
        first = next(place for place in range(at, end) if self._words[place].folded not in STOP_WORDS)
        return first, min(self._chain(end + 1), end + 5)

    def _judged(self, at: int, end: int) -> Iterator[Found]:
        words = self._words
        first = next((place for place in range(at, end) if words[place].folded not in STOP_WORDS), end)
        suffix = max((place for place in range(first + 1, end) if self._is_suffix(place, first)), default=0)
        if suffix:
            yield _found(words[first].start, words[suffix].end, _ORGANISATION)
            first = suffix + 1
        if first >= end:
            return
        title = next((place for place in range(first, end) if words[place].folded in TITLES), None)
        if title is None and first > 0 and words[first - 1].folded in TITLES and self._gap(first - 1) in (" ", ". "):
            title = first - 1
        person = self._titled(title, end) if title is not None else self._person(first, end)
        if person:
            self._last = person[1]
            yield _found(words[person[0]].start, words[person[1] - 1].end, EntityType.PERSON)

    def _is_suffix(self, place: int, first: int) -> bool:
        word = self._words[place]
        before = self._words[place - 1].folded
        if word.folded not in SUFFIXES or (len(word.text) == 2 and not word.loud):
            return False
        return word.folded in LEGAL or place - first > 1 or not (before in _NONE or before.endswith("ing"))

    def _titled(self, title: int, end: int) -> tuple[int, int] | None:
        stop = title + 1
        while stop < min(end, title + 5) and self._words[stop].folded not in _NONE and not self._words[stop].loud:
            stop += 1
        return (title + 1, stop) if stop > title + 1 else None

    def _person(self, first: int, end: int) -> tuple[int, int] | None:
        words = self._words
        given = next((place for place in range(first, end) if words[place].folded in _GIVEN), None)
        if given is not None:
            return self._given(first, given, end)
        if end - first == 1:
            return (first, end) if self._speaks(first) else None
        return (first, end) if self._is_full_name(first, end) else None

    def _given(self, first: int, given: int, end: int) -> tuple[int, int] | None:
        """Return the name that begins with a known given name, unless it is part of another thing's name."""
        words = self._words
        if words[given].loud or (given > first and words[given - 1].folded in _FIRST_OF_THINGS):
            return None
        stop = given + 1
        while stop < min(end, given + 5) and words[stop].folded not in _NONE and not words[stop].loud:
            stop += 1
        if stop - given > 1 or (stop == end and words[given].folded not in NO_SINGLE):
            return None if self._before(given) in ("the", "a", "an") else (given, stop)
        return None

    def _before(self, at: int) -> str:
        """Return the folded word before, where only a space stands between."""
        return self._words[at - 1].folded if at > 0 and self._gap(at - 1) == " " else ""

    def _opens(self, at: int) -> bool:
        """Say whether a word opens a line, a sentence or a quotation, where everything has a capital."""
        before = self._prose[max(self._start, self._words[at].start - 3) : self._words[at].start].rstrip(" ")
        return not before or before[-1] in _OPENERS or at == 0

    def _speaks(self, at: int) -> bool:
        """Say whether a lone capitalised word said something."""
        word = self._words[at]
        verb = at + 1 < len(self._words) and self._gap(at) == " " and self._words[at + 1].folded in SAYING
        plain = word.folded not in _NONE and not word.loud and len(word.text) > 2
        plural = word.folded.endswith("s") and self._opens(at)
        return verb and plain and not plural and self._before(at) not in BEFORE_THING

    def _is_full_name(self, first: int, end: int) -> bool:
        """Say whether two or three capitalised words are somebody's name, who is met or asked, or does something."""
        words = self._words[first:end]
        full = [one for one in words if one.capital and len(one.text) > 1]
        if self._heading or not 2 <= len(full) <= 3 or len(words) > 5 or words[0] is not full[0]:
            return False
        if words[0].folded in PLACES:
            return False
        if any(one.folded in _NONE or one.loud for one in words if one.folded not in PARTICLES):
            return False
        return "&" not in self._between(first, end) and (self._acts(end) or self._is_met(first))

    def _acts(self, end: int) -> bool:
        return end < len(self._words) and self._gap(end - 1) == " " and self._words[end].folded in DOING

    def _is_met(self, first: int) -> bool:
        """Say whether what stands before leads to a person: met, my friend, or another person and."""
        if self._opens(first):
            return False
        joined = self._before(first) == "and" and self._gap(first - 2) == " " if first > 1 else False
        return self._before(first) in BEFORE_PERSON or (joined and self._last == first - 1)

    def _between(self, first: int, end: int) -> str:
        return self._prose[self._words[first].start : self._words[end - 1].end]
