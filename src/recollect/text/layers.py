"""Layers of a text (L0 abstract, L1 overview) and its chunks for the embedding model.

Cut long content into stretches that the embedding model sees whole.

The layers of a memory that nobody wrote: a title, a one-line abstract and an overview, taken from its content.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recollect.text.writing_systems import cut, holds_dense

_SENTENCE = re.compile(r"(?<=[.!?。！？।؟۔။។])\s+|\n+|(?<=[。！？])")
_MARKS = re.compile(r"^(?:[\s>]+|`{3,}|#+\s|[*\-–•]+\s|\d{1,3}[.)]\s)+")
_TITLE = 80
_ABSTRACT_WORDS = 20
_ABSTRACT = 200
_DENSE = 80  # about twenty words of Chinese
_OVERVIEW = 600
_TRAILING = " ,;:、，；："


def title(content: str) -> str:
    """Return the first sentence, at most 80 characters."""
    return shortened(_first(content), _TITLE)


def abstract(content: str) -> str:
    """Return L0: the first sentence, at most 20 words and 200 characters."""
    return one_line(_first(content))


def one_line(text: str) -> str:
    """Return the beginning of `text` on one line, at most 20 words and 200 columns, or 80 in scripts without spaces."""
    words = text.split()
    line = " ".join(words[:_ABSTRACT_WORDS])
    if len(words) > _ABSTRACT_WORDS:
        line = line.rstrip(_TRAILING) + "…"
    return shortened(line, _DENSE if holds_dense(line) else _ABSTRACT)


def overview(content: str) -> str:
    """Return L1: the first sentences, at most 600 characters."""
    taken = ""
    for sentence in sentences(content):
        longer = f"{taken} {sentence}".strip()
        if len(longer) > _OVERVIEW:
            return taken or shortened(longer, _OVERVIEW)
        taken = longer
    return taken


def sentences(content: str) -> list[str]:
    """Return the sentences and lines of a text, without what stands between them."""
    return [sentence.strip() for sentence in _SENTENCE.split(content.strip())]


def _first(content: str) -> str:
    plain = _MARKS.sub("", content).strip() or content.strip()
    return _SENTENCE.split(plain)[0].strip()


def shortened(line: str, length: int) -> str:
    """Return the beginning of `line` with at most `length` characters; what is cut ends in an ellipsis."""
    if cut(line, length) == line:
        return line
    kept = cut(line, length - 1)
    return (kept[: kept.rfind(" ")] if " " in kept[length // 2 :] else kept).rstrip(_TRAILING) + "…"


_BREAK = re.compile(r"\n\s*|(?<=[.!?。！？;।؟۔။។])\s+|(?<=[。！？])")


def chunk(text: str, tokens: Sequence[tuple[int, int]], size: int, overlap: int) -> list[tuple[int, int]]:
    """Return character spans of `text` with at most `size` tokens each, about `overlap` of them shared.

    `tokens` are the character offsets of the text's tokens, in order. A span ends at the last paragraph, line
    or sentence break of its second half, where there is one. Text of at most `size` tokens is one span.
    """
    if len(tokens) <= size:
        return [(0, len(text))]
    breaks = {match.end() for match in _BREAK.finditer(text)}
    spans: list[tuple[int, int]] = []
    first = 0
    while first < len(tokens):
        last = min(first + size, len(tokens))
        if last < len(tokens):
            last = _end(tokens, breaks, first, last)
        spans.append((tokens[first][0], tokens[last - 1][1]))
        if last >= len(tokens):
            break
        first = max(last - overlap, first + 1)
    return spans


def _end(tokens: Sequence[tuple[int, int]], breaks: set[int], first: int, last: int) -> int:
    """Return how many tokens in the span should end: after the latest break in its second half, else at `last`."""
    for number in range(last, (first + last) // 2, -1):
        if tokens[number][0] in breaks:
            return number
    return last
