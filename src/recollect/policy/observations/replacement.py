"""Replacement: what a person says is gone, and whether a memory is about just that.

It is sure only where the words of replacement name something, and the older memory has every one of those names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from recollect.policy.text.normalization import fold
from recollect.policy.text.terms import STOP_WORDS, stem

_PHRASE: Final = r"(?P<what>[^.;:!?\n]{3,80}?)"
_GONE: Final = (
    re.compile(
        rf"\bforget (?:about )?(?:the|that|about|our|what we said about) {_PHRASE}(?: thing| stuff| rule|"
        rf" part)?(?=[.;:,!?\n]|$)"
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
    re.compile(rf"\bno longer (?:use|need|run|have|want|support)s? (?:the |a |any )?{_PHRASE}(?=[.;:,!?\n]|$)"),
    re.compile(
        rf"\b(?:replaced|dropped|removed|retired|killed) (?:the |our )?{_PHRASE}(?: (?:with|by|for|in favou?r of|"
        rf"completely)\b|(?=[.;:,!?\n]|$))"
    ),
    re.compile(rf"\b(?:moved|migrated|switched) (?:\w+ ){{0,4}}from (?:the |our )?{_PHRASE} (?:to|over)\b"),
    re.compile(rf"\binstead of the old {_PHRASE}(?=[.;:,!?\n]|$)"),
)
_AND: Final = re.compile(r",| and | or ")
_WORD: Final = re.compile(r"[\w][\w./+-]*[\w]|\w")
_EMPTY: Final = frozenset(
    "thing things stuff old new way anymore now rule part everything whole one ones entire completely used using use "
    "idea "
    "plan approach setup same current previous former today yesterday week".split()
)


def replaced(text: str) -> tuple[frozenset[str], ...]:
    """Return the names of each thing that a text says is gone; a thing without a name of its own is left out."""
    folded = fold(text).replace("’", "'")
    found: dict[frozenset[str], None] = {}
    for pattern in _GONE:
        for match in pattern.finditer(folded):
            for part in _AND.split(match["what"]):
                names = frozenset(_names(part))
                if names and (len(names) > 1 or any(re.search(r"[\d./_-]", name) for name in names)):
                    found.setdefault(names)
    return tuple(found)


def is_about(text: str, gone: tuple[frozenset[str], ...]) -> bool:
    """Say whether a memory names all that one of the replaced things is called by."""
    words = set(_names(fold(text)))
    return any(names <= words for names in gone)


def _names(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        if word not in STOP_WORDS and word not in _EMPTY:
            yield stem(word)
