"""People, organisations, places, things and concepts, by capital letters and the words beside them.

A person needs evidence (a title, a known given name, a verb of people beside it), a place is one that is known, an
organisation has a suffix such as Ltd or University, a short word in capitals such as OTA is a concept, and any other
name is a thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recollect.domain.enums import EntityType
from recollect.text.entity_patterns import WORDS, Found
from recollect.text.normalization import fold
from recollect.text.speaker_names import transcript_speakers
from recollect.text.terms import STOP_WORDS

_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_OWN = re.compile(r"['’]s?$")
_PASCAL = re.compile(r"[A-Z]\w*[a-z][A-Z]|[A-Z]{2,}[a-z]{2}")
_NATIONALITY = re.compile(r".*(?:ish|ese|lian|nian|sian|tian|gian)s?")
_NOT_IN_HEADINGS = (EntityType.ORGANISATION, EntityType.THING, EntityType.CONCEPT)
_OPENERS = frozenset("\0.!?:;\"“”„«»'‘’()[]*-–—•>#|\t\n")
_SENTENCE = re.compile("[,.;]")
_LONGEST_NAME = 6  # words
_LONGEST_ACRONYM = 5  # letters
_NO_NAME = STOP_WORDS | WORDS["not_names"]
_PLACED, _PRODUCTS, _TITLES = WORDS["place_words"], WORDS["products"], WORDS["titles"]


class Word(NamedTuple):
    """One word of a line as written, without its 's, and folded."""

    start: int
    end: int
    text: str
    folded: str
    owning: bool

    @property
    def is_capitalised(self) -> bool:
        """Return whether the word begins with a capital."""
        return self.text[0].isupper() and self.text[:2] not in ("I'", "I’")

    @property
    def is_upper_case(self) -> bool:
        """Return whether the whole word is in capitals."""
        return len(self.text) > 1 and self.text.isupper()

    @property
    def is_never_in_name(self) -> bool:
        """Return whether the word can never be part of a name."""
        return self.folded in _NO_NAME or self.folded.removesuffix("s") in _NO_NAME


def names(prose: str) -> Iterator[Found]:
    """Yield the names in a text without its code."""
    for name in transcript_speakers(prose):
        if fold(name) not in _NO_NAME:
            start = prose.find(f"{name}:")
            yield Found(start, start + len(name), EntityType.PERSON)
    at = 0
    for line in prose.splitlines(keepends=True):
        words = [_word_at(place, at) for place in _WORD.finditer(line)]
        plain = any(not word.is_capitalised and word.folded not in STOP_WORDS for word in words)
        heading = len(words) > 2 and not plain and not _SENTENCE.search(line)
        first = 0
        while first < len(words):
            end = _end_of_chain(prose, words, first) if words[first].is_capitalised else first + 1
            found = _named_entity(prose, words, first, end)
            if found and not (heading and found.type in _NOT_IN_HEADINGS):
                yield found
            first = end
        at += len(line)


def _word_at(place: re.Match[str], at: int) -> Word:
    """Return the word that a match holds, without its 's; offsets count from `at`."""
    owner = _OWN.search(place[0])
    text = place[0][: owner.start()] if owner else place[0]
    return Word(at + place.start(), at + place.start() + len(text), text, fold(text), owner is not None)


def _end_of_chain(prose: str, words: Sequence[Word], first: int) -> int:
    """Return the index after the last word of a chain of capitalised words from `first` on.

    Words are joined by a space, an initial's stop, a particle or &.
    """
    end = first + 1
    while end < min(len(words), first + _LONGEST_NAME) and not words[end - 1].owning:
        last, gap = words[end - 1], prose[words[end - 1].end : words[end].start]
        if gap not in (" ", " & ") and not (gap == ". " and (len(last.text) == 1 or last.folded in _TITLES)):
            break
        joins = words[end].folded in WORDS["particles"] or (
            words[end].text == "of" and last.folded in WORDS["organisations"]
        )
        if not words[end].is_capitalised and not (joins and end + 1 < len(words) and words[end + 1].is_capitalised):
            break
        end += 1
    return end


def _named_entity(prose: str, words: Sequence[Word], first: int, end: int) -> Found | None:
    """Return the entity that the capitalised words from `first` to `end` name, None where they name nothing.

    Words at the start that begin no name are left out.
    """
    opens = prose[max(words[first].start - 3, 0) : words[first].start].rstrip(" ")[-1:] in ("", *_OPENERS)
    while first < end and words[first].is_never_in_name:
        first, opens = first + 1, False
    while end > first and words[end - 1].is_never_in_name:
        end -= 1
    chain = words[first:end]
    if not chain or not chain[0].is_capitalised:
        return None
    before = words[first - 1].folded if first and prose[words[first - 1].end : chain[0].start] in (" ", ". ") else ""
    after = words[end].folded if end < len(words) and prose[chain[-1].end : words[end].start] == " " else ""
    kind = _known_type(chain, before)
    if kind is None and opens and len(chain) > 1 and (kind := _known_type(chain[1:], chain[0].folded)):
        chain = chain[1:]  # a verb or an adjective that only opens the sentence
    kind = kind or _likely_type(chain, before, after, opens)
    titled = kind is EntityType.PERSON and len(chain) > 1 and chain[0].folded in _TITLES
    return Found(chain[titled].start, chain[-1].end, kind) if kind else None


def _known_type(chain: Sequence[Word], before: str) -> EntityType | None:
    """Return the type of a chain of capitalised words that the word lists know."""
    first, single, whole = chain[0].folded, len(chain) == 1, " ".join(word.folded for word in chain)
    if before in _TITLES or (first in _TITLES and not single):
        return EntityType.PERSON
    if whole in WORDS["places"]:
        return EntityType.PLACE
    if not single and any(word.folded in WORDS["organisations"] for word in chain):
        return EntityType.ORGANISATION
    if first in WORDS["given_names"] and not chain[0].is_upper_case and before not in ("the", "a", "an"):
        return EntityType.PERSON
    if not single and not _PLACED.isdisjoint((first, chain[-1].folded)):
        return EntityType.PLACE
    if whole in _PRODUCTS:
        return EntityType.THING
    if not (single and chain[0].is_upper_case):
        return None
    if sum(character.isdigit() for character in whole) > 1:  # the number of a part or a model
        return EntityType.THING
    return EntityType.CONCEPT if len(whole) <= _LONGEST_ACRONYM else None


def _likely_type(chain: Sequence[Word], before: str, after: str, opens: bool) -> EntityType | None:
    """Return the likely type of unknown capitalised words: a person beside words for people, else a thing."""
    single, pascal = len(chain) == 1, any(_PASCAL.match(word.text) for word in chain)
    if len(chain[0].text) < 2 or all(word.is_upper_case for word in chain) or (single and opens and not pascal):
        return None
    if single and _NATIONALITY.fullmatch(chain[0].folded):
        return None
    human = after in WORDS["person_verbs"] or (before in WORDS["before_person"] and not opens)
    if (
        human
        and not pascal
        and len(chain) < 4
        and not any(word.is_upper_case or word.folded in _PRODUCTS for word in chain)
    ):
        return EntityType.PERSON
    return EntityType.THING
