"""Replacement: what a person says is gone, and whether a memory says to use just that.

It is sure only where the words of replacement name something, and the older memory has every one of those names, in its
subject or behind a word of use. What names the thing beside its own subject stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from recollect.text.normalization import fold
from recollect.text.terms import STOP_WORDS, stem

_PHRASE: Final = r"(?P<what>(?:[^.;:!?\n]|\.(?=\w)){3,80}?)"
_END: Final = r"(?=[;:,!?\n]|\.(?!\w)|$)"
_GONE: Final = (
    re.compile(
        rf"\bforget (?:about )?(?:the|that|about|our|what we said about) {_PHRASE}(?: thing| stuff| rule|"
        rf" part)?{_END}"
    ),
    re.compile(
        rf"(?:^|[.;:,!?\n]|\bso\b|\band\b|\bbut\b) ?{_PHRASE} (?:is|are|was|were|has been|have been) (?:now )?(?:gone|"
        rf"history|dead|retired|"
        r"obsolete|deprecated|replaced|removed|shut down|decommissioned|switched off|no longer|not used any ?more)\b"
    ),
    re.compile(
        rf"\b(?:no longer|don'?t|do not|never) (?:use|need|run|have|want|support) (?:the |a |any )?{_PHRASE}(?: any "
        rf"?more)(?=\W|$)"
    ),
    re.compile(rf"\bno longer (?:use|need|run|have|want|support)s? (?:the |a |any )?{_PHRASE}{_END}"),
    re.compile(
        rf"\b(?:replaced|dropped|removed|retired|killed) (?:the |our )?{_PHRASE}(?: (?:with|by|for|in favou?r of|"
        rf"completely)\b|{_END})"
    ),
    re.compile(rf"\b(?:moved|migrated|switched) (?:\w+ ){{0,4}}from (?:the |our )?{_PHRASE} (?:to|over)\b"),
    re.compile(rf"\binstead of the old {_PHRASE}{_END}"),
)
_NO_LONGER: Final = re.compile(
    rf"(?:^|[.;:!?\n]) ?(?P<subject>[^.;:!?\n]{{0,120}}?)\bno longer (?:\w+ )?(?P<link>from|with|by|via|through|in|on|"
    rf"to) (?:the |our )?{_PHRASE}(?=[;:,!?\n]|\.(?!\w)|$| (?:but|since|because|as|so|and)\b)"
)
_USING: Final = frozenset(
    "use uses using used run runs running start starts call calls need needs want wants support supports prefer choose "
    "deploy deploys build builds install import make with via from by through up to take takes".split()
)
_BESIDE: Final = 3  # words from such a word to a name, and of a sentence that are its subject
_SENTENCE: Final = re.compile(r"(?<=[.!?;:])\s+|\n+")
_AND: Final = re.compile(r",| and | or ")
_WORD: Final = re.compile(r"[\w][\w./+-]*[\w]|\w")
_EMPTY: Final = frozenset(
    "thing things stuff old new way anymore now rule part everything whole one ones entire completely used using use "
    "idea "
    "plan approach setup same current previous former today yesterday week".split()
)


@dataclass(frozen=True, slots=True)
class Gone:
    """The names of a thing that is gone; with a `link` only as what some `subject` was from, with or on."""

    names: frozenset[str]
    link: str = ""
    subject: frozenset[str] = frozenset()


def replaced(text: str) -> tuple[Gone, ...]:
    """Return each thing that a text says is gone; a thing without a name of its own is left out."""
    folded = fold(text).replace("’", "'")
    found: dict[Gone, None] = {}
    for pattern in (*_GONE, _NO_LONGER):
        for match in pattern.finditer(folded):
            said = match.groupdict()
            subject = frozenset(_names(said.get("subject", "")))
            for part in _AND.split(match["what"]):
                names = frozenset(_names(part))
                if names and (len(names) > 1 or any(re.search(r"[\d./_-]", name) for name in names)):
                    found.setdefault(Gone(names, said.get("link", ""), subject))
    return tuple(found)


def is_about(text: str, gone: tuple[Gone, ...]) -> bool:
    """Say whether a memory says to use one of the replaced things, or tells something of it."""
    folded = fold(text)
    words = frozenset(_names(folded))
    sentences = [[_bare(word) for word in one.split()] for one in _SENTENCE.split(folded)]
    return any(
        one.names <= words and (not one.subject or one.subject & words) and any(_tells(said, one) for said in sentences)
        for one in gone
    )


def _tells(sentence: list[str], gone: Gone) -> bool:
    """Say whether a sentence begins with what is gone, or has it behind a word of use, an option, or its link."""
    for place in (place for place, word in enumerate(sentence) if stem(word.lstrip("-")) in gone.names):
        before = sentence[max(place - _BESIDE, 0) : place]
        if gone.link and gone.link in before:
            return True
        if not gone.link and (place < _BESIDE or any(word in _USING or word[:1] == "-" for word in before)):
            return True
    return False


def _bare(word: str) -> str:
    return word.strip("`'\"()[]{}<>*.,;:!?")


def _names(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        if word not in STOP_WORDS and word not in _EMPTY:
            yield stem(word)
