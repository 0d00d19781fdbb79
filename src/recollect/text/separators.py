"""Characters that end a line, a page, a paragraph or a record: where they are removed, words must stay apart."""

from __future__ import annotations

import re
from typing import Final

SEPARATORS: Final = re.compile(r"[\r\v\f\x1c-\x1f\x85\u2028\u2029\u3164\uffa0]+")
"""What ends a line, a page, a paragraph, a record or a field, but for tabs and `\\n`; and letters that look empty."""

_SPACED: Final = str.maketrans(dict.fromkeys("\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029", " "))


def gap_for(removed: re.Match[str]) -> str:
    """Return the replacement of a removed match: a space where words would otherwise join, else ''."""
    text, start, end = removed.string, removed.start(), removed.end()
    before, after = text[max(start - 1, 0) : start], text[end : end + 1]
    return " " if before and after and not before.isspace() and not after.isspace() else ""


def with_spaces(text: str) -> str:
    """Return a text of the same length with a space in the place of each separator."""
    return text.translate(_SPACED)
