"""Names in a query: whoever speaks in the store may be asked about, and a name drowns the topic when it is embedded."""

from __future__ import annotations

import re
from collections.abc import Iterable

from recollect.policy.terms import fold

_ROLES = frozenset({"user", "assistant", "system", "human", "ai"})
_WORD = re.compile(r"\w+")
_SHORTEST = 3
_LONGEST = 64


def words_of(name: str) -> frozenset[str]:
    """Return the folded words of a name, under which the store can look it up."""
    return frozenset(word for word in _WORD.findall(fold(name)) if len(word) <= _LONGEST)


def naming(text: str) -> frozenset[str]:
    """Return those words of a query or a name by which somebody is named: neither roles nor the shortest ones."""
    return frozenset(word for word in words_of(text) if len(word) >= _SHORTEST) - _ROLES


def named(query: str, speakers: Iterable[str]) -> frozenset[str]:
    """Return those of `speakers` whom the query names, by any word of their name; roles are nobody's name."""
    asked = naming(query)
    return frozenset(one for one in speakers if asked & naming(one))


def without(query: str, names: Iterable[str]) -> str:
    """Return the query without the words of `names`, or as it is when nothing else would be left."""
    dropped = {word for name in names for word in naming(name)}
    if not dropped:
        return query
    kept = [part for part in query.split() if not set(_WORD.findall(fold(part))) & dropped]
    return " ".join(kept) if kept else query
