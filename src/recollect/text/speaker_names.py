"""Names of speakers, in queries and in transcripts: a name drowns the topic when it is embedded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from recollect.text.normalization import fold

_ROLES = frozenset({"user", "assistant", "system", "human", "ai"})
_NAME_PART = re.compile(r"\w+")
_TURN = re.compile(r"^([A-Z][\w.\-]*(?: [A-Z][\w.\-]*)?):\s", re.MULTILINE)
_SHORTEST = 3
_LONGEST_PART = 64


def words_of(name: str) -> frozenset[str]:
    """Return the folded words of a name, under which the store can look it up."""
    return frozenset(word for word in _NAME_PART.findall(fold(name)) if len(word) <= _LONGEST_PART)


def name_words(text: str) -> frozenset[str]:
    """Return the words of a query or a name that can name a person: no roles, and none of the shortest words."""
    return frozenset(word for word in words_of(text) if len(word) >= _SHORTEST) - _ROLES


def named_speakers(words: frozenset[str], speakers: Iterable[str]) -> frozenset[str]:
    """Return the speakers whose name holds a word of `words`, the `name_words` of a query."""
    return frozenset(speaker for speaker in speakers if words & name_words(speaker))


def without_names(query: str, names: Iterable[str]) -> str:
    """Return the query without the words of `names`; unchanged where nothing else would be left."""
    dropped = {word for name in names for word in name_words(name)}
    if not dropped:
        return query
    kept = [part for part in query.split() if not set(_NAME_PART.findall(fold(part))) & dropped]
    return " ".join(kept) if kept else query


def transcript_speakers(text: str) -> frozenset[str]:
    """Return the speakers of a transcript: a text in which most lines begin with a name, and names recur."""
    lines = [line for line in text.splitlines() if line.strip()]
    turns = Counter(_TURN.findall(text))
    often = frozenset(name for name, count in turns.items() if count > 1)
    return often if turns.total() >= max(4, 0.5 * len(lines)) and 2 <= len(often) <= 8 else frozenset()
