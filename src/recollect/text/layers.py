"""The layers of a memory that nobody wrote: a title, a one-line abstract and an overview, taken from its content."""

from __future__ import annotations

import re

from recollect.text.sentences import first_sentence, sentences
from recollect.text.writing_systems import cut_to_width, holds_dense

_MARKS = re.compile(r"^(?:[\s>]+|`{3,}|#+\s|[*\-–•]+\s|\d{1,3}[.)]\s)+")
_MAX_TITLE = 80
_ABSTRACT_WORDS = 20
_MAX_ABSTRACT = 200
_DENSE = 80  # about twenty words of Chinese
_MAX_OVERVIEW = 600
_TRAILING = " ,;:、，；："


def title(content: str) -> str:
    """Return the first sentence, at most 80 characters."""
    return shortened(_first_plain_sentence(content), _MAX_TITLE)


def abstract(content: str) -> str:
    """Return L0: the first sentence, at most 20 words and 200 characters."""
    return one_line(_first_plain_sentence(content))


def one_line(text: str) -> str:
    """Return the beginning of `text` on one line, at most 20 words and 200 columns, or 80 in scripts without spaces."""
    words = text.split()
    line = " ".join(words[:_ABSTRACT_WORDS])
    if len(words) > _ABSTRACT_WORDS:
        line = line.rstrip(_TRAILING) + "…"
    return shortened(line, _DENSE if holds_dense(line) else _MAX_ABSTRACT)


def overview(content: str) -> str:
    """Return L1: the first sentences, at most 600 characters."""
    taken = ""
    for sentence in sentences(content):
        longer = f"{taken} {sentence}".strip()
        if len(longer) > _MAX_OVERVIEW:
            return taken or shortened(longer, _MAX_OVERVIEW)
        taken = longer
    return taken


def _first_plain_sentence(content: str) -> str:
    return first_sentence(_MARKS.sub("", content)) or first_sentence(content)


def shortened(line: str, length: int) -> str:
    """Return the beginning of `line` with at most `length` characters; a line that was cut ends in an ellipsis."""
    if cut_to_width(line, length) == line:
        return line
    kept = cut_to_width(line, length - 1)
    return (kept[: kept.rfind(" ")] if " " in kept[length // 2 :] else kept).rstrip(_TRAILING) + "…"
