"""The layers of a memory that nobody wrote: a title, a one-line abstract and an overview, taken from its content."""

from __future__ import annotations

import re

_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+|(?<=[。！？])")
_MARKS = re.compile(r"^(?:[\s>]+|`{3,}|#+\s|[*\-–•]+\s|\d{1,3}[.)]\s)+")
_TITLE = 80
_ABSTRACT_WORDS = 20
_ABSTRACT = 200
_OVERVIEW = 600


def title(content: str) -> str:
    """Return the first sentence, at most 80 characters."""
    return _shortened(_first(content), _TITLE)


def abstract(content: str) -> str:
    """Return L0: the first sentence, at most 20 words and 200 characters."""
    words = _first(content).split()
    line = " ".join(words[:_ABSTRACT_WORDS])
    return _shortened(line.rstrip(" ,;:") + "…" if len(words) > _ABSTRACT_WORDS else line, _ABSTRACT)


def overview(content: str) -> str:
    """Return L1: the first sentences, at most 600 characters."""
    taken = ""
    for sentence in _SENTENCE.split(content.strip()):
        longer = f"{taken} {sentence.strip()}".strip()
        if len(longer) > _OVERVIEW:
            return taken or _shortened(longer, _OVERVIEW)
        taken = longer
    return taken


def _first(content: str) -> str:
    plain = _MARKS.sub("", content).strip() or content.strip()
    return _SENTENCE.split(plain)[0].strip()


def _shortened(line: str, length: int) -> str:
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    return (cut[: cut.rfind(" ")] if " " in cut[length // 2 :] else cut).rstrip(" ,;:") + "…"
