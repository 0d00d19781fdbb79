"""Short forms that developers write, such as `k8s`, and what they are short for; the table is `short_forms.toml`."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from recollect.text.normalization import fold

_WORD: Final = re.compile(r"[^\W_]+")
_MAX_FORM_WORDS: Final = 3  # words
_MAX_QUERY_WORDS: Final = 100  # of a query that are looked at


@cache
def short_form_table() -> Mapping[str, tuple[str, ...]]:
    """Return, by each form of the table, short or long, its other forms."""
    rows = tomllib.loads(Path(__file__).with_name("short_forms.toml").read_text(encoding="utf-8"))
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for short, long_forms in rows.items():
        for long_form in long_forms:
            found[short][long_form] = found[long_form][short] = None
    return {form: tuple(others) for form, others in found.items()}


def other_forms(query: str) -> dict[str, tuple[str, ...]]:
    """Return, by each part of the query that has a short or a long form, its other forms; the part is folded.

    The plural of a form counts as the form. A word within a longer form counts for that alone.
    """
    words, found, at = _WORD.findall(fold(query))[:_MAX_QUERY_WORDS], dict[str, tuple[str, ...]](), 0
    while at < len(words):
        for count in range(min(_MAX_FORM_WORDS, len(words) - at), 0, -1):
            written = " ".join(words[at : at + count])
            if others := next(filter(None, map(short_form_table().get, _possible_singulars(written))), ()):
                found[written] = others
                at += count - 1
                break
        at += 1
    return found


def plural_of(word: str) -> str:
    """Return the regular plural of an English word."""
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def _possible_singulars(words: str) -> tuple[str, ...]:
    """Return the words as they stand, then the words of which they may be the plural."""
    if words.endswith("ies"):
        return words, f"{words[:-3]}y", words[:-1]
    return (words, words[:-1], words[:-2]) if words.endswith("es") else (words, words.removesuffix("s"))
