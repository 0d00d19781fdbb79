"""Checks by rules whether the words of a language model about a text stand in the text, and give no orders.

A rule cannot tell whether a sentence is true. It can tell that every name, identifier, path and number of it stands in
the source, that most of its words do, and that it denies nothing where the source denies nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from recollect.domain.enums import EntityType
from recollect.domain.results import Entity
from recollect.engines.describe import Description, Triple
from recollect.prompt.orders import gives_orders
from recollect.text import layers
from recollect.text.entities import entities
from recollect.text.normalization import fold
from recollect.text.sentences import sentences
from recollect.text.terms import topic_words

MOST_FACTS: Final = 12
MOST_ENTITIES: Final = 20

_SHARE: Final = 0.5  # of the words that carry meaning, which must be the source's
_NAME: Final = 100  # characters of an end of a fact, or of an entity
_PREDICATE_WORDS: Final = 5
_ENTITY_WORDS: Final = 6
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_MIXED: Final = re.compile(r"(?<!\w)[^\W\d]*+\d\w*")
_MEASURE: Final = re.compile(r"\d+[^\W\d_]{0,3}")  # 10, 10s, 10ms
_DENIED: Final = re.compile(r"\b(?:not|never|no|none|nor|neither|without|cannot|\w+n['’]t)\b")
_GIVEN_UP: Final = re.compile(
    r"\b(?:stop(?:s|ped)?|drop(?:s|ped)?|avoid(?:s|ed)?|(?:mov|switch|migrat)ed (?:off|away|from)|remov(?:e|es|ed)|"
    r"replaced?|instead of|rather than|banned|forbidden|gave up|given up|got rid of|used to|quit|hate[sd]?|dislikes?)\b"
)
_JOINING: Final = frozenset(
    "is are was be has have had of in at on by to for from with as a an the uses use it its".split()
)
_BY_MODEL: Final = frozenset(
    {EntityType.PERSON, EntityType.ORGANISATION, EntityType.PLACE, EntityType.THING, EntityType.CONCEPT}
)
"""The kinds of entity that have no shape, which rules find by capital letters only; of the others rules find all."""


def grounded_description(said: Description, source: str) -> Description:
    """Return the parts of a description that the source bears out, cut to their lengths; other parts are empty."""
    return Description(
        title=_grounded_line(said.title, source, layers.title),
        abstract=_grounded_line(said.abstract, source, layers.one_line),
        overview=_grounded_line(said.overview, source, layers.overview),
        facts=_stated_facts(said.facts, source),
        entities=_named_entities(said.entities, source),
    )


def is_grounded(said: str, source: str, share: float = _SHARE) -> bool:
    """Say whether all particulars of a text stand in its source, and a `share` (0–1) of its words.

    A text that denies something needs a source that denies something, or says that something was given up.
    """
    told, plain = _folded(said), _folded(source)
    if _DENIED.search(told) and not (_DENIED.search(plain) or _GIVEN_UP.search(plain)):
        return False
    if not _numbers_of(told) <= _numbers_of(plain) or not all(
        _stands_in(one, plain) for one in _words_with_digits(told)
    ):
        return False
    if not all(_stands_in(_folded(one.name), plain) for one in entities(said)):
        return False
    words = topic_words(said)
    return bool(words) and len(words & topic_words(source)) >= share * len(words)


def _grounded_line(said: str, source: str, cut: Callable[[str], str]) -> str:
    """Return a text on one line, cut to its length; empty where the source does not bear it out."""
    whole = " ".join(said.split())
    line = cut(whole) if whole else ""
    return line if line and is_grounded(line.rstrip("…"), source) and not gives_orders(whole) else ""


def _stated_facts(facts: Iterable[Triple], source: str) -> tuple[Triple, ...]:
    """Return the triples that a sentence of the source states: it holds subject and object, and denies nothing."""
    stated = [one for each in sentences(source) if not _DENIED.search(one := _folded(each))]
    found: dict[tuple[str, str, str], Triple] = {}
    for subject, predicate, what in facts:
        ends = (_folded(subject), _folded(what))
        words = re.findall(r"\w+", fold(predicate).replace("_", " "))
        if ends[0] == ends[1] or not words or len(words) > _PREDICATE_WORDS or not all(map(_is_name, ends)):
            continue
        if any(_states_triple(one, ends, words) for one in stated) and not gives_orders(
            f"{subject} {predicate} {what}"
        ):
            tidy = (" ".join(subject.split()), "_".join(words), " ".join(what.split()))
            found.setdefault((ends[0], tidy[1], ends[1]), tidy)
    return tuple(found.values())[:MOST_FACTS]


def _states_triple(sentence: str, ends: Sequence[str], words: Sequence[str]) -> bool:
    """Say whether a sentence holds both ends of a triple and all words of its predicate."""
    theirs = topic_words(sentence)
    related = all(topic_words(word) <= theirs for word in words if word not in _JOINING)
    return related and all(_stands_in(one, sentence) for one in ends)


def _named_entities(named: Iterable[Entity], source: str) -> tuple[Entity, ...]:
    """Return the entities whose names stand in the source, each once by its folded name."""
    plain = _folded(source)
    found: dict[str, Entity] = {}
    for one in named:
        name, words = _folded(one.name), one.name.split()
        if one.type in _BY_MODEL and _is_name(name) and len(words) <= _ENTITY_WORDS and _stands_in(name, plain):
            found.setdefault(name, Entity(name=" ".join(words), type=one.type))
    return tuple(found.values())[:MOST_ENTITIES]


def _is_name(folded: str) -> bool:
    """Say whether a folded text is short enough for a name, and has a word of a topic or a number."""
    return len(folded) <= _NAME and bool(topic_words(folded) or _NUMBER.search(folded))


def _folded(text: str) -> str:
    return " ".join(fold(text).split())


def _stands_in(name: str, plain: str) -> bool:
    """Say whether a folded name stands in a folded text as whole words."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", plain) is not None


def _numbers_of(plain: str) -> set[str]:
    """Return the numbers of a text, without commas and leading zeros, so that 07 is 7 and 1,000 is 1000."""
    return {one.replace(",", "").lstrip("0") or "0" for one in _NUMBER.findall(plain)}


def _words_with_digits(plain: str) -> list[str]:
    """Return the words that hold a digit and are not a number with its unit."""
    return [one for one in _MIXED.findall(plain) if not _MEASURE.fullmatch(one)]
